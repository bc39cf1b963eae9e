"""What a run predicts, in a topic: with the predictions of a loop over single events."""

import json
import math

import pyarrow as pa
import pytest
from river import linear_model, preprocessing

from connectors import KafkaSource, MemorySource, ScoredTopic
from connectors.kafka.messages import Message
from connectors.output import Output
from streamsvm import (
    ActiveLearner,
    Compare,
    ConformalSets,
    Selective,
    StandardScaler,
    SVMSGDClassifier,
    load,
)
from streamsvm.errors import CheckpointError, ParameterError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.forgetting import forget_in_file
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.consumers import arrow_bytes

EVENTS = [({"a": i % 7, "b": (i * 5) % 11}, (i % 7) + (i * 5) % 11 > 8) for i in range(120)]


class Producer:
    """A producer of confluent-kafka, as far as it is used; transactions are lists."""

    def __init__(self):
        self.sent = []

    def produce(self, topic, value, key, on_delivery=None, **more):
        self.sent.append(json.loads(value) | {"own key": key})

    def poll(self, seconds):
        return 0

    def flush(self, seconds):
        return 0


def message(i, event, topic="t"):
    return Message(topic, 0, i, b"k%d" % i, json.dumps(event).encode(), 1e9 + i)


def labelled(events=EVENTS):
    return [message(i, x | {"y": y, "id": i}) for i, (x, y) in enumerate(events)]


def scored(messages, of, late=None, bad=None, source=None, **options):
    """Return what a run produced, and its report."""
    producer = Producer()
    labels = "labels" if late is not None else None
    given = {"exclude": ["id"], "batch_size": 50, "labels": labels} | (source or {})
    source = KafkaSource(iter(messages), "y", **given)
    output = ScoredTopic(producer, "out", source, **options)
    report = Run(source, of, output=output, late=late, bad_events=bad).execute()
    return producer.sent, report


def values_of(sent, name="prediction"):
    return [one[name] for one in sent]


def check_right(sent, report):
    """Check that the report's accuracy is that of what was produced."""
    right = sum(one["prediction"] == y for one, (_, y) in zip(sent, EVENTS, strict=True))
    assert right == round(report.accuracy * report.scored)


def loop(model):
    """Return what a model predicts, and the probabilities, as it learns event by event."""
    found = []
    for x, y in EVENTS:
        found.append((model.predict_one(x), model.predict_proba_one(x)))
        model.learn_one(x, y)
    return found


def test_predictions_are_made_before_the_event_is_learnt():
    """A scaled model is the same to the last bit if probabilities are wanted."""
    kept, expected = [], loop(SVMSGDClassifier(seed=0))
    for wanted in (False, True):
        own = {"fields": ["id", "none"], "probabilities": wanted, "model": "m"}
        sent, report = scored(labelled(), SVMSGDClassifier(seed=0), **own)
        assert values_of(sent) == [label for label, _ in expected]
        if wanted:
            of = [{json.dumps(y): pytest.approx(p) for y, p in of.items()} for _, of in expected]
            assert values_of(sent, "probabilities")[2:] == of[2:]
        assert sent[7] == (sent[7] | {
            "topic": "t", "partition": 0, "offset": 7, "key": "k7", "own key": b"k7",
            "fields": {"id": 7, "none": None}, "learnt": 7, "model": "m",
        })  # fmt: skip
        check_right(sent, report)
        scaled = StandardScaler() | SVMSGDClassifier(seed=0)
        again, _ = scored(labelled(), scaled, probabilities=wanted)
        kept.append((values_of(again), scaled.steps["SVMSGDClassifier"].weights))
    assert kept[0] == kept[1]


def test_an_output_of_ones_own_takes_predictions_of_any_source(tmp_path):
    found = []

    class Kept(Output):
        def add(self, batch, rows, predictions, further, are_learnt=False):
            found.extend(predictions)

    parts = {"output": Kept(), "checkpoint": Checkpoint(tmp_path / "run.ckpt", every=50)}
    Run(MemorySource(EVENTS), SVMSGDClassifier(seed=0), **parts).execute()
    assert found == [label for label, _ in loop(SVMSGDClassifier(seed=0))]


def test_labels_that_come_later():
    """An event is predicted when it comes, by what was learnt up to then, and once."""
    events = [message(i, x) for i, (x, _) in enumerate(EVENTS)]
    order = [*range(50), *range(100, 120), *range(50, 100)]
    labels = [
        Message("labels", 0, j, b"k%d" % i, json.dumps({"y": EVENTS[i][1]}).encode(), 1e9 + i)
        for j, i in enumerate(order)
    ]
    # The first 50 labels come after 60 events, those of 100 to 119 before their events.
    messages = events[:60] + labels[:70] + events[60:] + labels[70:]
    late = LateLabels()
    sent, report = scored(messages, SVMSGDClassifier(seed=0), late, probabilities=True)
    assert late.figures == {"held_events": 0, "held_labels": 0, "labels_never_came": 0}
    assert values_of(sent, "offset") == list(range(120)) and report.learnt == 120
    model = SVMSGDClassifier(seed=0)
    for x, y in EVENTS[:50]:
        model.learn_one(x, y)
    assert values_of(sent[:50]) == [None] * 50
    assert values_of(sent[60:102], "learnt") == [50] * 41 + [51]
    assert values_of(sent[60:100]) == [model.predict_one(x) for x, _ in EVENTS[60:100]]


def wrapped():
    yield ConformalSets(SVMSGDClassifier(seed=0), 0.9), "set"
    yield Selective(SVMSGDClassifier(seed=0), 0.1), "answer"
    yield Compare(SVMSGDClassifier(seed=0), SVMSGDClassifier(seed=1)), None
    yield ActiveLearner(SVMSGDClassifier(seed=0), 0.5), None
    yield preprocessing.StandardScaler() | linear_model.LogisticRegression(), None


@pytest.mark.parametrize(("model", "name"), wrapped(), ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("wanted", [False, True])
def test_wrappers_and_models_of_river(model, name, wanted):
    model = model.clone() if hasattr(model, "clone") else model
    sent, report = scored(labelled(), model, probabilities=wanted)
    assert values_of(sent, "offset") == list(range(120))
    check_right(sent, report)
    if name is not None:
        assert all(name in one for one in sent)
        assert name == "answer" or any(one["set"] for one in sent)
    assert ("probabilities" in sent[-1]) == wanted


def test_events_that_are_not_learnt_are_not_predicted():
    """They are dead letters: a payload that is damaged, an infinite value, no label."""
    messages = labelled()
    messages[5] = messages[5]._replace(value=b"{")
    messages[6] = message(6, {"a": 1e999, "b": 1, "y": True})
    messages[70] = message(70, {"a": 1, "b": 1})
    sent, report = scored(messages, SVMSGDClassifier(), bad=BadEvents("skip"))
    assert values_of(sent, "offset") == [i for i in range(120) if i not in (5, 6, 70)]
    assert values_of(sent, "learnt") == list(range(117)) and report.learnt == 117


def test_rows_of_record_batches():
    rows = pa.RecordBatch.from_pylist([x | {"y": y, "id": 1} for x, y in EVENTS])
    parts = [arrow_bytes(rows.slice(40 * i, 40)) for i in range(3)]
    messages = [Message("t", 0, i, b"k%d" % i, part, None) for i, part in enumerate(parts)]
    sent, _ = scored(messages, SVMSGDClassifier(), source={"decode": "arrow"}, fields=["id"])
    places = list(zip(values_of(sent, "offset"), values_of(sent, "row"), strict=True))
    assert places == [(i, j) for i in range(3) for j in range(40)]
    assert all(one["fields"] == {"id": 1} for one in sent)
    assert {*values_of(sent, "own key")} == {b"k0", b"k1", b"k2"}


def test_odd_values():
    """Keys and fields that JSON does not have."""
    odd = [(b"\xff", 2**70), (None, {1: float("nan")}), ("k", b"\x00")]
    messages = [
        Message("t", 0, i, key, {"a": float(i), "y": i % 2, "id": value}, None)
        for i, (key, value) in enumerate(odd)
    ]
    sent, _ = scored(messages, SVMSGDClassifier(), fields=["id"])
    assert values_of(sent, "key") == ["\\xff", None, "k"]
    assert sent[0]["fields"]["id"] == 2**70


def test_what_is_refused(tmp_path):
    source = KafkaSource(iter(labelled()), "y")
    output = ScoredTopic(Producer(), "out", source, exactly_once=True)
    path = tmp_path / "run.ckpt"
    for checkpoint in (None, Checkpoint(path), Checkpoint(path, seconds=math.inf)):
        with pytest.raises(ParameterError, match="exactly_once needs a checkpoint with seconds="):
            Run(source, SVMSGDClassifier(), output=output, checkpoint=checkpoint)
    output = ScoredTopic(Producer(), "out", source)
    with pytest.raises(ParameterError, match="nor for simulated delays"):
        Run(source, SVMSGDClassifier(), output=output, late=LateLabels(5))


def test_a_file_that_a_killed_process_left(tmp_path):
    """It may count: whoever goes on without asking the broker, or forgets, is told."""
    path = tmp_path / "run.ckpt"

    def go():
        source = KafkaSource(iter(labelled()), "y")
        Run(source, SVMSGDClassifier(), checkpoint=Checkpoint(path)).execute()

    go()
    (tmp_path / "run.ckpt.next").write_bytes(path.read_bytes())
    for again in (go, lambda: forget_in_file(path, [1])):
        with pytest.raises(CheckpointError, match=r"run.ckpt.next was left"):
            again()
    assert load(path).n_examples == 120


def test_a_start_that_is_refused_ends_no_transaction_of_the_process_that_runs(tmp_path):
    path, began = tmp_path / "run.ckpt", []

    def run_of(output):
        source = KafkaSource(iter(labelled()), "y", exclude=["id"], batch_size=50)
        found = ScoredTopic(Producer(), "out", source)
        found.begin = lambda: began.append(output)
        return Run(source, SVMSGDClassifier(), output=found, checkpoint=Checkpoint(path))

    first, second = run_of("first"), run_of("second")
    first.checkpoint.begin(first.contents)
    with pytest.raises(CheckpointError, match="in use by another process"):
        second.execute()
    first.checkpoint.close()
    assert began == ["first"]
