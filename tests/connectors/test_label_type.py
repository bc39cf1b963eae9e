"""The type of a stream's labels is that of most of its first messages."""

import json

import pytest

from connectors import KafkaSource
from connectors.kafka import message_reader
from connectors.kafka.messages import Message
from streamsvm import LASVMClassifier
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.consumers import Confluent, Partition


def payloads(labels, **more):
    return [json.dumps({"a": float(i % 7), "y": y} | more).encode() for i, y in enumerate(labels)]


def read(values, batch_size=4096, after=None, **options):
    """Return the labels that a source gives, its rejects' rows, and its snapshot."""
    source = KafkaSource(values, "y", batch_size=batch_size, **options)
    if after is not None:
        source.resume(after)
    labels, dead = [], []
    for batch in source.batches():
        labels += batch.labels.to_pylist()
        dead += [reject.position.row for reject in batch.rejects]
    return labels, dead, source.snapshot()


BOOLEANS = [i % 2 == 0 for i in range(300)]


@pytest.mark.parametrize("first", [["yes"], ["yes"] * 40, [1, "yes", 2.5] * 10])
@pytest.mark.parametrize("batch_size", [1, 7, 50, 4096])
def test_the_first_messages_decide_together(first, batch_size):
    labels, dead, snapshot = read(payloads(first + BOOLEANS), batch_size)
    assert labels == BOOLEANS
    assert dead == list(range(len(first)))
    assert snapshot["labels"] == "bool"


def test_a_message_without_a_label_or_dead_decides_nothing():
    nothing = [
        b'{"a": 1.0, "y": NaN}',
        b'{"a": 1.0, "y": null}',
        *[b'{"a": NaN, "y": "yes"}', b'{"a": 1e300, "y": "yes"}'] * 100,
        *[b'{"a": "\\ud800", "y": "yes"}', b'{"a": [1], "y": "yes"}'] * 100,
    ]
    report = Run(
        KafkaSource(nothing + payloads(BOOLEANS), "y"),
        LASVMClassifier(),
        bad_events=BadEvents("skip"),
    ).execute()
    assert (report.learnt, sum(report.bad.values())) == (300, 402)


def test_what_is_held_is_made_into_batches_once(monkeypatch):
    made, batch_of = [], message_reader.batch_of

    def counted(pairs, *others, **more):
        made.append(pairs)
        return batch_of(pairs, *others, **more)

    monkeypatch.setattr(message_reader, "batch_of", counted)
    batches = KafkaSource([{"a": "x", "y": True}] * 60, "y").batches()
    assert sum(map(len, batches)) == sum(map(len, made)) == 60


def test_it_is_decided_once_and_kept_in_the_checkpoint(tmp_path):
    values = payloads(["yes", *BOOLEANS[:51], *["late"] * 300, *BOOLEANS])
    for limit in (60, 80, None):
        report = Run(
            KafkaSource(values, "y", batch_size=10),
            LASVMClassifier(),
            bad_events=BadEvents("skip"),
            checkpoint=Checkpoint(tmp_path / "run.ckpt", every=10),
            limit=limit,
        ).execute()
    assert (report.rows, report.learnt) == (652, 351)
    # A snapshot of an older release, too.
    after = {"source": "KafkaSource", "offsets": {}, "labels": "str"}
    assert read(payloads([True] * 200 + ["no"]), after=after)[0] == ["no"]


def test_what_is_held_counts_as_unread():
    source = KafkaSource(iter(payloads(BOOLEANS)), "y", batch_size=10)
    batches = source.batches()
    assert source.snapshot()["offsets"] == {}
    assert len(next(batches)) == 60  # 51 decide, and the others of the same poll follow
    assert source.snapshot()["offsets"] == {"kafka[0]": 60}
    assert source.snapshot()["labels"] == "bool"


def test_partitions_keep_their_order_and_events_without_labels_do_not_wait():
    values = payloads(BOOLEANS[:60])
    labelled = [Message("t", i % 3, i // 3, None, v, None) for i, v in enumerate(values)]
    bare = [Message("u", 0, i, None, b'{"a": 1.0}', None) for i in range(20)]
    mixed = [message for pair in zip(labelled[:20], bare, strict=True) for message in pair]
    source = KafkaSource(mixed + labelled[20:], "y", batch_size=5)
    found = [(batch.file, batch.rows.tolist()) for batch in source.batches() if len(batch)]
    assert [file for file, _ in found][:2] == ["u[0]"] * 2
    for p in range(3):
        rows = [row for file, rows in found if file == f"t[{p}]" for row in rows]
        assert rows == list(range(20))


def test_rare_labels_are_not_waited_for_without_end():
    values = [b'{"a": 1.0}' if i % 100 else payloads([True])[0] for i in range(3000)]
    source = KafkaSource(iter(values), "y", batch_size=50)
    next(source.batches())
    assert source.snapshot()["labels"] == "bool"
    assert source.snapshot()["offsets"]["kafka[0]"] <= 1000


def test_what_is_held_is_dropped_with_its_partition_and_read_again():
    consumer = Confluent({0: payloads(BOOLEANS)})
    source = KafkaSource(consumer, "y", topics=["t"], batch_size=20, timeout=0.01, idle=0.05)
    batches = source.batches()
    assert [len(next(batches)) for _ in range(2)] == [0, 0]  # 40 are held
    consumer.on_revoke(consumer, [Partition("t", 0)])
    assert source.snapshot()["offsets"] == {"t[0]": 0}
    consumer.on_assign(consumer, [Partition("t", 0)])
    assert [row for batch in batches for row in batch.rows.tolist()] == list(range(300))
