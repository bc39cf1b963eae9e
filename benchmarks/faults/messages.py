"""Faults of messages."""

import io
import json
import os
import random
import resource
import time
from pathlib import Path

import pyarrow as pa

from benchmarks.faults.trial import command, examples, expect, fault, learn, payloads, refused
from connectors.kafka.messages import Message
from connectors.payloads import avro, flatten
from streamsvm import LASVMClassifier, SVMSGDClassifier
from streamsvm.errors import BadEventError
from streamsvm.run.late_labels import LateLabels
from tests import brokers
from tests.consumers import arrow_bytes


@fault('a lone surrogate (`"\\ud800"`) as text, name or label', "a dead letter")
def surrogates(_: Path) -> None:
    odd = [
        b'{"a": 1.0, "b": "\\ud800", "y": true}',
        b'{"a": 1.0, "\\udfff": 1.0, "y": true}',
        b'{"a": 1.0, "b": 1.0, "y": "\\ud800"}',
    ]
    for one in odd:
        for at in (0, 100):
            good = payloads(examples(200))
            report, _, letters = learn([*good[:at], one, *good[at:]])
            expect(report.learnt == 200 and len(letters) == 1, one, at, report.learnt)


@fault("a whole number of more than 64 bits as label or key", "a dead letter")
def large_numbers(_: Path) -> None:
    good = payloads([e | {"k": i} for i, e in enumerate(examples(200))])
    for name in ("y", "k"):
        odd = json.dumps({"a": 1.0, "b": 1.0, "y": True, "k": 1} | {name: 2**63}).encode()
        report, _, letters = learn([*good, odd], key="k")
        expect(report.learnt == 200 and len(letters) == 1, name, report.learnt)


@fault(
    "2,000 damaged payloads of JSON, Arrow and Avro each, among 2,000 good ones",
    "each is learnt or a dead letter, and no good one is dead",
)
def fuzz(_: Path) -> None:
    import fastavro

    fields = [{"name": n, "type": "double"} for n in "ab"] + [{"name": "y", "type": "boolean"}]
    schema = {"type": "record", "name": "event", "fields": fields}

    def written(event: dict) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, event)
        return out.getvalue()

    found, rng = examples(2000), random.Random(0)
    for decode, encode in (
        ("json", lambda e: json.dumps(e).encode()),
        ("arrow", lambda e: arrow_bytes(pa.RecordBatch.from_pylist([e]))),
        (avro(schema), written),
    ):
        good = [(encode(event), True) for event in found]
        damaged = []
        for value, _is_good in good:
            raw = bytearray(value)
            for _ in range(rng.randint(1, 4)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            damaged.append((bytes(raw[: rng.choice([len(raw), rng.randrange(len(raw))])]), False))
        mixed = good + damaged
        rng.shuffle(mixed)
        report, model, letters = learn((v for v, _ in mixed), decode=decode, most=1.0)
        dead = {letter["position"]["row"] for letter in letters}
        expect(report.learnt + len(letters) == report.rows, decode, report.learnt, len(letters))
        expect(model["SVMSGDClassifier"].n_examples == report.learnt)
        wrong = [i for i in dead if mixed[i][1]]
        expect(not wrong, decode, f"{len(wrong)} good ones are dead", letters[:1])


@fault(
    'the first messages have another type of label (`"yes"`, NaN), then 5,000 booleans follow',
    "the majority of the first hundred decides: 5,000 are learnt",
)
def first_label(_: Path) -> None:
    for first in ("yes", float("nan"), 1.5):
        report, _, letters = learn(payloads([{"a": 1.0, "y": first}, *examples(5000)]))
        expect((report.learnt, len(letters)) == (5000, 1), first, report.learnt, len(letters))


@fault(
    "keys that come again, whose labels are delivered twice",
    "the second ones are found by their times, and counted (`second_label`)",
)
def second_labels(_: Path) -> None:
    found, accuracies = examples(2000), []
    for copies in (1, 2):
        stream = []
        for i, event in enumerate(found):
            key, y = b"%d" % (i % 500), {"y": event["y"]}
            x = {name: event[name] for name in "ab"}
            stream.append(("events", key, x, 10.0 * i))
            stream.append(("labels", key, y, 10.0 * i + 1.0))
            if copies == 2 and i >= 500:
                old = {"y": found[i - 490]["y"]}  # that of this key's event before, once more
                stream.append(("labels", b"%d" % ((i - 490) % 500), old, 10.0 * (i - 490) + 1.0))
        offsets = {"events": 0, "labels": 0}
        values = []
        for topic, key, value, seconds in stream:
            values.append(
                Message(topic, 0, offsets[topic], key, json.dumps(value).encode(), seconds)
            )
            offsets[topic] += 1
        report, _, letters = learn(values, labels="labels", late=LateLabels(), batch_size=50)
        expect(report.learnt == 2000 and not letters, copies, report.learnt, letters[:1])
        expect(report.late["second_label"] == (1490 if copies == 2 else 0), report.late)
        accuracies.append(report.accuracy)
    # Not equal: with more labels in a poll, they come a little later.
    expect(min(accuracies) > 0.95, accuracies)


@fault(
    "`--max-errors` as a share, with the bad messages at the end of a poll",
    "counted in the order of the messages: the run stops at the same one for any size of polls",
)
def share_of_errors(_: Path) -> None:
    values = payloads(examples(300))
    for i in range(200, 230, 2):
        values[i] = b"{broken"
    places = set()
    for size in (7, 100, 500):
        try:
            learn(values, most=0.03, batch_size=size)
        except BadEventError as error:
            places.add(str(error).split(":")[1])
    expect(len(places) == 1, places)


@fault("offsets that jump ahead, as records were deleted", "counted, and in the report")
def jumps(_: Path) -> None:
    values = [Message("t", 0, i, None, p, None) for i, p in enumerate(payloads(examples(400)))]
    report, _, _ = learn([*values[:150], *values[170:]])
    expect(report.source["jumped"] == 20, report.source)


@fault(
    "no broker at the address",
    "one sentence within `--idle` or 15 seconds, exit code 1, and no log of the client",
)
def no_broker(_: Path) -> None:
    for quiet in ([], ["--quiet"]):
        start = time.perf_counter()
        said = command(
            *("consume", "--brokers", "127.0.0.1:1", "--topic", "t", "--target", "y"),
            *("--idle", 2, *quiet),
        )
        refused(said, "no broker answers", "127.0.0.1:1")
        expect(said.code == 1 and time.perf_counter() - start < 10.0, said.code)


@fault("`--set` with an unknown name or value", "one sentence, exit code 2")
def wrong_set(_: Path) -> None:
    for setting in (
        "security.protokol=SSL",
        "security.protocol=x",
        "nonsense",
        "fetch.min.bytes=a",
    ):
        said = command(
            *("consume", "--brokers", "127.0.0.1:1", "--topic", "t", "--target", "y"),
            *("--set", setting),
        )
        refused(said, setting.partition("=")[0])
        expect(said.code == 2, said.code)


@fault(
    "300 messages with different texts of 1 MB",
    "the names are left out and counted; the model file has less than 1 MB, the process grows by "
    "less than 500 MB",
)
def long_texts(folder: Path) -> None:
    def values():
        yield from payloads(examples(100))
        for i in range(300):
            event = {"a": 1.0, "b": 1.0, "t": f"{i}" + "x" * 1_000_000, "y": True}
            yield json.dumps(event).encode()
        yield from payloads(examples(100, 1))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report, model, _ = learn(values())
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    learner = model["SVMSGDClassifier"]
    learner.save(folder / "m.svm")
    expect(report.learnt == 500 and learner.counters["features_ignored"] > 0, report.learnt)
    expect(os.path.getsize(folder / "m.svm") < 1_000_000 and grown < 500.0, grown)


@fault("short names without end (a user's number as text)", "`memory_usage` counts the names")
def many_names(_: Path) -> None:
    learner = SVMSGDClassifier()
    for i in range(20_000):
        learner.learn_one({f"user={i:050}": 1.0}, i % 2 == 0)
    expect(learner.memory_usage > 20_000 * 50, learner.memory_usage)


@fault(
    "a large message with one bad value, and `--dead-letter-topic`",
    "its letter is cut to what brokers take",
)
def large_letter(_: Path) -> None:
    wide = {f"feature{i}": 1 for i in range(40_000)} | {"a": float("nan"), "y": True}
    with brokers.mock() as address:
        brokers.produce(address, "wide", payloads([*examples(100), wide, *examples(100, 1)]), 1)
        said = command(
            *("consume", "--brokers", address, "--topic", "wide", "--target", "y", "--json"),
            *("--learner", "sgd", "--quiet", "--no-monitor", "--idle", 3),
            *("--dead-letter-topic", "dead"),
        )
    expect(said.code == 0 and said.report["learnt"] == 200, said)


@fault(
    "most messages cannot be used",
    "the command stops after some 500 with the most frequent reason and its first message; "
    "`--max-errors 100%` goes on",
)
def most_are_bad(folder: Path) -> None:
    found = [e | {"user": {"age": 1}} if i % 4 else e for i, e in enumerate(examples(4000))]
    options = ("--topic", "most", "--target", "y", "--learner", "sgd", "--idle", 3, "--quiet")
    with brokers.mock() as address:
        brokers.produce(address, "most", payloads(found), 1)
        common = ("consume", "--brokers", address, *options, "--no-monitor")
        said = command(*common, "--dead-letters", folder / "1.jsonl", "--group", "1")
        expect(said.code == 1 and "feature `user` is a dict" in said.error, said)
        expect("1.jsonl" in said.error and said.error.count("\n") == 1, said.error)
        said = command(
            *(*common, "--max-errors", "100%", "--dead-letters", folder / "2.jsonl"),
            *("--group", "2", "--json"),
        )
        expect(said.code == 0 and said.report["learnt"] == 1000, said)
        flat = command(*common, "--flatten", "--group", "3", "--json")
        expect(flat.code == 0 and flat.report["learnt"] == 4000, flat)


@fault("a misspelt target", "the nearest field is named")
def misspelt(_: Path) -> None:
    events = [{"amount": 1.0, "fraud": i % 2 == 0} for i in range(100)]
    with brokers.mock() as address:
        brokers.produce(address, "misspelt", payloads(events), 1)
        said = command(
            *("consume", "--brokers", address, "--topic", "misspelt", "--target", "frued"),
            *("--learner", "sgd", "--idle", 3, "--quiet", "--on-error", "skip", "--no-monitor"),
        )
    refused(said, "did you mean `fraud`")


@fault(
    "nested objects",
    "dead letters with the reason; `--flatten` takes them apart, `transform=` is your function",
)
def nested(_: Path) -> None:
    found = [{"user": {"age": e["a"]}, "b": e["b"], "y": e["y"]} for e in examples(200)]
    _, _, letters = learn([*payloads(examples(300)), *payloads(found)])
    expect(
        len(letters) == 200 and letters[0]["reason"].startswith("feature `user` is a dict"),
        letters[:1],
    )
    _, model, letters = learn(payloads(found), transform=flatten)
    names = sorted(model["SVMSGDClassifier"].feature_names)
    expect(not letters and names == ["b", "user.age"], names)
    _, model, letters = learn(
        payloads(found), transform=lambda e: {"age": e["user"]["age"], "y": e["y"]}
    )
    expect(not letters and model["SVMSGDClassifier"].feature_names == ["age"], letters[:1])


@fault("a text, or a time as text, where a number was", "a dead letter, no new feature")
def texts(_: Path) -> None:
    odd = [{"a": "12.5", "b": 1.0, "y": True}, {"a": "2026-01-01T10:00:00Z", "b": 1.0, "y": True}]
    report, model, letters = learn(payloads([*examples(100), *odd, *examples(100, 1)]))
    expect(len(letters) == 2 and report.learnt == 200, letters)
    expect(sorted(model["SVMSGDClassifier"].feature_names) == ["a", "b"])
    expect(
        [
            json.loads(letter["payload"] if "payload" in letter else letter["x"]["payload"])
            for letter in letters
        ]
        == odd,
        letters,
    )


@fault("a bound that is exceeded: more features than `max_features`", "a dead letter")
def too_many_features(_: Path) -> None:
    odd = {f"f{i}": 1.0 for i in range(50)} | {"y": True}
    for learner in (SVMSGDClassifier(max_features=10), LASVMClassifier(max_features=10)):
        report, _, letters = learn(payloads([*examples(100), odd]), model=learner)
        expect((report.learnt, len(letters)) == (100, 1), report.learnt)
