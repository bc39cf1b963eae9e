"""Rows in blocks, against a list of rows."""

import copy

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamsvm.models.kept_examples import MARKS, KeptExamples
from streamsvm.support import row_blocks
from streamsvm.support.declaration import COUNT, NamedArrays
from streamsvm.support.row_blocks import RowBlocks
from streamsvm.support.rows import dense, shape, sparse

FACTS = np.dtype([("number", np.int64), ("weight", np.float64), ("flag", np.uint8)])
D = 5
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["one", "append", "append", "keep", "last", "facts", "forget", "file", "map"]
        ),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=40,
)


class Twin:
    """The rows as a list of (values over D features, facts)."""

    def __init__(self, seed):
        self.rng, self.rows, self.n = np.random.default_rng(seed), [], 0

    def fresh(self, n, is_sparse):
        """Return n more rows and their facts; later ones have more features."""
        width = min(D, 1 + self.n // 8)
        x = self.rng.normal(size=(n, width)) * (self.rng.random((n, width)) < 0.6)
        x, facts = x.astype(np.float32), np.zeros(n, FACTS)
        facts["number"] = self.n + np.arange(n)
        facts["weight"], facts["flag"] = self.rng.random(n), self.rng.random(n) < 0.5
        wide = np.pad(x, ((0, 0), (0, D - width)))
        self.rows += zip(wide.tolist(), facts.tolist(), strict=True)
        self.n += n
        return (sparse(x) if is_sparse else x), facts


def assert_are(found, rows):
    x, facts = found
    assert shape(x) == (len(rows), D) and x.__class__ in (np.ndarray, row_blocks.SparseRows)
    assert dense(x).tolist() == [row for row, _ in rows]
    assert facts.tolist() == [fact for _, fact in rows]


def changed(x, facts):
    facts["weight"] += 1.0
    return x, facts


@given(STEPS, st.sampled_from([1, 3, 8, 100]), st.integers(0, 2**31))
@example([("append", 0, True), ("append", 1, False)], 100, 0)
@example([("append", 0, True), ("one", 1, False)], 100, 1)
def test_rows_are_those_of_a_list(steps, step_size, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "STEP", step_size)
        twin, store = Twin(seed), RowBlocks(FACTS, "kept_")
        for step, n, is_sparse in steps:
            if step == "one":
                x, facts = twin.fresh(1, is_sparse)
                store.add_one(x, facts.tolist()[0])
            elif step == "append":
                store.append(*twin.fresh(n, is_sparse))
            elif step == "keep":
                kept = np.flatnonzero(twin.rng.random(len(twin.rows)) < 0.7)
                store.keep(kept)
                twin.rows = [twin.rows[i] for i in kept]
            elif step == "last":
                assert_are(store.joined(D, n), twin.rows[max(0, len(twin.rows) - n) :])
            elif step == "facts":
                assert store.facts().tolist() == [fact for _, fact in twin.rows]
            elif step == "forget":
                n = min(n, len(twin.rows))
                store.joined()  # Puts single rows into a block.
                store._forget(n)
                twin.rows = twin.rows[n:]
            elif step == "file":
                arrays, n_rows = NamedArrays(store.as_arrays(D)), store.n_rows
                store = RowBlocks(FACTS, "kept_")
                if n_rows:
                    store.read_rows(arrays, n_rows, D, {"weight": COUNT})
                arrays.check_all_taken()
            else:
                # The rows of the other one stay what they are.
                before, old = list(twin.rows), store
                store = store.mapped(changed)
                twin.rows = [(x, (a, b + 1.0, c)) for x, (a, b, c) in before]
                assert_are(old.joined(D), before)
                old.append(*Twin(0).fresh(3, False))
            assert store.n_rows == len(twin.rows)
        own = copy.deepcopy(store)
        assert_are(store.joined(D), twin.rows)
        assert_are(own.joined(D), twin.rows)
        x, facts = store.joined()
        # All blocks are as wide then.
        store.keep(np.arange(len(facts)))
        entries = 8 * (x.values.size + len(facts)) if hasattr(x, "values") else x.nbytes
        assert store.nbytes == entries + facts.nbytes


@given(st.lists(st.integers(0, 7), max_size=30), st.integers(1, 9), st.integers(0, 2**31))
def test_the_last_examples_are_kept(sizes, most, seed):
    """Sizes of batches; 0 for an event."""
    twin, kept = Twin(seed), KeptExamples("recent_", MARKS, most)
    for i, n in enumerate(sizes):
        x, facts = twin.fresh(max(n, 1), is_sparse=i % 3 == 0)
        if n:
            kept.add(x, facts["number"], facts["weight"], facts["flag"] > 0)
        else:
            kept.add_one(x, facts.tolist()[0])
        if n % 2:
            found = kept.last(n, D)
            assert_are(_as_pair(found), twin.rows[-min(n, most) :])
    assert kept.n_examples == min(twin.n, most) <= kept.n_rows
    assert_are(_as_pair(kept.last(300, D)), twin.rows[-most:])
    assert all(part.flags.c_contiguous for part in kept.last(300, D)[1:])
    loaded = KeptExamples("recent_", MARKS, most)
    loaded.read(NamedArrays(kept.as_arrays(D)), D, twin.n)
    assert_are(_as_pair(loaded.last(300, D)), twin.rows[-most:])


def _as_pair(examples):
    x, *columns = examples
    return x, np.array(list(zip(*(c.tolist() for c in columns), strict=True)), FACTS)


def test_a_full_block_shares_no_memory_with_rows_that_have_left(monkeypatch):
    monkeypatch.setattr(row_blocks, "STEP", 10)
    kept = KeptExamples("recent_", MARKS, 10)
    for i in range(100):
        kept.add_one(np.full((1, 2), i, np.float32), (0, 1.0, 0))
    x = kept.last(10, 2).x
    assert x[:, 0].tolist() == list(range(90, 100)) and len(x if x.base is None else x.base) <= 20
