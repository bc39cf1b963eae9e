"""Kernel values a panel at a time: against NumPy, and to the last bit against themselves."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.support import dense_store
from streamsvm.support.kernel_rows.kernel_values import kernel_values
from streamsvm.support.tiles import PANEL
from tests.kernels.test_values import KERNELS, Cosine, Manhattan, Quadratic, expected, values

USERS = [Cosine(0.7), Quadratic(2.0), Manhattan(0.3)]
EVERY = KERNELS + USERS


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


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 70),
    st.integers(1, 75),
    st.integers(1, 40),
    st.sampled_from(EVERY),
    st.lists(st.integers(1, 69), max_size=5),
    st.integers(0, 2**32 - 1),
)
def test_any_split_into_blocks_gives_the_same_bits(n_rows, n_slots, d, kernel, cuts, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, d)).astype(np.float32)
    z = rng.normal(size=(n_slots, d)).astype(np.float32)
    together = values(kernel, x, z)
    edges = sorted({0, n_rows, *(c for c in cuts if c < n_rows)})
    parts = [values(kernel, x[a:b], z) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(together, np.concatenate(parts))
    np.testing.assert_array_equal(together, values(kernel, x, z, block=1))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.integers(1, 40), st.sampled_from(EVERY), st.integers(0, 2**32 - 1))
def test_the_matrix_is_symmetric_to_the_bit(n, d, kernel, seed):
    x = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    matrix = values(kernel, x, x)
    np.testing.assert_array_equal(matrix, matrix.T)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 200), st.integers(0, 200), st.sampled_from(EVERY))
def test_a_range_fills_its_panels_and_no_other(a, b, kernel):
    first, stop = min(a, b), max(a, b)
    rng = np.random.default_rng(3)
    x, z = (rng.normal(size=(n, 6)).astype(np.float32) for n in (5, 200))
    store = dense_store.new_store(200, 6)
    for slot, row in enumerate(z):
        dense_store.put(store, slot, row)
    out = np.full((5, store.entered.size), np.float32(-77.0))
    kernel_values(kernel, store, x, 5, 6, first, stop, out)
    begin = first // PANEL * PANEL if stop > first else 0
    end = -(-stop // PANEL) * PANEL if stop > first else 0
    np.testing.assert_array_equal(out[:, first:stop], values(kernel, x, z)[:, first:stop])
    assert (out[:, :begin] == -77.0).all() and (out[:, end:] == -77.0).all()


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_only_the_rows_and_features_that_count_take_part(kernel):
    rng = np.random.default_rng(4)
    x, z = (rng.normal(size=(n, 9)).astype(np.float32) for n in (7, 40))
    store = dense_store.new_store(40, 9)
    for slot, row in enumerate(z):
        dense_store.put(store, slot, row)
    out = np.full((7, store.entered.size), np.float32(-77.0))
    kernel_values(kernel, store, x, 5, 4, 0, 40, out)
    narrow = np.ascontiguousarray(x[:5, :4]), np.ascontiguousarray(z[:, :4])
    np.testing.assert_array_equal(out[:5, :40], values(kernel, *narrow))
    assert (out[5:] == -77.0).all()


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_evaluate_agrees(kernel):
    rng = np.random.default_rng(5)
    x, z = rng.normal(size=(2, 6)).astype(np.float32)
    got = float(values(kernel, x[None], z[None])[0, 0])
    assert kernels.evaluate(kernel, x.tolist(), z.tolist()) == pytest.approx(got, rel=1e-5)
