"""The rows that linear learners keep at first: whatever is added, and however, is all there."""

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm._compile import address_of, compiled
from streamsvm.learners.bases.linear.rate_search import RateSearchRows
from streamsvm.native_events.event_block import keep, room_of
from streamsvm.support.rows import SparseRows, cut, dense, sparse

D = 9


@compiled
def kept(block, x, y, weight):
    """Append one row, as compiled code does with an event; return the room left, -1 for none."""
    return room_of(block) if keep(block, x, y, weight) else -1


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 999),
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from("dsk!rtp")), max_size=8),
)
def test_rows_are_those_that_were_added(seed, parts):
    """Dense and sparse ones, and as many features as were known."""
    rng = np.random.default_rng(seed)
    first, x, y, weight = RateSearchRows(), np.zeros((0, D), np.float32), np.zeros(0), np.zeros(0)
    is_sparse, known, n_bytes = False, 1, 0
    for n, kind in parts:
        known = int(rng.integers(known, D + 1))
        if kind == "!":
            first.become_sparse(sparse(first.all(D)[0]))
            is_sparse = True
        elif kind == "r":
            first.make_block(n + 1, n + 1, known, is_sparse)
            first.close_block()
        elif kind == "t":
            first.drop_room()
        elif kind == "p":
            first = pickle.loads(pickle.dumps(first))
        else:
            rows = np.round(rng.normal(size=(n + 2, known)).astype(np.float32))
            is_sparse = is_sparse or kind == "s"
            added = cut(sparse(rows) if kind == "s" else rows, 1, n + 1)
            own_y, own_weight = rng.normal(size=n), rng.random(n)
            if kind == "k":
                first.make_block(len(y) + n + 1, n + 1, known, is_sparse)
                block = first.block
                for r in range(n):
                    row = rows[r + 1 : r + 2]
                    row = sparse(row) if is_sparse else row
                    left = kept(address_of(block.head), row, own_y[r], own_weight[r])
                    assert left == n - r and not first.is_full
                first.close_block()
            else:
                first.add(added, own_y, own_weight)
            n_bytes += 4 * n * known
            rows = np.pad(rows[1 : n + 1], ((0, 0), (0, D - known)))
            x, y = np.concatenate([x, rows]), np.concatenate([y, own_y])
            weight = np.concatenate([weight, own_weight])
    first.turn_signs(np.negative)
    rows, own_y, own_weight = first.all(D)
    assert isinstance(rows, SparseRows) == is_sparse
    np.testing.assert_array_equal(dense(rows), x)
    np.testing.assert_array_equal(own_y, -y)
    np.testing.assert_array_equal(own_weight, weight)
    values = rows.columns.nbytes + rows.values.nbytes if is_sparse else n_bytes
    assert first.nbytes == values + 8 * (len(y) + 1) + 16 * len(y)
