import dataclasses
import json
import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from river import linear_model, preprocessing

from connectors import ArrowSource, KafkaSource, MemorySource, Position
from connectors.batch import Reject
from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import BadEventError, LabelError, ParameterError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving

CHUNK = 1000


def table(n=2500, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(5.0, 2.0, n)
    colour = rng.choice(["red", "green", "blue"], n)
    y = (a * (b - 5.0) > 0) ^ (colour == "red")
    return pa.table(
        {
            "a": pa.array(a, mask=rng.random(n) < 0.1),
            "b": b,
            "colour": pa.array(colour, mask=rng.random(n) < 0.05),
            "y": y,
        }
    )


def pipeline(**parameters):
    return StandardScaler() | LASVMClassifier(**({"max_classes": 2} | parameters))


@pytest.mark.parametrize("shuffle", [0, 700])
def test_batches_equal_events_to_the_bit(shuffle):
    def source():
        return ArrowSource(table(), "y", shuffle_buffer=shuffle, seed=3)

    scaler, learner, right = StandardScaler(), LASVMClassifier(), []
    for x, y, _ in source().events():
        scaler.learn_one(x)
        x = scaler.transform_one(x)
        right.append(learner.predict_one(x) == y)
        learner.learn_one(x, y)
    model = pipeline()
    report = Run(source(), model).execute()
    other = model["LASVMClassifier"]
    assert report.accuracy == pytest.approx(np.mean(right[1:]), abs=1e-12)
    assert other.feature_names == learner.feature_names
    assert model["StandardScaler"].statistics == scaler.statistics
    assert other.dual == learner.dual and other.bias == learner.bias
    np.testing.assert_array_equal(
        other.support_vectors().coefficients, learner.support_vectors().coefficients
    )


def test_the_report_counts():
    report = Run(ArrowSource(table(), "y"), pipeline(), limit=1234, finish=True).execute()
    assert (report.rows, report.learnt, report.epochs) == (1234, 1234, 1)
    assert sum(report.labels.values()) == 1234 and set(report.labels) == {"True", "False"}
    assert report.history.column("rows").tolist() == [CHUNK, 1234]
    assert report.finished and report.delta <= 1e-3
    assert json.loads(json.dumps(report.as_dict()))["n_support_vectors"] > 0
    stops = {"should_stop": iter([False, True]).__next__, "finish": True}
    report = Run(ArrowSource(table(), "y"), pipeline(), **stops).execute()
    assert report.interrupted and not report.finished and report.rows == 2 * CHUNK


def test_epochs_show_the_same_rows_again():
    # One problem: without a kernel, scale and gamma would be found on other numbers of rows.
    once, thrice = (LASVMClassifier(kernels.RBF(gamma=1.0)) for _ in range(2))
    Run(ArrowSource(table(600), "y"), once, finish=True).execute()
    report = Run(ArrowSource(table(600), "y"), thrice, epochs=3, finish=True).execute()
    assert report.rows == 1800
    entered = thrice.support_vectors().entered
    assert len(set(entered.tolist())) == len(entered) and entered.max() <= 600
    assert thrice.dual >= once.dual


def test_one_against_the_rest():
    n = 300
    digits = pa.table({"a": np.arange(n) % 10 * 1.0, "y": np.arange(n) % 10})
    report = Run(ArrowSource(digits, "y"), LASVMClassifier(), positive="8").execute()
    assert report.labels == {"False": 270, "True": 30}
    with pytest.raises(LabelError, match=r"10 classes in its first 300 rows.*positive"):
        Run(ArrowSource(digits, "y"), TrackingSVMClassifier()).execute()


def test_the_error_of_a_run_without_learnt_rows_says_why():
    n = 300
    y = [i % 2 > 0 for i in range(n)]
    one = [None if i else True for i in range(n)]
    for columns, said in (
        (
            {"a": [math.inf] * n, "y": y},
            r"none of 300 rows .* 300 bad feature \(the first: feature",
        ),
        (
            dict.fromkeys("abc", [1.0] * n) | {"y": y},
            r"300 .*3 features: at most 2 are taken \(max",
        ),
        ({"a": [1.0] * n, "y": one}, r"only \(True\) in 300.*299 rows .*299 missing label"),
        ({"a": [1.0, 2.0], "y": [True, True]}, r"one value only \(True\) in 2 rows"),
        (table(0), "no rows"),
    ):
        source = ArrowSource(pa.table(columns), "y")
        with pytest.raises(LabelError, match=said):
            Run(source, LASVMClassifier(max_features=2), bad_events=BadEvents("skip")).execute()


def dirty():
    data = table(1500).to_pydict()
    data["b"][10], data["b"][20], data["b"][40] = math.inf, -math.inf, 1e100
    data["y"] = ["yes" if y else "no" for y in data["y"]]
    data["y"][30], data["y"][1400] = None, "maybe"
    return data


def dirty_source():
    return ArrowSource(pa.table(dirty()), "y")


def rows_of(letters):
    return [letter["position"]["row"] for letter in letters]


def test_bad_events_are_kept_counted_and_not_learnt(tmp_path):
    data, path = dirty(), tmp_path / "dead.jsonl"
    data["a"][700], data["b"][1200] = 1e6, -1e30
    model, clean = (StandardScaler(reject=1e5) | LASVMClassifier(max_classes=2) for _ in range(2))
    bad = BadEvents("dead-letter", path)
    report = Run(ArrowSource(pa.table(data), "y"), model, bad_events=bad).execute()
    kinds = {"bad feature": 3, "missing label": 1, "outlier": 2, "third class": 1}
    assert report.bad == kinds and report.clipped == {}
    letters = [json.loads(line) for line in path.read_text().splitlines()]
    of_row = dict(zip(rows_of(letters), letters, strict=True))
    for row, said in (
        (10, "'b' is inf"),
        (20, "'b' is -inf"),
        (30, "label is missing"),
        (40, "'b' is 1e+100: beyond single precision (3.4e38)"),
        (700, "'a' is 1000000.0: more than reject=100000"),
        (1200, "more than reject=100000"),
        (1400, "third class"),
    ):
        assert said in of_row[row]["reason"]
    assert len(letters) == len(of_row) == 7
    assert of_row[10]["x"]["b"] == "inf" and of_row[1400]["y"] == "maybe"
    for x, y, position in ArrowSource(pa.table(data), "y").events():
        if position.row not in of_row:
            clean["StandardScaler"].learn_one(x)
            clean["LASVMClassifier"].learn_one(clean["StandardScaler"].transform_one(x), y)
    assert clean["LASVMClassifier"].dual == model["LASVMClassifier"].dual
    assert clean["StandardScaler"].statistics == model["StandardScaler"].statistics


@pytest.mark.parametrize("late", [None, 10])
@pytest.mark.parametrize("reject", [None, 1e5])
def test_clipped_values_are_counted_and_rejected_rows_wait_for_no_label(late, reject):
    data = table(1500).to_pydict()
    data["a"][700], data["b"][1200] = 1e6, -1e30
    model = StandardScaler(reject=reject) | LASVMClassifier(max_support_vectors=50)
    options = {"bad_events": BadEvents("skip"), "late": late and LateLabels(late)}
    report = Run(ArrowSource(pa.table(data), "y"), model, **options).execute()
    assert report.learnt == (1498 if reject else 1500)
    assert report.clipped == ({} if reject else {"a": 1, "b": 1})
    assert report.bad == ({"outlier": 2} if reject else {})
    if late:
        assert report.late["answered"] == report.learnt


def test_the_other_policies(tmp_path):
    with pytest.raises(BadEventError, match=r"row 10: feature 'b' is inf"):
        Run(dirty_source(), pipeline()).execute()
    assert Run(dirty_source(), pipeline(), bad_events=BadEvents("skip")).execute().learnt == 1495
    taken = []
    Run(dirty_source(), pipeline(), bad_events=BadEvents(taken.append)).execute()
    assert len(taken) == 5
    with pytest.raises(ParameterError, match="on_error='ignore'"):
        BadEvents("ignore")
    for wrong in ({"bad_events": "skip"}, {"late": 100}, {"checkpoint": "run.checkpoint"}):
        with pytest.raises(ParameterError, match=r"use a \w+, or None"):
            Run(dirty_source(), pipeline(), **wrong)
    for wrong in ({"limit": "9"}, {"limit": 0}, {"epochs": 1.5}, {"epochs": 0}):
        with pytest.raises(ParameterError, match=r"(limit|epochs)=.*: use a whole number of at"):
            Run(dirty_source(), pipeline(), **wrong)
    for make in (
        lambda wrong: LateLabels(delay=wrong),
        lambda wrong: Checkpoint(tmp_path / "c", seconds=wrong),
        lambda wrong: Serving(pipeline(), seconds=wrong),
    ):
        with pytest.raises(ParameterError, match=r"(delay|seconds)='3': use a number"):
            make("3")


def test_too_many_bad_events_end_the_run(tmp_path):
    path = tmp_path / "letters.jsonl"
    n = Run(dirty_source(), pipeline(), bad_events=BadEvents("skip")).execute().bad
    bad = BadEvents("dead-letter", path, most=sum(n.values()) - 1)
    with pytest.raises(
        BadEventError, match=r"could not be used \(.*are allowed; the last one: .*; most often: "
    ):
        Run(dirty_source(), pipeline(), bad_events=bad).execute()
    # The one too many is kept like the others.
    assert len(path.read_text().splitlines()) == sum(n.values())
    enough = BadEvents("skip", most=sum(n.values()))
    assert Run(dirty_source(), pipeline(), bad_events=enough).execute().bad == n
    for wrong in (-1, True, 1.5):
        with pytest.raises(ParameterError, match="most="):
            BadEvents("skip", most=wrong)


def test_most_events_are_bad():
    good = [({"a": 1.0}, True), ({"a": -1.0}, False)]
    bad = [({"a": float("inf")}, True)]

    def run(events, most):
        options = {"bad_events": BadEvents("skip", most=most)}
        return Run(MemorySource(events), SVMSGDClassifier(), **options).execute()

    assert run(bad * 500 + good, "half").bad == {"bad feature": 500}
    assert run((good + bad) * 1000 + bad * 900, "half").learnt == 2000
    with pytest.raises(BadEventError) as caught:
        run(good * 200 + bad * 6000, "half")
    said = str(caught.value)
    assert re.search(r"more than half of [\d,]+ \(to go on: --max-errors 100%, in Pyt", said)
    assert re.search(
        r"most often: feature 'a' is inf: .* \([\d,]+ of them, first at row 400\)", said
    )
    assert run(good * 200 + bad * 6000, 1.0).learnt == 400
    with pytest.raises(ParameterError, match="'half'"):
        BadEvents("skip", most="most")


class Rejecting(ArrowSource):
    """Refuses rows beside those of its table: some among them, and one in a batch of its own."""

    def batches(self, size=None):
        for batch in super().batches(size):
            # Rows come in twos, of which every tenth second one is refused.
            places = [2 * row + 1 for row in batch.rows.tolist() if row % 10 == 9]
            rejects = tuple(Reject(Position(None, i), "refused", "", "") for i in places)
            yield dataclasses.replace(batch, rows=2 * batch.rows, rejects=rejects)
        if self.last:
            yield dataclasses.replace(batch.slice(0, 0), rejects=(self.last.pop(),))


def test_what_a_source_refuses_is_counted_once():
    source = Rejecting(table(), "y")
    source.last = [Reject(Position(None, 9999), "the last", "", "")]
    report = Run(source, pipeline(), bad_events=BadEvents("skip")).execute()
    assert report.bad == {"refused": 250, "the last": 1}
    assert report.rows == 2751 and report.learnt == 2500


def stream_of_labels(*labels):
    values = np.random.default_rng(0).normal(size=len(labels)).tolist()
    return KafkaSource(({"a": a, "y": y} for a, y in zip(values, labels, strict=True)), "y")


@pytest.mark.parametrize(
    ("labels", "chunk"),
    [
        ([17 * i % 3001 for i in range(3000)], None),  # thousands of values, in batches of messages
        ([min(i % 1500, 1200) for i in range(20_000)], None),  # late, and not many a row
        ([i / 7 for i in range(200)], None),
        ([i + 0.5 for i in range(1200)], 40),
    ],
)
def test_a_stream_of_thousands_of_labels_ends(labels, chunk):
    learner = SVMSGDClassifier()
    learner.chunk = chunk or learner.chunk
    with pytest.raises(LabelError, match=r"different values in .*this looks like regression"):
        Run(stream_of_labels(*labels), learner).execute()
    assert len(learner.classes) <= 1000


@pytest.mark.parametrize("make", [SVMSGDClassifier, LASVMClassifier, LaRankClassifier])
def test_labels_that_are_long_texts_are_bad_events(make):
    labels = [f"class {i % 2}" + "x" * (2000 * (i % 50 == 49)) for i in range(400)]
    learner = make()
    report = Run(stream_of_labels(*labels), learner, bad_events=BadEvents("skip")).execute()
    assert report.bad == {"long label": 8} and learner.classes == ["class 0", "class 1"]
    with pytest.raises(LabelError, match="has 1,001 characters: a label is a short text"):
        learner.learn_one({"a": 1.0}, "y" * 1001)


def test_the_limit_of_a_stream_of_messages():
    source = stream_of_labels(*(i % 2 for i in range(1000)))
    assert Run(source, SVMSGDClassifier(), limit=130).execute().learnt == 130


def test_odd_labels_among_messages_do_not_end_a_stream_of_two_classes():
    good = [float(i % 2) for i in range(1000)]
    odd = [i + 0.5 for i in range(1200)]
    model, bad = LASVMClassifier(max_support_vectors=50, max_classes=2), BadEvents("skip", most=1.0)
    report = Run(stream_of_labels(*good, *odd, *good), model, bad_events=bad).execute()
    assert report.bad == {"third class": 1200}


def test_rows_that_the_kernel_cannot_take():
    data = table(300).to_pydict()
    data["b"][7] = 1e30
    model = LASVMClassifier(kernel=kernels.Polynomial())
    report = Run(ArrowSource(pa.table(data), "y"), model, bad_events=BadEvents("skip")).execute()
    assert report.bad == {"kernel value": 1} and report.learnt == 299


def test_any_river_classifier():
    events = [({"a": float(i % 5)}, i % 5 > 2) for i in range(400)]
    events[5] = ({"a": 1.0}, None)
    model = StandardScaler() | linear_model.LogisticRegression()
    report = Run(MemorySource(events), model, bad_events=BadEvents("skip")).execute()
    assert report.accuracy > 0.9 and report.bad == {"missing label": 1}


def test_transformers_of_river_learn_no_event_whose_label_is_refused():
    events = [({"a": float(i % 5)}, "ab"[i % 2]) for i in range(40)] + [({"a": 1e6}, "c")]
    model = preprocessing.StandardScaler() | LASVMClassifier(max_classes=2)
    report = Run(MemorySource(events), model, bad_events=BadEvents("skip")).execute()
    assert report.bad == {"bad event": 1} and model["StandardScaler"].counts["a"] == 40


def test_weights_reach_the_model_from_every_source(tmp_path):
    rows = table(600).drop_columns(["colour"]).filter(pa.compute.field("a").is_valid())
    w = np.random.default_rng(3).integers(0, 4, len(rows)).astype(float)
    rows = rows.append_column("w", pa.array(w))
    events = [({n: row[n] for n in "abw"}, row["y"]) for row in rows.to_pylist()]
    sources = (
        lambda: ArrowSource(rows, "y", weight="w"),
        lambda: MemorySource(events, weight="w"),
        lambda: KafkaSource([{**x, "y": y} for x, y in events], "y", weight="w"),
    )
    one_by_one, by_hand = SVMSGDClassifier(seed=0), linear_model.LogisticRegression()
    for event in sources[0]().events():
        one_by_one.learn_one(event.x, event.y, event.w)
        by_hand.learn_one(event.x, event.y, event.w)
    for source in sources:
        for late in (None, LateLabels(40)):
            model = SVMSGDClassifier(seed=0)
            report = Run(source(), model, late=late).execute()
            assert report.learnt == len(rows)
            assert model.weights == one_by_one.weights
    # Rows that wait for their labels keep their weights in a checkpoint.
    for limit in (300, None):
        checkpoint = Checkpoint(tmp_path / "run.ckpt")
        late, resumed = LateLabels(40), SVMSGDClassifier(seed=0)
        Run(sources[0](), resumed, limit=limit, late=late, checkpoint=checkpoint).execute()
    assert resumed.weights == one_by_one.weights
    river = linear_model.LogisticRegression()
    Run(sources[1](), river).execute()
    assert river.weights == by_hand.weights


def test_weights_that_are_none_are_bad_events():
    odd = {3: -1.0, 5: math.nan, 7: "much", 9: 1e13, 11: None}
    events = [({"a": float(i % 7), "w": odd.get(i, 1.0)}, i % 7 > 3) for i in range(50)]
    for source in (
        MemorySource(events, weight="w"),
        KafkaSource([{**x, "y": y} for x, y in events], "y", weight="w"),
    ):
        letters, model = [], SVMSGDClassifier()
        report = Run(source, model, bad_events=BadEvents(letters.append)).execute()
        assert report.learnt == 45 and list(model.feature_names) == ["a"]
        assert sorted(rows_of(letters)) == [*odd]
        assert all("weight" in letter["reason"] for letter in letters)


@pytest.mark.parametrize("delay", [None, 15])
def test_a_run_that_ended_within_a_batch_is_not_executed_again(delay, monkeypatch):
    batches, learn = iter(range(10)), LASVMClassifier.learn_batch

    def interrupted(self, *values, **more):
        if next(batches) == 3:
            raise KeyboardInterrupt
        return learn(self, *values, **more)

    monkeypatch.setattr(LASVMClassifier, "learn_batch", interrupted)
    rows = pa.table({"a": np.arange(160.0) % 7, "y": np.arange(160) % 7 > 3})
    late, model = None if delay is None else LateLabels(delay=delay), LASVMClassifier()
    run = Run(ArrowSource(rows, "y", batch_size=20), model, late=late)
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    learnt = model.n_examples
    # The rest of that batch would be missing, and simulated labels would come too early.
    with pytest.raises(RuntimeError, match="make a new Run"):
        run.execute()
    assert model.n_examples == learnt == 60 - (delay or 0)
