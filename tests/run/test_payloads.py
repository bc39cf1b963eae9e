"""Whatever a payload does: it is learnt, or it is a dead letter; the good ones do not notice."""

import io
import json
import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from connectors import KafkaSource
from connectors.kafka.messages import Message
from connectors.payloads import avro
from streamsvm import LaRankClassifier, LASVMClassifier, StandardScaler, SVMSGDClassifier, kernels
from streamsvm.monitor.watched import learner_of
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.consumers import arrow_bytes

MODELS = {
    "sgd": lambda: StandardScaler() | SVMSGDClassifier(),
    "few features": lambda: SVMSGDClassifier(max_features=6),
    "lasvm": lambda: StandardScaler() | LASVMClassifier(kernels.RBF(gamma=0.5)),
    "larank": lambda: LaRankClassifier(kernels.RBF(gamma=0.5), seed=0),
}
GOOD = [{"a": a, "b": b, "y": a * b > 0} for a, b in np.random.default_rng(0).normal(size=(70, 2))]
GOOD = [{"a": float(e["a"]), "b": float(e["b"]), "y": bool(e["y"])} for e in GOOD]

# A failing case is large enough to be read as it is; making it smaller would take minutes.
PHASES = [Phase.explicit, Phase.generate]
# Surrogates, integers of any size, NaN and infinity, nested values.
TEXTS = st.text(st.characters(categories=["L", "N", "Cs", "Cc"]), max_size=4)
NUMBERS = st.floats() | st.integers() | st.integers(-(10**400), 10**400) | st.just(2**63)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["a", "b", "y", "a=x", "key", "at"]) | TEXTS
NEARLY = st.builds(
    lambda base, odd: base | odd, st.sampled_from(GOOD), st.dictionaries(NAMES, VALUES, max_size=8)
)
JSON = st.one_of(
    st.binary(max_size=30),
    st.none(),
    (VALUES | NEARLY).map(lambda value: json.dumps(value).encode()),
)


def run(messages, model, decode="json", folder=None, limit=None, late=None, **options):
    """Learn messages; return the report, the model, and the dead letters."""
    letters = [] if folder is None else folder / "letters.jsonl"
    bad = BadEvents(letters.append) if folder is None else BadEvents("dead-letter", letters)
    source = KafkaSource(messages, "y", decode=decode, batch_size=9, name="t", **options)
    checkpoint = None if folder is None else Checkpoint(folder / "run.ckpt", every=25)
    made = MODELS[model]()
    a_run = Run(source, made, bad_events=bad, checkpoint=checkpoint, limit=limit, late=late)
    report = a_run.execute()
    if folder is not None:
        lines = letters.read_text().splitlines() if letters.exists() else []
        letters = [json.loads(line) for line in lines]
    return report, made, letters


def assert_same(a, b):
    """Fail if two models are not the same."""
    a, b = learner_of(a), learner_of(b)
    assert a.n_examples == b.n_examples
    assert a.feature_names == b.feature_names
    events = [{"a": e["a"], "b": e["b"]} for e in GOOD]
    decisions = [[m.decision_function_one(x) for x in events] for m in (a, b)]
    assert decisions[0] == decisions[1]


def mixed(written, odd, seed):
    """Return good events and odd payloads in some order, and which are the good ones."""
    payloads = [(written(e), True) for e in GOOD] + [(value, False) for value in odd]
    random.Random(seed).shuffle(payloads)
    return payloads


def learn_all(payloads, model, decode, seed, is_compared=True):
    """Learn in two processes; compare with a run that is given the good messages only."""
    messages = [Message("t", 0, i, b"k%d" % i, p, 1.0) for i, (p, _) in enumerate(payloads)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(messages, model, decode, folder, limit=20 + seed % 50)
        report, made, letters = run(messages, model, decode, folder)
    dead = [letter["position"]["row"] for letter in letters]
    assert report.learnt + len(dead) == report.rows
    assert not [i for i in dead if payloads[i][1]], "a good message is a dead letter"
    assert learner_of(made).n_examples == report.learnt >= len(GOOD)
    if is_compared:
        assert report.rows == len(payloads) and len(set(dead)) == len(dead)
        alive = [message for message in messages if message.offset not in set(dead)]
        alone, clean, none = run(alive, model, decode)
        assert (alone.learnt, none) == (report.learnt, [])
        assert_same(made, clean)


def as_json(event):
    return json.dumps(event).encode()


@settings(max_examples=25, phases=PHASES)
@given(
    st.lists(JSON, min_size=1, max_size=12), st.sampled_from(sorted(MODELS)), st.integers(0, 2**31)
)
@example([b'{"a": 1.0, "b": "\\ud800", "y": true}'], "sgd", 0)
@example([b'{"a": 1.0, "\\udfff": 1.0, "y": true}'], "lasvm", 1)
@example([b'{"a": 1.0, "b": 1.0, "y": "\\ud800"}'] * 2, "sgd", 2)
@example([b'{"a": 1.0, "b": 1.0, "y": 9223372036854775808}'], "sgd", 3)
@example([b'{"a": 1.0, "b": 1.0, "y": NaN}'], "larank", 4)
@example([json.dumps({f"w{i}": 1.0 for i in range(9)}).encode()], "few features", 5)
def test_json(odd, model, seed):
    learn_all(mixed(as_json, odd, seed), model, "json", seed)


@settings(max_examples=15, phases=PHASES)
@given(st.lists(JSON, min_size=1, max_size=12), st.integers(0, 2**31), st.booleans())
@example([b'{"a": 1.0, "b": 1.0, "key": 1e999}'], 0, True)
@example([json.dumps({"a": 1.0, "key": 10**90}).encode()], 0, True)
@example([json.dumps({"a": 1.0, "at": 10**400, "key": 1}).encode()], 0, True)
def test_json_with_keys_times_and_late_labels(odd, seed, has_key):
    messages = []
    for i, e in enumerate(GOOD):
        for topic, own in (("t", {"a": e["a"], "b": e["b"]}), ("labels", {"y": e["y"]})):
            messages.append(Message(topic, 0, 0, b"%d" % i, as_json(own | {"key": i}), 1.0))
    for i, value in enumerate(odd):
        topic = "labels" if (seed + i) % 3 == 0 else "t"
        messages.append(Message(topic, 0, 0, b"\xff", value, 1.0))
    random.Random(seed).shuffle(messages)
    offsets = {"t": 0, "labels": 0}
    for i, message in enumerate(messages):
        messages[i] = message._replace(offset=offsets[message.topic])
        offsets[message.topic] += 1
    options = {"timestamp": "at", "labels": "labels", "key": "key" if has_key else None}
    with tempfile.TemporaryDirectory() as name:
        for limit in (100, None):
            report, made, letters = run(
                messages, "sgd", "json", Path(name), limit, LateLabels(), **options
            )
    places = [tuple(letter["position"].values()) for letter in letters]
    assert len(set(places)) == len(places)
    assert report.late["held"] + report.learnt <= report.rows
    assert learner_of(made).n_examples == report.learnt


ARROW_TYPES = [
    *(pa.float64(), pa.float32(), pa.float16(), pa.int64(), pa.uint64(), pa.bool_(), pa.null()),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.list_(pa.int32())),
    *(pa.date32(), pa.timestamp("ns"), pa.duration("s"), pa.time32("s"), pa.decimal128(38, 2)),
    pa.dictionary(pa.int8(), pa.string()),
]


@st.composite
def arrow_payloads(draw):
    """Draw record batches of odd columns, whose bytes may be damaged."""
    n = draw(st.integers(0, 3))
    columns = [pa.array([0.5] * n), pa.array([True] * n)]
    names = ["a", "y"]
    for _ in range(draw(st.integers(0, 3))):
        type_ = draw(st.sampled_from(ARROW_TYPES))
        ours = {pa.uint64(): 2**64 - 1, pa.string(): "x", pa.int64(): -(2**63), pa.bool_(): True}
        value = draw(st.sampled_from([None, ours.get(type_, 1)]))
        try:
            columns.append(pa.array([value] * n, type_))
        except (pa.ArrowException, TypeError):
            columns.append(pa.array([None] * n, type_))
        names.append(draw(st.sampled_from(["a", "b", "y", "a=x", "c", "c=x"])))
    schema = pa.schema([pa.field(n, c.type) for n, c in zip(names, columns, strict=True)])
    raw = bytearray(arrow_bytes(pa.RecordBatch.from_arrays(columns, schema=schema)))
    for _ in range(draw(st.integers(0, 4))):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


def not_utf8():
    """Return a record batch whose text is not UTF-8."""
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])
    return arrow_bytes(pa.record_batch({"a": pa.array([1.0]), "b": text, "y": pa.array([True])}))


@settings(max_examples=25, phases=PHASES)
@given(
    st.lists(arrow_payloads() | st.binary(max_size=30), min_size=1, max_size=8),
    st.sampled_from(["sgd", "lasvm"]),
    st.integers(0, 2**31),
)
@example([not_utf8()], "sgd", 0)
@example([arrow_bytes(pa.record_batch({"a=x": [1.0], "a": ["x"], "y": [True]}))], "sgd", 1)
@example([arrow_bytes(pa.record_batch({"a": [1.0], "y": pa.array([1], pa.date32())}))], "sgd", 2)
@example([arrow_bytes(pa.record_batch({"a": [1.0], "y": ["yes"]}))] * 2, "sgd", 3)
def test_arrow(odd, model, seed):
    payloads = mixed(lambda e: arrow_bytes(pa.RecordBatch.from_pylist([e])), odd, seed)
    # A payload may have several rows, or none, and some of them may be good.
    learn_all(payloads, model, "arrow", seed, is_compared=False)


@settings(max_examples=20, phases=PHASES)
@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=12),
    st.sampled_from(["sgd", "larank"]),
    st.integers(0, 2**31),
)
def test_avro(odd, model, seed):
    fastavro = pytest.importorskip("fastavro", reason="pip install fastavro")
    kinds = ["null", "boolean", "long", "double", "string", {"type": "array", "items": "double"}]
    fields = [{"name": name, "type": kinds} for name in ("a", "b", "y")]
    schema = {"type": "record", "name": "event", "fields": fields}

    def written(record):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, record)
        return out.getvalue()

    learn_all(mixed(written, odd, seed), model, avro(schema), seed)
