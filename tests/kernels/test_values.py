from typing import NamedTuple

import numpy as np
import pytest

from streamsvm import kernels
from streamsvm.errors import ParameterError
from streamsvm.support import dense_store
from streamsvm.support.kernel_rows.kernel_values import kernel_values

KERNELS = [
    kernels.Linear(),
    kernels.Linear(scale=0.5),
    kernels.Polynomial(degree=2, gamma=0.3, coef0=0.5),
    kernels.Polynomial(),
    kernels.RBF(gamma=0.7),
]


def expected(kernel, x, z):
    dots = x.astype(float) @ z.astype(float).T
    if isinstance(kernel, kernels.Linear):
        return kernel.scale * dots
    if isinstance(kernel, kernels.Polynomial):
        return (kernel.gamma * dots + kernel.coef0) ** kernel.degree
    squares = ((x[:, None].astype(float) - z[None].astype(float)) ** 2).sum(axis=2)
    return np.exp(-kernel.gamma * squares)


def values(kernel, x, z, block=None):
    store = dense_store.new_store(len(z), z.shape[1])
    for slot, row in enumerate(z):
        dense_store.put(store, slot, row)
    out = np.zeros((len(x), store.entered.size), np.float32)
    size = block or len(x)
    for r in range(0, len(x), size):
        part = x[r : r + size]
        kernel_values(kernel, store, part, len(part), z.shape[1], 0, len(z), out[r : r + size])
    return out[:, : len(z)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_numpys(kernel):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 7)).astype(np.float32)
    z = rng.normal(size=(70, 7)).astype(np.float32)
    np.testing.assert_allclose(values(kernel, x, z), expected(kernel, x, z), rtol=3e-6, atol=3e-6)


class Cosine(NamedTuple):
    scale: float


class Quadratic(NamedTuple):
    scale: float


class Manhattan(NamedTuple):
    gamma: float


@kernels.register(Cosine, of="dot")
def cosine(kernel, product):
    return kernel.scale * product + 1.0


@kernels.register(Quadratic, of="distance")
def quadratic(kernel, product):
    return 1.0 / (1.0 + product / kernel.scale)


@kernels.register(Manhattan)
def manhattan(kernel, x, z):
    total = 0.0
    for i in range(len(x)):
        total += abs(x[i] - z[i])
    return np.exp(-kernel.gamma * total)


def test_kernels_of_users():
    rng = np.random.default_rng(2)
    x, z = (rng.normal(size=(n, 5)).astype(np.float32) for n in (6, 40))
    squares = ((x[:, None] - z[None]) ** 2).sum(axis=2)
    city = np.abs(x[:, None] - z[None]).sum(axis=2)
    np.testing.assert_allclose(values(Cosine(2.0), x, z), 2 * x @ z.T + 1, atol=1e-5)
    np.testing.assert_allclose(values(Quadratic(3.0), x, z), 1 / (1 + squares / 3), atol=1e-6)
    np.testing.assert_allclose(values(Manhattan(0.2), x, z), np.exp(-0.2 * city), atol=1e-6)


def test_what_is_no_kernel_is_refused():
    class Unregistered(NamedTuple):
        a: float

    with pytest.raises(ParameterError, match="not a registered kernel"):
        kernels.check_kernel(Unregistered(1.0))
    with pytest.raises(ParameterError, match=r"scale=2 of Cosine.*1\.0, not 1"):
        kernels.check_kernel(Cosine(2))
    with pytest.raises(ParameterError, match="NamedTuple"):
        kernels.register(dict)
    with pytest.raises(ParameterError, match=r"takes 2 arguments.*takes 3"):
        kernels.register(Unregistered)(lambda kernel, x: 0.0)
    with pytest.raises(ParameterError, match="use 'dot', 'distance' or 'vectors'"):
        kernels.register(Unregistered, of="cosine")
