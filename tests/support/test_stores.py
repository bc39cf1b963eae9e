"""Stores of dense and of sparse rows against a list of rows; merged rows; rows by themselves."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.support import bits, dense_store, sparse_store, stores
from streamsvm.support.rows import (
    SparseRows,
    copied,
    cut,
    dense,
    joined,
    sorted_rows,
    sparse,
    taken,
)
from streamsvm.support.tiles import PANEL

D = 40
CAPACITY = 32


def random_rows(rng, n, d=D, share=0.2):
    x = rng.normal(size=(n, d)).astype(np.float32)
    return np.where(rng.random((n, d)) < rng.uniform(0, 2 * share), x, np.float32(0.0))


def rows_of_bits(rng, n, d):
    """Rows of 0, -0 and 1, of which some are 1 nearly everywhere, or nowhere."""
    rows = (rng.random((n, d)) < rng.choice([0.0, 0.1, 0.5, 1.0], size=(n, 1))).astype(np.float32)
    rows[rng.random((n, d)) < 0.1] *= -0.0 if rng.random() < 0.5 else 1.0
    return rows


def words_of(rows, n_features):
    """The words of rows by NumPy, uint64 (n, words)."""
    wide = np.zeros((len(rows), bits.n_words(n_features) * bits.WORD), np.uint8)
    wide[:, : rows.shape[1]] = rows == 1
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)


def check_words(store, n):
    rows = dense(stores.rows_of(store, n, stores.n_columns(store)))
    found = store.words.transpose(0, 2, 1).reshape(-1, store.words.shape[1])[:n]
    assert store.binary[0]
    np.testing.assert_array_equal(found, words_of(rows, rows.shape[1]))


def check(store, kept, is_sparse, is_binary):
    """Check a store against the list of (row, mark) that its first slots have."""
    n, width = len(kept), stores.n_columns(store)
    rows = np.array([np.pad(row, (0, width - row.size)) for row, _ in kept]).reshape(n, width)
    marks = np.array([mark for _, mark in kept])
    np.testing.assert_array_equal(dense(stores.rows_of(store, n, width)), rows)
    assert store.binary[0] == is_binary
    if is_binary:
        check_words(store, n)
    if not is_sparse:
        out = np.full((n, width), np.nan, np.float32)
        for slot in range(n):
            dense_store.get(store, slot, out[slot])
        np.testing.assert_array_equal(out, rows)
        np.testing.assert_array_equal(store.entered[:n], marks)
        np.testing.assert_array_equal(store.weight[:n], marks / 8)
        return
    # What was released has no mark.
    is_there = store.entered[:n] != 0
    np.testing.assert_array_equal(store.entered[:n][is_there], marks[is_there])
    assert not rows[~is_there].any() and not store.length[n:].any()
    np.testing.assert_array_equal(store.length[:n], np.count_nonzero(rows, axis=1))
    np.testing.assert_allclose(store.norm[:n], (rows.astype(float) ** 2).sum(axis=1), rtol=1e-12)
    assert store.counts[sparse_store.LIVE] == store.length.sum()
    assert store.counts[sparse_store.USED] <= store.columns.size


@pytest.mark.parametrize("is_sparse", [False, True])
@settings(max_examples=100, deadline=None)
@given(
    d=st.integers(1, 300),
    seed=st.integers(0, 2**32 - 1),
    share_of_others=st.sampled_from([0.0, 0.05, 1.0]),
    n_first=st.integers(0, 70),
    changes=st.lists(
        st.sampled_from(["put", "put", "put", "release", "reorder", "grow", "copy"]), max_size=60
    ),
)
def test_a_store_holds_what_was_put(is_sparse, d, seed, share_of_others, n_first, changes):
    rng = np.random.default_rng(seed)
    kept, is_binary = [], True
    store = sparse_store.new_store(CAPACITY, d, 8) if is_sparse else stores.new_store(1, d, False)
    for number, change in enumerate(["put"] * n_first + changes):
        n, width, capacity = len(kept), stores.n_columns(store), store.entered.size
        if change == "put" and n < capacity:
            # A new slot or an old one; the row may be narrower than the store.
            slot = n if rng.random() < 0.8 else int(rng.integers(n + 1))
            narrow = int(rng.integers(1, width + 1))
            is_other = rng.random() < share_of_others
            row = (random_rows if is_other else rows_of_bits)(rng, 1, narrow)
            is_binary &= bool(((row == 0) | (row == 1)).all())
            x = sparse(row) if is_sparse else row
            # What the solver does: a slot is let go of before it is asked for room.
            stores.release(store, slot)
            if not stores.has_room(store, x):
                assert stores.wants_pairs(store)
                store = stores.grown(store, capacity, width)
            stores.put(store, slot, x)
            mark = 100 + number
            store.entered[slot], store.weight[slot] = mark, mark / 8
            kept[slot : slot + 1] = [(row[0], mark)]
        elif change == "release" and is_sparse and n:
            slot = int(rng.integers(n))
            stores.release(store, slot)
            store.entered[slot] = 0
            kept[slot] = np.zeros(1, np.float32), 0
        elif change == "reorder":
            order = rng.permutation(n)[: rng.integers(n + 1)]
            # In ascending order they are moved in place.
            order = np.sort(order) if rng.random() < 0.5 else order
            wide = np.zeros(capacity, np.int64)
            wide[: order.size] = order
            stores.reorder(store, wide, order.size)
            kept = [kept[s] for s in order]
        elif change in ("put", "grow"):
            more, wider = (int(rng.integers(70)) for _ in range(2))
            new = stores.grown(store, capacity + more, width + wider)
            assert new.entered.size >= capacity + more and not new.entered[capacity:].any()
            assert not np.shares_memory(new.entered, store.entered)
            store = new
        elif change == "copy":
            store = copy.deepcopy(store)
        if number >= n_first - 1:
            check(store, kept, is_sparse, is_binary)


@pytest.mark.parametrize("capacity", [0, 1, 31, 32, 33, 64, 100])
def test_capacity_is_rounded_up_to_whole_panels(capacity):
    store = dense_store.new_store(capacity, 3)
    size = store.entered.size
    assert size % PANEL == 0 and max(capacity, 1) <= size < max(capacity, 1) + PANEL
    assert store.panels.shape == (size // PANEL, 3, PANEL)
    assert store.weight.size == size and not store.panels.any()


def test_made_sparse_is_the_same_store():
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 50)
    store = stores.filled(stores.new_store(50, D, False), rows)
    store.entered[:50], store.weight[:50] = np.arange(1, 51), rng.random(50)
    other = stores.made_sparse(store)
    np.testing.assert_array_equal(dense(stores.rows_of(other, 50, D)), rows)
    np.testing.assert_array_equal(other.entered, store.entered)
    np.testing.assert_array_equal(other.weight, store.weight)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0))
def test_between_is_the_dense_one(seed, h):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 2)
    store = stores.filled(sparse_store.new_store(CAPACITY, D), sparse(rows))
    z = sparse_store.between(store, 0, 1, h, D)
    wanted = (h * rows[0].astype(float) + (1.0 - h) * rows[1].astype(float)).astype(np.float32)
    np.testing.assert_array_equal(dense(z)[0], wanted)
    assert (np.diff(z.columns[: z.start[1]]) > 0).all()


def test_a_merged_row_keeps_its_largest_features_only():
    d = 3 * sparse_store.MOST_MERGED
    rows = np.zeros((2, d), np.float32)
    rows[0, ::2], rows[1, 1::2] = np.arange(1, d // 2 + 1), -np.arange(1, d // 2 + 1)
    store = stores.filled(sparse_store.new_store(CAPACITY, d), sparse(rows))
    z = sparse_store.between(store, 0, 1, 0.5, d)
    assert z.start[1] == sparse_store.MOST_MERGED
    kept = z.columns[: z.start[1]]
    np.testing.assert_array_equal(kept, np.arange(d - sparse_store.MOST_MERGED, d))


def test_of_equal_features_a_merged_row_keeps_the_first():
    d = sparse_store.MOST_MERGED + 100
    rows = np.ones((2, d), np.float32)
    # The largest come last: equal ones before them must not take their place.
    rows[:, -40:] = np.where(np.arange(40) % 2, 3.0, -2.0)
    rows[:, 5] = 0.5
    store = stores.filled(sparse_store.new_store(CAPACITY, d), sparse(rows))
    z = sparse_store.between(store, 0, 1, 0.5, d)
    n = z.start[1]
    first = np.delete(np.arange(d), 5)[: sparse_store.MOST_MERGED - 40]
    np.testing.assert_array_equal(z.columns[:n], [*first, *range(d - 40, d)])
    np.testing.assert_array_equal(z.values[:n], rows[0, z.columns[:n]])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_rows_there_and_back(seed, n):
    rng = np.random.default_rng(seed)
    x = random_rows(rng, n)
    rows = sparse(x)
    np.testing.assert_array_equal(dense(rows), x)
    first, stop = sorted(rng.integers(0, n + 1, 2).tolist())
    np.testing.assert_array_equal(dense(cut(rows, first, stop)), x[first:stop])
    kept = np.flatnonzero(rng.random(n) < 0.5)
    np.testing.assert_array_equal(dense(taken(rows, kept)), x[kept])
    for r in range(n):
        np.testing.assert_array_equal(dense(copied(rows, r)), x[r : r + 1])
    blocks = [cut(rows, 0, first), x[first:stop], cut(rows, stop, n)]
    np.testing.assert_array_equal(dense(joined(blocks, D + 2))[:, :D], x)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3)), max_size=8), max_size=5))
def test_sorted_rows(listed):
    wanted = np.zeros((len(listed), 10), np.float32)
    for r, row in enumerate(listed):
        for column, value in row:
            wanted[r, column] += value
    start = np.cumsum([0, *map(len, listed)]).astype(np.int64)
    columns = np.array([c for row in listed for c, _ in row], np.int32)
    values = np.array([v for row in listed for _, v in row], np.float32)
    rows = sorted_rows(SparseRows(start, columns, values, 10))
    np.testing.assert_array_equal(dense(rows), wanted)
    for r in range(len(listed)):
        own = rows.columns[rows.start[r] : rows.start[r + 1]]
        assert (np.diff(own) > 0).all()
