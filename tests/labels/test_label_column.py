"""LabelColumn and Pairs: whatever labels come in, and what is counted of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamsvm.errors import LabelError
from streamsvm.labels.bag_labels import bags_of
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.learners.incremental_regressor import _numbers_of
from streamsvm.structured.batches import label_lists

LABELS = st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c", "d"])), max_size=30)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["x", None, "y", "x"], ["x", None, "y", "x"]),
        ([1.0, float("nan"), 2.0], [1.0, None, 2.0]),
        (np.array([True, False, True]), [True, False, True]),
        (np.array([3, 1, 3]), [3, 1, 3]),
        (np.array([1.5, np.nan]), [1.5, None]),
        (np.ma.array([True, False, True], mask=[0, 0, 1]), [True, False, None]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array(["a", None], object), ["a", None]),
        (pa.array([True, None, False]), [True, None, False]),
        (pa.array([True, False]), [True, False]),
        (pa.array(["a", None, "b", "a"]), ["a", None, "b", "a"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.chunked_array([["a"], ["b", "a"]]), ["a", "b", "a"]),
        (pa.nulls(2), [None, None]),
        (pd.Series([1, 2, 1]), [1, 2, 1]),
        (pl.Series(["a", "b"]), ["a", "b"]),
        ((label for label in "ab"), ["a", "b"]),
        ([np.True_, np.int64(4)], [True, 4]),
        (np.array([1, 0], ">i4"), [1, 0]),
        (pd.Series(["a", pd.NA]), ["a", None]),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint8()), ["a", "b"]),
            ["a", None, "b"],
        ),
        ([(1, 2), None, "a", (3,), (1, 2), 0.5], [(1, 2), None, "a", (3,), (1, 2), 0.5]),
        ([], []),
        (np.zeros(0), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_of_any_container(labels, expected):
    column = LabelColumn.of(labels)
    assert column.tolist() == list(column) == expected
    assert [column[i] for i in range(len(column))] == expected
    assert all(type(a) is type(b) for a, b in zip(column.tolist(), expected, strict=True))


def test_what_is_not_hashable_is_refused():
    with pytest.raises(LabelError, match="not hashable"):
        LabelColumn.of([["a"], "b"])
    with pytest.raises(LabelError, match="not hashable"):
        LabelColumn.of(pa.array([["a"], ["b"]]))


@given(LABELS, st.data())
def test_it_is_like_a_list(labels, data):
    column = LabelColumn.of(labels)
    firsts = {y: labels.index(y) for y in dict.fromkeys(labels) if y is not None}
    assert column.present() == list(firsts.items())
    start = data.draw(st.integers(0, len(labels)))
    assert column[start:].tolist() == labels[start:]
    assert column[start:].present() == LabelColumn.of(labels[start:]).present()
    kept = np.array(data.draw(st.permutations(range(len(labels)))), int)[start:]
    assert column.take(kept).tolist() == [labels[i] for i in kept]
    marked = column.mapped(lambda y: y == "a")
    assert marked.tolist() == [None if y is None else y == "a" for y in labels]
    parts = [column[:start], column[start:], marked]
    assert LabelColumn.joined(parts).tolist() == labels + marked.tolist()
    numbers = column.numbers("abcd".index)
    assert [None if n != n else "abcd"[int(n)] for n in numbers] == labels


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["a", "b", None])), max_size=30))
def test_pairs_count_what_a_list_would(pairs):
    columns = Pairs.of(pairs) + Pairs.of(pairs[:3]) + Pairs()
    listed = pairs + pairs[:3]
    assert len(columns) == len(listed)
    assert list(columns) == listed
    counts = {}
    for y, p, n in columns.counts():
        counts[y, p] = counts.get((y, p), 0) + n
    assert counts == {pair: listed.count(pair) for pair in listed}


@given(st.lists(st.integers(-1, 30), max_size=20))
def test_few_rows_of_many_labels(codes):
    # With fewer rows than labels, other code runs.
    values = [f"label {i}" for i in range(31)]
    few = LabelColumn(np.array(codes, np.int64), values)
    same = LabelColumn.of([None if c < 0 else values[c] for c in codes])
    assert few.present() == same.present()
    asked = []

    def number(label):
        asked.append(label)
        return float(label.split()[1])

    numbers = few.numbers(number)
    assert len(asked) <= len(codes)
    np.testing.assert_array_equal(numbers, same.numbers(number))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict])
@pytest.mark.parametrize("values", [["x"], ["x", "y", "x"]])
def test_one_column_of_a_frame_is_taken(make, values):
    assert LabelColumn.of(make({"label": values})).tolist() == values
    with pytest.raises(LabelError, match="of 2 columns: give one for each row"):
        LabelColumn.of(make({"label": values, "other": values}))


@pytest.mark.parametrize(
    "given",
    [
        "abc", np.str_("abc"), b"abc", memoryview(b"abc"), {1: "x", 2: "y"}, {"x", "y"}, True, 5,
        1.5, None, np.array(1), np.array([[1], [0]]), pa.scalar(1), list,
        sparse.csr_matrix([[1], [0]]), pl.LazyFrame({"label": [1]}),
    ],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_what_is_no_column_is_refused_in_one_sentence(given):
    with pytest.raises(
        LabelError, match="^labels are of type .*: give one for each row, as a list"
    ):
        LabelColumn.of(given)
    with pytest.raises(LabelError, match="^numbers are of type .*: give one for each row"):
        _numbers_of(given)
    with pytest.raises(LabelError, match="^labels are of type"):
        label_lists(given)
    if getattr(given, "ndim", 0) != 2:  # rows of such an array are bags
        with pytest.raises(LabelError, match="^labels are of type"):
            bags_of(given)


def test_numbers_and_bags_of_one_column():
    assert _numbers_of(pd.DataFrame({"y": [1, 2]})).tolist() == [1.0, 2.0]
    bags = bags_of(pl.DataFrame({"y": [["a", "b"], ["c"]]}))
    assert bags.tolist() == [frozenset("ab"), "c"]
    assert [*label_lists(pa.table({"y": [["a", "b"], ["c"]]}))] == [["a", "b"], ["c"]]
