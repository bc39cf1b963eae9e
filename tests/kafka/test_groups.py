"""Members of a group: which offsets are committed, and which way partitions come and go."""

import threading

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamsvm import LASVMClassifier, SVMSGDClassifier
from streamsvm.errors import CheckpointError
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.brokers import produce
from tests.kafka.runs import committed, learnt, made, payloads, source_of

pytestmark = pytest.mark.kafka


def polled_until(source, wanted, most=200):
    """Poll without learning until `wanted()`."""
    for _ in range(most):
        if wanted():
            return
        source.consumer.poll(0.1)
    raise AssertionError("it did not come")


def test_committed_offsets_do_not_go_down(broker, tmp_path):
    """A member gets partitions back in its last poll, when its snapshot is older than the group."""
    topic = made(broker.address, "down", 1, 100)
    source = source_of(broker.address, topic)
    run = Run(
        source, SVMSGDClassifier(seed=0), checkpoint=Checkpoint(tmp_path / "a.ckpt", every=100)
    )
    was_lost = False

    def others_go_on():
        nonlocal was_lost
        if run.taken < 100:
            return False
        run.checkpoint.after()
        source.confirm()
        if not was_lost:
            # The group goes on without this member, which gets the partition back afterwards.
            was_lost = True
            source._lost(source.consumer, source.consumer.assignment())
            consumer = source.consumer
            consumer.unsubscribe()
            produce(broker.address, topic, payloads(200), 1)
            assert learnt(source_of(broker.address, topic), tmp_path / "b.ckpt").rows == 200
            calls = {"on_assign": source._assigned, "on_revoke": source._revoked}
            consumer.subscribe([topic], **calls, on_lost=source._lost)
            polled_until(source, lambda: source._floor.get(f"{topic}[0]") == 300)
        return True

    run.should_stop = others_go_on
    with source:
        run.execute()
    assert committed(broker.address, topic, 1) == [300]


@pytest.mark.parametrize("is_joined", [False, True])
def test_the_first_error_is_shown(broker, tmp_path, is_joined):
    """Closing asks nothing of a client that is being closed, whatever it was doing."""
    topic, path = f"first{is_joined}", tmp_path / "run.ckpt"
    made(broker.address, topic, 2, 100)
    learnt(source_of(broker.address, topic), path)
    source = source_of(broker.address, topic)
    if is_joined:
        polled_until(source, lambda: source.consumer.assignment())
    else:
        # The group has decided, and the client has not been polled yet.
        threading.Event().wait(4.0)
    with pytest.raises(CheckpointError, match="is of a run of SVMSGDClassifier"), source:
        Run(source, LASVMClassifier(), checkpoint=Checkpoint(path)).execute()


@pytest.mark.parametrize(
    "how", [{"partition_assignment_strategy": "cooperative-sticky"}, {"group_protocol": "consumer"}]
)
def test_members_join_and_leave(broker, tmp_path, how):
    """One learns, another joins and leaves in between: each message counts once."""
    topic = made(broker.address, "join" + "".join(how.values()), 4, 2000)
    reports = {}

    def member(name, path, **options):
        source = source_of(broker.address, topic, idle=3.0, **how)
        source.batch_size = 50
        reports[name] = learnt(source, path, **options)

    first_reads = threading.Event()

    def note(progress):
        if progress.rows >= 500:
            first_reads.set()
            # The other one has time to join.
            threading.Event().wait(0.1)

    first = threading.Thread(
        target=member, args=("a", tmp_path / "a.ckpt"), kwargs={"on_progress": note}
    )
    first.start()
    assert first_reads.wait(30)
    member("b", tmp_path / "b.ckpt", limit=300)
    first.join(60)
    assert reports["b"].rows > 0
    # What is left of them.
    member("c", tmp_path / "c.ckpt")
    assert sum(report.rows for report in reports.values()) == 2000
    assert committed(broker.address, topic, 4) == [500] * 4
    assert sum(report.source["passed_over"] for report in reports.values()) == 0


def test_what_was_committed_is_known_before_the_run_returns(broker, tmp_path):
    topic = made(broker.address, "known", 1, 100)
    source = source_of(broker.address, topic)
    Run(source, SVMSGDClassifier(), checkpoint=Checkpoint(tmp_path / "run.ckpt")).execute()
    place = TopicPartition(topic, 0)
    assert source.consumer.committed([place], 10)[0].offset == 100
    source.close()


def test_offsets_that_cannot_be_asked_for_at_first(broker, monkeypatch):
    """Nothing is read until they are known; it is no end."""
    failures = [KafkaError(KafkaError._TIMED_OUT)] * 3

    class Slow(Consumer):
        def committed(self, *args):
            if failures:
                raise KafkaException(failures.pop())
            return super().committed(*args)

    topic, how = "slow", {"partition_assignment_strategy": "cooperative-sticky"}
    made(broker.address, topic, 2, 100)
    monkeypatch.setattr("tests.kafka.runs.Consumer", Slow)
    report = learnt(source_of(broker.address, topic, idle=2.0, **how))
    assert report.rows == 100 and not failures
