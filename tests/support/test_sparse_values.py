"""Kernel values of sparse rows against double precision, and against themselves."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.support import sparse_store, stores
from streamsvm.support.rows import cut, sparse
from streamsvm.support.sparse_values import kernel_values
from tests.support.test_sparse_store import random_rows


class Overlap(NamedTuple):
    scale: float


@kernels.register(Overlap)
def _overlap(kernel, x, z):
    total = 0.0
    for i in range(x.size):
        total += min(abs(x[i]), abs(z[i]))
    return kernel.scale * total


KERNELS = {
    "rbf": kernels.RBF(gamma=0.3),
    "linear": kernels.Linear(scale=0.7),
    "polynomial": kernels.Polynomial(degree=2, gamma=0.5, coef0=1.0),
    "vectors": Overlap(scale=0.5),
}


def plain(kernel, x, z):
    """Return all values in double precision."""
    x, z = x.astype(float), z.astype(float)
    if isinstance(kernel, kernels.RBF):
        return np.exp(-kernel.gamma * ((x[:, None] - z[None]) ** 2).sum(axis=2))
    if isinstance(kernel, kernels.Linear):
        return kernel.scale * x @ z.T
    if isinstance(kernel, kernels.Polynomial):
        return (kernel.gamma * x @ z.T + kernel.coef0) ** kernel.degree
    return kernel.scale * np.minimum(np.abs(x[:, None]), np.abs(z[None])).sum(axis=2)


def values(kernel, store, x, n):
    rows = sparse(x)
    out = np.full((len(x), store.start.size), np.nan, np.float32)
    kernel_values(kernel, store, rows, len(x), x.shape[1], 0, n, out)
    return out[:, :n]


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 70))
def test_against_numpy(name, seed, n_rows, n):
    rng = np.random.default_rng(seed)
    x, z = random_rows(rng, n_rows), random_rows(rng, n)
    kernel = KERNELS[name]
    store = stores.filled(sparse_store.new_store(n, x.shape[1]), sparse(z))
    found = values(kernel, store, x, n)
    np.testing.assert_allclose(found, plain(kernel, x, z), rtol=2e-6, atol=2e-6)
    # Nothing is left behind in the scratch.
    assert not store.place.any() and not store.flat.any()


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70))
def test_the_same_bits_however_computed(name, seed, n):
    rng = np.random.default_rng(seed)
    z = random_rows(rng, n)
    kernel = KERNELS[name]
    store = stores.filled(sparse_store.new_store(n, z.shape[1]), sparse(z))
    together = values(kernel, store, z, n)
    np.testing.assert_array_equal(together, together.T)
    for r in range(n):
        np.testing.assert_array_equal(values(kernel, store, z[r : r + 1], n)[0], together[r])
    first = int(rng.integers(n))
    out = np.full((n, store.start.size), np.nan, np.float32)
    kernel_values(kernel, store, sparse(z), n, z.shape[1], first, n, out)
    np.testing.assert_array_equal(out[:, first:n], together[:, first:])
    assert np.isnan(out[:, :first]).all()


def test_long_rows_lose_no_digits():
    rng = np.random.default_rng(1)
    x = (1000.0 + rng.normal(size=(2, 300))).astype(np.float32)
    x[1] = x[0]
    x[1, 7] += 0.5
    store = stores.filled(sparse_store.new_store(2, 300), sparse(x))
    kernel = kernels.RBF(gamma=1.0)
    np.testing.assert_allclose(values(kernel, store, x, 2), plain(kernel, x, x), rtol=1e-6)


def test_a_group_of_many_columns_is_cut():
    d = 3 * sparse_store.MOST_COLUMNS
    rng = np.random.default_rng(2)
    x = random_rows(rng, 12, d, 0.4)
    x[0] = 0.0
    kernel = kernels.Linear()
    store = stores.filled(sparse_store.new_store(12, d), sparse(x))
    found = values(kernel, store, x, 12)
    np.testing.assert_allclose(found, plain(kernel, x, x), rtol=1e-5, atol=1e-3)
    alone = np.concatenate([values(kernel, store, row[None], 12) for row in x])
    np.testing.assert_array_equal(found, alone)


def test_a_part_of_a_batch():
    rng = np.random.default_rng(3)
    x = random_rows(rng, 9)
    kernel, store = kernels.Linear(), sparse_store.new_store(9, x.shape[1])
    store = stores.filled(store, sparse(x))
    out = np.zeros((4, store.start.size), np.float32)
    kernel_values(kernel, store, cut(sparse(x), 3, 7), 4, x.shape[1], 0, 9, out)
    np.testing.assert_array_equal(out[:, :9], values(kernel, store, x, 9)[3:7])
