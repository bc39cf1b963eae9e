"""Missing values: None, NaN, nulls and absent features, in events and in batches."""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import ArrowSource, MemorySource, ParquetSource, one_hot
from streamsvm import AdaptiveSVMClassifier, LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.features.absent import zeros_in_words
from streamsvm.features.batches import matrix_of
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.reference.slow_missing import SlowMissing

CLASSES = [LASVMClassifier, SVMSGDClassifier, AdaptiveSVMClassifier]
NAMES = ["a", "b", "flag", "late", "rare"]
KINDS = (lambda x, n: x | {n: None}, lambda x, n: x | {n: math.nan}, lambda x, n: x)


def stream(n=150):
    """Return events and labels: values are missing in each way, and some features seldom come."""
    rng = np.random.default_rng(0)
    events, labels = [], []
    for i in range(n):
        a, b, c = rng.normal([50.0, -3.0, 0.0]).tolist()
        x = {"a": a, "b": b}
        x |= ({"flag": 1.0} if rng.random() < 0.7 else {}) | ({"late": c} if i > 40 else {})
        x |= {"rare": 5.0} if rng.random() < 0.1 else {}
        for name in ("a", "b", "late"):
            if name in x and rng.random() < 0.2:
                del x[name]
                x = KINDS[rng.integers(3)](x, name)
        events.append(x)
        labels.append(bool((a > 50.0) ^ (b > -3.0)))
    return events, labels


def learnt(model, events, labels):
    for x, y in zip(events, labels, strict=True):
        model.learn_one(x, y)
    return model


def rows(events, names=NAMES):
    return np.array([[math.nan if x.get(n) is None else x[n] for n in names] for x in events])


def nulls(events):
    return {
        n: [None if v != v else v for v in column]
        for n, column in zip(NAMES, rows(events).T, strict=True)
    }


FRAMES = {
    "arrow": lambda events: pa.table(
        {n: pa.array(v, pa.float64()) for n, v in nulls(events).items()}
    ),
    "single": lambda events: pa.RecordBatch.from_arrays(
        [pa.array(v) for v in rows(events).astype(np.float32).T], NAMES
    ),
    "pandas": lambda events: pd.DataFrame(rows(events), columns=NAMES),
    "NA": lambda events: pd.DataFrame(nulls(events)).astype("Float64"),
    "polars": lambda events: pl.DataFrame(nulls(events), schema=dict.fromkeys(NAMES, pl.Float64)),
}


@pytest.mark.parametrize("cls", CLASSES)
def test_events_are_filled_as_by_the_slow_twin(cls):
    events, labels = stream()
    model, other, twin = cls(), cls(missing="zero"), SlowMissing()
    for i, (x, y) in enumerate(zip(events, labels, strict=True)):
        filled = twin.filled(x)
        margin = model.decision_function_one(x)
        assert margin == other.decision_function_one(filled)
        model.learn_one(x, y)
        twin.learn(x)
        # Features that are new come in one order only if the other sees them, too.
        other.learn_one(filled, y)
        if i % 50 == 49:
            model = pickled(model, cls)
    assert model.missing_values == twin.counts() and "flag" not in model.missing_values


def pickled(model, cls):
    """Return a copy as a file holds it."""
    from streamsvm.model_files.codec import from_file, to_file

    content, arrays = to_file(model)
    return from_file(content | {"class": cls.__name__}, {n: np.array(a) for n, a in arrays.items()})


BY_NUMBER = {
    "array": rows,
    "array of singles": lambda events: rows(events).astype(np.float32),
    "pandas by number": lambda events: pd.DataFrame(rows(events)),
}
FRAMES |= BY_NUMBER


@pytest.mark.parametrize("container", sorted(FRAMES))
@pytest.mark.parametrize("cls", CLASSES)
def test_a_batch_is_its_events(cls, container):
    given, labels = stream()
    events = given
    if container in BY_NUMBER:
        events = [dict(enumerate(row)) for row in rows(given).tolist()]
    one, many = learnt(cls(), events, labels), cls()
    for start, stop in ((0, 3), (3, 70), (70, 150)):
        batch = FRAMES[container](given[start:stop])
        before = np.array(batch) if isinstance(batch, np.ndarray) else None
        many.learn_many(batch, labels[start:stop])
        assert before is None or np.array_equal(batch, before, equal_nan=True)
    assert many.feature_names == one.feature_names
    assert many.missing_values == one.missing_values
    for x in events[:20]:
        assert many.decision_function_one(x) == one.decision_function_one(x)
    found = one.decision_function_many(FRAMES[container](given[:20]))
    assert found.tolist() == [one.decision_function_one(x) for x in events[:20]]


@pytest.mark.parametrize("container", sorted(FRAMES.keys() - {*BY_NUMBER, "single"}))
def test_a_batch_is_scaled_as_its_events(container):
    events, _ = stream()
    one, many, both = (StandardScaler() for _ in range(3))
    expected = []
    for x in events:
        one.learn_one(x)
        expected.append(one.transform_one(x))
    for part in (events[:40], events[40:]):
        many.learn_many(FRAMES[container](part))
    scaled = both.learn_transform_many(matrix_of(FRAMES[container](events), both.schema))
    for values, event in zip(scaled.values.tolist(), expected, strict=True):
        assert {n: v for n, v in zip(scaled.names, values, strict=True) if v == v} == event
    assert both.statistics == many.statistics == one.statistics and one.statistics["a"][0] < 150


def test_columns_of_text_are_counted_as_their_events_are():
    rng = np.random.default_rng(0)
    colours = [None, *rng.choice(["red", "green", "blue", None], 60).tolist(), "z", "a"]
    table = pa.table({"n": rng.normal(size=63), "colour": colours})
    labels = (rng.random(63) > 0.5).tolist()
    one = learnt(SVMSGDClassifier(sparse=False), map(one_hot, table.to_pylist()), labels)
    whole = one_hot(table)
    for size in (1, 7, 63):
        many = SVMSGDClassifier(sparse=False)
        for start in range(0, 63, size):
            many.learn_many(whole.slice(start, size), labels[start : start + size])
        assert many.feature_names == one.feature_names
        counts = (model.schema.missing.statistics[:, :6] for model in (many, one))
        np.testing.assert_array_equal(*counts)


@pytest.mark.parametrize("cls", CLASSES)
def test_refused_or_zero(cls):
    labels = stream()[1]
    whole = [{"a": 50.0 + i % 5, "b": -1.0 * (i % 3)} for i in range(40)]
    model = learnt(cls(missing="reject"), whole, labels[:40])
    for x in ({"a": 1.0}, {"a": 1.0, "b": None}, {"a": 1.0, "b": math.nan, "new": 1.0}):
        for method in (lambda x=x: model.learn_one(x, True), lambda x=x: model.predict_one(x)):
            with pytest.raises(FeatureError, match="'b' is missing, which most examples have"):
                method()
    assert model.feature_names == ["a", "b"] and model.n_examples == 40
    zero = learnt(cls(missing="zero"), whole, labels[:40])
    assert zero.decision_function_one({"a": 50.0}) == zero.decision_function_one(
        {"a": 50.0, "b": 0.0}
    )
    taken = []
    given = [*zip(whole, labels, strict=False), ({"a": 1.0, "b": None}, True)]
    model = cls(missing="reject")
    report = Run(MemorySource(given), model, bad_events=BadEvents(taken.append)).execute()
    assert report.learnt == 40 and "missing" in taken[0]["reason"]
    with pytest.raises(ParameterError, match="missing='median': use 'mean', 'zero' or 'reject'"):
        cls(missing="median")


def test_a_run_counts_those_of_text_columns_too(tmp_path):
    rng = np.random.default_rng(0)
    colours = [None, *rng.choice(["red", "green", None], 2998).tolist(), "blue"]
    late = [None] * 2500 + rng.choice(["x", "y"], 500).tolist()
    numbers = [None if draw < 0.2 else draw for draw in rng.random(3000).tolist()]
    table = pa.table({"colour": colours, "late": late, "n": numbers, "y": rng.random(3000) > 0.5})
    # From the first text, or number, on.
    expected = {
        name: sum(v is None for v in itertools.dropwhile(lambda v: v is None, values))
        for name, values in (("colour", colours), ("n", numbers))
    }
    pq.write_table(table, tmp_path / "t.parquet")
    rows = [{name: v for name, v in row.items() if v is not None} for row in table.to_pylist()]
    sources = [
        lambda: MemorySource([(x, x.pop("y")) for x in map(dict, rows)]),
        lambda: ArrowSource(table, target="y"),
        lambda: ParquetSource(tmp_path / "t.parquet", target="y"),
    ]
    for source in sources:
        report = Run(source(), SVMSGDClassifier(sparse=False)).execute()
        assert report.missing == expected and report.missing_texts["late"] == 0
    settings = {"limit": 1234, "checkpoint": Checkpoint(tmp_path / "c.svm")}
    Run(sources[2](), SVMSGDClassifier(), **settings).execute()
    going_on = Run(sources[2](), SVMSGDClassifier(), checkpoint=settings["checkpoint"])
    assert going_on.execute().missing["colour"] == expected["colour"]


def test_a_run_counts_them_and_late_labels_give_the_same():
    events, labels = stream()
    source = lambda: MemorySource(list(zip(events, labels, strict=True)))  # noqa: E731
    report = Run(source(), LASVMClassifier()).execute()
    one = learnt(LASVMClassifier(), events, labels)
    assert report.missing == one.missing_values and report.bad == {}
    at_once, late = LASVMClassifier(), LASVMClassifier()
    Run(source(), at_once, late=LateLabels(delay=7)).execute()
    batches = source().batches(13)
    waiting = []
    for batch in batches:
        for event in batch.events():
            waiting.append((event.x, event.y))
            if len(waiting) > 7:
                late.learn_one(*waiting.pop(0))
    learnt(late, *zip(*waiting, strict=True))
    assert late.missing_values == at_once.missing_values
    assert late.decision_function_one(events[3]) == at_once.decision_function_one(events[3])


def test_they_are_counted_beside_values_that_are_no_whole_numbers():
    model = SVMSGDClassifier()
    for i in range(8):
        model.learn_one({"a": 1e30 + i, "b": None if i % 4 == 3 else i}, i % 2 == 0)
    assert model.missing_values == {"b": 2}


def test_zeros_that_were_left_out_are_noticed(caplog):
    rng = np.random.default_rng(0)
    x = np.maximum(0.0, rng.normal(size=(300, 12)) - np.linspace(-1.0, 1.5, 12))
    events = [{i: v for i, v in enumerate(row) if v} for row in x.tolist()]
    found = []
    for model in (SVMSGDClassifier(), SVMSGDClassifier(missing="zero")):
        for event, label in zip(events, (x[:, 0] > 1.0).tolist(), strict=True):
            model.learn_one(event, label)
        found.append(zeros_in_words(model))
        assert ("missing='zero'" in model.summary()) == (found[-1] is not None)
    assert found[0].startswith("7 of 12 features are absent in most examples, and 5 others")
    assert found[1] is None
    wide = np.where(x > 0.0, x, np.nan)[np.arange(1200) % 300]
    many = SVMSGDClassifier()
    for part in np.split(wide, 3):
        many.learn_many(part, (part[:, 0] > 1.0).tolist())
    assert zeros_in_words(many) is not None
    logged = [r.message for r in caplog.records if "missing='zero'" in r.message]
    assert len(logged) == 1 and logged[0].startswith("7 of 12")
    # By events, too, of a model that has nothing to adapt any more.
    one_by_one = SVMSGDClassifier(t0=1.0, sparse=False)
    for i in range(1030):
        one_by_one.learn_one(events[i % 300], bool(x[i % 300, 0] > 1.0))
    assert [r.message for r in caplog.records if "missing='zero'" in r.message] == logged * 2
    # Columns of which some lack values are no such thing.
    x[rng.random(x.shape) < 0.1] = np.nan
    model = SVMSGDClassifier()
    model.learn_many(x, (x[:, 0] > 1.0).tolist())
    assert zeros_in_words(model) is None and model.missing_values


def test_what_must_be_there_is_refused_after_rows_became_sparse_too():
    draws = np.random.default_rng(0)
    model = LASVMClassifier(missing="reject")
    events = [{"age": float(a), f"s{k}": 1.0} for k, a in enumerate(draws.normal(size=1100))]
    for event in events:
        model.learn_one(event, event["age"] > 0)
    assert model.is_sparse
    for event in ({"s3": 1.0}, {"age": None, "s3": 1.0}, {"age": math.nan}):
        with pytest.raises(FeatureError, match="'age' is missing"):
            model.learn_one(event, True)
        with pytest.raises(FeatureError, match="'age' is missing"):
            model.predict_one(event)
    frame = pa.RecordBatch.from_pydict({"age": [1.0, None], "s3": [1.0, 1.0]})
    with pytest.raises(FeatureError, match="row 1: feature 'age' is missing"):
        model.learn_many(frame, [True, False])
    assert model.n_examples == 1100
