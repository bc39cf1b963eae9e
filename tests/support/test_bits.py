"""Rows of 0 and 1 as bits: kernel values to the last bit."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.support import dense_store, sparse_store, sparse_values, stores
from streamsvm.support.kernel_rows.kernel_values import kernel_values
from streamsvm.support.rows import sparse
from streamsvm.support.tiles import PANEL
from tests.kernels.test_values import KERNELS, Cosine, Manhattan, Quadratic
from tests.support.test_stores import check_words, rows_of_bits


class Laplace(NamedTuple):
    gamma: float


@kernels.register(Laplace, of="distance")
def laplace(kernel, distance):
    return math.exp(-kernel.gamma * math.sqrt(distance))


SOME = [*KERNELS, kernels.RBF(gamma=0.01), Laplace(0.1)]
EVERY = [*SOME, Cosine(0.7), Quadratic(2.0), Manhattan(0.3)]
HALF = np.float32(0.5)
OTHERS = [HALF, *np.float32([-1.0, 2.0, 1.0 + 2**-23, 1e-45])]


@pytest.mark.parametrize("is_sparse", [False, True])
@settings(max_examples=150, deadline=None)
@given(
    n_rows=st.one_of(st.integers(1, 70), st.integers(1, 5)),
    n=st.integers(1, 400),
    d=st.one_of(st.integers(1, 300), st.sampled_from([63, 64, 65, 127, 128, 129])),
    wider=st.integers(0, 70),
    kernel=st.integers(0, 99),
    part=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    value=st.sampled_from([1.0, 1.0, 0.0, *OTHERS]),
    seed=st.integers(0, 2**32 - 1),
)
def test_values_are_those_of_floats_to_the_last_bit(
    is_sparse, n_rows, n, d, wider, kernel, part, value, seed
):
    rng = np.random.default_rng(seed)
    some = SOME if is_sparse else EVERY
    kernel = some[kernel % len(some)]
    # Stored rows may have features that the fresh ones do not have.
    rows, x = rows_of_bits(rng, n, d + wider), rows_of_bits(rng, n_rows, d)
    if is_sparse:
        rows, x = sparse(rows), sparse(x)
        # Also rows that list zeros.
        x.values[rng.random(x.values.size) < 0.02] = value
    elif value in OTHERS:
        # One other value is enough.
        x[rng.integers(n_rows), rng.integers(d)] = value
    store = stores.filled(stores.new_store(n, d + wider, is_sparse), rows)
    fill = sparse_values.kernel_values if is_sparse else kernel_values
    first, stop = sorted(int(n * end) for end in part)
    counted, summed = np.full((2, n_rows, store.entered.size), HALF)
    fill(kernel, store, x, n_rows, d, first, stop, counted)
    assert store.binary[0]
    store.binary[0] = False
    fill(kernel, store, x, n_rows, d, first, stop, summed)
    part = slice(first, stop) if is_sparse else slice(None)
    np.testing.assert_array_equal(counted[:, part].view(np.uint32), summed[:, part].view(np.uint32))
    begin, end = first // PANEL * PANEL, -(-stop // PANEL) * PANEL
    assert (counted[:, :begin] == HALF).all() and (counted[:, end:] == HALF).all()


@pytest.mark.parametrize("value", [0.5, -1.0, 2.0, 1e-45, np.nan])
@pytest.mark.parametrize("at", [0, 63, 64, 129])
def test_a_row_of_other_values_ends_the_words(at, value):
    store = stores.filled(stores.new_store(3, 130, False), np.ones((2, 130), np.float32))
    check_words(store, 3)
    row = np.zeros(130, np.float32)
    row[at] = value
    dense_store.put(store, 2, row)
    assert not store.binary[0]
    dense_store.put(store, 2, np.zeros(130, np.float32))
    assert not store.binary[0] and not stores.grown(store, 64, 200).binary[0]
    # Its memory may become another store, and whoever changes the panels can say so.
    dense_store.renew_words(store)
    check_words(store, 3)
    store.binary[0] = False
    check_words(stores.of_rows(store, np.zeros((2, 130), np.float32)), 3)


def test_sparse_rows_of_other_values_or_many_features_have_no_words():
    eye = np.eye(130, dtype=np.float32)
    x = sparse(eye[:3])
    assert stores.filled(stores.new_store(3, 130, True), x).binary[0]
    # A column that there is no word for is not written.
    assert not stores.filled(stores.new_store(3, 1, True), sparse(eye[-3:])).binary[0]
    wide = stores.grown(stores.new_store(3, 130, True), 64, sparse_store.WIDEST + 1)
    assert not wide.binary[0] and wide.words.size == 0
    assert not stores.grown(wide, 128, sparse_store.WIDEST + 2).binary[0]
    store = stores.filled(stores.new_store(3, 130, True), x)
    stores.put(store, 1, sparse(np.full((1, 2), HALF)))
    assert not store.binary[0] and not stores.grown(store, 64, 130).binary[0]
    made = stores.made_sparse(stores.filled(stores.new_store(3, 130, False), eye[:3]))
    check_words(made, 3)
