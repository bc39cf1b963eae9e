"""Learners of label sequences in `replay` and `predict`, as a person or a script meets them."""

import json
import random
import re
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from connectors import ConllSource
from streamsvm import Chain, LaRankSequenceLabeler
from streamsvm.errors import FeatureError, LabelError
from streamsvm.model_files.container import read, steps_of
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.runner import Run
from tests.interruptions import needs_ctrl_c

WORDS = [["the", "old", "dog", "barks"], ["a", "dog", "sees", "the", "cat"], [], ["cats", "sleep"]]
LABELS = [["B-NP", "I-NP", "I-NP", "B-VP"], ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP"], [],
          ["B-NP", "B-VP"]]  # fmt: skip
VARYING = ("seconds", "compile_seconds", "peak_bytes", "memory_bytes", "resumed", "resumed_after",
           "monitor")  # fmt: skip
"""What differs between a run and the same one in parts: times, room in arrays, its own story."""


@pytest.fixture(autouse=True)
def _files(_folder):
    tags = [[word[0] for word in sentence] for sentence in WORDS]
    table = {"word": WORDS * 10, "tag": tags * 10, "chunk": LABELS * 10, "n": [1] * 40}
    pq.write_table(pa.table(table), "a.parquet")
    rows = [
        "\n".join(map(" ".join, zip(*s, strict=True)))
        for s in zip(WORDS, tags, LABELS, strict=True)
    ]
    Path("a.txt").write_text("\n\n".join(row for row in rows if row) + "\n\n", encoding="utf-8")
    Path("latin1").write_bytes(b"# caf\xe9\nU0:%x[0,0]\n")
    Path("blank.txt").write_text("\n\n")
    Path("seven").write_text("U0:%x[0,7]")
    Path("template").write_text("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\n")


def write_noisy(n=200):
    """Write sentences whose words mostly tell the label: many features are without a weight."""
    draw, words, labels = random.Random(1), [], []
    for _ in range(n):
        numbers = [draw.randrange(20) for _ in range(draw.randrange(1, 6))]
        words.append([f"w{i}" for i in numbers])
        labels.append([["B-NP", "I-NP", "O"][(i + (draw.random() < 0.05)) % 3] for i in numbers])
    pq.write_table(pa.table({"word": words, "chunk": labels}), "noisy.parquet")


@pytest.fixture
def replay(run):
    def run_replay(file, *arguments, learner="sequence_larank", code=0):
        target = "chunk" if file.endswith(".parquet") else "-1"
        arguments = ["--learner", learner] * ("--model" not in arguments) + list(arguments)
        return run("replay", file, "--target", target, "--quiet", *arguments, code=code)

    return run_replay


def test_learning_saving_and_labelling(report, predict):
    columns = ["--columns", "word,tag", "--template", "template"]
    found = report("a.parquet", *columns, "--save", "m.svm", "--test", "a.parquet")
    assert found["rows"] == found["learnt"] == 40 and found["tokens"] == 110
    assert found["accuracy"] > 0.85 and found["chunk_f1"] > 0.85
    assert found["sentence_accuracy"] > 0.7 and len(found["labels"]) == 3
    assert found["test_tokens"] == 110 and found["test_error"] < 0.1 < found["test_chunk_f1"]
    template = Path("template").read_text()
    model = streamsvm.Chain(template, columns="word,tag") | streamsvm.LaRankSequenceLabeler(seed=0)
    tokens = [list(zip(s, [w[0] for w in s], strict=True)) for s in WORDS * 10]
    for sentence, labels in zip(tokens, LABELS * 10, strict=True):
        model.learn_one(sentence, labels)
    saved = streamsvm.load("m.svm")
    assert saved.predict_many(tokens) == model.predict_many(tokens)
    evaluate = ["m.svm", "a.parquet", "--target", "chunk"]
    said = predict(*evaluate).out
    assert predict(*evaluate, "-o", "out.parquet").out == said
    assert re.fullmatch(r"test error  \d\.\d+% of 110 tokens of a.parquet, chunk F1 .*\n", said)
    found = pq.read_table("out.parquet")
    assert found["prediction"].to_pylist() == model.predict_many(tokens)
    assert found["row"].to_pylist() == list(range(40)) and found["file"][0].as_py() == "a.parquet"


def test_text_files_epochs_finishing_and_going_on(replay, report, predict):
    text = replay("a.txt", "--inference", "exact", "--save", "m.svm").out
    assert re.search(r"examples +3 in", text) and re.search(r"chunk F1 +[\d.]+%", text)
    assert re.search(r"tokens +11; [\d.]+% of sentences are right", text) and "certificate" in text
    found = report("a.txt", "--model", "m.svm")
    assert found["learner"] == "sequence_larank" and found["accuracy"] > 0.4
    assert found["model_examples"] == 6
    found = report("a.txt", "--epochs", "3", "--finish")
    assert (found["rows"], found["tokens"], found["finished"]) == (9, 11, True)
    for learner in ("sequence_pa", "sequence_perceptron"):
        assert len(report("a.txt", "--learner", learner)["labels"]) == 3
    Path("new.txt").write_text("the t\ndog d\n")
    predict("m.svm", "new.txt", "-o", "o.jsonl")
    assert json.loads(Path("o.jsonl").read_text())["prediction"] == ["B-NP", "I-NP"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["a.txt", "--target", "x"], 2, "the number of a column"),
        (["a.txt", "--target", "7"], 1, "no column 7"),
        (["a.txt", "--columns", "a"], 2, "--columns is for Parquet"),
        (["a.txt", "--shuffle-buffer", "9"], 2, "--shuffle-buffer is for Parquet"),
        (["none.txt"], 1, "`none.txt` does not exist"),
        (["a.parquet", "--columns", "x"], 1, "`x` is not a column"),
        (["a.parquet", "--columns", "n"], 1, "a column of tokens holds lists"),
        (["a.parquet", "--columns", "word,chunk"], 2, "among the --columns"),
        (["a.txt", "--scale"], 2, "--scale: not for --learner sequence_larank"),
        (["a.txt", "--positive", "O", "--patience", "3"], 2, "--positive, --patience: not for"),
        (["a.txt", "--kernel", "rbf"], 2, "need --gamma"),
        (["a.txt", "--template", "latin1"], 2, "save it as UTF-8"),
        (["a.txt", "--template", "seven"], 1, "none of 3 rows could be learnt"),
        (["blank.txt"], 1, "there are no rows to learn from"),
        (["twice.parquet", "--columns", "word"], 1, "more than once"),
        (["endless.txt"], 1, "none of 1 rows could be learnt"),
        (["a.txt", "--save", "."], 2, "is a folder"),
        (["a.txt", "--order", "99"], 2, "at most 32"),
        (["a.txt", "--learner", "sequence_pa", "--window", "9"], 2, "--window: not for --learner"),
        (["a.txt", "--learner", "sequence_pa", "--finish"], 2, "SequencePA cannot"),
        (["a.txt", "--learner", "lasvm", "--template", "template"], 1, "a.txt"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments, code, said, replay):
    columns = [pa.array([["a"]])] * 3
    pq.write_table(pa.table(columns, names=["word", "chunk", "word"]), "twice.parquet")
    if "endless.txt" in arguments:
        Path("endless.txt").write_text("a B\n" * 100_001)
    err = replay(*arguments, code=code).err
    assert said in err and err.count("\n") == 1


def test_limits_of_a_stream_without_end(report):
    write_noisy()
    assert report("noisy.parquet", "--save", "m.svm")["n_support_vectors"] > 100
    assert steps_of(streamsvm.load("m.svm"))[1].n_support_patterns > 60
    limits = ["--max-support-patterns", "9", "--max-features", "50", "--save", "m.svm"]
    report("noisy.parquet", *limits)
    learner = steps_of(streamsvm.load("m.svm"))[1]
    assert learner.n_support_patterns <= 9 and learner.n_features == 50
    report("noisy.parquet", "--window", "20", "--save", "m.svm")
    assert steps_of(streamsvm.load("m.svm"))[1].window == 20


def test_a_model_has_its_own_learner_and_parameters(replay, report, run):
    replay("a.txt", "--save", "m.svm")
    for more in (["--order", "1"], ["--learner", "sequence_pa"], ["--template", "template"]):
        err = replay("a.txt", "--model", "m.svm", *more, code=2).err
        assert f"{more[0]}: --model has its own" in err
    pq.write_table(pa.table({"a": [1.0, 2.0] * 9, "y": [0, 1] * 9}), "rows.parquet")
    rows = ["rows.parquet", "--target", "y"]
    report(*rows, "--learner", "sgd", "--save", "m.svm")
    found = report(*rows, "--model", "m.svm")
    streamsvm.save(streamsvm.StandardScaler(), "scaler.svm")
    err = run("replay", *rows, "--model", "scaler.svm", code=1).err
    assert "scaler.svm holds no learner" in err
    assert (found["learner"], found["rows"], found["model_examples"]) == ("sgd", 18, 36)


@needs_ctrl_c
def test_after_a_signal_a_run_ends_with_a_checkpoint(monkeypatch, replay):
    own, calls = streamsvm.SequencePerceptron.predict_then_learn_many, []

    def signalled(self, *arguments):
        if not calls:
            signal.raise_signal(signal.SIGINT)
        calls.append(arguments)
        return own(self, *arguments)

    monkeypatch.setattr(streamsvm.SequencePerceptron, "predict_then_learn_many", signalled)
    monkeypatch.setattr(streamsvm.SequencePerceptron, "chunk", 2)
    for code, taken in ((130, 2), (0, 3)):
        replay("a.txt", "--checkpoint", "c.ckpt", learner="sequence_perceptron", code=code)
        assert read("c.ckpt")[1]["states"]["place"]["taken"] == taken


@pytest.mark.parametrize("features", [[], ["--template", "template"]])
def test_a_model_keeps_the_names_of_its_columns(features, replay, predict):
    replay("a.parquet", "--columns", "word,tag", *features, "--save", "m.svm")
    model, table = streamsvm.load("m.svm"), pq.read_table("a.parquet")
    words, tags = (table[name].to_pylist() for name in ("word", "tag"))
    dicts = [
        [{"tag": t, "word": w} for w, t in zip(*two, strict=True)]
        for two in zip(words, tags, strict=True)
    ]
    given = ["m.svm", "a.parquet", "-o", "o.parquet"]
    predict(*given)
    expected = pq.read_table("o.parquet")["prediction"].to_pylist()
    assert expected[:2] == LABELS[:2]
    assert model.predict_many(dicts) == expected == model.predict_many(table)
    for wrong in ("tag,word", "word", "word,tag,chunk", "chunk,word"):
        err = predict(*given, "--columns", wrong, code=2).err
        assert "the model has learnt word,tag; name as many" in err
    for option in (["--keep", "n"], ["--allow-mismatch"]):
        err = predict(*given, *option, code=2).err
        assert f"{option[0]}: not for learners of sentences" in err
    # The third column of the text file is its labels.
    before = Path("o.parquet").read_bytes()
    predict("m.svm", "a.txt", "--columns", "word,tag", "-o", "o.parquet", code=2)
    assert Path("o.parquet").read_bytes() == before
    pq.write_table(table.rename_columns(["text", "tag", "chunk", "n"]), "renamed.parquet")
    predict("m.svm", "renamed.parquet", "--columns", "text,tag", "-o", "p.parquet")
    assert pq.read_table("p.parquet")["prediction"].to_pylist() == expected


def test_sentences_that_cannot_be_used_are_kept_apart(replay, report, predict):
    rows = {
        "word": [["a"], ["a", "b"], None, ["b"], []],
        "chunk": [["B"], ["B"], ["B"], [None], []],
    }
    pq.write_table(pa.table(rows), "bad.parquet")
    # Of one label there is nothing to learn.
    replay("bad.parquet", "--on-error", "skip", code=1)
    rows = {name: [[name], *lists] for name, lists in rows.items()}
    pq.write_table(pa.table(rows), "bad.parquet")
    found = report("bad.parquet", "--save", "m.svm")
    assert (found["rows"], found["learnt"], found["tokens"]) == (6, 3, 2)
    assert found["bad"] == {"unequal lengths": 2, "unusable sentence": 1}
    letters = [json.loads(line) for line in Path(found["dead_letters"]).read_text().splitlines()]
    assert [letter["position"]["row"] for letter in letters] == [2, 3, 4]
    assert "unequal lengths" in letters[0]["reason"] and "missing" in letters[2]["reason"]
    replay("bad.parquet", "--on-error", "raise", code=1)
    err = predict("m.svm", "bad.parquet", "-o", "o.parquet").err
    assert "6 sentences, 1 of them without a prediction" in err
    predicted = pq.read_table("o.parquet")["prediction"].to_pylist()
    assert [None if row is None else len(row) for row in predicted] == [1, 1, 2, None, 1, 0]


def test_only_the_sentences_of_bad_lines_are_left_out(report, predict):
    Path("bad.txt").write_bytes(b"a B\n\nb\n\nc B\nd\n\n\xff B\n\ne C\n")
    found = report("bad.txt", "--learner", "sequence_perceptron")
    assert found["learnt"] == 3 and sum(found["bad"].values()) == 2
    letters = [json.loads(line) for line in Path(found["dead_letters"]).read_text().splitlines()]
    assert [letter["x"]["payload"] for letter in letters] == ["c B\nd", "\\xff B"]
    streamsvm.save(Chain(columns="a,b") | streamsvm.SequencePA(), "m.svm")
    predict("m.svm", "a.txt", "-o", "o.parquet", code=2)


@pytest.mark.parametrize(("file", "limits"), [("noisy.parquet", (90, 140)), ("a.txt", (10, 23))])
@pytest.mark.parametrize("monitor", [["--no-monitor"], []])
def test_a_run_goes_on_from_its_checkpoint(file, limits, monitor, report, replay, monkeypatch):
    write_noisy()
    monkeypatch.setattr(streamsvm.LaRankSequenceLabeler, "chunk", 13)
    if file == "a.txt":
        Path(file).write_text(Path(file).read_text() * 10)
    whole = report(file, *monitor, "--save", "whole.svm")
    run = [file, *monitor, "--checkpoint", "c.ckpt", "--checkpoint-every", "7"]
    for limit in limits:
        assert report(*run, "--limit", str(limit))["rows"] == limit
    parts = report(*run, "--save", "parts.svm")
    for found in (parts, whole):
        followed = [found["monitor"].get(name) for name in ("n_examples", "dual", "certificate")]
        found |= dict.fromkeys((*VARYING, "examples_per_second")) | {"followed": followed}
    assert parts == whole
    assert Path("parts.svm").read_bytes() == Path("whole.svm").read_bytes()
    assert "C 0.1 there, 2.0 here" in replay(*run, "--C", "2", code=1).err
    Path("b.txt").write_text("x y B\n")
    err = replay("b.txt", *run[1:], code=1).err
    assert re.search("of another source|columns 'word' there, None", err)
    err = replay(file, *monitor, "--checkpoint", "parts.svm", code=1).err
    assert "is a model, not a checkpoint" in err


@pytest.mark.parametrize("error", [FeatureError, LabelError, ValueError])
def test_an_error_of_learning_is_no_dead_letter(error, monkeypatch):
    def fails(self, *arguments):
        raise error("a fault of the learner")

    monkeypatch.setattr(streamsvm.LaRankSequenceLabeler, "predict_then_learn_many", fails)
    with ConllSource("a.txt", -1) as source:
        run = Run(source, Chain() | LaRankSequenceLabeler(), bad_events=BadEvents("skip"))
        with pytest.raises(error, match="a fault of the learner"):
            run.execute()
    assert run.bad.total == 0
