"""Kernel values of dense and of sparse rows: against NumPy, and to the last bit themselves."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.support import sparse_store, sparse_values, stores
from streamsvm.support.kernel_rows import kernel_values
from streamsvm.support.rows import cut, sparse
from streamsvm.support.tiles import PANEL
from tests.kernels.test_values import EVERY, KERNELS, Manhattan, expected, values
from tests.support.test_stores import random_rows

of_both = pytest.mark.parametrize("is_sparse", [False, True])
OF_SPARSE = [*KERNELS, Manhattan(0.3)]
UNTOUCHED = np.float32(-77.0)


def store_of(z, is_sparse):
    rows = sparse(z) if is_sparse else z
    return stores.filled(stores.new_store(len(z), z.shape[1], is_sparse), rows)


def fill(kernel, store, x, first, stop, out, n=None, d=None):
    """Compute the values of n rows and d features with the slots first .. stop - 1."""
    is_sparse = isinstance(store, sparse_store.SparseStore)
    n, d = n or len(x), d or x.shape[1]
    if is_sparse:
        sparse_values.kernel_values(kernel, store, sparse(x), n, d, first, stop, out)
    else:
        kernel_values.kernel_values(kernel, store, x, n, d, first, stop, out)
    return out


def all_values(kernel, store, x, n):
    out = np.full((len(x), store.entered.size), np.nan, np.float32)
    return fill(kernel, store, x, 0, n, out)[:, :n]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 20),
    st.floats(1e-3, 1e3),
    st.floats(0.0, 1e4),
    st.floats(1e-3, 1e3),
    st.integers(0, 2**32 - 1),
)
def test_rbf_is_within_1e_6_however_far_out(n, d, spread, centre, gamma, seed):
    # gamma |x|^2 is up to 1e12 here: |x|^2 + |z|^2 - 2 <x, z> would have no digit left.
    rng = np.random.default_rng(seed)
    x = (centre + spread * rng.normal(size=(n, d))).astype(np.float32)
    x[n // 2] = x[0]
    kernel = kernels.RBF(gamma=gamma / spread**2)
    got = values(kernel, x, x)
    np.testing.assert_allclose(got, expected(kernel, x, x), atol=1e-6, rtol=0)
    assert (np.diag(got) == 1.0).all() and got[0, n // 2] == 1.0


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(OF_SPARSE),
    st.integers(0, 2**32 - 1),
    st.integers(1, 70),
    st.integers(1, 70),
)
def test_sparse_values_are_numpys(kernel, seed, n_rows, n):
    rng = np.random.default_rng(seed)
    x, z = random_rows(rng, n_rows), random_rows(rng, n)
    store = store_of(z, True)
    found = all_values(kernel, store, x, n)
    np.testing.assert_allclose(found, expected(kernel, x, z), rtol=2e-6, atol=2e-6)
    # Nothing is left behind in the scratch.
    assert not store.place.any() and not store.flat.any()


@of_both
@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 75),
    d=st.integers(1, 40),
    kernel=st.integers(0, 99),
    cuts=st.lists(st.integers(1, 74), max_size=5),
    part=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_same_bits_however_computed(is_sparse, n, d, kernel, cuts, part, seed):
    """The matrix is symmetric; any split into blocks gives it, and any range fills its panels."""
    kernel = (OF_SPARSE if is_sparse else EVERY)[kernel % len(OF_SPARSE if is_sparse else EVERY)]
    rng = np.random.default_rng(seed)
    z = random_rows(rng, n, d) if is_sparse else rng.normal(size=(n, d)).astype(np.float32)
    store = store_of(z, is_sparse)
    together = all_values(kernel, store, z, n)
    np.testing.assert_array_equal(together, together.T)
    edges = sorted({0, n, *(c for c in cuts if c < n)})
    for blocks in (edges, range(n + 1)):
        parts = [all_values(kernel, store, z[a:b], n) for a, b in pairwise(blocks)]
        np.testing.assert_array_equal(together, np.concatenate(parts))
    first, stop = sorted(int(n * end) for end in part)
    out = np.full((n, store.entered.size), UNTOUCHED)
    fill(kernel, store, z, first, stop, out)
    np.testing.assert_array_equal(out[:, first:stop], together[:, first:stop])
    begin = first if is_sparse else first // PANEL * PANEL
    end = -(-stop // PANEL) * PANEL
    if first == stop:
        begin = end = 0
    assert (out[:, :begin] == UNTOUCHED).all() and (out[:, end:] == UNTOUCHED).all()


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_only_the_rows_and_features_that_count_take_part(kernel):
    rng = np.random.default_rng(4)
    x, z = (rng.normal(size=(n, 9)).astype(np.float32) for n in (7, 40))
    store = store_of(z, False)
    out = fill(kernel, store, x, 0, 40, np.full((7, store.entered.size), UNTOUCHED), n=5, d=4)
    narrow = np.ascontiguousarray(x[:5, :4]), np.ascontiguousarray(z[:, :4])
    np.testing.assert_array_equal(out[:5, :40], values(kernel, *narrow))
    assert (out[5:] == UNTOUCHED).all()


def test_long_rows_lose_no_digits():
    rng = np.random.default_rng(1)
    x = (1000.0 + rng.normal(size=(2, 300))).astype(np.float32)
    x[1] = x[0]
    x[1, 7] += 0.5
    store = store_of(x, True)
    kernel = kernels.RBF(gamma=1.0)
    np.testing.assert_allclose(all_values(kernel, store, x, 2), expected(kernel, x, x), rtol=1e-6)


def test_a_group_of_many_columns_is_cut():
    d = 3 * sparse_store.MOST_COLUMNS
    rng = np.random.default_rng(2)
    x = random_rows(rng, 12, d, 0.4)
    x[0] = 0.0
    kernel = kernels.Linear()
    store = store_of(x, True)
    found = all_values(kernel, store, x, 12)
    np.testing.assert_allclose(found, expected(kernel, x, x), rtol=1e-5, atol=1e-3)
    alone = np.concatenate([all_values(kernel, store, row[None], 12) for row in x])
    np.testing.assert_array_equal(found, alone)


def test_a_part_of_a_batch():
    rng = np.random.default_rng(3)
    x = random_rows(rng, 9)
    kernel, store = kernels.Linear(), store_of(x, True)
    out = np.zeros((4, store.start.size), np.float32)
    sparse_values.kernel_values(kernel, store, cut(sparse(x), 3, 7), 4, x.shape[1], 0, 9, out)
    np.testing.assert_array_equal(out[:, :9], all_values(kernel, store, x, 9)[3:7])
