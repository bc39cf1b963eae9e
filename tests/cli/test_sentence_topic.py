"""`streamsvm consume` of sentences against librdkafka's mock cluster."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests import brokers
from tests.consumers import arrow_bytes

confluent_kafka = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")

SENTENCES = [
    (["the", "old", "dog", "barks"], ["B-NP", "I-NP", "I-NP", "B-VP"]),
    (["a", "dog", "sees", "the", "cat"], ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP"]),
    ([], []),
    (["cats", "sleep"], ["B-NP", "B-VP"]),
] * 10


@pytest.fixture
def topic():
    """Return a function that produces messages, and returns the arguments to consume them."""
    with brokers.mock() as address:
        producer = confluent_kafka.Producer({"bootstrap.servers": address, "log_level": 0})

        def produced(name, payloads):
            for payload in payloads:
                producer.produce(name, payload, partition=0)
            producer.flush(30)
            arguments = ["consume", "--brokers", address, "--topic", name, "--target", "y"]
            arguments += ["--learner", "sequence_larank", "--no-monitor", "--set", "log_level=0"]
            return [*arguments, "--idle", "2", "--group", name, "--json"]

        yield produced


@pytest.fixture
def report(run):
    return lambda *arguments: json.loads(run(*arguments).out)


@pytest.mark.slow
def test_tokens_of_all_kinds_bad_messages_and_a_checkpoint(topic, report, run):
    payloads = []
    for i, (words, labels) in enumerate(SENTENCES):
        # What is a list of texts here is a list of objects there; some have one more text.
        dicts = [{"w": word, "n": 1.0} | ({"t": "x"} if i % 3 else {}) for word in words]
        tokens = [words, [[word] for word in words], dicts][i % 3 if i < 30 else 2]
        payloads.append(json.dumps({"t": tokens, "y": labels}).encode())
    bad = [b"{broken", b"[1]", b'{"t": "text", "y": []}', b'{"t": ["a"], "y": ["A", "B"]}']
    bad += [b'{"t": ["a"], "y": [null]}', b'{"t": ["a"], "y": [["A"]]}', b'{"t": [3], "y": [1]}']
    bad += [b'{"t": [{"w": NaN}], "y": ["A"]}']
    payloads[7:7] = bad
    arguments = [*topic("kinds", payloads), "--columns", "t"]
    whole = report(*arguments, "--save", "whole.svm", "--group", "whole")
    assert whole["learnt"] == 40 and sum(whole["bad"].values()) == len(bad)
    letters = [json.loads(line) for line in Path(whole["dead_letters"]).read_text().splitlines()]
    assert sorted(letter["position"]["row"] for letter in letters) == list(range(7, 15))
    # A poll of the client ends where a limit is reached.
    limited = [*arguments, "--checkpoint", "c.ckpt", "--limit"]
    assert report(*limited, 10)["rows"] >= 10
    # In another group, as the broker waits for the member before.
    parts = report(*limited, 99, "--group", "parts", "--save", "parts.svm")
    for name in ("rows", "tokens", "accuracy", "chunk_f1", "bad", "labels"):
        assert parts[name] == whole[name]
    assert Path("parts.svm").read_bytes() == Path("whole.svm").read_bytes()
    run(*arguments, "--columns", "t,y", code=2)
    run("consume", "--key", "k", *arguments[1:], code=2)


def test_arrow_list_columns_a_sentence_a_row(topic, report, run):
    words, labels = zip(*SENTENCES, strict=True)
    tags = [[word[0] for word in sentence] for sentence in words]
    payloads = []
    for i in range(0, len(words), 4):
        columns = {"w": words[i : i + 4], "tag": tags[i : i + 4], "y": labels[i : i + 4]}
        payloads.append(arrow_bytes(pa.record_batch(columns)))
    arguments = [*topic("arrow", payloads), "--decode", "arrow", "--checkpoint", "c"]
    assert "--columns: name the field of the tokens" in run(*arguments, code=2).err
    found = report(*arguments, "--columns", "w,tag")
    assert (found["learnt"], found["tokens"], len(found["labels"])) == (40, 110, 3)
    assert "columns 'w,tag' there" in run(*arguments, "--columns", "w", code=1).err


@pytest.mark.slow
def test_more_labels_than_are_taken_are_dead_letters(topic, report):
    payloads = [json.dumps({"t": ["a"], "y": [f"L{i % 6}"]}).encode() for i in range(30)]
    arguments = [*topic("many", payloads), "--columns", "t", "--max-classes", "4"]
    found = report(*arguments)
    assert (found["learnt"], found["bad"], len(found["labels"])) == (
        20, {"unusable sentence": 10}, 4,
    )  # fmt: skip
    letters = Path(found["dead_letters"]).read_text().splitlines()
    assert all("at most 4 are taken (max_classes)" in letter for letter in letters)
