"""What a run predicts, in a topic: with the predictions of a loop over single events."""

import json

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


def scored(messages, of, late=None, bad=None, **options):
    """Return what a run produced, and its report."""
    producer = Producer()
    labels = "labels" if late is not None else None
    source = KafkaSource(iter(messages), "y", exclude=["id"], batch_size=50, labels=labels)
    output = ScoredTopic(producer, "out", source, **options)
    report = Run(source, of, output=output, late=late, bad_events=bad).execute()
    return producer.sent, report


def loop(model):
    """Return what a model predicts, and the probabilities, as it learns event by event."""
    found = []
    for x, y in EVENTS:
        found.append((model.predict_one(x), model.predict_proba_one(x)))
        model.learn_one(x, y)
    return found


@pytest.mark.parametrize("wanted", [False, True])
def test_predictions_are_made_before_the_event_is_learnt(wanted):
    sent, report = scored(
        labelled(), SVMSGDClassifier(seed=0), fields=["id", "none"], probabilities=wanted, model="m"
    )
    expected = loop(SVMSGDClassifier(seed=0))
    assert [one["prediction"] for one in sent] == [label for label, _ in expected]
    if wanted:
        of = [{json.dumps(y): pytest.approx(p) for y, p in of.items()} for _, of in expected]
        assert [one["probabilities"] for one in sent][2:] == of[2:]
    assert sent[7] == (sent[7] | {
        "topic": "t", "partition": 0, "offset": 7, "key": "k7", "own key": b"k7",
        "fields": {"id": 7, "none": None}, "learnt": 7, "model": "m",
    })  # fmt: skip
    right = sum(one["prediction"] == y for one, (_, y) in zip(sent, EVENTS, strict=True))
    assert right == round(report.accuracy * report.scored)


def test_an_output_of_ones_own_takes_predictions_of_any_source(tmp_path):
    class Kept(Output):
        def __init__(self):
            self.found = []

        def add(self, batch, rows, predictions, further, are_learnt=False):
            self.found += predictions

    output, checkpoint = Kept(), Checkpoint(tmp_path / "run.ckpt", every=50)
    Run(
        MemorySource(EVENTS), SVMSGDClassifier(seed=0), output=output, checkpoint=checkpoint
    ).execute()
    assert output.found == [label for label, _ in loop(SVMSGDClassifier(seed=0))]


def test_what_is_predicted_is_the_same_if_probabilities_are_wanted():
    """The model is too, to the last bit, with a scaler before it."""
    models = [StandardScaler() | SVMSGDClassifier(seed=0) for _ in range(2)]
    sent = [
        scored(labelled(), one, probabilities=wanted)[0]
        for one, wanted in zip(models, (False, True), strict=True)
    ]
    assert [one["prediction"] for one in sent[0]] == [one["prediction"] for one in sent[1]]
    weights = [
        one.decision_function_one({"a": 1.0, "b": 2.0})
        for one in (model.steps["SVMSGDClassifier"] for model in models)
    ]
    assert weights[0] == weights[1]


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
    assert [one["offset"] for one in sent] == list(range(120)) and report.learnt == 120
    model = SVMSGDClassifier(seed=0)
    for x, y in EVENTS[:50]:
        model.learn_one(x, y)
    assert all(one["prediction"] is None for one in sent[:50])
    assert [one["learnt"] for one in sent[60:102]] == [50] * 41 + [51]
    assert [one["prediction"] for one in sent[60:100]] == [
        model.predict_one(x) for x, _ in EVENTS[60:100]
    ]


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
    assert [one["offset"] for one in sent] == list(range(120))
    right = sum(one["prediction"] == y for one, (_, y) in zip(sent, EVENTS, strict=True))
    assert right == round(report.accuracy * report.scored)
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
    assert [one["offset"] for one in sent] == [i for i in range(120) if i not in (5, 6, 70)]
    assert [one["learnt"] for one in sent] == list(range(117)) and report.learnt == 117


def test_rows_of_record_batches():
    import pyarrow as pa

    rows = pa.RecordBatch.from_pylist([x | {"y": y, "id": 1} for x, y in EVENTS])
    messages = [
        Message("t", 0, i, b"k%d" % i, arrow_bytes(rows.slice(40 * i, 40)), None) for i in range(3)
    ]
    producer = Producer()
    source = KafkaSource(iter(messages), "y", decode="arrow", exclude=["id"])
    output = ScoredTopic(producer, "out", source, fields=["id"])
    Run(source, SVMSGDClassifier(), output=output).execute()
    assert [(one["offset"], one["row"]) for one in producer.sent] == [
        (i, j) for i in range(3) for j in range(40)
    ]
    assert all(one["fields"] == {"id": 1} for one in producer.sent)
    assert {one["own key"] for one in producer.sent} == {b"k0", b"k1", b"k2"}


def test_odd_values():
    """Keys and fields that JSON does not have."""
    big = 2**70
    messages = [
        Message("t", 0, i, key, {"a": float(i), "y": i % 2, "id": value}, None)
        for i, (key, value) in enumerate(
            [(b"\xff", big), (None, {1: float("nan")}), ("k", b"\x00")]
        )
    ]
    producer = Producer()
    source = KafkaSource(iter(messages), "y", exclude=["id"])
    output = ScoredTopic(producer, "out", source, fields=["id"])
    Run(source, SVMSGDClassifier(), output=output).execute()
    assert [one["key"] for one in producer.sent] == ["\\xff", None, "k"]
    assert producer.sent[0]["fields"]["id"] == big


def test_what_is_refused(tmp_path):
    source = KafkaSource(iter(labelled()), "y")
    output = ScoredTopic(Producer(), "out", source, exactly_once=True)
    for checkpoint in (None, Checkpoint(tmp_path / "run.ckpt")):
        with pytest.raises(ParameterError, match="exactly_once needs a checkpoint with seconds="):
            Run(source, SVMSGDClassifier(), output=output, checkpoint=checkpoint)
    output = ScoredTopic(Producer(), "out", source)
    with pytest.raises(ParameterError, match="nor for simulated delays"):
        Run(source, SVMSGDClassifier(), output=output, late=LateLabels(5))


def test_a_file_that_a_killed_process_left(tmp_path):
    """It may count: whoever goes on without asking the broker, or forgets, is told."""
    path = tmp_path / "run.ckpt"
    Run(
        KafkaSource(iter(labelled()), "y"), SVMSGDClassifier(), checkpoint=Checkpoint(path)
    ).execute()
    (tmp_path / "run.ckpt.next").write_bytes(path.read_bytes())
    with pytest.raises(CheckpointError, match=r"run.ckpt.next was left"):
        source = KafkaSource(iter(labelled()), "y")
        Run(source, SVMSGDClassifier(), checkpoint=Checkpoint(path)).execute()
    with pytest.raises(CheckpointError, match=r"run.ckpt.next was left"):
        forget_in_file(path, [1])
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
