"""Events and labels of two topics, in the order of their times."""

import itertools
import json
from datetime import timedelta

import pytest

from connectors import KafkaSource
from connectors.kafka.messages import Message
from connectors.kafka.time_order import TimeOrder
from streamsvm import SVMSGDClassifier
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.consumers import Partition


class Log:
    """A consumer of confluent-kafka's kind of a log by topic; `first` is the topic it prefers."""

    def __init__(self, log, first):
        self.log, self.at, self.paused = log, dict.fromkeys(log, 0), set()
        self.order = sorted(log, key=lambda topic: topic != first)

    def assignment(self):
        return [Partition(topic, 0) for topic in self.log]

    def get_watermark_offsets(self, partition, cached):
        return 0, len(self.log[partition.topic])

    def pause(self, partitions):
        self.paused |= {partition.topic for partition in partitions}

    def resume(self, partitions):
        self.paused -= {partition.topic for partition in partitions}

    def consume(self, n, timeout):
        for topic in self.order:
            start = self.at[topic]
            if topic not in self.paused and start < len(self.log[topic]):
                self.at[topic] = min(start + n, len(self.log[topic]))
                return self.log[topic][start : self.at[topic]]
        return []


def two_topics(n, delay, n_old=0, some=1):
    """Events, one a second, and labels of every `some`-th, `delay` seconds later; old labels."""
    events, labels = [], []
    for i in range(n_old):
        labels.append((f"old {i}", {"y": True}, i - float(n_old)))
    for i in range(n):
        events.append((str(i), {"a": float(i % 7)}, float(i)))
        if i % some == 0:
            labels.append((str(i), {"y": i % 7 > 3}, i + delay))
    return {
        topic: [
            Message(topic, 0, k, key.encode(), json.dumps(value).encode(), seconds)
            for k, (key, value, seconds) in enumerate(found)
        ]
        for topic, found in (("events", events), ("labels", labels))
    }


def run(log, first, **late):
    source = KafkaSource(Log(log, first), "y", labels="labels", idle=1e-9, batch_size=50)
    return Run(source, SVMSGDClassifier(), late=LateLabels(**late)).execute()


@pytest.mark.parametrize("first", ["events", "labels"])
@pytest.mark.parametrize(
    ("n_old", "delay", "patience"),
    [
        (0, 100.0, 300),
        (0, 100.0, timedelta(seconds=300)),
        (4000, 100.0, 300),
        (4000, 100.0, timedelta(seconds=300)),
        (0, 5000.0, 300),  # as if all labels were produced after all events
        (0, 5000.0, timedelta(seconds=6000)),
    ],
)
def test_labels_that_are_there_are_never_given_up(first, n_old, delay, patience):
    log = two_topics(2000, delay, n_old)
    report = run(log, first, patience=patience, default=False)
    assert report.late["never_came"] == 0
    assert report.late["answered"] == report.learnt == 2000
    assert report.labels == {"False": 1144, "True": 856}


def test_a_patience_of_events_is_of_later_ones_whatever_their_partition():
    """Of each of four partitions 50 events are read together, which cover 200 seconds."""
    log = two_topics(2000, 100.0)
    events = log.pop("events")
    log |= {
        f"events {k}": [m._replace(topic=f"events {k}") for m in events[k::4]] for k in range(4)
    }
    for topic in list(log)[1:]:
        log[topic] = [m._replace(offset=i) for i, m in enumerate(log[topic])]
    report = run(log, "events 0", patience=101, default=False)
    assert report.late["never_came"] == 0 and report.late["answered"] == 2000


@pytest.mark.parametrize("first", ["events", "labels"])
@pytest.mark.parametrize("patience", [300, timedelta(seconds=300)])
def test_events_without_a_label_are_given_up_when_labels_are_read_past_them(first, patience):
    report = run(two_topics(2000, 100.0, some=4), first, patience=patience, default=False)
    # Of the last 300 events those without a label wait still.
    assert report.late["answered"] == 500
    assert abs(report.late["held"] - 225) <= 100
    assert report.late["never_came"] == 1500 - report.late["held"]


def test_labels_later_than_the_patience_are_too_late():
    late = {"patience": timedelta(seconds=300), "default": False}
    report = run(two_topics(2000, 1000.0), "events", **late)
    assert report.late["never_came"] + report.late["answered"] == 2000
    assert report.late["too_late"] == report.late["never_came"] > 1000


def test_a_partition_that_is_ahead_waits_for_the_others():
    log = two_topics(100, 10.0)
    order = TimeOrder()
    assert order.add(log["events"], 0.1) == 0
    unread = {"events[0]": False, "labels[0]": True}
    assert order.take(5, unread) is None
    order.add(log["labels"][:1], 0.1)
    place, found = order.take(5, unread)
    assert (place, [message.offset for message in found]) == ("events[0]", [0, 1, 2, 3, 4])
    order.take(6, unread)
    assert order.take(5, unread)[0] == "labels[0]"
    # More is said to be there, but nothing comes: marks of transactions, say.
    assert order.take(5, unread) is None
    order.add([], 3.0)
    assert order.take(5, unread)[0] == "events[0]"
    # What comes a second time is left.
    assert order.add(log["events"], 0.1) == 100


def test_labels_come_before_events_that_are_later():
    """So an event whose key comes again finds the label of the first one learnt."""
    log, order = two_topics(6, 2.0), TimeOrder()
    order.add(log["events"], 0.1)
    order.add(log["labels"], 0.1)
    taken = []
    while found := order.take(500, {"events[0]": False, "labels[0]": False}):
        taken += found[1]
    times = [message.seconds for message in taken]
    assert len(taken) == 12
    assert all(later > time - 0.2 for time, later in itertools.pairwise(times))
