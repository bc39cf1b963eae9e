import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors import KafkaSource, one_hot, payloads
from connectors.kafka.message_reader import MessageReader
from connectors.kafka.messages import Message
from streamsvm import SVMSGDClassifier
from streamsvm.run.runner import Run

NAMES = ["a", "b", "c", "label", "k", "t", "w", "é", "id"]
ODD = [
    "NaN", "-Infinity", "1e400", "-1e-400", "-0", "-0.0", "01", "1.", "+1", "1E5", "null", "true",
    str(2**53 + 1), str(2**64), str(-(2**63) - 1), "1" * 305, "1" * 400, "1" * 5000, "1e301",
    "0." + "1" * 400, "5e-324", "2.2250738585072011e-308", '""', '"x"', '"1.5"', r'"\ud800"',
    r'"\ud83d\ude00"', r'"\u0000"', '"2024-01-02T03:04:05"', "[1]", '{"a": 1}', "[" * 60 + "]" * 60,
]  # fmt: skip
VALUES = st.sampled_from(ODD) | st.floats().map(json.dumps) | st.integers().map(str)
TEXTS = st.sampled_from(['"x"', '"y"', '"é"', '""', "null", '"1.5"', '"b=x"'])
PLAIN = st.floats(-1e6, 1e6).map(json.dumps) | st.sampled_from(["1", "null", "true", "2.5"])


def text_of(pairs, space=""):
    return (space + "{" + ", ".join(f'"{name}":{space}{v}' for name, v in pairs) + "}").encode()


def _same(pairs):
    return [(name, json.dumps(value)) for name, value in pairs]


@st.composite
def texts(draw):
    """Draw messages most of which have the same names, of numbers or texts; others anything."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    of = [draw(st.sampled_from([PLAIN, PLAIN, TEXTS])) for _ in names]
    regular = st.tuples(*of).map(lambda found: text_of(zip(names, found, strict=True)))
    moved = regular.map(lambda text: text_of(reversed(json.loads(text, object_pairs_hook=_same))))
    pairs = st.lists(st.tuples(st.sampled_from(NAMES), VALUES | PLAIN), max_size=9)
    other = st.builds(text_of, pairs, st.sampled_from(["", " ", "\n", "\t", "\f", "\xa0"]))
    cut = st.builds(lambda text, n: text[:n], other, st.integers(0, 40))
    coded = st.builds(
        lambda text, code: text.decode().encode(code, "surrogatepass"),
        other, st.sampled_from(["utf-8-sig", "utf-16", "utf-32-be"]),
    )  # fmt: skip
    kinds = [regular] * draw(st.integers(1, 40)) + [moved, other, cut, coded, st.binary()]
    return draw(st.lists(st.sampled_from(kinds).flatmap(lambda kind: kind), max_size=12))


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "columns": st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
        "exclude": st.just(["c", "é"]),
        "key": st.just("k"),
        "timestamp": st.just("t"),
        "weight": st.just("w"),
        "parse_numbers": st.just(True),
        "transform": st.just(payloads.flatten),
        "as_text": st.just(["b"]),
        "labels": st.just("answers"),
        "tombstones": st.just("forget"),
        "missing_tokens": st.just(["x"]),
        "message_key": st.sampled_from(["id", "c"]),
        "headers": st.sampled_from([["label"], ["h"]]),
        "decided": st.just({"texts": ["b"], "numbers": ["a"]}),
    },
).filter(lambda options: not {"key", "tombstones"} <= options.keys())


def found_in(messages, kind, options):
    given = {name: value for name, value in options.items() if name != "decided"}
    source = KafkaSource(messages, "label", batch_size=3, **given)
    start = source.snapshot() | {"labels": kind, "events": "" if kind is None else kind}
    source.resume(start | options.get("decided", {}))
    found = []
    for batch in source.batches():
        columns = {name: getattr(batch, name) for name in ("keys", "payloads", "file")}
        for name in ("rows", "timestamps", "weights", "ids"):
            column = getattr(batch, name)
            columns[name] = None if column is None else (column.dtype, column.tolist())
        schema = batch.features.schema
        columns |= {"schema": [(field.name, field.type, field.metadata) for field in schema]}
        columns |= {"features": batch.features.to_pydict(), "labels": batch.labels.to_pylist()}
        # As texts: NaN and -0.0 are what they are.
        found.append(repr(columns) + repr(batch.rejects) + repr(batch.are_answers))
    looks = source.number_texts
    return found, looks._n, {name: vars(column) for name, column in looks._columns.items()}


@settings(max_examples=300, deadline=None)
@example([b'{"a": 1, "label": true}', b'{"a": 1, "lable": true}'], "bool", {})
@example([b'{"a": 1, "id": 2}', b'{"a": 1, "b": 2}'], None, {"exclude": ["id"]})
@example([b'{"a": 1e400, "label": 1}', b'{"a": NaN, "label": 1}'], "float", {})
@example([b'{"a": 1, "label": 1, "a": "x"}', b'{"a": 1, "label": 1}'], "float", {})
@example([b'{"a": "x", "a=x": 1}', b'{"a": "y", "a=x": 2}'], None, {})
@example([b'{"a": "x", "b": "x"}', b'{"b": "y", "a": "y"}'], None, {})
@example([b'{"b": "x"}', b'{"b": 1}'], None, {"decided": {"texts": ["b"], "numbers": ["a"]}})
@example([b'{"c": 0, "b": null, "a": null}', b'{"a": 0, "b": 0, "c": 0}'], "bool", {})
@given(texts(), st.sampled_from(["bool", "float", "str", None]), OPTIONS)
def test_messages_read_together_are_those_read_one_by_one(found, kind, options):
    messages = [
        Message(
            "t", 0, i, b"k" if i % 4 else None, value, 1e10 * i, [("h", b"1")] if i % 5 else None
        )
        for i, value in enumerate(found)
    ]
    with pytest.MonkeyPatch.context() as patch:
        quick = found_in(messages, kind, options)
        patch.setattr("connectors.kafka.message_reader.MessageReader._of_plain", lambda *_: None)
        patch.setattr(payloads, "_quickly", json.loads)
        assert quick == found_in(messages, kind, options)


def test_numbers_are_read_together(monkeypatch):
    # Whole numbers, booleans and null among them; nothing is looked at one by one.
    values = [{"a": i, "b": i / 3, "c": i % 2 == 0, "n": None, "label": i % 2} for i in range(9)]
    values[0]["a"] = None
    values = [json.dumps(value).encode() for value in values]
    source = KafkaSource([Message("t", 0, i, None, v, 1.0) for i, v in enumerate(values)], "label")
    source.resume({"source": "KafkaSource", "offsets": {}, "labels": "float"})
    monkeypatch.setattr("connectors.kafka.message_reader.MessageReader._read", None)
    (batch,) = source.batches()
    assert batch.features.schema.names == ["b", "c", "a"]
    assert batch.features.to_pydict()["a"] == [None, *map(float, range(1, 9))]
    assert batch.labels.to_pylist() == [i % 2 for i in range(9)]


def test_texts_are_read_together(monkeypatch):
    """Models and reports are those of events that are read one by one."""
    events = [{"a": i % 7, "c": "xyz"[i % 3], "d": None if i % 5 else "é"} for i in range(300)]
    messages = [json.dumps(x | {"label": x["a"] > 3 or x["c"] == "x"}).encode() for x in events]

    def learnt():
        source, model = KafkaSource(messages, "label", batch_size=40), SVMSGDClassifier(seed=0)
        report = Run(source, model).execute()
        read = [report.rows, report.accuracy, report.error, report.text_findings]
        return [model.decision_function_one(one_hot(x)) for x in events], read

    one_by_one = []
    read = MessageReader._read
    monkeypatch.setattr(
        MessageReader, "_read", lambda *given: one_by_one.append(given) or read(*given)
    )
    quick = learnt()
    # The first ones, which decide what is a text.
    assert len(one_by_one) == 80
    monkeypatch.setattr(MessageReader, "_of_plain", lambda *_: None)
    assert quick == learnt() and len(one_by_one) == 380


def nested(inner):
    items = st.lists(inner)
    lists = items.map(lambda found: f"[{','.join(found)}]")
    return lists | items.map(
        lambda found: text_of((i % 3, v) for i, v in enumerate(found)).decode()
    )


@given(st.recursive(st.sampled_from(ODD) | VALUES, nested))
def test_the_quick_decoder_reads_what_json_reads(text):
    def said(decode):
        try:
            return repr(decode(text.encode()))
        except Exception as error:
            return repr(error)

    assert said(payloads.decoder_of("json")) == said(payloads._of_any_json)
