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


USERS = [Cosine(0.7), Quadratic(2.0), Manhattan(0.3)]
EVERY = KERNELS + USERS


def expected(kernel, x, z):
    """Return all values in double precision."""
    x, z = x.astype(float), z.astype(float)
    dots, differences = x @ z.T, x[:, None] - z[None]
    squares = (differences**2).sum(axis=2)
    return {
        kernels.Linear: lambda k: k.scale * dots,
        kernels.Polynomial: lambda k: (k.gamma * dots + k.coef0) ** k.degree,
        kernels.RBF: lambda k: np.exp(-k.gamma * squares),
        Cosine: lambda k: k.scale * dots + 1.0,
        Quadratic: lambda k: 1.0 / (1.0 + squares / k.scale),
        Manhattan: lambda k: np.exp(-k.gamma * np.abs(differences).sum(axis=2)),
    }[type(kernel)](kernel)


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


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_values_are_numpys(kernel):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 7)).astype(np.float32)
    z = rng.normal(size=(70, 7)).astype(np.float32)
    found = values(kernel, x, z)
    np.testing.assert_allclose(found, expected(kernel, x, z), rtol=3e-6, atol=3e-6)
    assert kernels.evaluate(kernel, x[0].tolist(), z[0].tolist()) == pytest.approx(
        float(found[0, 0]), rel=1e-5
    )


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
