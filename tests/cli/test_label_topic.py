"""`streamsvm consume --task sequence` against librdkafka's mock cluster."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from streamsvm.cli.main import main
from tests import brokers

confluent_kafka = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")

SENTENCES = [
    (["the", "old", "dog", "barks"], ["B-NP", "I-NP", "I-NP", "B-VP"]),
    (["a", "dog", "sees", "the", "cat"], ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP"]),
    ([], []),
    (["cats", "sleep"], ["B-NP", "B-VP"]),
] * 10


@pytest.fixture
def topic(tmp_path, monkeypatch):
    """Return a function that produces messages, and returns the arguments to consume them."""
    monkeypatch.chdir(tmp_path)
    with brokers.mock() as address:
        producer = confluent_kafka.Producer({"bootstrap.servers": address, "log_level": 0})

        def produced(name, payloads):
            for payload in payloads:
                producer.produce(name, payload, partition=0)
            producer.flush(30)
            arguments = ["consume", "--task", "sequence", "--brokers", address, "--topic", name]
            return [*arguments, "--idle", "2", "--group", name, "--set", "log_level=0", "--json"]

        yield produced


def report(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0
    found = json.loads(capsys.readouterr().out)
    return {k: v for k, v in found.items() if k not in ("seconds", "tokens a second")}


def test_tokens_of_all_kinds_bad_messages_and_a_checkpoint(topic, capsys):
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
    arguments = [*topic("kinds", payloads), "--tokens", "t", "--labels", "y"]
    whole = report(capsys, *arguments, "--save", "whole.svm", "--group", "whole")
    assert whole["sentences"] == 40 and whole["not usable"] == len(bad)
    letters = [json.loads(line) for line in Path(whole["dead letters"]).read_text().splitlines()]
    assert sorted(letter["position"]["row"] for letter in letters) == list(range(7, 15))
    run = [*arguments, "--checkpoint", "c.ckpt", "--checkpoint-every", "6"]
    for limit in (10, 31):
        part = report(capsys, *run, "--limit", limit)
        assert part["sentences"] + part["not usable"] == limit
    parts = report(capsys, *run, "--save", "parts.svm")
    assert parts.pop("dead letters") != whole.pop("dead letters") and parts == whole
    assert Path("parts.svm").read_bytes() == Path("whole.svm").read_bytes()


def test_arrow_list_columns_a_sentence_a_row(topic, capsys):
    words, labels = zip(*SENTENCES, strict=True)
    tags = [[word[0] for word in sentence] for sentence in words]
    payloads = []
    for i in range(0, len(words), 4):
        columns = {"w": words[i : i + 4], "tag": tags[i : i + 4], "y": labels[i : i + 4]}
        batch, sink = pa.record_batch(columns), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        payloads.append(sink.getvalue().to_pybytes())
    arguments = [*topic("arrow", payloads), "--decode", "arrow", "--labels", "y"]
    found = report(capsys, *arguments, "--tokens", "w,tag", "--limit", 6, "--checkpoint", "c")
    # Those of a message stay together.
    assert found["sentences"] == 8
    found = report(capsys, *arguments, "--tokens", "w,tag", "--checkpoint", "c")
    assert found["sentences"] == 40 and found["tokens"] == 110 and found["labels"] == 3
    assert main([*arguments, "--tokens", "w", "--checkpoint", "c"]) == 1
    assert "columns 'w,tag' there" in capsys.readouterr().err


def test_more_labels_than_are_taken_are_dead_letters(topic, capsys):
    payloads = [json.dumps({"t": ["a"], "y": [f"L{i % 6}"]}).encode() for i in range(30)]
    arguments = [*topic("many", payloads), "--tokens", "t", "--labels", "y", "--max-classes", "4"]
    found = report(capsys, *arguments)
    assert (found["sentences"], found["not usable"], found["labels"]) == (20, 10, 4)
    letters = Path(found["dead letters"]).read_text().splitlines()
    assert all("at most 4 are taken (max_classes)" in letter for letter in letters)
