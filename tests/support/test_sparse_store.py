"""The store of sparse rows against a plain dict of rows; merged rows against dense ones."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.support import sparse_store, stores
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

D = 40
CAPACITY = 32


def random_rows(rng, n, d=D, share=0.2):
    x = rng.normal(size=(n, d)).astype(np.float32)
    return np.where(rng.random((n, d)) < rng.uniform(0, 2 * share), x, np.float32(0.0))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from(["put", "put", "put", "release", "reorder", "grow"]), max_size=60),
)
def test_holds_what_was_put(seed, operations):
    rng = np.random.default_rng(seed)
    store = sparse_store.new_store(CAPACITY, D, n_pairs=8)
    kept = {}
    for operation in operations:
        slot = int(rng.integers(CAPACITY))
        if operation == "put":
            row = random_rows(rng, 1)
            x = sparse(row)
            # What the solver does: a slot is let go of before it is asked for room.
            sparse_store.release(store, slot)
            if not sparse_store.has_room(store, x):
                assert stores.wants_pairs(store)
                store = sparse_store.grown(store, CAPACITY, D)
            sparse_store.put(store, slot, x)
            store.entered[slot] = store.weight[slot] = slot + 1
            kept[slot] = row[0]
        elif operation == "release":
            sparse_store.release(store, slot)
            kept.pop(slot, None)
        elif operation == "reorder":
            order = rng.permutation(CAPACITY)
            n = int(rng.integers(CAPACITY + 1))
            sparse_store.reorder(store, order, n)
            kept = {s: kept[order[s]] for s in range(n) if order[s] in kept}
        else:
            store = sparse_store.grown(store, CAPACITY, D)
        rows = dense(sparse_store.rows_of(store, CAPACITY, D))
        for s in range(CAPACITY):
            wanted = kept.get(s, np.zeros(D, np.float32))
            np.testing.assert_array_equal(rows[s], wanted)
            assert store.length[s] == np.count_nonzero(wanted)
            np.testing.assert_allclose(store.norm[s], np.sum(wanted.astype(float) ** 2), rtol=1e-12)
        assert store.counts[sparse_store.LIVE] == store.length.sum()
        assert store.counts[sparse_store.USED] <= store.columns.size


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
