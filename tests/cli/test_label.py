"""`streamsvm label`, as a person or a script meets it."""

import json
import random
import re
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from connectors import ConllSource, Event, Position
from streamsvm import Chain, LaRankSequenceLabeler
from streamsvm.cli.main import main
from streamsvm.errors import FeatureError, LabelError
from streamsvm.model_files.container import encoded, read, steps_of
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.sequence_run import SequenceRun

WORDS = [["the", "old", "dog", "barks"], ["a", "dog", "sees", "the", "cat"], [], ["cats", "sleep"]]
LABELS = [["B-NP", "I-NP", "I-NP", "B-VP"], ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP"], [],
          ["B-NP", "B-VP"]]  # fmt: skip


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
    Path("template").write_text("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\n")


def write_noisy(n=200):
    """Write sentences whose words mostly tell the label: many features are without a weight."""
    draw, words, labels = random.Random(1), [], []
    for _ in range(n):
        numbers = [draw.randrange(20) for _ in range(draw.randrange(1, 6))]
        words.append([f"w{i}" for i in numbers])
        labels.append([["B-NP", "I-NP", "O"][(i + (draw.random() < 0.05)) % 3] for i in numbers])
    pq.write_table(pa.table({"word": words, "chunk": labels}), "noisy.parquet")


def report(capsys, *arguments):
    assert main(["label", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_learning_saving_and_labelling(capsys):
    columns = ["--tokens", "word,tag", "--features", "template"]
    found = report(capsys, "a.parquet", *columns, "--labels", "chunk", "--save", "m.svm")
    assert found["sentences"] == 40 and found["tokens"] == 110 and found["labels"] == 3
    assert found["token accuracy"] > 0.85 and found["chunk F1"] > 0.85
    assert found["support patterns"] > 0
    template = Path("template").read_text()
    model = streamsvm.Chain(template, columns="word,tag") | streamsvm.LaRankSequenceLabeler(seed=0)
    tokens = [list(zip(s, [w[0] for w in s], strict=True)) for s in WORDS * 10]
    for sentence, labels in zip(tokens, LABELS * 10, strict=True):
        model.learn_one(sentence, labels)
    saved = streamsvm.load("m.svm")
    assert saved.predict_many(tokens) == model.predict_many(tokens)
    arguments = ["a.parquet", "--tokens", "word,tag", "--model", "m.svm", "-o", "out.parquet"]
    found = report(capsys, *arguments, "--limit", "4")
    assert found["sentences"] == 4 and "token accuracy" not in found
    assert pq.read_table("out.parquet")["labels"].to_pylist() == model.predict_many(tokens[:4])


def test_text_files_and_going_on(capsys):
    assert (
        main(["label", "a.txt", "--labels", "-1", "--inference", "exact", "--save", "m.svm"]) == 0
    )
    text = capsys.readouterr().out
    assert re.search(r"sentences +3\n", text) and "token accuracy" in text and "%" in text
    found = report(capsys, "a.txt", "--labels", "2", "--model", "m.svm")
    assert found["token accuracy"] > 0.4 and found["sentences"] == 3
    for learner in ("pa", "perceptron"):
        assert report(capsys, "a.txt", "--labels", "-1", "--learner", learner)["labels"] == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["a.txt"], 2, "nothing to learn without --labels"),
        (["a.txt", "--labels", "x"], 2, "the number of a column"),
        (["a.txt", "--labels", "7"], 1, "no column 7"),
        (["a.txt", "--labels", "-1", "--tokens", "a"], 2, "--tokens is for Parquet"),
        (["none.txt", "--labels", "-1"], 1, "none.txt: No such file"),
        (["a.parquet", "--labels", "chunk"], 2, "name the columns of the tokens"),
        (["a.parquet", "--labels", "chunk", "--tokens", "x"], 1, "`x` is not a column"),
        (["a.parquet", "--labels", "chunk", "--tokens", "n"], 1, "a column of tokens holds lists"),
        (["a.txt", "--labels", "-1", "--learner", "perceptron", "--C", "1"], 2, "does not take it"),
        (["a.txt", "--labels", "-1", "--learner", "pa", "--window", "9"], 2, "is for larank"),
        (["a.txt", "--labels", "-1", "--features", "latin1"], 2, "latin1 is not UTF-8"),
        (["blank.txt", "--labels", "-1"], 1, "there are no sentences to learn from"),
        (["twice.parquet", "--tokens", "word", "--labels", "chunk"], 1, "more than once"),
        (["endless.txt", "--labels", "-1"], 1, "none of 1 sentences could be learnt"),
        (["a.parquet", "--tokens", "word,chunk", "--labels", "chunk"], 2, "among the --tokens"),
        (["a.txt", "--labels", "-1", "--save", "."], 2, "is a folder"),
        (["a.txt", "--labels", "-1", "--order", "99"], 2, "at most 32"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments, code, said, capsys):
    columns = [pa.array([["a"]])] * 3
    pq.write_table(pa.table(columns, names=["word", "chunk", "word"]), "twice.parquet")
    if "endless.txt" in arguments:
        Path("endless.txt").write_text("a B\n" * 100_001)
    assert main(["label", *arguments]) == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_limits_of_a_stream_without_end(capsys):
    write_noisy()
    run = ["noisy.parquet", "--tokens", "word", "--labels", "chunk"]
    assert report(capsys, *run)["support patterns"] > 60
    found = report(capsys, *run, "--max-support-patterns", "9", "--max-features", "50")
    assert found["support patterns"] <= 9 and found["features"] == 50
    assert report(capsys, *run, "--window", "20", "--save", "m.svm")["support patterns"] <= 20
    assert steps_of(streamsvm.load("m.svm"))[1].window == 20


def test_a_model_of_something_else(capsys):
    streamsvm.SequencePA().save("alone.svm")
    assert main(["label", "a.txt", "--model", "alone.svm"]) == 2
    assert "holds no model that" in capsys.readouterr().err
    assert main(["label", "a.txt", "--labels", "-1", "--save", "m.svm"]) == 0
    assert main(["label", "a.txt", "--model", "m.svm", "--order", "1"]) == 2
    assert "leave out others" in capsys.readouterr().err


def test_an_interruption_reports_and_saves(capsys, monkeypatch):
    calls = []

    def interrupted(self, *arguments):
        calls.append(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(streamsvm.LaRankSequenceLabeler, "predict_then_learn_many", interrupted)
    assert main(["label", "a.txt", "--labels", "-1", "--save", "m.svm"]) == 130
    assert calls and "sentences" in capsys.readouterr().out and Path("m.svm").exists()


@pytest.fixture
def _signalled(monkeypatch):
    """Raise SIGINT while the first sentences are predicted, and while the first ones are learnt."""
    for name in ("predict_many", "predict_then_learn_many"):
        own, calls = getattr(streamsvm.SequencePerceptron, name), []

        def method(self, *arguments, own=own, calls=calls):
            if not calls:
                signal.raise_signal(signal.SIGINT)
            calls.append(arguments)
            return own(self, *arguments)

        monkeypatch.setattr(streamsvm.SequencePerceptron, name, method)


def test_after_a_signal_a_run_ends_with_a_checkpoint(_signalled):
    arguments = ["label", "a.txt", "--labels", "-1", "--learner", "perceptron"]
    arguments += ["--checkpoint", "c.ckpt", "--checkpoint-every", "2"]
    assert main(arguments) == 130
    assert read("c.ckpt")[1]["sentences"]["taken"] == 2
    assert main(arguments) == 0
    assert read("c.ckpt")[1]["sentences"]["taken"] == 3


def test_a_checkpoint_of_sentences_is_no_checkpoint_of_rows(capsys):
    run = ["label", "a.txt", "--labels", "-1", "--learner", "pa", "--checkpoint", "c.ckpt"]
    assert main(run) == 0
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), "rows.parquet")
    replay = ["replay", "rows.parquet", "--target", "y", "--learner", "sgd"]
    assert main([*replay, "--checkpoint", "c.ckpt"]) == 1
    assert "c.ckpt is of a run of sentences: use --task sequence" in capsys.readouterr().err


def test_after_a_signal_the_older_output_is_unchanged(_signalled, capsys):
    pipeline = streamsvm.Chain() | streamsvm.SequencePerceptron()
    pipeline.learn_many(WORDS, LABELS)
    streamsvm.save(pipeline, "m.svm")
    pq.write_table(pa.table({"word": WORDS * 100}), "many.parquet")
    Path("o.parquet").write_text("older")
    Path("link.parquet").symlink_to("o.parquet")
    arguments = ["predict", "m.svm", "many.parquet", "--tokens", "word", "-o", "link.parquet"]
    assert main(arguments) == 130
    assert Path("link.parquet").read_text() == "older"
    assert "link.parquet was not written" in capsys.readouterr().err
    assert main(arguments) == 0
    assert pq.read_table("o.parquet").num_rows == 400 and Path("link.parquet").is_symlink()


def test_replay_of_task_sequence_is_label(capsys):
    assert main(["replay", "a.txt", "--task", "sequence", "--labels", "-1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = report(capsys, "a.txt", "--labels", "-1")
    timed = {"seconds", "tokens a second"}
    assert {k: v for k, v in found.items() if k not in timed} == {
        k: v for k, v in expected.items() if k not in timed
    }
    assert main(["replay", "a.txt", "--task=sequence", "--labels", "-1"]) == 0
    with pytest.raises(SystemExit):
        main(["replay", "a.parquet", "--task", "parsing", "--target", "n"])
    assert "unknown value 'parsing'" in capsys.readouterr().err


def test_predict_writes_labels_of_sentences(capsys):
    main(["label", "a.parquet", "--tokens", "word,tag", "--labels", "chunk", "--save", "m.svm"])
    columns = ["--tokens", "word,tag"]
    assert main(["predict", "m.svm", "a.parquet", *columns, "-o", "p.parquet"]) == 0
    assert main(["label", "a.parquet", *columns, "--model", "m.svm", "-o", "l.parquet"]) == 0
    assert pq.read_table("p.parquet") == pq.read_table("l.parquet")
    capsys.readouterr()
    assert main(["predict", "m.svm", "a.parquet", "-o", "p.parquet"]) == 2
    assert "--tokens: name the columns" in capsys.readouterr().err
    for option in (["--columns", "word"], ["--allow-mismatch"]):
        assert main(["predict", "m.svm", "a.parquet", *columns, *option, "-o", "p.parquet"]) == 2
        assert "are for models of single rows" in capsys.readouterr().err


@pytest.mark.parametrize("features", [[], ["--features", "template"]])
def test_a_model_keeps_the_names_of_its_columns(features, capsys):
    columns = ["a.parquet", "--tokens", "word,tag"]
    report(capsys, *columns, "--labels", "chunk", *features, "--save", "m.svm")
    model = streamsvm.load("m.svm")
    table = pq.read_table("a.parquet")
    words, tags = (table[name].to_pylist() for name in ("word", "tag"))
    dicts = [
        [{"tag": t, "word": w} for w, t in zip(*two, strict=True)]
        for two in zip(words, tags, strict=True)
    ]
    report(capsys, *columns, "--model", "m.svm", "-o", "o.parquet")
    expected = pq.read_table("o.parquet")["labels"].to_pylist()
    assert expected[:2] == LABELS[:2]
    assert model.predict_many(dicts) == expected == model.predict_many(table)
    for wrong in ("tag,word", "word", "word,tag,chunk", "chunk,word"):
        assert main(["predict", "m.svm", "a.parquet", "--tokens", wrong, "-o", "p.parquet"]) == 2
        assert "the model has learnt word,tag; name as many" in capsys.readouterr().err
    # The third column of the text file is its labels.
    assert main(["label", "a.txt", "--model", "m.svm", "-o", "p.parquet"]) == 2
    assert "have 3 columns, and columns= names 2: word, tag" in capsys.readouterr().err
    pq.write_table(table.rename_columns(["text", "tag", "chunk", "n"]), "renamed.parquet")
    renamed = ["renamed.parquet", "--tokens", "text,tag", "-o", "p.parquet"]
    assert main(["predict", "m.svm", *renamed]) == 0
    assert pq.read_table("p.parquet")["labels"].to_pylist() == expected


def test_the_monitor_reports_the_gap(capsys):
    found = report(capsys, "a.txt", "--labels", "-1", "--monitor")
    assert found["gap"] > 0.0 and found["certificate"] > found["averaged_gap"] > 0.0
    assert found["dual"] > 0.0 and found["seconds"] > 0.0


def test_sentences_that_cannot_be_used_are_kept_apart(capsys):
    rows = {
        "word": [["a"], ["a", "b"], None, ["b"], []],
        "chunk": [["B"], ["B"], ["B"], [None], []],
    }
    pq.write_table(pa.table(rows), "bad.parquet")
    arguments = ["bad.parquet", "--tokens", "word", "--labels", "chunk"]
    found = report(capsys, *arguments)
    assert found["sentences"] == 2 and found["tokens"] == 1 and found["not usable"] == 3
    letters = [json.loads(line) for line in Path(found["dead letters"]).read_text().splitlines()]
    assert [letter["position"]["row"] for letter in letters] == [1, 2, 3]
    assert "unequal lengths" in letters[0]["reason"] and "missing" in letters[2]["reason"]
    assert main(["label", *arguments, "--on-error", "raise"]) == 1
    report(capsys, *arguments, "--on-error", "skip", "--save", "m.svm")
    predict = ["label", "bad.parquet", "--tokens", "word", "--model", "m.svm", "-o", "o.parquet"]
    assert main([*predict, "--on-error", "skip"]) == 0
    lengths = [
        None if row is None else len(row)
        for row in pq.read_table("o.parquet")["labels"].to_pylist()
    ]
    assert lengths == [1, 2, None, 1, 0]


def test_only_the_sentences_of_bad_lines_are_left_out(capsys):
    Path("bad.txt").write_bytes(b"a B\n\nb\n\nc B\nd\n\n\xff B\n\ne B\n")
    found = report(capsys, "bad.txt", "--labels", "1", "--learner", "perceptron")
    assert found["sentences"] == 2 and found["not usable"] == 3
    letters = [json.loads(line) for line in Path(found["dead letters"]).read_text().splitlines()]
    assert [letter["x"]["payload"] for letter in letters] == ["b", "c B\nd", "\\xff B"]


def test_a_checkpoint_from_before_a_parameter_is_continued():
    arguments = ["label", "a.txt", "--labels", "-1", "--learner", "perceptron"]
    arguments += ["--checkpoint", "c.ckpt"]
    assert main([*arguments, "--limit", "1"]) == 0
    model, about, arrays = read("c.ckpt")
    del about["settings"]["shapes"], about["settings"]["order"]
    Path("c.ckpt").write_bytes(encoded(model, about, arrays))
    assert main(arguments) == 0
    assert read("c.ckpt")[1]["sentences"]["taken"] == 3


@pytest.mark.parametrize(("file", "limits"), [("noisy.parquet", (90, 140)), ("a.txt", (10, 23))])
@pytest.mark.parametrize("monitor", [[], ["--monitor"]])
def test_a_run_goes_on_from_its_checkpoint(file, limits, monitor, capsys):
    write_noisy()
    columns = ["--tokens", "word"] if file == "noisy.parquet" else []
    labels = "chunk" if columns else "-1"
    if not columns:
        Path(file).write_text(Path(file).read_text() * 10)
    arguments = [file, *columns, "--labels", labels, *monitor]
    whole = report(capsys, *arguments, "--save", "whole.svm")
    run = [*arguments, "--checkpoint", "c.ckpt", "--checkpoint-every", "7"]
    for limit in limits:
        assert report(capsys, *run, "--limit", str(limit))["sentences"] == limit
    parts = report(capsys, *run, "--save", "parts.svm")
    timed = {"seconds", "tokens a second"}
    assert {k: v for k, v in parts.items() if k not in timed} == {
        k: v for k, v in whole.items() if k not in timed
    }
    assert Path("parts.svm").read_bytes() == Path("whole.svm").read_bytes()
    assert main(["label", *run, "--C", "2"]) == 1
    assert "C 0.1 there, 2.0 here" in capsys.readouterr().err
    Path("b.txt").write_text("x y B\n")
    assert main(["label", "b.txt", "--labels", "-1", *monitor, "--checkpoint", "c.ckpt"]) == 1
    assert re.search("of another source|columns 'word' there, None", capsys.readouterr().err)
    assert main(["label", *arguments, "--checkpoint", "parts.svm"]) == 1
    assert "no checkpoint of a run of sentences" in capsys.readouterr().err


@pytest.mark.parametrize("error", [FeatureError, LabelError, ValueError])
def test_an_error_of_learning_is_no_dead_letter(error, monkeypatch):
    def fails(self, *arguments):
        raise error("a fault of the learner")

    monkeypatch.setattr(streamsvm.LaRankSequenceLabeler, "predict_then_learn_many", fails)
    with ConllSource("a.txt", -1) as source:
        run = SequenceRun(source, Chain() | LaRankSequenceLabeler(), bad_events=BadEvents("skip"))
        with pytest.raises(error, match="a fault of the learner"):
            run.execute()
    assert run.bad.total == 0


def test_templates_that_fit_no_sentence_are_an_error(capsys):
    Path("t").write_text("U0:%x[0,7]")
    assert main(["label", "a.txt", "--labels", "-1", "--features", "t"]) == 2
    assert "7" in capsys.readouterr().err


class Handed:
    """A source whose partitions are taken away after three sentences."""

    def __init__(self):
        self.read, self.before_revoke = 0, None

    def parts(self):
        for i, (words, labels) in enumerate(zip(WORDS, LABELS, strict=True)):
            if i == 3:
                self.before_revoke()
                self.kept = load_checkpoint("c.ckpt")
            self.read = i + 1
            yield [Event(words, labels, Position(None, i))]

    def snapshot(self):
        return {"read": self.read}


def load_checkpoint(path):
    model, about, _ = read(path)
    return steps_of(model)[-1].n_examples, about["sentences"]["snapshot"]


def test_what_was_read_is_learnt_before_partitions_are_given_up():
    source = Handed()
    SequenceRun(source, Chain() | LaRankSequenceLabeler(), checkpoint="c.ckpt").execute()
    assert source.kept == (3, {"read": 3}) and load_checkpoint("c.ckpt") == (4, {"read": 4})


def test_a_run_that_is_stopped_has_learnt_what_it_read():
    source = Handed()
    stopped = SequenceRun(
        source,
        Chain() | LaRankSequenceLabeler(),
        checkpoint="s.ckpt",
        should_stop=lambda: source.read == 2,
    )
    assert stopped.execute().n_sentences == 2 and stopped.interrupted
    assert load_checkpoint("s.ckpt") == (2, {"read": 2})


def test_a_source_that_waits_for_kafka_says_so(monkeypatch, capsys):
    class Waiting(ConllSource):
        def events(self):
            self.on_long_wait()
            return super().events()

        def on_long_wait(self):
            """Do nothing, as `KafkaSource` by default."""

    monkeypatch.setattr("streamsvm.cli.label.ConllSource", Waiting)
    assert main(["label", "a.txt", "--labels", "-1"]) == 0
    assert "waiting for the broker to assign partitions" in capsys.readouterr().err


def test_a_limit_below_the_checkpoint_is_said(capsys):
    run = ["label", "a.txt", "--labels", "-1", "--checkpoint", "c", "--limit"]
    assert main([*run, "2"]) == 0
    assert "nothing more" not in capsys.readouterr().err
    assert main([*run, "1"]) == 0
    assert "nothing more was read: --limit 1 counts from the start" in capsys.readouterr().err
