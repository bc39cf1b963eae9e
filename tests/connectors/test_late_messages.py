"""Keys, times and topics of labels, as messages bring them."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from connectors import KafkaSource, LetterTopic, SourceError
from connectors.kafka.messages import Message
from streamsvm import LASVMClassifier, SVMSGDClassifier
from streamsvm.errors import BadEventError, LabelError, ParameterError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.consumers import Partition, arrow_bytes


def message(topic, offset, value, key=None, seconds=None):
    return Message(topic, 0, offset, key, json.dumps(value).encode(), seconds)


def arrow(rows):
    return arrow_bytes(pa.RecordBatch.from_pylist(rows))


def learn(messages, letters="skip", target="y", most=None, **options):
    """Learn messages; return the report, and the policy of bad events."""
    bad = BadEvents(letters) if most is None else BadEvents(letters, most=most)
    report = Run(KafkaSource(messages, target, **options), SVMSGDClassifier(), bad_events=bad)
    return report.execute(), bad


def test_labels_of_another_topic_find_their_events_by_the_message_key():
    messages = [message("clicks", k, {"a": float(k % 7)}, b"%d" % k) for k in range(40)]
    messages += [message("sold", k, {"label": k % 7 > 3}, b"%d" % k) for k in range(40)]
    messages += [message("clicks", 40, {"a": 6.0}, b"40"), message("sold", 40, {}, b"40")]
    learner = LASVMClassifier()
    source = KafkaSource(messages, "label", labels="sold", batch_size=7)
    bad = BadEvents("skip")
    report = Run(source, learner, late=LateLabels(), bad_events=bad).execute()
    assert (report.rows, report.learnt, report.late["held"]) == (41, 40, 1)
    assert report.bad == {"missing label": 1}
    assert learner.feature_names == ["a"]
    assert learner.predict_one({"a": 6.0}) is True


def test_the_key_may_be_a_field_and_is_no_feature():
    payloads = [{"id": k, "at": 10.0 * k, "a": 1.0} for k in range(3)]
    source = KafkaSource(payloads, "label", key="id", timestamp="at")
    batch = next(source.batches())
    assert batch.keys == [0, 1, 2]
    assert batch.timestamps.tolist() == [0.0, 10.0, 20.0]
    assert batch.features.schema.names == ["a"]
    sliced = batch.slice(1, 1)
    assert (sliced.keys, sliced.timestamps.tolist()) == ([1], [10.0])


def test_keys_and_times_of_record_batches():
    rows = [{"id": f"k{i}", "at": i, "a": float(i), "label": None} for i in range(3)]
    answers = [{"id": f"k{i}", "label": bool(i % 2)} for i in range(3)]
    messages = [
        Message("events", 0, 0, None, arrow(rows), 5.0),
        Message("labels", 0, 0, None, arrow(answers), 6.0),
    ]
    options = {"key": "id", "timestamp": "at", "labels": "labels", "decode": "arrow"}
    source = KafkaSource(messages, "label", **options)
    first, second = (batch for batch in source.batches() if len(batch))
    assert first.keys == second.keys == ["k0", "k1", "k2"]
    assert first.timestamps.tolist() == [0.0, 1.0, 2.0]
    assert np.isnan(second.timestamps).all()  # answers have no field `at`
    assert first.features.schema.names == ["a"]
    assert second.are_answers and not first.are_answers
    assert second.features.num_columns == 0
    learner = LASVMClassifier()
    Run(KafkaSource(messages, "label", **options), learner, late=LateLabels()).execute()
    assert learner.n_examples == 3
    # Without a field for the key, a message's key is that of all its rows.
    del options["key"]
    source = KafkaSource([messages[0]._replace(key=b"x")], "label", **options)
    assert next(source.batches()).keys == ["x"] * 3


def test_times_are_seconds_or_iso_8601():
    times = [12.5, "1970-01-01T00:01:00", "1970-01-01T01:00:00+01:00", None, "soon", [1]]
    batch = next(KafkaSource([{"t": t, "a": 1.0} for t in times], "y", timestamp="t").batches())
    np.testing.assert_array_equal(batch.timestamps, [12.5, 60.0, 0.0, math.nan])
    assert [reject.kind for reject in batch.rejects] == ["not an event"] * 2
    assert "ISO 8601" in batch.rejects[0].reason


def test_the_brokers_time_is_there_without_a_field():
    found = next(KafkaSource([message("t", 0, {"a": 1.0}, seconds=7.0)], "y").batches())
    assert found.timestamps.tolist() == [7.0]
    late = LateLabels(delay=30.0, moment="timestamp")
    messages = [message("t", i, {"a": i % 7.0, "y": i % 7 > 3}, seconds=i) for i in range(100)]
    report = Run(KafkaSource(messages, "y", batch_size=9), LASVMClassifier(), late=late).execute()
    assert report.learnt == 100


class OneByOne:
    """quixstreams' consumer: a message or None at each poll, like confluent-kafka's."""

    def __init__(self, payloads):
        self.payloads = list(enumerate(payloads))
        self.waits = []

    def poll(self, timeout=None):
        self.waits.append(timeout)
        if not self.payloads:
            return None
        offset, value = self.payloads.pop(0)
        return Message("t", 0, offset, None, value, None)

    def assignment(self):
        return [Partition("t", 0)]


def test_a_consumer_that_polls_one_by_one():
    consumer = OneByOne([b'{"a": %d, "y": true}' % i for i in range(10)])
    source = KafkaSource(consumer, "y", batch_size=4, timeout=0.01, idle=0.05)
    assert [row for batch in source.batches() for row in batch.rows.tolist()] == list(range(10))
    # Only the first message of a batch is waited for.
    assert consumer.waits[:5] == [0.01, 0, 0, 0, 0.01]


# Dead letters


class Producer:
    def __init__(self, refuses=False, room=3, left=0):
        self.sent, self.queue, self.room, self.left = [], [], room, left
        self.refuses = refuses

    def produce(self, topic, value, key, on_delivery, headers, timestamp=None):
        if len(self.queue) == self.room:
            raise BufferError("queue full")
        self.queue.append(
            (topic, Message(topic, 0, 0, key, value, timestamp, headers), on_delivery)
        )

    def poll(self, seconds):
        return 0

    def flush(self, seconds):
        for topic, letter, on_delivery in self.queue:
            on_delivery("too large" if self.refuses else None, None)
            self.sent.append((topic, letter))
        self.queue = []
        return self.left


def letters_of(messages, producer=None, **options):
    producer = Producer(room=9) if producer is None else producer
    report, _ = learn(messages, LetterTopic(producer, "dead"), **options)
    assert {topic for topic, _ in producer.sent} == {"dead"}
    assert len(producer.sent) == sum(report.bad.values())
    return [letter for _, letter in producer.sent]


BROKEN = [b"{broken", *(b'{"a": %d, "y": %d}' % (i, i % 2) for i in range(4))] * 3


def test_dead_letters_go_to_a_topic():
    letters = letters_of(BROKEN, Producer(room=2))
    said = [dict(letter.headers) for letter in letters]
    assert [one["__connect.errors.offset"] for one in said] == [b"0", b"5", b"10"]
    assert letters[0].value == b"{broken"
    assert b"JSON" in said[0]["__connect.errors.exception.message"]


def good(n=60):
    return [Message("t", 1, i, None, b'{"a": %d, "y": %d}' % (i % 7, i % 2), 1.0) for i in range(n)]


@pytest.mark.parametrize("value", [b"{broken", b'{"a": Infinity, "y": true}', None, b'{"a": 1.0}'])
def test_a_letter_is_the_message_as_it_came(value):
    own = [("trace", b"7"), ("__connect.errors.offset", b"an earlier letter's")]
    (letter,) = letters_of([*good(), Message("t[x]", 1, 77, b"\xffk", value, 1.234, own)])
    assert (letter.value, letter.key, letter.seconds) == (value, b"\xffk", 1234)
    *of, (name, reason), last = letter.headers
    assert last == ("trace", b"7") and name == "__connect.errors.exception.message" and reason
    assert of == [
        ("__connect.errors.topic", b"t[x]"),
        ("__connect.errors.partition", b"1"),
        ("__connect.errors.offset", b"77"),
    ]


@pytest.mark.parametrize("key", [7, {"a": 1}, (1, 2)])
def test_a_letter_of_what_a_client_has_decoded_is_json(key):
    (letter,) = letters_of([*good(), Message("t", 1, 77, key, b"{broken", 1.0)])
    assert json.loads(letter.value)["x"] == {"payload": "{broken"} and letter.key == b"t[1]:77"
    (letter,) = letters_of([*good(), Message("t", 1, 77, None, {"a": 1.0}, 1.0)])
    assert json.loads(letter.value)["x"] == {"a": 1.0}


def test_letters_of_a_record_batch_are_its_rows():
    columns = {"a": [1.0, math.inf, 2.0, 3.0, math.inf], "y": [0, 1, 1, 0, 0]}
    batches = [pa.record_batch(columns).slice(1)] * 30
    messages = [
        Message("t", 0, i, b"k", arrow_bytes(batch), 1.0) for i, batch in enumerate(batches)
    ]
    letters = letters_of(messages, decode="arrow")
    assert [letter.key for letter in letters[:3]] == [b"t[0]:0:0", b"t[0]:0:3", b"t[0]:1:0"]
    rows = [pa.ipc.open_stream(letter.value).read_all().to_pylist() for letter in letters]
    assert rows == [[{"a": math.inf, "y": 1}], [{"a": math.inf, "y": 0}]] * 30
    said = dict(letters[1].headers)
    assert said["__connect.errors.row"] == b"3" and said["__connect.errors.key"] == b"k"
    # As a message of its own it is one row, and has the key that it has.
    (letter,) = letters_of([*messages[:9], letters[1]._replace(topic="u")], decode="arrow")[-1:]
    assert letter.value == letters[1].value and letter.key == letters[1].key


def test_letters_of_large_messages_are_cut():
    sent = []

    class Producing(Producer):
        def produce(self, topic, value, key, on_delivery, headers):
            assert len(value) + len(str(headers)) < 1_000_000, "as librdkafka and brokers"
            sent.append((json.loads(value), dict(headers)))

    wide = {f"feature {i}": 1.0 for i in range(50_000)} | {"a": math.inf, "y": True}
    named = {"n" * 400_000: math.inf, "y": True}
    good = [{"a": float(i % 7), "y": i % 7 > 3} for i in range(60)]
    payloads = [json.dumps(value).encode() for value in [*good, wide, named]]
    report, bad = learn(payloads, LetterTopic(Producing(), "dead"))
    assert (report.learnt, report.bad) == (60, {"bad feature": 2})
    assert [said["__connect.errors.offset"] for _, said in sent] == [b"60", b"61"]
    assert sent[0][0]["payload"].startswith('{"feature 0": 1.0, "feature 1"')
    assert len(json.dumps(sent[0][0])) < 10_000
    assert sent[1][0].keys() == named.keys()
    assert b"characters)" in sent[1][1]["__connect.errors.exception.message"]
    assert len(bad.most_frequent) < 3000


def test_letters_that_cannot_be_delivered_stop_the_run():
    for producer, words in (
        (Producer(refuses=True), "3 dead letters were refused: too large"),
        (Producer(left=2), "could not be delivered"),
    ):
        with pytest.raises(SourceError, match=words):
            letters_of(BROKEN, producer)


def test_a_misspelt_target_names_the_field_that_is_meant():
    events = [{"user": "a", "amount": 1.5, "fraud": i % 2 == 0} for i in range(30)]
    letters = []
    for target, near in (("frued", "fraud"), ("usr", "user")):
        with pytest.raises(LabelError, match=f"no `{target}`, did you mean `{near}`\\?"):
            learn(events, letters.append, target)
    assert len({letter["reason"] for letter in letters[:30]}) == 1
    # A label that only this event lacks is not misspelt.
    events[7] = {"frauds": 1.0, "fraud": None}
    learn(events, letters.append, "fraud", batch_size=5)
    assert letters[-1]["reason"] == "the label is missing"


@pytest.mark.parametrize(
    ("n_bad", "most", "said"),
    [
        (4, 0.05, None),
        (6, 0.05, r"6 events could not be used.*5.00% of \d+ are allowed"),
        # None of them, and any number of them.
        (1, 0.0, r"1 events could not be used.*0.00% of \d+ are"),
        (0, 0.0, None),
        (300, 1.0, None),
    ],
)
def test_a_share_of_errors_stops_the_run(n_bad, most, said):
    payloads = [b"{broken"] * n_bad + [b'{"a": %d, "y": %d}' % (i, i % 2) for i in range(200)]
    if said is None:
        report, _ = learn(payloads, most=most, batch_size=10)
        assert report.bad == ({"undecodable": n_bad} if n_bad else {})
    else:
        with pytest.raises(BadEventError, match=said):
            learn(payloads, most=most, batch_size=10)


@pytest.mark.parametrize("wrong", [1.5, -0.1, True, math.nan])
def test_what_is_no_share_is_refused(wrong):
    with pytest.raises(ParameterError, match="a share as a float between 0.0 and 1.0"):
        BadEvents("skip", most=wrong)


def test_a_share_is_counted_in_the_order_of_events():
    """Bad messages that come after many good ones are not counted as if they had come first."""

    good = [b'{"a": %d, "y": %d}' % (i, i % 2) for i in range(1000)]
    no_label = [b'{"a": 1.0}']
    for bad in ([b"{broken"], no_label, [b"{broken", *no_label]):
        late = [*good[:900], *bad * (40 // len(bad)), *good[900:]]
        early = [*bad * (8 // len(bad)), *good]
        for size in (1, 60, 4096):
            report, _ = learn(late, most=0.05, batch_size=size)
            assert sum(report.bad.values()) == 40
            with pytest.raises(BadEventError, match=r"row 5: 6 events .* 5.00% of 100 are"):
                learn(early, most=0.05, batch_size=size)
