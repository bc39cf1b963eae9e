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
EVERY = [*SOME, Cosine(0.7), Quadratic(2.0)]
HALF = np.float32(0.5)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.integers(1, 70), st.integers(1, 5)),
    st.integers(1, 400),
    st.one_of(st.integers(1, 300), st.sampled_from([63, 64, 65, 127, 128, 129])),
    st.integers(0, 70),
    st.sampled_from(EVERY),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.integers(0, 2**32 - 1),
)
def test_values_are_those_of_floats_to_the_last_bit(n_rows, n, d, wider, kernel, part, seed):
    rng = np.random.default_rng(seed)
    # Stored rows may have features that the fresh ones do not have.
    store = stores.filled(stores.new_store(n, d + wider, False), rows_of_bits(rng, n, d + wider))
    x = rows_of_bits(rng, n_rows, d)
    first, stop = sorted(int(n * end) for end in part)
    counted, summed = np.full((2, n_rows, store.entered.size), HALF)
    kernel_values(kernel, store, x, n_rows, d, first, stop, counted)
    assert store.binary[0]
    store.binary[0] = False
    kernel_values(kernel, store, x, n_rows, d, first, stop, summed)
    np.testing.assert_array_equal(counted.view(np.uint32), summed.view(np.uint32))


@pytest.mark.parametrize("kernel", [*EVERY, Manhattan(0.3)], ids=repr)
def test_one_other_value_in_a_fresh_row_is_enough(kernel):
    rng = np.random.default_rng(1)
    for other in (HALF, np.float32(-1), np.float32(2), np.float32(1 + 2**-23), np.float32(1e-45)):
        store = stores.filled(stores.new_store(70, 130, False), rows_of_bits(rng, 70, 130))
        x = rows_of_bits(rng, 7, 130)
        x[rng.integers(7), rng.integers(130)] = other
        found, wanted = np.zeros((2, 7, store.entered.size), np.float32)
        kernel_values(kernel, store, x, 7, 130, 0, 70, found)
        assert store.binary[0]
        store.binary[0] = False
        kernel_values(kernel, store, x, 7, 130, 0, 70, wanted)
        np.testing.assert_array_equal(found, wanted)


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


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(st.integers(1, 70), st.integers(1, 5)),
    st.integers(1, 200),
    st.integers(1, 300),
    st.sampled_from(SOME),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.sampled_from([1.0, 0.0, 0.5]),
    st.integers(0, 2**32 - 1),
)
def test_sparse_values_are_those_of_floats_to_the_last_bit(n_rows, n, d, kernel, part, value, seed):
    rng = np.random.default_rng(seed)
    store = stores.filled(stores.new_store(n, d, True), sparse(rows_of_bits(rng, n, d)))
    x = sparse(rows_of_bits(rng, n_rows, d))
    # Also rows that list zeros, or that are not binary.
    x.values[rng.random(x.values.size) < 0.02] = value
    first, stop = sorted(int(n * end) for end in part)
    counted, summed = np.full((2, n_rows, store.entered.size), HALF)
    sparse_values.kernel_values(kernel, store, x, n_rows, d, first, stop, counted)
    assert store.binary[0]
    store.binary[0] = False
    sparse_values.kernel_values(kernel, store, x, n_rows, d, first, stop, summed)
    np.testing.assert_array_equal(
        counted[:, first:stop].view(np.uint32), summed[:, first:stop].view(np.uint32)
    )
    begin, end = first // PANEL * PANEL, -(-stop // PANEL) * PANEL
    assert (counted[:, :begin] == HALF).all() and (counted[:, end:] == HALF).all()


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
