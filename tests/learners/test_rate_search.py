"""The rows that linear learners keep at first: whatever is added, and however, is all there."""

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.models.kept_examples import NUMBER, KeptExamples
from streamsvm.support.rows import SparseRows, cut, dense, sparse

D = 9


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 999),
    st.lists(st.tuples(st.integers(1, 20), st.sampled_from("ds!p")), max_size=8),
)
def test_rows_are_those_that_were_added(seed, parts):
    """Dense and sparse ones, and as many features as were known."""
    rng = np.random.default_rng(seed)
    first, x = KeptExamples("first_", NUMBER), np.zeros((0, D), np.float32)
    y, weight = np.zeros(0, np.int64), np.zeros(0)
    is_sparse, known = False, 1
    for n, kind in parts:
        known = int(rng.integers(known, D + 1))
        if kind == "!" and len(y):
            first.map_in_place(sparse)
            is_sparse = True
        elif kind == "p":
            first = pickle.loads(pickle.dumps(first))
        elif kind in "ds":
            rows = np.round(rng.normal(size=(n + 2, known)).astype(np.float32))
            is_sparse = is_sparse or kind == "s"
            added = cut(sparse(rows) if kind == "s" else rows, 1, n + 1)
            own_y, own_weight = rng.integers(9, size=n), rng.random(n)
            first.add(added, own_y, own_weight, np.arange(n))
            rows = np.pad(rows[1 : n + 1], ((0, 0), (0, D - known)))
            x, y = np.concatenate([x, rows]), np.concatenate([y, own_y])
            weight = np.concatenate([weight, own_weight])
    assert first.n_rows == len(y)
    rows, own_y, own_weight, _ = first.last(len(y), D)
    assert isinstance(rows, SparseRows) == is_sparse
    np.testing.assert_array_equal(dense(rows), x)
    np.testing.assert_array_equal(own_y, y)
    np.testing.assert_array_equal(own_weight, weight)
    values = rows.nbytes if not is_sparse else sum(part.nbytes for part in rows[:3])
    # Blocks are as wide as they came.
    assert 24 * len(y) <= first.nbytes <= values + 24 * len(y)
