"""Fields of messages that change their kind, times as text, and the payloads of dead letters."""

import json

import numpy as np
import pytest

from connectors import KafkaSource, MemorySource
from connectors.kafka.messages import Message
from streamsvm import LASVMClassifier, StandardScaler
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run


def messages(n=400, **at):
    """Return JSON messages; some of them with other fields, given by their numbers."""
    draw = np.random.default_rng(0).normal(size=n).tolist()
    for i in range(n):
        event = {"amount": draw[i], "shop": "ab"[i % 2], "y": draw[i] > 0} | at.get(f"m{i}", {})
        yield Message("t", 0, i, None, json.dumps(event).encode(), None)


def learn(stream, model=None, **options):
    letters = []
    model = StandardScaler() | LASVMClassifier() if model is None else model
    source = KafkaSource(stream, "y", **options)
    report = Run(source, model, bad_events=BadEvents(letters.append, most=1.0)).execute()
    return report, letters, model


@pytest.mark.parametrize(
    ("changed", "rows", "names"),
    [
        ({"m200": {"amount": "12.50"}, "m399": {"amount": "x"}}, [200, 399], []),
        # One text at the start decides nothing.
        ({"m0": {"amount": "12.50"}, "m1": {"shop": 7}}, [0], ["shop=7"]),
        # Dates are categories.
        ({"m3": {"day": "2026-01-01"}}, [], ["day=2026-01-01"]),
    ],
)
def test_a_number_that_comes_as_text_is_a_dead_letter(changed, rows, names):
    _, letters, model = learn(messages(**changed))
    assert [letter["position"]["row"] for letter in letters] == rows
    for letter in letters:
        assert letter["reason"] == (
            "feature `amount` is a text; in most of the first messages it was a number"
        )
    found = model["LASVMClassifier"].feature_names
    assert sorted(found) == sorted(["amount", "shop=a", "shop=b", *names])


def test_what_is_a_number_is_kept_in_snapshots():
    first, second = (KafkaSource(messages(m300={"amount": "1"}), "y") for _ in range(2))
    next(first.batches(100))
    second.resume(json.loads(json.dumps(first.snapshot())))
    rejects = [reject for batch in second.batches() for reject in batch.rejects]
    assert [reject.position.row for reject in rejects] == [300]


@pytest.mark.parametrize("options", [{}, {"timestamp": "when"}, {"exclude": ["when"]}])
def test_times_as_text_are_no_features(options):
    changed = {f"m{i}": {"when": f"2026-01-01T00:{i:02}:00Z"} for i in range(60)}
    _, letters, model = learn(messages(**changed), **options)
    assert not [n for n in model["LASVMClassifier"].feature_names if n.startswith("when")]
    assert len(letters) == (0 if options else 60)
    # One reason for all of them, which says what to do.
    reasons = {letter["reason"] for letter in letters}
    assert len(reasons) == (0 if options else 1)
    assert all("`when` is a date with a time" in r and "--exclude" in r for r in reasons)


def test_dead_letters_hold_the_payload_as_it_came():
    stream = list(messages(m200={"amount": 1e300}, m201={"y": None, "shop": "caf\u00e9"}))
    _, letters, _ = learn(iter(stream))
    assert [letter["position"]["row"] for letter in letters] == [200, 201]
    assert [letter["payload"] for letter in letters] == [
        stream[i].value.decode() for i in (200, 201)
    ]
    assert letters[1]["x"]["shop=caf\u00e9"] == 1.0

    # Mappings from an iterator are written as JSON; without messages there is no payload.
    _, letters, _ = learn(iter([json.loads(m.value) for m in stream]))
    assert json.loads(letters[1]["payload"]) == json.loads(stream[201].value)
    events = [({"a": float(i % 3)}, bool(i % 2)) for i in range(9)] + [({"a": np.inf}, True)]
    letters = []
    Run(MemorySource(events), LASVMClassifier(), bad_events=BadEvents(letters.append)).execute()
    assert "payload" not in letters[0]


def two_topics(n=400, **at):
    """Return events without labels, their labels from another topic, a little later."""
    for i, message in enumerate(messages(n, **at)):
        event = json.loads(message.value)
        label = json.dumps({"y": event.pop("y"), "amount": "a text"}).encode()
        key = b"%d" % i
        yield message._replace(key=key, value=json.dumps(event).encode())
        yield Message("labels", 0, i, key, label, None)


@pytest.mark.parametrize("limit", [None, 70, 300])
def test_events_whose_labels_come_in_another_topic_have_the_same_checks(limit, tmp_path):
    odd = {"m0": {"amount": "1"}, "m200": {"amount": "12.50"}, "m300": {"at": "2026-01-01T00:00"}}
    for n in {limit, None}:
        letters = []
        model = StandardScaler() | LASVMClassifier()
        source = KafkaSource(two_topics(**odd), "y", labels="labels", batch_size=10)
        report = Run(
            source,
            model,
            bad_events=BadEvents(letters.append),
            late=LateLabels(),
            checkpoint=Checkpoint(tmp_path / "run.ckpt"),
            limit=n,
        ).execute()
    assert (report.rows, report.learnt) == (400, 397)
    assert sum(report.bad.values()) == 3
    assert sorted(model["LASVMClassifier"].feature_names) == ["amount", "shop=a", "shop=b"]
