"""The store of rows against a plain array of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.support import dense_store, stores
from streamsvm.support.tiles import PANEL


def filled(n, d, seed=0, capacity=None):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)).astype(np.float32)
    store = dense_store.new_store(capacity or n, d)
    for slot in range(n):
        dense_store.put(store, slot, rows[slot])
        store.entered[slot] = 100 + slot
        store.weight[slot] = slot / 8
    return store, rows


def read(store, slot, d):
    out = np.full(d, np.nan, np.float32)
    dense_store.get(store, slot, out)
    return out


@pytest.mark.parametrize("capacity", [0, 1, 31, 32, 33, 64, 100])
def test_capacity_is_rounded_up_to_whole_panels(capacity):
    store = dense_store.new_store(capacity, 3)
    size = store.entered.size
    assert size % PANEL == 0 and max(capacity, 1) <= size < max(capacity, 1) + PANEL
    assert store.panels.shape == (size // PANEL, 3, PANEL)
    assert store.weight.size == size and not store.panels.any()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 100), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_put_get_and_rows_of(n, d, seed):
    store, rows = filled(n, d, seed)
    np.testing.assert_array_equal(dense_store.rows_of(store, n, d), rows)
    for slot in range(n):
        np.testing.assert_array_equal(read(store, slot, d), rows[slot])
    again = seed % n
    dense_store.put(store, again, 2 * rows[again])
    rows[again] *= 2
    np.testing.assert_array_equal(dense_store.rows_of(store, n, d), rows)


def test_a_narrow_row_leaves_nothing_of_a_wide_one():
    store, _ = filled(3, 5)
    dense_store.put(store, 1, np.array([7.0, 8.0], np.float32))
    np.testing.assert_array_equal(read(store, 1, 5), np.array([7, 8, 0, 0, 0], np.float32))


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 100), st.integers(1, 5), st.data())
def test_reorder_takes_any_rows_in_any_order(n, d, data):
    store, rows = filled(n, d, seed=n)
    kept = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, n))]
    # In ascending order they are moved in place.
    kept = sorted(kept) if data.draw(st.booleans()) else kept
    order = np.zeros(store.entered.size, np.int64)
    order[: len(kept)] = kept
    dense_store.reorder(store, order, len(kept))
    np.testing.assert_array_equal(dense_store.rows_of(store, len(kept), d), rows[kept])
    np.testing.assert_array_equal(store.entered[: len(kept)], 100 + np.array(kept, int))
    np.testing.assert_array_equal(store.weight[: len(kept)], np.array(kept) / 8)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 70), st.integers(1, 5), st.integers(0, 100), st.integers(0, 4))
def test_grown_keeps_the_rows_and_adds_zeros(n, d, more, wider):
    store, rows = filled(n, d)
    new = stores.grown(store, store.entered.size + more, d + wider)
    assert new.entered.size >= store.entered.size + more
    wide = dense_store.rows_of(new, new.entered.size, d + wider)
    np.testing.assert_array_equal(wide[:n, :d], rows)
    assert not wide[n:].any() and not wide[:, d:].any()
    np.testing.assert_array_equal(new.entered[:n], store.entered[:n])
    np.testing.assert_array_equal(new.weight[:n], store.weight[:n])
    assert not new.entered[n:].any() and not new.weight[n:].any()
    # A copy: the old store is not written through the new one.
    dense_store.put(new, 0, np.zeros(d, np.float32))
    np.testing.assert_array_equal(dense_store.rows_of(store, n, d), rows)
