"""The command as a person or a script meets it."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import streamsvm
from streamsvm.cli.interruptions import interrupted_by_sigterm
from streamsvm.cli.main import main
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.run.checkpoint import Checkpoint
from tests.interruptions import ignore_ctrl_c, needs_ctrl_c

BANANAS = Path(__file__).resolve().parents[2] / "examples" / "data" / "bananas.parquet"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def columns(n=600, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    return {"a": a, "b": b, "t": rng.choice(["x", "y"], n), "y": a * b > 0}


def write(name="data.parquet", **changed):
    Path(name).parent.mkdir(exist_ok=True)
    pq.write_table(
        pa.table({k: v for k, v in (columns() | changed).items() if v is not None}), name
    )
    return name


def replay(*arguments):
    return main(["replay", *arguments, "--target", "y"])


def test_the_report_is_a_table(capsys):
    assert main(["replay", str(BANANAS), "--target", "label", "--finish"]) == 0
    out, err = capsys.readouterr()
    for words in (
        "progressive accuracy",
        "89.",
        "support vectors",
        "5,300",
        "finishing",
        "drifts",
        "mean gap",
    ):
        assert words in out
    assert "examples/s" in err


def test_the_report_says_where_a_small_delta_leaves_a_large_gap(capsys):
    """As one weight of a million does: the optimum is not reached by its objective."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(120, 2))
    y = (x[:, 0] + 0.7 * rng.normal(size=120) > 0.0).astype(int)
    w = np.ones(120)
    w[60] = 1e6
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "w": w, "y": y}), "heavy.parquet")
    learner = ("--learner", "lasvm", "--gamma", "0.5", "--C", "100")
    assert replay("heavy.parquet", "--weight", "w", "--finish", *learner) == 0
    assert "leave less gap" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("replay data.parquet --target y --save data.parquet", "--save .* replace the input"),
        ("replay data.parquet --target y --checkpoint c --save ./c", "replace the file of --save"),
        ("predict m.svm data.parquet -o data.parquet", "--output .* replace the input"),
        ("predict m.svm data.parquet -o m.svm", "--output m.svm would replace the model"),
    ],
)
def test_no_output_replaces_an_input_or_another_output(command, words, capsys):
    write()
    streamsvm.save(streamsvm.SVMSGDClassifier(), "m.svm")
    before = Path("data.parquet").read_bytes(), Path("m.svm").read_bytes()
    assert main(command.split()) == 2
    assert re.search(words, capsys.readouterr().err)
    assert before == (Path("data.parquet").read_bytes(), Path("m.svm").read_bytes())


def test_json_and_all_outputs(capsys):
    write()
    write("test.parquet", **columns(seed=1))
    os.mkdir("rep")
    for older in ("report.json", "loss.png", "mine.txt"):
        Path("rep", older).write_text("{}")
    assert replay(
        "data.parquet", "--json", "--quiet", "--finish", "--epochs", "2", "--limit", "500",
        "--save", "m.svm", "--report", "rep", "--test", "test.parquet",
        "--class-weight", "balanced",
    ) == 0  # fmt: skip
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["rows"] == 1000 and report["finished"] and report["test_rows"] == 600
    assert report["test_error"] < 0.15 and not err
    # loss.png was an older report's.
    assert sorted(os.listdir("rep")) == [
        "accuracy.png", "delta.png", "gap.png", "history.parquet", "index.html", "kappa.png",
        "mine.txt", "monitor.parquet", "report.json", "support_vectors.png",
    ]  # fmt: skip
    assert json.loads(Path("rep/report.json").read_text()) == report
    page = Path("rep/index.html").read_text()
    assert "<h1>y of data.parquet</h1>" in page and "streamsvm 0" in page
    assert page.count('class="l0" d="M0,') > 3 and "progressive accuracy" in page
    assert "http" not in page and "src=" not in page and "$" not in page and "hidden>" not in page
    history = pq.read_table("rep/history.parquet").to_pydict()
    assert history["rows"] == [500, 1000] and history["epoch"] == [1, 2]
    assert not Path("dead_letters.jsonl").exists()


def test_a_file_without_rows_has_one_exit_code(capsys):
    write()
    assert replay("data.parquet", "--save", "m.svm") == 0
    write("none.parquet", **{name: values[:0] for name, values in columns().items()})
    assert replay("none.parquet", "--quiet") == 1
    assert main(["predict", "m.svm", "none.parquet", "-o", "out.parquet"]) == 1
    assert "no rows" in capsys.readouterr().err and not Path("out.parquet").exists()


def test_a_file_without_any_feature_of_the_model_is_refused(capsys):
    write()
    assert replay("data.parquet", "--save", "m.svm") == 0
    pq.write_table(pa.table({"other": [1.0]}), "other.parquet")
    assert main(["predict", "m.svm", "other.parquet", "-o", "out.parquet"]) == 1
    assert "other.parquet has none of the model's features: a, b, t" in capsys.readouterr().err
    assert not Path("out.parquet").exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"a": [str(a) for a in columns()["a"]]}, "`a` is text there, a number to the model"),
        ({"t": np.arange(600)}, "`t` is a number there, text to the model"),
        ({"a": None, "t": None}, "lacks 2 of the 3 columns that the model knows: a, t;"),
    ],
)
def test_a_file_that_does_not_fit_the_model_is_refused(changed, words, capsys):
    write()
    assert replay("data.parquet", "--save", "m.svm") == 0
    write("other.parquet", **changed)
    capsys.readouterr()
    command = ["predict", "m.svm", "other.parquet", "-o", "out.parquet"]
    assert main(command) == 1
    err = capsys.readouterr().err
    assert words in err and "--allow-mismatch" in err and err.count("\n") == 1
    assert not Path("out.parquet").exists()
    assert main([*command, "--allow-mismatch"]) == 0
    assert pq.read_metadata("out.parquet").num_rows == 600


def test_a_model_that_goes_on_names_columns_that_it_or_the_file_lacks(capsys):
    write()
    assert replay("data.parquet", "--save", "m.svm") == 0
    assert "not in data" not in capsys.readouterr().err
    write("other.parquet", a=None, new=np.arange(600.0))
    assert replay("other.parquet", "--model", "m.svm") == 0
    err = capsys.readouterr().err
    said = "not in other.parquet, so missing everywhere: a; in it, but unknown to the model: new"
    assert said in err
    assert replay("data.parquet", "--model", "m.svm") == 0
    assert "unknown" not in capsys.readouterr().err


def test_columns_that_are_named_may_be_few_but_not_of_another_kind(capsys):
    write()
    assert replay("data.parquet", "--save", "m.svm") == 0
    write("other.parquet", a=[str(a) for a in columns()["a"]])
    command = ["predict", "m.svm", "other.parquet", "-o", "out.parquet", "--columns"]
    assert main([*command, "b"]) == 0
    assert main([*command, "a,b"]) == 1
    assert "`a` is text there" in capsys.readouterr().err


def test_a_number_whose_name_looks_like_a_text_s_is_known_again(capsys):
    data = columns()
    data["c=x"] = (data.pop("t") == "x").astype(float)
    pq.write_table(pa.table(data), "data.parquet")
    assert replay("data.parquet", "--save", "m.svm") == 0
    capsys.readouterr()
    assert main(["predict", "m.svm", "data.parquet", "-o", "out.parquet"]) == 0
    assert "not in data.parquet" not in capsys.readouterr().err


def test_predict_reads_list_columns(capsys):
    lists = [[i % 3, 7] for i in range(600)]
    values = [[1.0, -1.0] if i % 3 else [1.0, 1.0] for i in range(600)]
    data = {"i": lists, "v": values, "y": [i % 3 > 0 for i in range(600)]}
    pq.write_table(pa.table(data), "data.parquet")
    assert replay("data.parquet", "--save", "m.svm", "--no-scale") == 0
    pq.write_table(pa.table(data).drop_columns("y"), "new.parquet")
    assert main(["predict", "m.svm", "new.parquet", "-o", "out.parquet"]) == 0
    assert pq.read_table("out.parquet")["prediction"].to_pylist() == data["y"]


def test_predict_gives_the_models_predictions(capsys):
    write(a=np.where(np.arange(600) == 5, np.inf, columns()["a"]))
    assert replay("data.parquet", "--scale", "--save", "m.svm") == 0
    assert main(["predict", "m.svm", "data.parquet", "-o", "out.parquet"]) == 0
    assert "600 rows, 1 of them without a prediction" in capsys.readouterr().err
    table = pq.read_table("out.parquet")
    assert table.column_names == ["file", "row", "prediction", "decision_function", "probability"]
    scaler, learner = streamsvm.load("m.svm").steps.values()
    data = columns()
    for i in (0, 17, 599):
        event = {"a": data["a"][i], "b": data["b"][i], f"t={data['t'][i]}": 1.0}
        x = scaler.transform_one(event)
        row = table.slice(i, 1).to_pylist()[0]
        assert row["decision_function"] == learner.decision_function_one(x)
        assert row["prediction"] is learner.predict_one(x)
        assert row["probability"] == pytest.approx(learner.predict_proba_one(x)[row["prediction"]])
    bad = table.slice(5, 1).to_pylist()[0]
    assert bad["row"] == 5 and bad["prediction"] is None and bad["probability"] is None
    # The larger label is positive, also if it comes first.
    write(y=~data["y"])
    assert replay("data.parquet", "--scale", "--save", "other.svm") == 0
    assert main(["predict", "other.svm", "data.parquet", "-o", "other.parquet"]) == 0
    other = pq.read_table("other.parquet").to_pandas().drop(index=5)
    assert (other["prediction"] == (other["decision_function"] > 0.0)).all()
    write("fewer.parquet", b=None, y=None)
    assert main(["predict", "m.svm", "fewer.parquet", "-o", "out.parquet"]) == 0
    assert "not in fewer.parquet, so missing everywhere: b" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--kernel", "linear", "--no-scale"],
        ["--kernel", "polynomial", "--degree", "2"],
        ["--gamma", "0.7", "--C", "5", "--tau", "0.01", "--reprocess", "2", "--delta-max", "0.5"],
        ["--columns", "a,b", "--cache-mb", "1"],
    ],
    ids=" ".join,
)
def test_learner_options(options, capsys):
    write()
    assert replay("data.parquet", "--json", "--quiet", *options) == 0
    assert json.loads(capsys.readouterr().out)["learnt"] == 600


def test_a_seed_is_one_order(capsys):
    write()
    results = []
    for seed in ("1", "1", "2"):
        more = "--shuffle-buffer", "300", "--seed", seed, "--learner", "lasvm"
        replay("data.parquet", "--json", "--quiet", *more)
        results.append(json.loads(capsys.readouterr().out)["dual"])
    assert results[0] == results[1] != results[2]


def test_arrow_files_and_folders(capsys):
    write("parts/1.parquet")
    write("parts/2.parquet", **columns(seed=2))
    assert replay("parts", "--json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1200
    with pa.ipc.new_file("data.arrow", pa.table(columns()).schema) as writer:
        writer.write(pa.table(columns()))
    assert replay("data.arrow", "--quiet") == 0


def test_times_among_the_features_are_told(capsys):
    write(when=pa.array(range(600), pa.timestamp("s")), day=pa.array(range(600), pa.date32()))
    assert replay("data.parquet") == 0
    assert "learnt as numbers, the seconds since 1970: when, day (" in capsys.readouterr().err
    for options in (["--exclude", "when,day"], ["--quiet"]):
        assert replay("data.parquet", *options) == 0
        assert "1970" not in capsys.readouterr().err


def test_excluded_columns(capsys):
    write(leak=columns()["y"].astype(float))
    for options in (["--exclude", "leak,t"], ["--columns", "a,b,t", "--exclude", "t"]):
        assert (
            replay("data.parquet", "--quiet", "--save", "m.svm", "--learner", "sgd", *options) == 0
        )
        learner = streamsvm.load("m.svm")["SVMSGDClassifier"]
        assert sorted(learner.feature_names) == ["a", "b"]
    assert replay("data.parquet", "--exclude", "leek") == 1
    assert (
        "exclude `leek` is not a column of `data.parquet`; did you mean" in capsys.readouterr().err
    )


def test_labels_that_come_late(capsys):
    write(when=np.arange(600) * 2.0)
    options = ("data.parquet", "--json", "--quiet", "--columns", "a,b,t", "--no-scale")
    assert replay(*options) == 0
    at_once = json.loads(capsys.readouterr()[0])
    delayed = []
    for more in (("50",), ("100", "--timestamp", "when", "--label-moment", "timestamp")):
        assert replay(*options, "--label-delay", *more) == 0
        delayed.append(json.loads(capsys.readouterr()[0]))
    assert at_once["late"] == {}
    assert delayed[0]["late"] == delayed[1]["late"]
    assert delayed[0]["late"]["answered"] == 600
    assert delayed[0]["accuracy"] == delayed[1]["accuracy"] < at_once["accuracy"]
    assert delayed[0]["dual"] == at_once["dual"]
    assert replay("data.parquet", "--label-delay", "5") == 0
    assert "late labels" in capsys.readouterr()[0]
    assert replay(*options, "--patience", "5") == 2


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], "clipped values        1 far from the mean: a (1)"),
        (["--clip", "8", "--reject", "1e5"], "1 outlier"),
        (["--clip", "none"], None),
    ],
    ids=str,
)
def test_values_far_away(options, shown, capsys):
    a = columns()["a"]
    a[400] = 1e9
    write(a=a)
    assert replay("data.parquet", "--learner", "sgd", *options) == 0
    out = capsys.readouterr().out
    assert (shown or "examples") in out and ("clipped" in out) == (options == [])


def test_rejecting_needs_a_scaler(capsys):
    write()
    assert replay("data.parquet", "--no-scale", "--reject", "100") == 2
    assert "--reject: not with --no-scale" in capsys.readouterr().err


def test_bad_rows_by_policy(capsys):
    nulls = [None if i % 100 == 0 else bool(v) for i, v in enumerate(columns()["y"])]
    write(y=nulls)
    assert replay("data.parquet") == 0
    assert "6 missing label" in capsys.readouterr().out
    assert len(Path("dead_letters.jsonl").read_text().splitlines()) == 6
    # Another run has another file, and says which.
    assert replay("data.parquet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["dead_letters"] == "dead_letters.2.jsonl"
    assert replay("data.parquet", "--checkpoint", "run.ckpt") == 0
    assert re.search(r"dead letters +run.ckpt.dead_letters.jsonl\n", capsys.readouterr().out)
    for name in ("dead_letters.jsonl", "dead_letters.2.jsonl", "run.ckpt.dead_letters.jsonl"):
        assert len(Path(name).read_text().splitlines()) == 6
    assert replay("data.parquet", "--on-error", "raise") == 1
    assert "data.parquet: row 0: the label is missing" in capsys.readouterr().err
    assert replay("data.parquet", "--on-error", "skip", "--dead-letters", "no.jsonl") == 0
    assert not Path("no.jsonl").exists()


@pytest.mark.parametrize("pace", [[], ["--rate", "1e9"], ["--shuffle-buffer", "100"]])
def test_a_text_that_is_not_utf_8_is_a_dead_letter(pace, capsys):
    texts = [b"M\xfcller" if i in (0, 7, 599) else b"x" for i in range(600)]
    write(t=pa.array(texts, pa.binary()).view(pa.string()))
    assert replay("data.parquet", "--save", "m.svm", "--json", *pace) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 600 and report["learnt"] == 597 and report["bad"] == {"not UTF-8": 3}
    letters = map(json.loads, Path("dead_letters.jsonl").read_text().splitlines())
    found = {letter["position"]["row"]: letter for letter in letters}
    assert found.keys() == {0, 7, 599}
    assert found[7]["reason"] == "text column `t` is not UTF-8: b'M\\xfcller'"
    assert json.loads(found[7]["x"]["payload"])["a"] == columns()["a"][7]
    assert main(["predict", "m.svm", "data.parquet", "-o", "out.parquet"]) == 0
    assert "600 rows, 3 of them without a prediction" in capsys.readouterr().err
    table = pq.read_table("out.parquet")
    assert table["row"].to_pylist() == list(range(600))
    missing = table["prediction"].is_null().to_numpy()
    assert np.flatnonzero(missing).tolist() == [0, 7, 599]


def test_most_rows_are_bad(capsys):
    a = np.where(np.arange(600) % 10 == 0, columns()["a"], np.inf)
    write(a=a)
    assert replay("data.parquet") == 1
    said = capsys.readouterr().err
    reason = r"feature 'a' is inf: .*\(5\d\d of them, first at data.parquet: row 1; see dead_let"
    assert re.search(f"most often: {reason}", said)
    assert replay("data.parquet", "--max-errors", "100%", "--no-monitor") == 0
    assert re.search(f"most examples cannot be used: {reason}", capsys.readouterr().err)


def test_the_share_of_bad_rows_that_stops(capsys):
    write(y=[None if i % 2 else bool(v) for i, v in enumerate(columns()["y"])])
    skip = ("data.parquet", "--on-error", "skip", "--max-errors")
    for most in ("100%", "1.0", "300"):
        assert replay(*skip, most) == 0
    for most in ("0%", "0", "299"):
        assert replay(*skip, most) == 1
    capsys.readouterr()
    for wrong in ("101%", "1.5", "-5", "nan", "nan%", "many", "%", "\N{SUPERSCRIPT TWO}"):
        with pytest.raises(SystemExit):
            replay(*skip, wrong)
        said = capsys.readouterr().err
        assert f"argument --max-errors: {wrong!r}: use a number of examples, as 100," in said


def _text():
    Path("data.parquet").write_text("hello")


def _empty():
    Path("data.parquet").write_text("")


def _truncated():
    write()
    Path("data.parquet").write_bytes(Path("data.parquet").read_bytes()[:2000])


def _zero_rows():
    pq.write_table(pa.table(columns()).slice(0, 0), "data.parquet")


def _changing():
    write("data.parquet/1.parquet")
    write("data.parquet/2.parquet", a=["text"] * 600)


BAD = {
    "missing file": (lambda: None, "does not exist"),
    "not Parquet": (_text, "is not a Parquet file"),
    "truncated": (_truncated, "is truncated"),
    "empty": (_empty, "is empty"),
    "no rows": (_zero_rows, "no rows"),
    "no target": (lambda: write(y=None), "target `y` is not a column"),
    "one value": (lambda: write(y=[True] * 600), "one value only (True)"),
    "no feature": (lambda: write(a=None, b=None, t=None), "no column can be a feature"),
    "nested": (lambda: write(a=[[1.0]] * 600), "leave it out with exclude= (--exclude)"),
    "changing type": (_changing, "column `a` is double in `1.parquet` but string in `2.parquet`"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(name, capsys):
    make, words = BAD[name]
    make()
    assert replay("data.parquet", "--quiet") == 1
    err = capsys.readouterr().err
    assert words in err and err.startswith("streamsvm: ") and err.count("\n") == 1


def test_very_many_classes_are_larank_s(capsys):
    write(y=np.arange(600) % 51)
    assert replay("data.parquet", "--limit", "300", "--max-classes", "60", "--save", "m.svm") == 0
    err = capsys.readouterr().err
    assert "learner: larank, as the target has 51 classes in the first 600 examples" in err
    assert isinstance(streamsvm.load("m.svm"), streamsvm.LaRankClassifier)


def test_the_adaptive_learner_takes_several_classes(capsys):
    write(y=np.arange(600) % 30)
    assert replay("data.parquet", "--save", "m.svm", "--test", "data.parquet") == 0
    out, err = capsys.readouterr()
    assert "as the target has" not in err
    assert isinstance(streamsvm.load("m.svm"), streamsvm.AdaptiveSVMClassifier)
    assert "test error" in out
    assert main(["predict", "m.svm", "data.parquet", "-o", "p.parquet"]) == 0
    table = pq.read_table("p.parquet").to_pydict()
    assert len(table["row"]) == 600 and set(table["prediction"]) <= set(range(30))
    assert all(0.0 < p <= 1.0 for p in table["probability"])
    capsys.readouterr()
    assert replay("data.parquet", "--quiet", "--learner", "tracking") == 1
    err = capsys.readouterr().err
    assert "30 classes" in err and err.startswith("streamsvm: ") and err.count("\n") == 1
    assert replay("data.parquet", "--quiet", "--positive", "3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["learner"] == "adaptive"
    assert replay("data.parquet", "--quiet", "--positive", "3", "--json", "--gamma", "1") == 0
    assert json.loads(capsys.readouterr().out)["learner"] == "lasvm"


@pytest.mark.parametrize("name", [learner.name for learner in registered_learners("rows")])
def test_each_learner_of_rows_is_replayed_to_its_report(name, capsys):
    write(**{"t": None} | {k: v[:120] for k, v in columns().items() if k != "t"})
    assert replay("data.parquet", "--quiet", "--json", "--learner", name) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["learner"] == name and found["learnt"] == 120


@pytest.mark.parametrize("learner", [[], ["--learner", "sgd"], ["--learner", "lasvm"]])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        (np.linspace(10.0, 20.0, 600), "this looks like regression"),
        (np.round(columns()["a"], 1), "this looks like regression"),
        (np.random.default_rng(1).permutation(3000)[:600], "this looks like regression"),
        ([f"user {i}" for i in range(600)], "these look like names, not classes"),
    ],
)
def test_a_target_that_is_no_class_is_refused_at_once(target, words, learner, capsys):
    write(y=target)
    assert replay("data.parquet", "--quiet", *learner) == 1
    out, err = capsys.readouterr()
    assert words in err and "--max-classes" in err and err.count("\n") == 1 and not out


def test_many_classes_are_learnt_if_asked_for(capsys):
    write(y=np.arange(600) % 150)
    assert replay("data.parquet", "--quiet", "--learner", "sgd") == 0
    assert replay("data.parquet", "--quiet", "--learner", "sgd", "--max-classes", "149") == 1
    assert "150 different values in 600 rows (0, 1, 2, 3, ...)" in capsys.readouterr().err
    write(y=np.arange(600) / 4)
    assert replay("data.parquet", "--quiet", "--learner", "sgd", "--max-classes", "600") == 0


def test_files_that_cannot_be_written_or_read(capsys):
    write()
    assert replay("data.parquet", "--save", "nowhere/m.svm") == 1
    assert "make it first" in capsys.readouterr().err
    Path("folder").mkdir()
    assert replay("data.parquet", "--save", "folder") == 2
    assert "--save folder is a folder: name a file" in capsys.readouterr().err
    assert replay("data.parquet", "--save", "m.svm") == 0
    Path("cut.svm").write_bytes(Path("m.svm").read_bytes()[:1000])
    assert main(["predict", "cut.svm", "data.parquet", "-o", "o.parquet"]) == 1
    assert "is damaged" in capsys.readouterr().err
    assert main(["predict", "data.parquet", "data.parquet", "-o", "o.parquet"]) == 1
    assert "is no streamsvm model" in capsys.readouterr().err
    assert not Path("o.parquet").exists()


@contextmanager
def files_of_at_most(size):
    """Let the system refuse larger files, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_errors_of_writing_name_the_file(capsys):
    write(a=np.where(np.arange(600) % 3, columns()["a"], np.inf))
    assert replay("data.parquet", "--dead-letters", "/dev/full") == 1
    assert "/dev/full: cannot be written: No space left" in capsys.readouterr().err
    with files_of_at_most(10_000):
        assert replay("data.parquet", "--dead-letters", "letters.jsonl") == 1
    assert "letters.jsonl: cannot be written: File too large" in capsys.readouterr().err
    assert replay("data.parquet", "--save", "m.svm") == 0
    capsys.readouterr()
    with files_of_at_most(1000):
        assert main(["predict", "m.svm", "data.parquet", "-o", "out.parquet"]) == 1
    err = capsys.readouterr().err
    assert err.endswith("out.parquet: cannot be written: File too large\n")
    assert "Traceback" not in err
    assert not [name for name in os.listdir() if "out.parquet" in name]


@pytest.mark.parametrize("how", ["no folder", "full disk", "bad row"])
def test_what_was_learnt_before_an_error_is_reported_and_saved(how, monkeypatch, capsys):
    good = columns(4000)
    bad = np.where(np.arange(4000) == 2500, np.inf, good["a"])
    write(**good | ({"a": bad} if how == "bad row" else {}))
    Path("folder").mkdir()
    after = Checkpoint.after

    def broken(self):
        if how == "no folder":
            shutil.rmtree("folder", ignore_errors=True)
        with files_of_at_most(400) if how == "full disk" else nullcontext():
            after(self)

    monkeypatch.setattr(Checkpoint, "after", broken)
    options = ["--checkpoint", "folder/c", "--checkpoint-every", "500", "--on-error", "raise"]
    options += ["--learner", "sgd", "--save", "m.svm", "--json", "--quiet"]
    assert replay("data.parquet", *options) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert 400 < report["learnt"] < 4000
    assert report["learnt"] == report["model_examples"]
    assert streamsvm.load("m.svm")["SVMSGDClassifier"].n_examples == report["model_examples"]
    assert err.splitlines()[-1] == f"streamsvm: {report['error']}"
    assert "Traceback" not in err


def test_the_plots_of_a_report_are_in_examples(monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.axes import Axes

    labels = []
    original = Axes.set_xlabel

    def spy(self, label, *args, **kwargs):
        labels.append(label)
        return original(self, label, *args, **kwargs)

    monkeypatch.setattr(Axes, "set_xlabel", spy)
    write()
    for options in ([], ["--no-monitor"]):
        assert replay("data.parquet", "--report", "rep", *options) == 0
    assert set(labels) == {"examples"}


def test_outputs_follow_links_and_are_regular_files(capsys):
    write()
    Path("models").mkdir()
    Path("m.svm").symlink_to("models/v1.svm")
    Path("out.parquet").symlink_to("models/p.parquet")
    Path("models/.v1.svm.abcdefgh.partial").touch()  # of a writer that was killed
    assert replay("data.parquet", "--save", "m.svm") == 0
    assert main(["predict", "m.svm", "data.parquet", "-o", "out.parquet"]) == 0
    assert sorted(os.listdir("models")) == ["p.parquet", "v1.svm"]
    assert Path("m.svm").is_symlink() and Path("out.parquet").is_symlink()
    Path("null.svm").symlink_to("/dev/null")
    assert replay("data.parquet", "--save", "null.svm") == 2
    assert "--save null.svm is not a regular file" in capsys.readouterr().err


def test_wrong_arguments(capsys):
    write()
    assert replay("data.parquet", "--C", "-1") == 2
    assert replay("data.parquet", "--speed", "2") == 2
    for wrong in (["replay", "data.parquet"], ["nonsense"], []):
        with pytest.raises(SystemExit) as stopped:
            main(wrong)
        assert stopped.value.code == 2
    assert "--target" in capsys.readouterr().err


@pytest.mark.slow
def test_warm(capsys):
    # All learners are some minutes more: `tests/run/test_warm.py` has what each of them compiles.
    assert main(["warm", "--kernel", "rbf", "--learner", "sgd"]) == 0
    lines = capsys.readouterr().err.splitlines()
    for i, kind in enumerate(("dense", "sparse")):
        shown = [line for line in lines if line.endswith(f"SVMSGDClassifier, {kind} rows")]
        assert shown and shown[0].startswith(f"{i} of 2 configurations, ")
    assert lines[-1].startswith("done in ") and lines[-1].endswith(" functions compiled")
    assert not any("polynomial" in line for line in lines)
    with pytest.raises(SystemExit):
        main(["warm", "--kernel", "rfb"])
    assert "unknown value 'rfb', did you mean rbf?" in capsys.readouterr().err


@needs_ctrl_c
def test_ctrl_c_ends_with_report_and_model():
    root = Path(streamsvm.__file__).parents[1]
    command = [
        sys.executable, "-m", "streamsvm", "replay", str(BANANAS), "--target", "label",
        "--rate", "400", "--save", "m.svm",
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "examples/s" in line:
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in out and "support vectors" in out
    assert 0 < streamsvm.load("m.svm").n_examples < 5300


def test_in_the_background_sigterm_ends_with_report_checkpoint_and_model():
    """As Ctrl-C does elsewhere; what Ctrl-C sends is ignored then."""
    options = ["--learner", "sgd", "--save", "m.svm", "--checkpoint", "c.ckpt", "--rate", "400"]
    command = [sys.executable, "-m", "streamsvm", "replay", str(BANANAS), "--target", "label"]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "PYTHONPATH": str(Path(streamsvm.__file__).parents[1])}

    with subprocess.Popen(
        [*command, *options], env=environment, text=True, preexec_fn=ignore_ctrl_c, **pipes
    ) as process:
        assert any("examples/s" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in out and "progressive accuracy" in out
    assert Path("m.svm").exists() and Path("c.ckpt").exists()


def test_sigterm_interrupts_before_and_after_a_run_too():
    with interrupted_by_sigterm():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.slow
def test_a_terminal_sees_a_bar_and_figures():
    import pty

    root = Path(streamsvm.__file__).parents[1]
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "streamsvm", "replay", str(BANANAS), "--target", "label"]
    environment = {**os.environ, "PYTHONPATH": str(root), "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [*command, "--rate", "4000"], env=environment, stderr=slave, stdout=subprocess.DEVNULL
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # what Linux says when the other end has closed
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    os.close(master)
    text = shown.decode()
    assert "replay bananas.parquet" in text and "/5300" in text
    assert "examples/s" in text and "…" not in text.split("examples/s")[1][:60]


@pytest.mark.slow
def test_compiling_is_shown(tmp_path):
    root = Path(streamsvm.__file__).parents[1]
    write()
    done = subprocess.run(
        [sys.executable, "-m", *"streamsvm replay data.parquet --target y --learner sgd".split()],
        env={**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stderr.splitlines()
    if streamsvm._compile.JIT:
        assert re.fullmatch(r"compiling for this machine, once: function 1 of about \d+", lines[0])
        assert re.search(
            r"600 in \d+\.\d\d s: [\d,]+ a second, after [\d.]+ s of comp", done.stdout
        )
        # It is an estimate, and should be one.
        (count,) = {int(line.split()[-1]) for line in lines if "of about" in line}
        shown = max(int(re.search(r"function (\d+)", x)[1]) for x in lines if "function" in x)
        assert shown < 1.5 * count
    assert any("600 examples" in line and "examples/s" in line for line in lines)


def test_rows_with_values_that_must_not_be_missing_have_no_prediction(capsys):
    with_gaps = np.where(np.arange(600) % 200 == 7, np.nan, columns()["a"])
    test, out = write("test.parquet", a=with_gaps), "predicted.jsonl"
    options = "--learner", "lasvm", "--missing", "reject", "--save", "m.model", "--json"
    assert replay(write(), *options, "--test", test) == 0
    said, err = capsys.readouterr()
    assert "3 examples of test.parquet have no prediction" in err
    assert json.loads(said)["test_rows"] == 600
    assert main(["predict", "m.model", test, "-o", out]) == 0
    assert "600 rows, 3 of them without a prediction (a value is not" in capsys.readouterr().err
    lines = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert [r["row"] for r in lines if r["prediction"] is None] == [7, 207, 407]
    assert [r["row"] for r in lines] == list(range(600))


def test_predictions_have_keys_and_probabilities_in_the_format_of_their_name(capsys):
    write(key=[f"k{i}" for i in range(600)], tags=[[i] for i in range(600)])
    assert (
        replay("data.parquet", "--exclude", "key,tags", "--save", "m.svm", "--learner", "sgd") == 0
    )
    for name in ("out.parquet", "out.csv", "out.jsonl"):
        asked = ["--keep", "key", "--probabilities", "-o", name, "--columns", "a,b,t"]
        assert main(["predict", "m.svm", "data.parquet", *asked]) == 0
    table = pq.read_table("out.parquet")
    assert table.column_names == [
        "file", "row", "key", "prediction", "decision_function", "probability",
        "probability of False", "probability of True",
    ]  # fmt: skip
    first = table.to_pylist()[0]
    assert (
        first["key"] == "k0" and first["probability of False"] + first["probability of True"] == 1
    )
    assert pyarrow.csv.read_csv("out.csv").to_pylist() == table.to_pylist()
    assert [
        json.loads(line) for line in Path("out.jsonl").read_text().splitlines()
    ] == table.to_pylist()
    assert main(["predict", "m.svm", "out.csv", "-o", "x.parquet"]) == 1  # no features there
    assert main(["predict", "m.svm", "data.parquet", "-o", "out.xls", "--columns", "a,b,t"]) == 2
    assert ".parquet, .csv, .jsonl" in capsys.readouterr().err
    assert main(["predict", "m.svm", "data.parquet", "-o", "o.csv", "--keep", "tags"]) == 2


def test_a_test_file_of_other_columns_is_refused_or_named(capsys):
    write(), write("text.parquet", a=["x"] * 600), write("renamed.parquet", a=None, aa=[1.0] * 600)
    assert replay("data.parquet", "--test", "text.parquet", "--learner", "sgd") == 1
    assert "column `a` is text there" in capsys.readouterr().err
    assert replay("data.parquet", "--test", "renamed.parquet", "--learner", "sgd", "--quiet") == 0
    errors = capsys.readouterr().err
    assert "not in renamed.parquet, so missing everywhere: a" in errors
    assert "unknown to the model: aa" in errors


def test_labels_that_no_row_has_are_named(capsys):
    write(), write("others.parquet", y=["up"] * 30 + ["left"] * 570)
    assert replay("data.parquet", "--test", "others.parquet", "--learner", "sgd", "--quiet") == 0
    assert "rows of others.parquet have labels that the model never" in capsys.readouterr().err
    assert replay("data.parquet", "--positive", "pink", "--learner", "sgd", "--quiet") != 0
    assert "has the label 'pink' of positive=" in capsys.readouterr().err


def test_a_weight_column_weighs_and_is_no_feature(capsys):
    write("w.csv.parquet", w=[1.0] * 598 + [-1.0, 2.0])
    arguments = ["w.csv.parquet", "--weight", "w", "--learner", "sgd", "--save", "w.svm", "--json"]
    assert replay(*arguments, "--test", write()) == 0
    assert json.loads(capsys.readouterr().out)["bad"] == {"bad weight": 1}
    assert "w" not in streamsvm.load("w.svm")["SVMSGDClassifier"].feature_names


def test_texts_that_are_numbers_are_told_and_learnt_as_numbers(capsys):
    price = [f" {a:+.6f}" for a in columns(1200)["a"]]
    changed = columns(1200) | {"a": None, "price": price, "day": ["2024-01-02", None] * 600}
    write(**changed)
    common = ["data.parquet", "--learner", "sgd", "--json", "--quiet"]
    assert replay(*common) == 0
    advice = " ".join(json.loads(capsys.readouterr().out)["advice"])
    assert "--parse-numbers price" in advice and "--parse-numbers day" in advice
    changed["price"][1100] = "cheap"
    write(**changed)
    options = ["--parse-numbers", "--save", "n.svm", "--test", "data.parquet", "--checkpoint", "c"]
    assert replay(*common, *options) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bad"] == {"no number": 1} and report["test_rows"] == 1200
    assert not report["number_texts"]
    names = set(streamsvm.load("n.svm")["SVMSGDClassifier"].feature_names)
    assert names == {"b", "price", "day", "t=x", "t=y"}
    assert main(["predict", "n.svm", "data.parquet", "-o", "o.parquet", "--parse-numbers"]) == 0
    assert pq.read_table("o.parquet")["prediction"].null_count == 1
    assert main(["predict", "n.svm", "data.parquet", "-o", "o.parquet"]) == 1
    assert replay(*common, "--parse-numbers", "price", "--checkpoint", "c") == 1
    assert "parse_numbers=['day', 'price'], this source has" in capsys.readouterr().err
