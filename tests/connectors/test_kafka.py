"""KafkaSource: whatever client the messages come from, whatever is in them."""

import io
import json
import time
from collections import namedtuple
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import ArrowSource
from connectors.errors import SnapshotError, SourceError
from connectors.kafka.kafka_source import KafkaSource
from connectors.kafka.messages import Message, message_of
from connectors.payloads import avro, flatten, framed, name_of
from streamsvm import Checkpoint, LateLabels, SVMSGDClassifier
from streamsvm.cli.report import report_rows
from streamsvm.run.runner import Run
from tests.consumers import Confluent, MethodMessage, arrow_bytes


class Error:
    def __init__(self, code, retriable=False):
        self._code, self._retriable = code, retriable

    def code(self):
        return self._code

    def retriable(self):
        return self._retriable

    def __str__(self):
        return f"error {self._code}"


class Record(NamedTuple):
    """A ConsumerRecord of kafka-python, as recorded."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes


class KafkaPython:
    """kafka.KafkaConsumer: an iterator, with partitions and methods of its own."""

    def __init__(self, records):
        self.records = iter(records)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.records)

    def poll(self, timeout_ms=0, max_records=None):
        raise AssertionError("it is an iterator")

    seek = commit = assignment = poll


def event(i):
    return json.dumps({"a": float(i), "label": i % 2 == 0}).encode()


def of_log(log, errors=(), committed=None, **options):
    """Return a source of a topic that a consumer reads, and the consumer."""
    consumer = Confluent(log, errors, committed)
    options = {"topics": ["t"], "idle": 0.01, "timeout": 0.01} | options
    return KafkaSource(consumer, "label", **options), consumer


def read(source):
    """Return (place, offset, features, label) of all events, and all rejects."""
    found, rejects = [], []
    for batch in source.batches():
        found += [(e.position.file, e.position.row, e.x, e.y) for e in batch.events()]
        rejects += batch.rejects
    return found, rejects


def test_every_client_gives_the_same_events():
    expected = [("t[0]", i, {"a": float(i)}, i % 2 == 0) for i in range(6)]
    values = [event(i) for i in range(6)]
    confluent, _ = of_log({0: values})
    python = KafkaSource(
        KafkaPython([Record("t", 0, i, 2500, None, v) for i, v in enumerate(values)]),
        "label",
        batch_size=4,
    )
    plain = [
        values,
        [(b"key", v) for v in values],
        [json.loads(v) for v in values],
        [(None, json.loads(v)) for v in values],
        [Message("t", 0, i, None, v, None) for i, v in enumerate(values)],
    ]
    sources = [KafkaSource(items, "label", name="t", batch_size=4) for items in plain]
    for source in [confluent, python, *sources]:
        assert read(source) == (expected, [])
        snapshot = source.snapshot()
        assert (snapshot["offsets"], snapshot["labels"]) == ({"t[0]": 6}, "bool")
        assert source.n_rows is None
    for message, seconds in (
        (MethodMessage(0, 1, b""), 2.5),
        (MethodMessage(0, 1, b"", timestamp=(0, -1)), None),
        (Record("t", 0, 0, 2500, None, b""), 2.5),
        (Record("t", 0, 0, -1, None, b""), None),
    ):
        assert message_of(message).seconds == seconds


def test_an_iterator_is_not_waited_for_and_its_messages_have_offsets():
    with pytest.raises(ValueError, match=r"idle=5.0: an iterator .* leave idle= out"):
        KafkaSource([event(0)], "label", idle=5.0)
    for wrong in (None, -1, True, "1"):
        messages = [Message("t", 0, at, None, event(i), None) for i, at in enumerate([0, wrong])]
        with pytest.raises(SourceError, match=f"message 1 has offset={wrong!r}: give a whole"):
            read(KafkaSource(messages, "label", name="t"))


def test_an_iterator_goes_on_where_it_was_and_nothing_is_committed():
    records = [Record("t", 0, i, 0, None, event(i)) for i in range(6)]
    source = KafkaSource(KafkaPython(records), "label")
    source.resume({"source": "KafkaSource", "offsets": {"t[0]": 2, "t[1]": 5}})
    assert [row for _, row, *_ in read(source)[0]] == [2, 3, 4, 5]
    source.settled(source.snapshot())
    source.confirm()
    assert source.lags == {} and source.failed_commits == 0
    source.learnt_elsewhere = lambda places: {}
    with pytest.raises(SourceError, match="--peers .* needs a consumer of confluent-kafka"):
        next(source.batches())
    source, again = (KafkaSource([event(i) for i in range(106)], "label") for _ in range(2))
    next(source.batches(102))
    again.resume(source.snapshot())
    assert [row for _, row, *_ in read(again)[0]] == [102, 103, 104, 105]
    with pytest.raises(SourceError, match="cannot be read a second time"):
        again.rewind()


@pytest.mark.parametrize(
    ("payload", "kind", "reason"),
    [
        (b'{"\xff": 1}', "undecodable", "UnicodeDecodeError"),
        (b'{"a": 1', "undecodable", "JSONDecodeError"),
        (b"", "undecodable", "JSONDecodeError"),
        (b"[" * 100_000, "undecodable", "RecursionError"),
        (b"[1, 2]", "not an event", "is a list"),
        (b'"text"', "not an event", "is a str"),
        (b"null", "not an event", "is a NoneType"),
        (None, "not an event", "tombstone"),
        (b'{"a": [1], "label": true}', "not an event", "feature `a` is a list"),
        (b'{"a": {"b": 1}, "label": true}', "not an event", "feature `a` is a dict"),
        (b'{"a": 1, "label": [1]}', "not an event", "the label `label` is a list"),
        (b'{"a": 1, "label": "yes"}', "not an event", "those of this stream are bool"),
        (b'{"a": 1' + b"0" * 400 + b', "label": true}', "not an event", "too large"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_bad_payload_is_set_aside_and_counted(payload, kind, reason):
    source = KafkaSource([event(0), Message("kafka", 0, 1, None, payload, None), event(2)], "label")
    found, (reject,) = read(source)
    assert [x["a"] for _, _, x, _ in found] == [0.0, 2.0]
    assert reject.kind == kind and reason in reject.reason
    assert str(reject.position) == "kafka[0]: row 1"
    assert len(reject.payload) < 2100
    assert reject.x == {"payload": reject.payload}


def test_missing_labels_nan_and_text_are_for_the_run_to_judge():
    items = [b'{"a": NaN, "label": true}', b'{"a": 1}', b'{"a": "red", "b": null, "label": false}']
    found, rejects = read(KafkaSource(items, "label"))
    assert rejects == []
    assert np.isnan(found[0][2]["a"])
    assert [y for *_, y in found] == [True, None, False]
    assert found[2][2] == {"a=red": 1.0}


def arrow(**columns):
    return arrow_bytes(pa.record_batch(columns))


def test_arrow_payloads():
    items = [
        arrow(a=[1, 2], c=["x", None], label=[1, 0]),
        arrow(a=[3], c=["y"], label=[1]),
        arrow(a=[4.5], label=[0]),  # another schema
        b"nothing of the kind",
        arrow(a=[[1]], label=[0]),  # a nested column
        arrow(a=[6], c=["x"]),  # no label
    ]
    found, rejects = read(KafkaSource(items, "label", decode="arrow"))
    assert found == [
        ("kafka[0]", 0, {"a": 1.0, "c=x": 1.0}, 1),
        ("kafka[0]", 0, {"a": 2.0}, 0),
        ("kafka[0]", 1, {"a": 3.0, "c=y": 1.0}, 1),
        ("kafka[0]", 2, {"a": 4.5}, 0),
        ("kafka[0]", 5, {"a": 6.0, "c=x": 1.0}, None),
    ]
    assert [reject.position.row for reject in rejects] == [3, 4]
    one = KafkaSource(items[:1], "label", decode="arrow", columns=["a", "b"])
    assert [x for _, _, x, _ in read(one)[0]] == [{"a": 1.0}, {"a": 2.0}]


ODD_COLUMNS = {"a": pa.array([None, 2.0], pa.float32()), "c": ["x", "y"], "b": [1, 2]}
ODD_COLUMNS |= {"none": pa.nulls(2, pa.float64()), "label": [1, 0]}


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (ODD_COLUMNS, {}),
        (ODD_COLUMNS, {"columns": ["b", "b"]}),
        ({"none": pa.nulls(1), "a": [1], "label": [1]}, {}),
        # Texts without end: those after the first thousand share a feature.
        ({"c": [f"t{i % 3000}" for i in range(4000)], "label": [1] * 4000}, {}),
    ],
    ids=["odd", "named", "null", "texts"],
)
def test_arrow_payloads_are_features_as_files_are(columns, options):
    source = KafkaSource([arrow(**columns)], "label", decode="arrow", **options)
    expected = next(ArrowSource(pa.table(columns), "label", **options).batches()).features
    assert next(source.batches()).features.equals(expected, check_metadata=True)


def test_arrow_payloads_without_a_value():
    source = KafkaSource([arrow(none=pa.nulls(1), label=[1])], "label", decode="arrow")
    assert [x for _, _, x, _ in read(source)[0]] == [{}]


def test_a_decoder_of_your_own():
    def of_csv(payload):
        a, y = payload.decode().split(",")
        return {"a": float(a), "y": y}

    found, rejects = read(KafkaSource([b"1,yes", b"2,no", b"?"], "y", decode=of_csv))
    assert [(x, y) for _, _, x, y in found] == [({"a": 1.0}, "yes"), ({"a": 2.0}, "no")]
    assert rejects[0].kind == "undecodable"
    assert name_of("json") == "json" and "of_csv" in name_of(of_csv)
    with pytest.raises(ValueError, match="decode='xml': use 'json', 'arrow'"):
        KafkaSource([], "y", decode="xml")


def test_a_huge_message_costs_no_more_than_itself():
    """A text of 30 MB is one feature for one event, or a letter that is cut short."""
    huge = b"x" * 30_000_000
    payloads = [b'{"a": 1.0, "label": true}', b'{"a": "' + huge, huge, event(2)]
    found, rejects = read(KafkaSource(payloads, "label"))
    assert [x["a"] for _, _, x, _ in found] == [1.0, 2.0]
    assert [reject.kind for reject in rejects] == ["undecodable"] * 2
    assert all(len(reject.payload) < 2100 for reject in rejects)


@pytest.mark.slow
def test_a_million_names_do_not_fill_the_memory():
    wide = [{f"{i}-{k}": 1.0 for k in range(40_000)} | {"label": True} for i in range(3)]
    narrow = [{"a": float(i), "c": f"text {i}", "label": False} for i in range(4000)]
    too_wide = {str(k): 1.0 for k in range(100_001)}
    source = KafkaSource([*narrow[:50], *wide, too_wide, *narrow[50:]], "label", batch_size=5000)
    rows, rejects = [], []
    for batch in source.batches():
        assert batch.features.num_columns * max(1, len(batch)) <= 2_100_000
        rows += batch.rows.tolist()
        rejects += batch.rejects
    assert rows == [i for i in range(4004) if i != 53]
    assert "100,001 fields" in rejects[0].reason


def _schema(fields, name="event"):
    return {"type": "record", "name": name, "fields": fields}


def _avro_of(fields, record):
    fastavro = pytest.importorskip("fastavro")
    schema = _schema(fields)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return schema, out.getvalue()


_MIXED = [
    {"name": "a", "type": ["null", "double"]},
    {"name": "y", "type": "boolean"},
    {"name": "z", "type": {"type": "enum", "name": "zone", "symbols": ["in", "out"]}},
]
_NUMBERS = [{"name": name, "type": "double"} for name in "ab"]
_LISTS = [{"name": "a", "type": {"type": "array", "items": "double"}}]


def test_avro():
    record = {"a": 1.5, "y": True, "z": "in"}
    schema, one = _avro_of(_MIXED, record)
    _, none = _avro_of(_MIXED, record | {"a": None})
    header = b"\0\0\0\0\7"
    items = [header + one, header + none, header, b"", b"short"]
    found, rejects = read(KafkaSource(items, "y", decode=avro(schema, header=5)))
    assert [(x, y) for _, _, x, y in found] == [
        ({"a": 1.5, "z=in": 1.0}, True),
        ({"z=in": 1.0}, True),
    ]
    assert [reject.kind for reject in rejects] == ["undecodable"] * 3
    # A decoder is named by its schema's name and its header, not by its fields.
    names = {name_of(avro(of)) for of in (schema, _schema(_NUMBERS))}
    assert names == {"avro event, header 0"}
    names |= {name_of(avro(schema, 5)), name_of(avro(_schema(_NUMBERS, "b")))}
    assert len(names) == 3


@pytest.mark.parametrize(
    ("fields", "header", "change", "reason"),
    [
        (
            _MIXED,
            5,
            lambda v: v[:4] + b"\x08" + v[5:],
            "has the id 8, and the one it is read with 7",
        ),
        (_MIXED, 5, lambda v: b"\x01" + v[1:], "first byte is 1, where the framing"),
        (_MIXED, 5, lambda v: b'{"a": 1.5, "y": true}', "it looks like JSON"),
        (_MIXED, 5, lambda v: v + b"x", "1 of 17 bytes are left"),
        (_MIXED, 5, lambda v: v[:-1], "ends too early"),
        (_MIXED, 5, lambda v: v[:-2] + b"\5" + v[-1:], "writes no such bytes"),
        (_MIXED, 5, lambda v: v[:-1] + b"\1", "writes no such bytes"),
        (_MIXED, 0, lambda v: b"\0\0\0\0\7" + v, "header=5, its schema has the id 7"),
        (_NUMBERS, 0, lambda v: b'{"a": 1, "b": 2}', "it is JSON"),
        (_LISTS, 0, lambda v: b"\0" + v, "bytes are left"),
        (
            _MIXED,
            10,
            lambda v: v[:2] + b"12345678" + v[10:],
            "has the fingerprint 3837363534333231",
        ),
        (_MIXED, 10, lambda v: b"\0" + v[1:], "no single-object encoding"),
    ],
)
def test_avro_of_another_kind_is_a_dead_letter(fields, header, change, reason):
    record = {"a": 1.5, "b": 2.5, "y": True, "z": "in"}
    record = {field["name"]: record[field["name"]] for field in fields}
    if fields is _LISTS:
        record = {"a": [1.5]}
    schema, written = _avro_of(fields, record)
    if header == 5:
        written = b"\0\0\0\0\7" + written
    elif header == 10:
        from fastavro.schema import fingerprint, to_parsing_canonical_form

        mark = fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")
        written = b"\xc3\x01" + bytes.fromhex(mark)[::-1] + written
    decode = avro(schema, header)
    assert decode(written) == record
    (reject,) = read(KafkaSource([change(written)], "y", decode=decode))[1]
    assert reject.kind == "undecodable"
    assert reason in reject.reason


def test_the_id_of_an_avro_schema_is_given_or_that_of_the_first_record():
    schema, written = _avro_of(_MIXED, {"a": 1.5, "y": True, "z": "in"})
    seven, eight = (b"\0\0\0\0" + bytes([i]) + written for i in (7, 8))
    of_eight = avro(schema, 5, 8)
    assert len(read(KafkaSource([seven, eight, b"{}"], "y", decode=of_eight))[1]) == 2
    # What cannot be decoded decides nothing; after a restart the id is that of before.
    first = KafkaSource([b"\0\0\0\0\x09x", seven, eight], "y", decode=avro(schema, 5))
    assert len(read(first)[1]) == 2
    again = KafkaSource([eight, eight, eight, eight, seven], "y", decode=avro(schema, 5))
    again.resume(first.snapshot())
    assert [reject.position.row for reject in read(again)[1]] == [3]
    with pytest.raises(ValueError, match=r"schema_id=7: ids are in a header of 5 bytes"):
        avro(schema, 0, 7)


def test_each_avro_record_is_read_by_the_schema_of_its_id():
    """Of a registry's schemas; those of other ids were decoded as the one that is given."""
    old, one = _avro_of(_NUMBERS, {"a": 1.5, "b": 2.5})
    reordered, two = _avro_of(_NUMBERS[::-1] + _MIXED[1:2], {"a": 1.0, "b": 2.0, "y": True})
    mistyped = _schema([{"name": "a", "type": "string"}])
    schemas = {7: old, 8: json.dumps(reordered), 9: mistyped, 10: {"type": "no"}}
    asked = []

    def schema_of(number):
        asked.append(number)
        return schemas[number]

    frame = lambda number, record: b"\0\0\0\0" + bytes([number]) + record  # noqa: E731
    bad = [frame(11, one), frame(10, one), b"\1" + frame(7, one)[1:], frame(7, one) + b"x"]
    good = [frame(7, one), frame(8, two), frame(7, one), frame(8, two)]
    found, rejects = read(KafkaSource([*good, *bad], "y", decode=avro(schema_of=schema_of)))
    assert [(x, y) for *_, x, y in found] == 2 * [
        ({"a": 1.5, "b": 2.5}, None), ({"a": 1.0, "b": 2.0}, True)
    ]  # fmt: skip
    assert asked == [7, 8, 11, 10]
    reasons = ["id 11 of its header cannot be had: 11", "id 10 of", "the framing", "1 of 22 bytes"]
    assert all(said in one.reason for said, one in zip(reasons, rejects, strict=True))
    # Resolved to one schema: fields by name, those that are not in it left out.
    decode = avro(old, schema_of=schema_of)
    assert decode(good[1]) == {"a": 1.0, "b": 2.0}
    assert decode.name == "avro event, header 5"
    (reject,) = read(KafkaSource([frame(9, b"\2x")], "y", decode=decode))[1]
    assert "with the id 9, cannot be resolved to that to read by" in reject.reason
    for more in ({"header": 0}, {"schema_id": 7}):
        with pytest.raises(ValueError, match=r"schema_(id|of)="):
            avro(old, schema_of=schema_of, **more)


@pytest.mark.parametrize("decode", ["json", json.loads])
def test_json_in_the_framing_of_a_registry(decode):
    framing = b"\0\0\0\0\7"
    good, bare = framing + b'{"a": 1.5, "y": true}', b'{"a": 1.5, "y": true}'
    found, rejects = read(KafkaSource([good, bare, framing], "y", decode=framed(decode)))
    assert [(x, y) for *_, x, y in found] == [({"a": 1.5}, True)]
    assert "the framing of a schema registry has 0 (it looks like JSON)" in rejects[0].reason
    assert framed("json").name == "json, header 5" != framed("arrow").name
    for decoder in ("json", "arrow"):
        (reject,) = read(KafkaSource([good], "y", decode=decoder))[1]
        assert "framing of a schema registry, with id 7: --header 5, framed()" in reject.reason


def test_all_bytes_of_an_arrow_message_are_of_its_stream():
    whole = arrow_bytes(pa.RecordBatch.from_pydict({"a": [1.0, 2.0], "y": [True, False]}))
    cuts = [whole[:n] for n in range(len(whole))]
    for payload in (*cuts, whole + b"x", whole + whole, b'{"a": 1.0, "y": true}', b"ARROW1\0\0"):
        found, rejects = read(KafkaSource([payload], "y", decode="arrow"))
        assert not found
        assert [reject.kind for reject in rejects] == ["undecodable"], payload
    assert len(read(KafkaSource([whole], "y", decode="arrow"))[0]) == 2


def test_what_is_no_consumer_is_refused():
    class Async:
        def __aiter__(self):
            return self

        async def getmany(self, timeout_ms, max_records):
            return {}

    for consumer, options, error, words in (
        (Async(), {"topics": ["t"]}, TypeError, "Async is asynchronous: give an iterator of its"),
        (KafkaPython([]), {"topics": ["t"]}, TypeError, "KafkaPython is read as an iterator of"),
        (3, {}, TypeError, "int is no consumer"),
        ("file.jsonl", {}, TypeError, "for files there are other sources"),
        ([], {"batch_size": 0}, ValueError, "batch_size"),
        ([], {"timeout": 0}, ValueError, "timeout"),
    ):
        with pytest.raises(error, match=words):
            KafkaSource(consumer, "y", **options)


def test_errors_of_the_broker():
    waiting = [Error(-191), Error(-195), Error(-187), Error(7, retriable=True)]
    assert len(read(of_log({0: [event(0)]}, waiting)[0])[0]) == 1
    source, _ = of_log({0: []}, [Error(29)])
    with pytest.raises(SourceError, match="the broker says: error 29"):
        read(source)


def test_positions_come_from_the_snapshot_unless_others_got_further():
    log = {0: [event(i) for i in range(10)], 1: [event(i) for i in range(10)]}
    source, _ = of_log(log, committed={0: 7, 1: 2})
    source.resume({"source": "KafkaSource", "offsets": {"t[0]": 4, "t[1]": 6}})
    found, _ = read(source)
    assert [(place, row) for place, row, *_ in found] == [
        *[("t[0]", i) for i in range(7, 10)],
        *[("t[1]", i) for i in range(6, 10)],
    ]
    with pytest.raises(SnapshotError):
        source.resume({"source": "ParquetSource"})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"target": "b"}, "taken with target='label', this source has target='b'"),
        ({"columns": ["b", "c"]}, "columns=None, this source has columns=['b', 'c']"),
        ({"decode": "arrow"}, "decode='json', this source has decode='arrow'"),
        ({"timestamp": "t"}, "timestamp=None, this source has timestamp='t'"),
        ({"topics": ["u"]}, "topics=['t'], this source has topics=['u']"),
        ({"key": "k"}, "key=None, this source has key='k'"),
    ],
)
def test_a_snapshot_is_of_one_set_up(changed, words):
    base = {"target": "label", "topics": ["t"], "idle": 0.01, "timeout": 0.01}
    snapshot = KafkaSource(Confluent({}), **base).snapshot()
    with pytest.raises(SnapshotError) as caught:
        KafkaSource(Confluent({}), **(base | changed)).resume(snapshot)
    assert words in str(caught.value)
    # A consumer may be subscribed by other code.
    snapshot = KafkaSource(Confluent({}), "label").snapshot()
    KafkaSource(Confluent({}), **base).resume(snapshot)


def batches(payloads, target="label", **options):
    return list(KafkaSource(payloads, target, name="t", **options).batches())


def test_nested_objects_are_taken_apart():
    nested = {"user": {"age": 39, "home": {"zip": "1"}}, "a": 1.0, "truth": {"label": True}}
    rows = [json.dumps(nested).encode(), b'{"u.v": 1, "u": {"v": 2}, "truth": {"label": false}}']
    # Without it, all of these are dead letters.
    assert len(batches(rows, "truth.label")[0].rejects) == 2
    (batch,) = batches(rows, "truth.label", transform=flatten)
    assert batch.labels.to_pylist() == [True]
    assert batch.features.to_pydict() == {"user.age": [39.0], "user.home.zip=1": [1.0], "a": [1.0]}
    (reject,) = batch.rejects
    assert "flatten cannot be applied: ValueError: there are two fields `u.v`" in reject.reason
    deep = {}
    for _ in range(3000):
        deep = {"a": deep}
    assert flatten(deep) == {}
    table = pa.RecordBatch.from_pylist([{"u": {"a": 1, "h": {"z": 2.5}}, "label": True}])
    assert flatten(table).schema.names == ["u.a", "u.h.z", "label"]
    assert flatten(table[:0]).num_rows == 0
    (batch,) = batches([table], transform=flatten)
    assert batch.features.to_pydict() == {"u.a": [1.0], "u.h.z": [2.5]}


def test_a_transform_of_your_own():
    def shares(event):
        return {"share": event["part"] / event["whole"], "label": event["label"]}

    rows = [{"part": 1, "whole": whole, "label": True} for whole in (2, 0, 4)]
    (batch,) = batches(rows, transform=shares)
    assert batch.features.to_pydict() == {"share": [0.5, 0.25]}
    assert "shares cannot be applied: ZeroDivisionError" in batch.rejects[0].reason
    (batch,) = batches(rows, transform=lambda event: None)
    assert "returned a NoneType, not an object of features" in batch.rejects[0].reason
    assert KafkaSource([], "y", transform=shares).snapshot() != KafkaSource([], "y").snapshot()


@pytest.mark.parametrize("columns", [None, ["a", "b"]])
def test_excluded_fields_are_no_features(columns):
    rows = [{"a": 1.0, "b": 2.0, "label": True}, {"a": 3.0, "b": {"nested": 1}, "label": False}]
    (batch,) = batches(rows, columns=columns, exclude=["b"])
    assert batch.features.to_pydict() == {"a": [1.0, 3.0]} and not batch.rejects
    table = pa.RecordBatch.from_pylist(rows[:1])
    (batch,) = batches([table], columns=columns, exclude=["b"])
    assert batch.features.to_pydict() == {"a": [1.0]}


def test_a_rebalance_settles_first_and_commits_what_was_learnt():
    source, consumer = of_log({p: [event(i) for i in range(5)] for p in (0, 1)})
    calls = []
    source.before_revoke = lambda: (calls.append(1), source.settled(source.snapshot()))
    assert len(read(source)[0]) == 10
    consumer.log[0].append(event(5))
    consumer.log[1].append(event(5))
    consumer.rebalance([1])
    assert calls == [1]
    assert consumer.commits == {0: 5, 1: 5}
    # Where reading got to stays known: what comes back is not learnt again.
    assert source.snapshot()["offsets"] == {"t[0]": 5, "t[1]": 5}
    # The other member may have committed more of partition 1 in between.
    found, _ = read(source)
    assert [(place, row) for place, row, *_ in found] == [("t[1]", 5)]
    source.close()
    assert consumer.closed


def test_offsets_that_are_left_out_are_counted(tmp_path):
    """Those that the broker deletes between two messages, or while no process reads."""

    def run(offsets):
        messages = [Message("t", p, i, None, event(i), None) for p in (0, 1) for i in offsets]
        source = KafkaSource(messages, "label", batch_size=9)
        checkpoint = Checkpoint(tmp_path / "run.ckpt")
        return Run(source, SVMSGDClassifier(), checkpoint=checkpoint).execute()

    report = run([*range(5, 40), *range(50, 80)])
    assert (report.rows, report.source["jumped"]) == (130, 20)
    # Those of before are read again by an iterator, and passed over.
    report = run([*range(70, 80), *range(500, 510)])
    assert (report.rows, report.source["passed_over"]) == (150, 20)
    assert report.source["jumped"] == 20 + 2 * 420
    assert dict(report_rows(report, {}))["offsets left out"].startswith("860 ")


def test_a_quiet_topic_gives_empty_batches():
    batches = of_log({0: []}, idle=None)[0].batches()
    assert [len(next(batches)) for _ in range(3)] == [0, 0, 0]


def test_waiting_for_partitions_is_said_once_and_is_no_time_of_learning(monkeypatch):
    class Slow(Confluent):
        n_polls = 0

        def consume(self, n, timeout):
            self.n_polls += 1
            time.sleep(0.02)
            return super().consume(n, timeout) if self.n_polls > 9 else []

    monkeypatch.setattr("connectors.kafka.kafka_source._PATIENCE", 0.05)
    values = [json.dumps({"a": i, "label": i % 2}).encode() for i in range(30)]
    source, said = KafkaSource(Slow({0: values}), "label", topics=["t"], idle=0.01), []
    source.on_long_wait = said.append
    report = Run(source, SVMSGDClassifier()).execute()
    assert len(said) == 1 and "no partition is assigned" in said[0] and report.rows == 30
    assert report.seconds > report.wait_seconds == source.wait_seconds >= 0.18
    assert report.rows_per_second == 30 / (
        report.seconds - report.compile_seconds - report.wait_seconds
    )


def test_time_of_learning_does_not_make_a_topic_idle():
    class OneByOne(Confluent):
        n_polls = 0

        def consume(self, n, timeout):
            self.n_polls += 1
            return super().consume(1, timeout) if self.n_polls % 3 == 0 else []

    values = [json.dumps({"a": i, "label": i % 2}).encode() for i in range(5)]
    source = KafkaSource(OneByOne({0: values}), "label", topics=["t"], timeout=0.01, idle=0.1)
    # Nothing is held until the type of the labels is known.
    source.resume({"source": "KafkaSource", "offsets": {}, "labels": "float"})
    n_rows = 0
    for batch in source.batches():
        n_rows += len(batch)
        if n_rows < len(values):
            time.sleep(0.11)
    assert n_rows == len(values)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=60) | st.none(), min_size=1, max_size=8),
    st.sampled_from(["json", "arrow"]),
)
def test_no_payload_stops_the_stream(payloads, decode):
    messages = [Message("t", 0, i, None, value, None) for i, value in enumerate(payloads)]
    found, rejects = read(KafkaSource(messages, "label", decode=decode))
    places = sorted([row for _, row, *_ in found] + [r.position.row for r in rejects])
    # An Arrow stream of no rows is neither.
    assert decode == "arrow" or places == list(range(len(payloads)))


def test_large_messages_are_read_a_few_at_a_time():
    values = [json.dumps({"t": f"{i}" + "x" * 10**6, "y": i % 2 == 0}).encode() for i in range(90)]
    asked = []

    class Consumer:
        next = 0

        def consume(self, n, timeout):
            asked.append(n)
            first, self.next = self.next, min(self.next + min(n, 70), len(values))
            return [Message("t", 0, i, None, values[i], None) for i in range(first, self.next)]

    batches = list(KafkaSource(Consumer(), "y", timeout=0.01, idle=0.02).batches())
    sizes = [len(batch) for batch in batches if len(batch)]
    # 51 are held until the type of labels is known; in all others there are 8 MB at most.
    assert (sum(sizes), sorted(sizes)[-2]) == (90, 7)
    assert asked[:3] == [500, 7, 7]
    assert [row for batch in batches for row in batch.rows.tolist()] == list(range(90))


def test_no_message_waits_for_others():
    values = [json.dumps({"a": i, "label": i % 2}).encode() for i in range(6)]
    arrivals, waited = [1, 0, 2, 1, 2], []

    class Consumer:
        """As librdkafka: it waits for all n that are asked for, or until the time is over."""

        n, n_there = 0, 0

        def consume(self, n, timeout):
            if timeout and arrivals:
                self.n_there += arrivals.pop(0)
            first, self.n = self.n, min(self.n + n, self.n_there)
            if timeout and self.n - first < n:
                waited.append(self.n - first)
            return [Message("t", 0, i, None, values[i], None) for i in range(first, self.n)]

    source = KafkaSource(Consumer(), "label", timeout=0.01, idle=0.02)
    source.resume({"source": "KafkaSource", "offsets": {}, "labels": "float"})
    sizes = [len(batch) for batch in source.batches()]
    # It waited only where nothing was there; what came together is a batch but for the first one.
    assert len(waited) > 1 and set(waited) == {0}
    assert [n for n in sizes if n] == [1, 1, 1, 1, 1, 1]


def test_the_lag_is_what_the_client_knows():
    at = namedtuple("Partition", "topic partition")

    class Consumer:
        def assignment(self):
            return [at("t", 0), at("t", 1), at("t", 2)]

        def consume(self, n, timeout):
            return []

        def get_watermark_offsets(self, partition, cached):
            return (0, -1001) if partition.partition == 2 else (0, 100)

    source = KafkaSource(Consumer(), "y")
    assert source.lag is None and source.lags == {}  # nothing was read
    source._offsets.update({"t[0]": 90, "t[1]": 100, "t[2]": 5, "other[0]": 1})
    assert source.lag == 10 and source.lags == {"t[0]": 10, "t[1]": 0}


@pytest.mark.parametrize("decode", ["json", "arrow"])
def test_texts_that_are_numbers_can_be_learnt_as_numbers(decode):
    rows = [{"p": f"{i}.5", "day": "2024-01-02T03:04:05Z", "t": "a", "y": "1"} for i in range(60)]
    rows[57]["p"], rows[58]["p"] = "cheap", ""

    def source(**options):
        payloads = [json.dumps(row).encode() for row in rows]
        if decode == "arrow":
            payloads = [arrow(**{name: [value] for name, value in row.items()}) for row in rows]
        return KafkaSource(payloads, "y", decode=decode, **options)

    def read(source):
        batches = list(source.batches())
        return [x for b in batches for x, *_ in b.events()], [r for b in batches for r in b.rejects]

    named = source(parse_numbers=["p", "day"])
    events, rejects = read(named)
    assert events[7] == {"p": 7.5, "day": 1704164645.0, "t=a": 1.0} and "p" not in events[-2]
    assert [r.reason for r in rejects] == [
        "`p` is 'cheap': neither a number nor a time (parse_numbers)"
    ]
    found, _ = read(source(parse_numbers=True))
    assert [x for x in found if "p" in x] == [x for x in events if "p" in x]
    unparsed = source(exclude=["day"])
    read(unparsed)
    assert unparsed.number_texts.names == []
    del rows[57]
    unparsed = source(exclude=["day"])
    read(unparsed)
    assert unparsed.number_texts.names == ["p"]
    with pytest.raises(SnapshotError, match="parse_numbers"):
        unparsed.resume(named.snapshot())


@pytest.mark.parametrize("decode", ["json", "arrow"])
def test_key_and_headers_can_be_features(decode):
    def value(row):
        batch = pa.RecordBatch.from_pylist([row])
        return json.dumps(row).encode() if decode == "json" else arrow_bytes(batch)

    def message(i, key, headers, row):
        return Message("t", 0, i, key, value(row), None, headers)

    messages = [
        message(0, b"k1", [("trace", b"x"), ("v", b"1.5"), ("v", b"2.5")], {"a": 1.0, "y": 0}),
        message(1, None, None, {"a": 2.0, "y": 1}),
        message(2, "k2", (("v", None),), {"a": 3.0, "y": 1}),
        message(3, b"k3", [], {"a": 3.0, "y": 1, "v": 1.0}),
    ]
    options = {"decode": decode, "message_key": "who", "headers": ["v"], "parse_numbers": ["v"]}
    events, rejects = read(KafkaSource(messages, "y", **options))
    found = [{name: v for name, v in x.items() if v} for *_, x, _ in events]
    assert found == [{"who=k1": 1.0, "v": 2.5, "a": 1.0}, {"a": 2.0}, {"who=k2": 1.0, "a": 3.0}]
    assert "`v` is a field of the message, and one of message_key=" in rejects[0].reason
    # Columns that are named leave them in; another setting is another stream.
    source = KafkaSource(messages[:3], "y", columns=["a"], **options)
    assert read(source)[0] == events
    with pytest.raises(SnapshotError, match="headers"):
        other = KafkaSource(messages, "y", **options | {"headers": [], "columns": ["a"]})
        other.resume(source.snapshot())


@pytest.mark.parametrize(
    ("factor", "unit"), [(1, None), (1e3, "milli"), (1e6, "micro"), (1e9, "nano")]
)
@pytest.mark.parametrize("kind", ["json", "arrow", "table"])
def test_the_unit_of_times_is_told_by_their_size(factor, unit, kind):
    rows = [{"a": i, "t": int((1.7e9 + i) * factor), "y": i % 2} for i in range(60)]
    rows += [{"a": 1, "t": None, "y": 1}, {"a": 1, "t": 0, "y": 1}]
    if kind == "table":
        source = ArrowSource(pa.RecordBatch.from_pylist(rows), target="y", timestamp="t")
    elif kind == "json":
        source = KafkaSource([json.dumps(row).encode() for row in rows], "y", timestamp="t")
    else:
        value = arrow_bytes(pa.RecordBatch.from_pylist(rows))
        source = KafkaSource([value], "y", timestamp="t", decode="arrow")
    found = np.concatenate([batch.timestamps for batch in source.batches()])
    assert found[:60].tolist() == [1.7e9 + i for i in range(60)]
    assert np.isnan(found[60]) and found[61] == 0.0
    said = [text for text in source.number_texts.findings if "the times in t" in text]
    read_as = f"the times in t are read as {unit}seconds since 1970, by their size"
    assert said == ([] if unit is None else [read_as])


def test_late_labels_of_an_iterator_come_when_it_gives_them():
    messages = []
    for i in range(1000):
        x = {"a": (i * 37 % 100) / 100.0, "b": i % 7}
        messages.append(Message("events", 0, i, b"%d" % i, json.dumps(x).encode(), i))
        if i >= 20:
            y = json.dumps({"y": ((i - 20) * 37 % 100) > 50}).encode()
            messages.append(Message("labels", 0, i - 20, b"%d" % (i - 20), y, i))
    late = LateLabels(patience=100, default=False)
    source = KafkaSource(iter(messages), "y", labels="labels")
    found = Run(source, SVMSGDClassifier(), late=late).execute()
    assert found.late["answered"] == 980 and "too_late" not in found.late


def test_messages_that_an_iterator_gives_twice_at_once_are_passed_over(tmp_path):
    def records(*numbers):
        value = [json.dumps({"a": n % 5, "y": n % 2 > 0}).encode() for n in numbers]
        return [Record("t", 0, n, n, None, v) for n, v in zip(numbers, value, strict=True)]

    source = KafkaSource(iter(records(*range(200), *range(150, 260))), "y")
    run = Run(source, SVMSGDClassifier(), checkpoint=Checkpoint(tmp_path / "c"))
    assert run.execute().learnt == 260 and source.passed_over == 50
    # The last one that was read comes twice, too.
    source = KafkaSource(iter(records(*range(250, 260), *range(255, 300))), "y")
    run = Run(source, SVMSGDClassifier(), checkpoint=Checkpoint(tmp_path / "c"))
    assert run.execute().learnt == 300


def test_what_an_iterator_gave_before_an_error_is_learnt():
    def broken():
        yield from [{"a": float(i % 5), "y": i % 2 > 0} for i in range(651)]
        raise OSError("the line is down")

    run = Run(KafkaSource(broken(), "y"), SVMSGDClassifier())
    with pytest.raises(Exception, match="the line is down"):
        run.execute()
    assert run.report.learnt == 651
