"""Parsers and labellers of concepts in `replay` and `predict`, and in a run of Python."""

import json
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import KafkaRecordSource, MemorySource, ParquetSource, RecordSource
from streamsvm import ConceptLabeler, OSPASParser, TrackingMonitor
from streamsvm.errors import ParameterError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from streamsvm.structured.parser.meanings import as_text

PAIRS = [(a, b) for a in range(1, 6) for b in range(1, 6) if a != b] * 3
TEXTS = [f"pink {a} passes to pink {b}" for a, b in PAIRS]
TRUE = [f"pass(pink{a},pink{b})" for a, b in PAIRS]
BAGS = [[f"pass(pink{a}, pink{b})", f"kick(pink{b})"] for a, b in PAIRS]
ROOMS = ["hall", "attic", "yard"]


def told(i):
    """Return the words, the universe and the concepts of sentence i."""
    near, pet, other = ROOMS[i % 3], ["cat", "dog"][i // 3 % 2], ROOMS[(i + 1) % 3]
    where = {"Ann": near if i % 4 else other, "Bea": other if i % 4 else near, pet: near}
    return (
        ["she", "feeds", "the", pet],
        {"location": where},
        ["Ann" if i % 4 else "Bea", "feed", "-", pet],
    )


@pytest.fixture(autouse=True)
def _files(_folder):
    truths = [true if i % 2 else None for i, true in enumerate(TRUE)]
    table = {"text": TEXTS, "said": BAGS, "gold": truths, "n": [1] * len(TEXTS)}
    pq.write_table(pa.table(table), "said.parquet")
    pq.write_table(pa.table({"text": TEXTS, "gold": TRUE}), "gold.parquet")
    bad = {"text": [*TEXTS, None, "pink 1", "pink 2", "pink 3"]}
    bad["said"] = [*BAGS, ["kick(pink1)"], None, ["kick("], []]
    pq.write_table(pa.table(bad), "bad.parquet")
    words, worlds, concepts = zip(*map(told, range(60)), strict=True)
    bags = [sorted(c for c in one if c != "-") for one in concepts]
    table = {"words": words, "universe": worlds, "concepts": concepts, "bag": bags}
    pq.write_table(pa.table(table), "told.parquet")


OSPAS = ["--learner", "ospas", "--columns", "text"]
CONCEPTS = ["--learner", "concepts", "--columns", "words,universe"]


@pytest.fixture
def report(run):
    return lambda *arguments: json.loads(run("replay", *arguments, "--quiet", "--json").out)


def parser():
    model = OSPASParser(seed=0)
    return model, [
        model.predict_then_learn_one(*one).meaning for one in zip(TEXTS, BAGS, strict=True)
    ]


def test_a_parser_is_replayed_saved_and_predicts(report, replay, predict):
    more = ["--target", "said", "--truth", "gold", "--test", "gold.parquet", "--save", "m.svm"]
    found = report("said.parquet", *OSPAS, *more)
    model, predicted = parser()
    texts = [None if meaning is None else as_text(meaning) for meaning in predicted]
    right = sum(map(str.__eq__, map(str, texts[1::2]), TRUE[1::2]))
    n_said = len(texts[1::2]) - texts[1::2].count(None)
    score, n = found["meanings"], len(TRUE) // 2
    assert (score["sentences"], score["words"], score["true"]) == (60, 360, n)
    assert score["right"] == right > 0 and score["recall"] == right / n == found["accuracy"]
    assert score["precision"] == right / n_said
    assert score["f1"] == pytest.approx(2.0 * right / (n + n_said))
    among = [
        text in {b.replace(" ", "") for b in bag} for text, bag in zip(texts, BAGS, strict=True)
    ]
    assert score["predicted"] == 60 - texts.count(None)
    assert score["among_candidates"] == sum(among) / score["predicted"]
    assert found["counters"]["n_updates"] == model.n_updates
    now = [as_text(parse.meaning) for parse in model.predict_many(TEXTS)]
    assert found["test_f1"] == sum(map(str.__eq__, now, TRUE)) / 60 > 0.25
    assert "test_among_candidates" not in found
    assert found["monitor"]["regret_bound"] == model.regret_bound
    assert found["monitor"]["mean_loss"] == model.mean_loss
    predict("m.svm", "said.parquet", "--columns", "text", "-o", "o.parquet")
    written = pq.read_table("o.parquet").to_pydict()
    assert written["prediction"] == now
    assert written["symbols"] == [parse.symbols for parse in model.predict_many(TEXTS)]
    out = predict("m.svm", "gold.parquet", "--columns", "text", "--target", "gold").out
    assert f"F1 {found['test_f1']:.2%}" in out
    said = replay("said.parquet", *OSPAS, *more, "--report", "r", "--quiet").out
    for name in ("words", "meanings", "right meanings", "learnt", "mean loss", "test error"):
        assert f"  {name} " in said
    assert "balanced" not in said and Path("r/loss.png").exists()
    assert pq.read_table("r/history.parquet")["balanced_accuracy"].null_count > 0


def test_sentences_without_neighbours_are_watched(report):
    more = ["--window", "0", "--averaged", "False", "--epochs", "2", "--shuffle-buffer", "30"]
    found = report("gold.parquet", *OSPAS, "--target", "gold", *more)
    assert found["rows"] == 120
    assert found["meanings"]["sentences"] == found["meanings"]["true"] == 60
    assert found["monitor"]["n_examples"] == 120 and found["accuracy"] > 0.8


def test_rows_that_cannot_be_used_are_counted(report):
    found = report("bad.parquet", *OSPAS, "--target", "said", "--exploration", "random")
    assert (found["rows"], found["learnt"]) == (64, 61)
    assert "exploration=random" in found["parameters"]
    bad = {"missing value": 1, "missing label": 1, "unusable sentence": 1}
    assert found["bad"] == bad and found["dead_letters"] == "dead_letters.jsonl"
    lines = Path("dead_letters.jsonl").read_text().splitlines()
    reasons = [json.loads(line)["reason"] for line in lines]
    assert "column `text` is null" in reasons and any("'kick('" in reason for reason in reasons)


@pytest.mark.parametrize("learner", [OSPASParser, ConceptLabeler])
def test_a_resumed_run_is_as_if_undisturbed(learner):
    def run(limit, checkpoint):
        is_parser = learner is OSPASParser
        settings = {"seed": 4, "exploration": "random"} if is_parser else {}
        arguments = ("said.parquet", ["text"], "said", ["gold"])
        if not is_parser:
            arguments = ("told.parquet", ["words", "universe"], "bag", ["concepts"])
        monitor = TrackingMonitor(learner(**settings), every=10)
        keep = Checkpoint(checkpoint, every=10)
        with RecordSource(*arguments, shuffle_buffer=20, seed=1) as source:
            made = Run(source, monitor, limit=limit, checkpoint=keep, truth=arguments[3][0])
            return made.execute(), monitor.model

    whole, model = run(None, "a.ckpt")
    run(33, "b.ckpt")
    resumed, again = run(None, "b.ckpt")
    for name in "rows learnt meanings tokens accuracy confusion counters dual".split():
        assert getattr(resumed, name) == getattr(whole, name), name
    times = ("examples_per_second", "latency_p50", "latency_p99", "memory_bytes")
    values = [{k: v for k, v in r.monitor.items() if k not in times} for r in (whole, resumed)]
    assert values[0] == values[1]
    model.save("a.svm")
    again.save("b.svm")
    assert Path("a.svm").read_bytes() == Path("b.svm").read_bytes()


def test_concepts_are_replayed_with_labels_and_with_bags(report, predict):
    more = ["--target", "concepts", "--save", "m.svm", "--test", "told.parquet"]
    found = report("told.parquet", *CONCEPTS, *more)
    model, right, words = ConceptLabeler(), 0, 0
    for sentence, world, concepts in map(told, range(60)):
        predicted = model.predict_then_learn_one((sentence, world), concepts)
        right += predicted == concepts
        words += sum(map(str.__eq__, predicted, concepts))
    assert found["sentence_accuracy"] == right / 60 and found["accuracy"] == words / 240
    assert found["dual"] == model.dual > 0.0 and found["monitor"]["n_steps"] > 0
    assert found["test_sentence_error"] == 0.0 and found["tokens"] == 240
    read = ["m.svm", "told.parquet", "--columns", "words,universe"]
    predict(*read, "--target", "concepts", "-o", "o.jsonl")
    first = json.loads(Path("o.jsonl").read_text().splitlines()[0])
    assert first["prediction"] == told(0)[2]
    truth = ["--target", "bag", "--truth", "concepts"]
    weak = report("told.parquet", *CONCEPTS, *truth, "--test", "told.parquet")
    model = ConceptLabeler()
    bags = [Counter(c for c in told(i)[2] if c != "-") for i in range(60)]
    model.learn_many([told(i)[:2] for i in range(60)], bags)
    found = model.predict_many([told(i)[:2] for i in range(60)])
    wrong = sum(a != b for i in range(60) for a, b in zip(found[i], told(i)[2], strict=True))
    assert weak["dual"] == model.dual and weak["test_error"] == pytest.approx(wrong / 240)
    # A map of counts is a bag, too: then a sentence is right if its bag is.
    pairs = [dict.fromkeys(told(i)[2][:2] + told(i)[2][3:], 1) for i in range(60)]
    texts = [" ".join(told(i)[0]) for i in range(60)]
    kind = pa.map_(pa.string(), pa.map_(pa.string(), pa.string()))
    worlds = pa.array([told(i)[1] for i in range(60)], kind)
    bags = pa.array(pairs, pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"words": texts, "universe": worlds, "y": bags}), "maps.parquet")
    maps = report("maps.parquet", *CONCEPTS, "--target", "y")
    assert maps["dual"] == weak["dual"] and maps["sentence_accuracy"] >= weak["sentence_accuracy"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("", 2, "--columns: of --learner ospas, name the column"),
        ("--columns text,n", 2, "--columns: of --learner ospas, name the column"),
        ("--columns text --truth said", 2, "this is the target itself"),
        ("--columns said", 2, "it is in --columns, too"),
        ("--columns text --truth golden", 1, "`golden` is not a column"),
        ("--columns text --scale", 2, "--scale: not for --learner ospas"),
        ("--columns text --template t", 2, "--template: not for --learner ospas"),
        ("--columns text --label-delay 3", 2, "--label-delay: not for learners of sentences"),
        ("--columns text --finish", 2, "OSPASParser cannot"),
        ("--columns n", 1, "none of 60 rows could be learnt"),
    ],
)
def test_what_is_refused(arguments, code, said, run):
    given = ["replay", "said.parquet", "--target", "said", "--learner", "ospas", "--quiet"]
    assert said in run(*given, *arguments.split(), code=code).err


def test_sources_of_features_are_refused():
    for source in (
        ParquetSource("said.parquet", "said", columns=["text"]),
        MemorySource([({"a": 1.0}, "b")]),
    ):
        with pytest.raises(ParameterError, match="RecordSource"):
            Run(source, OSPASParser()).execute()


def test_messages_of_a_topic():
    messages = [{"text": t, "said": bag} for t, bag in zip(TEXTS, BAGS, strict=True)]
    messages += [{"text": "pink 1"}, {"said": ["kick(pink1)"]}, b"{", {"text": 3, "said": []}]
    bad, model = BadEvents("skip"), OSPASParser(seed=0)
    with KafkaRecordSource(messages, ["text"], "said") as source:
        found = Run(source, model, bad_events=bad).execute()
    assert found.learnt == 60 and found.meanings["sentences"] == 60
    assert bad.total == 4 and bad.counts["missing label"] == bad.counts["unusable sentence"] == 1
    assert model.n_updates == parser()[0].n_updates


def test_messages_with_a_truth_and_messages_that_files_or_memory_cannot_hold():
    names = ("words", "universe", "concepts")
    messages = [dict(zip(names, told(i), strict=True)) | {"y": {"Ann": 1}} for i in range(4)]
    bad = [
        {"universe": {"location": {"Ann": 10**80}}},
        {"words": "x " * 3000, "concepts": {"Ann": 1}},
        {"words": ["x"] * 100_001},
        {"words": 5},
        {"words": {"she": 1, "feeds": 2, "the": 3, "cat": 4}},
        {"concepts": ["-", "-", "-", 10**80]},
    ]
    messages += [messages[0] | one for one in bad]
    for label, truth in (("concepts", None), ("y", "concepts")):
        model, skipped = ConceptLabeler(), BadEvents("skip")
        with KafkaRecordSource(messages, names[:2], label, kept=["concepts"]) as source:
            more = {"bad_events": skipped, "truth": truth, "checkpoint": Checkpoint("k.ckpt")}
            found = Run(source, model, **more).execute()
        Path("k.ckpt").unlink()
        assert (found.learnt, skipped.total, found.tokens) == (4, 6, 16)
        assert model.n_words == 16 and model.relations == ["location"]
    with pytest.raises(ParameterError, match="does not keep it"):
        Run(KafkaRecordSource(messages, names[:2], "y"), model, truth="concepts")


@pytest.mark.parametrize("kind", ["numbers", "times", "keys"])
def test_columns_of_other_types_are_counted(kind, run):
    model = ConceptLabeler()
    for i in range(9):
        model.learn_one(told(i)[:2], [5, 7, "-", 5])
    model.save("m.svm")
    words, worlds, concepts = zip(*map(told, range(9)), strict=True)
    table = {"words": pa.array(words), "universe": pa.array(worlds), "y": pa.array(concepts)}
    if kind == "keys":
        of_lists = pa.map_(pa.list_(pa.string()), pa.int64())
        table["y"] = pa.array([[(["x"], 1)]] * 8 + [None], of_lists)
        of_lists = pa.map_(pa.string(), pa.map_(pa.list_(pa.string()), pa.string()))
        table["universe"] = pa.array([[]] * 8 + [[("at", [(["x"], "y")])]], of_lists)
    else:
        table["words"] = pa.array(range(9), pa.int64() if kind == "numbers" else pa.timestamp("s"))
    pq.write_table(pa.table(table), "odd.parquet")
    code = 0 if kind == "keys" else 1
    read = ["predict", "m.svm", "odd.parquet", "--columns", "words,universe"]
    said = run("replay", "odd.parquet", *CONCEPTS, "--target", "y", "--quiet", code=1).err
    for more in (["--target", "y"], ["-o", "o.parquet"]):
        said += run(*read, *more, code=code).err
    assert "Traceback" not in said and "Exception ignored" not in said
    if kind == "keys":
        assert pq.read_table("o.parquet")["prediction"].to_pylist()[8] is None


def test_the_example_writes_a_file_to_replay(report, monkeypatch):
    from examples import house

    monkeypatch.setattr(sys, "argv", ["house.py", "150", "--write", "house.parquet"])
    house.main()
    found = report("house.parquet", *CONCEPTS, "--target", "concepts")
    assert found["rows"] == found["learnt"] == 150 and found["accuracy"] > 0.5
