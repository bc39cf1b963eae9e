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
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.run.checkpoint import Checkpoint
from tests.cli.conftest import columns, write
from tests.interruptions import ignore_ctrl_c, needs_ctrl_c

BANANAS = Path(__file__).resolve().parents[2] / "examples" / "data" / "bananas.parquet"
OF_BANANAS = ["replay", str(BANANAS), "--target", "label"]
SGD = ("data.parquet", "--learner", "sgd")


def started(*arguments, **more):
    """Start the command in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(Path(streamsvm.__file__).parents[1])}
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        [sys.executable, "-m", "streamsvm", *arguments],
        **pipes | {"env": environment | more.pop("env", {}), "text": True} | more,
    )


def predictions(name):
    return pq.read_table(name)["prediction"].to_pylist()


def test_the_report_is_a_table(run):
    out, err = run(*OF_BANANAS, "--finish")
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


def test_the_report_says_where_a_small_delta_leaves_a_large_gap(replay):
    """As one weight of a million does: the optimum is not reached by its objective."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(120, 2))
    y = (x[:, 0] + 0.7 * rng.normal(size=120) > 0.0).astype(int)
    w = np.ones(120)
    w[60] = 1e6
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "w": w, "y": y}), "heavy.parquet")
    learner = ("--learner", "lasvm", "--gamma", "0.5", "--C", "100")
    out, _ = replay("heavy.parquet", "--weight", "w", "--finish", *learner)
    assert "leave less gap" in " ".join(out.split())


def test_json_and_all_outputs(replay):
    write()
    write("test.parquet", **columns(seed=1))
    os.mkdir("rep")
    for older in ("report.json", "loss.png", "mine.txt"):
        Path("rep", older).write_text("{}")
    out, err = replay(
        "data.parquet", "--json", "--quiet", "--finish", "--epochs", "2", "--limit", "500",
        "--save", "m.svm", "--report", "rep", "--test", "test.parquet",
        "--class-weight", "balanced",
    )  # fmt: skip
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


TEXT = {"a": [str(a) for a in columns()["a"]]}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (TEXT, "`a` is text there, a number to the model"),
        ({"t": np.arange(600)}, "`t` is a number there, text to the model"),
        ({"a": None, "t": None}, "lacks 2 of the 3 columns that the model knows: a, t;"),
    ],
)
def test_a_file_that_does_not_fit_the_model_is_refused(changed, words, learnt, predict):
    write("other.parquet", **changed)
    command = [learnt, "other.parquet", "-o", "out.parquet"]
    err = predict(*command, code=1).err
    assert words in err and "--allow-mismatch" in err and err.count("\n") == 1
    assert not Path("out.parquet").exists()
    predict(*command, "--allow-mismatch")
    assert pq.read_metadata("out.parquet").num_rows == 600
    # Columns that are named may be few but not of another kind.
    if changed is TEXT:
        predict(*command, "--columns", "b")
        assert "`a` is text there" in predict(*command, "--columns", "a,b", code=1).err


def test_a_model_that_goes_on_names_columns_that_it_or_the_file_lacks(learnt, replay):
    write("other.parquet", a=None, new=np.arange(600.0))
    said = "not in other.parquet, so missing everywhere: a; in it, but unknown to the model: new"
    assert said in replay("other.parquet", "--model", learnt).err
    # Nor is what was not asked for.
    for less in ([], ["--exclude", "b"], ["--columns", "a"]):
        err = replay("data.parquet", "--model", learnt, *less).err
        assert "unknown" not in err and "not in data" not in err
    err = replay("other.parquet", "--model", learnt, "--exclude", "new,b").err
    assert "not in other.parquet, so missing everywhere: a\n" in err and "unknown" not in err


def test_a_number_whose_name_looks_like_a_text_s_is_known_again(replay, predict):
    write(t=None, **{"c=x": (columns()["t"] == "x").astype(float)})
    assert "not in data" not in replay("data.parquet", "--save", "m.svm").err
    err = predict("m.svm", "data.parquet", "-o", "out.parquet").err
    assert "not in data.parquet" not in err


def test_predict_reads_list_columns(replay, predict):
    lists = [[i % 3, 7] for i in range(600)]
    values = [[1.0, -1.0] if i % 3 else [1.0, 1.0] for i in range(600)]
    data = {"i": lists, "v": values, "y": [i % 3 > 0 for i in range(600)]}
    pq.write_table(pa.table(data), "data.parquet")
    replay("data.parquet", "--save", "m.svm", "--no-scale")
    pq.write_table(pa.table(data).drop_columns("y"), "new.parquet")
    predict("m.svm", "new.parquet", "-o", "out.parquet")
    assert predictions("out.parquet") == data["y"]


def test_predict_gives_the_models_predictions(replay, predict):
    write(a=np.where(np.arange(600) == 5, np.inf, columns()["a"]))
    replay("data.parquet", "--scale", "--save", "m.svm")
    err = predict("m.svm", "data.parquet", "-o", "out.parquet").err
    assert "600 rows, 1 of them without a prediction" in err
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
    replay("data.parquet", "--scale", "--save", "other.svm")
    predict("other.svm", "data.parquet", "-o", "other.parquet")
    other = pq.read_table("other.parquet").to_pandas().drop(index=5)
    assert (other["prediction"] == (other["decision_function"] > 0.0)).all()
    write("fewer.parquet", b=None, y=None)
    err = predict("m.svm", "fewer.parquet", "-o", "out.parquet").err
    assert "not in fewer.parquet, so missing everywhere: b" in err


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
def test_learner_options(options, report):
    assert report(write(), *options)["learnt"] == 600


def test_a_seed_is_one_order(report):
    more = [write(), "--shuffle-buffer", "300", "--learner", "lasvm", "--seed"]
    results = [report(*more, seed)["dual"] for seed in ("1", "1", "2")]
    assert results[0] == results[1] != results[2]


def test_arrow_files_and_folders(report):
    write("parts/1.parquet")
    write("parts/2.parquet", **columns(seed=2))
    assert report("parts")["rows"] == 1200
    with pa.ipc.new_file("data.arrow", pa.table(columns()).schema) as writer:
        writer.write(pa.table(columns()))
    assert report("data.arrow")["rows"] == 600


def test_times_among_the_features_are_told(replay):
    write(when=pa.array(range(600), pa.timestamp("s")), day=pa.array(range(600), pa.date32()))
    said = "learnt as numbers, the seconds since 1970: when, day ("
    assert said in replay("data.parquet").err
    for options in (["--exclude", "when,day"], ["--quiet"]):
        assert "1970" not in replay("data.parquet", *options).err


def test_excluded_columns(replay):
    write(leak=columns()["y"].astype(float))
    for options in (["--exclude", "leak,t"], ["--columns", "a,b,t", "--exclude", "t"]):
        replay(*SGD, "--save", "m.svm", *options)
        learner = streamsvm.load("m.svm")["SVMSGDClassifier"]
        assert sorted(learner.feature_names) == ["a", "b"]


def test_labels_that_come_late(replay, report):
    write(when=np.arange(600) * 2.0)
    options = ("data.parquet", "--columns", "a,b,t", "--no-scale")
    at_once = report(*options)
    delayed = [
        report(*options, "--label-delay", *more)
        for more in (("50",), ("100", "--timestamp", "when", "--label-moment", "timestamp"))
    ]
    assert at_once["late"] == {}
    assert delayed[0]["late"] == delayed[1]["late"]
    assert delayed[0]["late"]["answered"] == 600
    assert delayed[0]["accuracy"] == delayed[1]["accuracy"] < at_once["accuracy"]
    assert delayed[0]["dual"] == at_once["dual"]
    assert "late labels" in replay("data.parquet", "--label-delay", "5").out


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], "clipped values        1 far from the mean: a (1)"),
        (["--clip", "8", "--reject", "1e5"], "1 outlier"),
        (["--clip", "none"], None),
    ],
    ids=str,
)
def test_values_far_away(options, shown, replay):
    write(a=np.where(np.arange(600) == 400, 1e9, columns()["a"]))
    out = replay(*SGD, *options).out
    assert (shown or "examples") in out and ("clipped" in out) == (options == [])


def test_bad_rows_by_policy(replay, report):
    write(y=[None if i % 100 == 0 else bool(v) for i, v in enumerate(columns()["y"])])
    assert "6 missing label" in replay("data.parquet").out
    # Another run has another file, and says which.
    assert report("data.parquet")["dead_letters"] == "dead_letters.2.jsonl"
    out = replay("data.parquet", "--checkpoint", "run.ckpt").out
    assert re.search(r"dead letters +run.ckpt.dead_letters.jsonl\n", out)
    for name in ("dead_letters.jsonl", "dead_letters.2.jsonl", "run.ckpt.dead_letters.jsonl"):
        assert len(Path(name).read_text().splitlines()) == 6
    err = replay("data.parquet", "--on-error", "raise", code=1).err
    assert "data.parquet: row 0: the label is missing" in err
    replay("data.parquet", "--on-error", "skip", "--dead-letters", "no.jsonl")
    assert not Path("no.jsonl").exists()


@pytest.mark.parametrize("pace", [[], ["--rate", "1e9"], ["--shuffle-buffer", "100"]])
def test_a_text_that_is_not_utf_8_is_a_dead_letter(pace, report, predict):
    texts = [b"M\xfcller" if i in (0, 7, 599) else b"x" for i in range(600)]
    write(t=pa.array(texts, pa.binary()).view(pa.string()))
    found = report("data.parquet", "--save", "m.svm", *pace)
    assert found["rows"] == 600 and found["learnt"] == 597 and found["bad"] == {"not UTF-8": 3}
    letters = map(json.loads, Path("dead_letters.jsonl").read_text().splitlines())
    found = {letter["position"]["row"]: letter for letter in letters}
    assert found.keys() == {0, 7, 599}
    assert found[7]["reason"] == "text column `t` is not UTF-8: b'M\\xfcller'"
    assert json.loads(found[7]["x"]["payload"])["a"] == columns()["a"][7]
    err = predict("m.svm", "data.parquet", "-o", "out.parquet").err
    assert "600 rows, 3 of them without a prediction" in err
    table = pq.read_table("out.parquet")
    assert table["row"].to_pylist() == list(range(600))
    missing = table["prediction"].is_null().to_numpy()
    assert np.flatnonzero(missing).tolist() == [0, 7, 599]


def test_most_rows_are_bad(replay):
    write(a=np.where(np.arange(600) % 10 == 0, columns()["a"], np.inf))
    reason = r"feature 'a' is inf: .*\(5\d\d of them, first at data.parquet: row 1; see dead_let"
    assert re.search(f"most often: {reason}", replay("data.parquet", code=1).err)
    err = replay("data.parquet", "--max-errors", "100%", "--no-monitor").err
    assert re.search(f"most examples cannot be used: {reason}", err)


def test_the_share_of_bad_rows_that_stops(replay):
    write(y=[None if i % 2 else bool(v) for i, v in enumerate(columns()["y"])])
    skip = ("data.parquet", "--on-error", "skip", "--max-errors")
    for most in ("100%", "1.0", "300"):
        replay(*skip, most)
    for most in ("0%", "0", "299"):
        replay(*skip, most, code=1)
    for wrong in ("101%", "1.5", "-5", "nan", "nan%", "many", "%", "\N{SUPERSCRIPT TWO}"):
        said = replay(*skip, wrong, code=2).err
        assert f"argument --max-errors: {wrong!r}: use a number of examples, as 100," in said


def test_very_many_classes_are_larank_s(replay):
    write(y=np.arange(600) % 51)
    err = replay("data.parquet", "--limit", "300", "--max-classes", "60", "--save", "m.svm").err
    assert "learner: larank, as the target has 51 classes in the first 600 examples" in err
    assert isinstance(streamsvm.load("m.svm"), streamsvm.LaRankClassifier)


def test_the_adaptive_learner_takes_several_classes(replay, report, predict):
    write(y=np.arange(600) % 30)
    out, err = replay("data.parquet", "--save", "m.svm", "--test", "data.parquet")
    assert "as the target has" not in err and "test error" in out
    assert isinstance(streamsvm.load("m.svm"), streamsvm.AdaptiveSVMClassifier)
    predict("m.svm", "data.parquet", "-o", "p.parquet")
    table = pq.read_table("p.parquet").to_pydict()
    assert len(table["row"]) == 600 and set(table["prediction"]) <= set(range(30))
    assert all(0.0 < p <= 1.0 for p in table["probability"])
    err = replay("data.parquet", "--quiet", "--learner", "tracking", code=1).err
    assert "30 classes" in err and err.startswith("streamsvm: ") and err.count("\n") == 1
    for more, learner in (([], "adaptive"), (["--gamma", "1"], "lasvm")):
        assert report("data.parquet", "--positive", "3", *more)["learner"] == learner


@pytest.mark.parametrize("name", [learner.name for learner in registered_learners("rows")])
def test_each_learner_of_rows_is_replayed_to_its_report(name, report):
    write(**{"t": None} | {k: v[:120] for k, v in columns().items() if k != "t"})
    found = report("data.parquet", "--learner", name)
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
def test_a_target_that_is_no_class_is_refused_at_once(target, words, learner, replay):
    write(y=target)
    out, err = replay("data.parquet", "--quiet", *learner, code=1)
    assert words in err and "--max-classes" in err and err.count("\n") == 1 and not out


def test_many_classes_are_learnt_if_asked_for(replay):
    write(y=np.arange(600) % 150)
    replay(*SGD)
    err = replay(*SGD, "--max-classes", "149", code=1).err
    assert "150 different values in 600 rows (0, 1, 2, 3, ...)" in err
    write(y=np.arange(600) / 4)
    replay(*SGD, "--max-classes", "600")


@contextmanager
def files_of_at_most(size):
    """Let the system refuse larger files, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_errors_of_writing_name_the_file(learnt, replay, predict):
    with files_of_at_most(1000):
        err = predict(learnt, "data.parquet", "-o", "out.parquet", code=1).err
    assert err.endswith("out.parquet: cannot be written: File too large\n")
    assert not [name for name in os.listdir() if "out.parquet" in name]
    write(a=np.where(np.arange(600) % 3, columns()["a"], np.inf))
    err = replay("data.parquet", "--dead-letters", "/dev/full", code=1).err
    assert "/dev/full: cannot be written: No space left" in err
    with files_of_at_most(10_000):
        err = replay("data.parquet", "--dead-letters", "letters.jsonl", code=1).err
    assert "letters.jsonl: cannot be written: File too large" in err


@pytest.mark.parametrize("how", ["no folder", "full disk", "bad row"])
def test_what_was_learnt_before_an_error_is_reported_and_saved(how, monkeypatch, replay):
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
    out, err = replay(*SGD, *options, "--save", "m.svm", "--json", "--quiet", code=1)
    report = json.loads(out)
    assert 400 < report["learnt"] < 4000
    assert report["learnt"] == report["model_examples"]
    assert streamsvm.load("m.svm")["SVMSGDClassifier"].n_examples == report["model_examples"]
    assert err.splitlines()[-1] == f"streamsvm: {report['error']}"


def test_the_plots_of_a_report_are_in_examples(monkeypatch, replay):
    pytest.importorskip("matplotlib")
    from matplotlib.axes import Axes

    labels = []
    original = Axes.set_xlabel

    def spy(self, label, *args, **kwargs):
        labels.append(label)
        return original(self, label, *args, **kwargs)

    monkeypatch.setattr(Axes, "set_xlabel", spy)
    for options in ([], ["--no-monitor"]):
        replay(write(), "--report", "rep", *options)
    assert set(labels) == {"examples"}


def test_outputs_follow_links(replay, predict):
    Path("models").mkdir()
    Path("m.svm").symlink_to("models/v1.svm")
    Path("out.parquet").symlink_to("models/p.parquet")
    Path("models/.v1.svm.abcdefgh.partial").touch()  # of a writer that was killed
    replay(write(), "--save", "m.svm")
    predict("m.svm", "data.parquet", "-o", "out.parquet")
    assert sorted(os.listdir("models")) == ["p.parquet", "v1.svm"]
    assert Path("m.svm").is_symlink() and Path("out.parquet").is_symlink()


@pytest.mark.slow
def test_warm(run):
    # All learners are some minutes more: `tests/run/test_warm.py` has what each of them compiles.
    lines = run("warm", "--kernel", "rbf", "--learner", "sgd").err.splitlines()
    for i, kind in enumerate(("dense", "sparse")):
        shown = [line for line in lines if line.endswith(f"SVMSGDClassifier, {kind} rows")]
        assert shown and shown[0].startswith(f"{i} of 2 configurations, ")
    assert lines[-1].startswith("done in ") and lines[-1].endswith(" functions compiled")
    assert not any("polynomial" in line for line in lines)


@pytest.mark.parametrize("how", [pytest.param("Ctrl-C", marks=needs_ctrl_c), "in the background"])
def test_a_signal_ends_with_report_checkpoint_and_model(how):
    """Ctrl-C does; in the background what it sends is ignored, and SIGTERM does."""
    options = ["--learner", "sgd", "--save", "m.svm", "--checkpoint", "c.ckpt", "--rate", "400"]
    before = None if how == "Ctrl-C" else ignore_ctrl_c
    with started(*OF_BANANAS, *options, preexec_fn=before) as process:
        assert any("examples/s" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        if how != "Ctrl-C":
            time.sleep(0.5)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in out and "progressive accuracy" in out
    assert 0 < streamsvm.load("m.svm")["SVMSGDClassifier"].n_examples < 5300
    assert Path("c.ckpt").exists()


def test_sigterm_interrupts_before_and_after_a_run_too():
    with interrupted_by_sigterm():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.slow
def test_a_terminal_sees_a_bar_and_figures():
    import pty

    master, slave = pty.openpty()
    terminal = {"stderr": slave, "stdout": subprocess.DEVNULL}
    terminal["env"] = {"TERM": "xterm", "COLUMNS": "80"}
    process = started(*OF_BANANAS, "--rate", "4000", **terminal)
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
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = started("replay", write(), "--target", "y", "--learner", "sgd", env=cache)
    out, err = process.communicate()
    assert process.returncode == 0
    lines = err.splitlines()
    if streamsvm._compile.JIT:
        assert re.fullmatch(r"compiling for this machine, once: function 1 of about \d+", lines[0])
        assert re.search(r"600 in \d+\.\d\d s: [\d,]+ a second, after [\d.]+ s of comp", out)
        # It is an estimate, and should be one.
        (count,) = {int(line.split()[-1]) for line in lines if "of about" in line}
        shown = max(int(re.search(r"function (\d+)", x)[1]) for x in lines if "function" in x)
        assert shown < 1.5 * count
    assert any("600 examples" in line and "examples/s" in line for line in lines)


def test_rows_with_values_that_must_not_be_missing_have_no_prediction(replay, predict):
    with_gaps = np.where(np.arange(600) % 200 == 7, np.nan, columns()["a"])
    test, out = write("test.parquet", a=with_gaps), "predicted.jsonl"
    options = "--learner", "lasvm", "--missing", "reject", "--save", "m.model", "--json"
    said, err = replay(write(), *options, "--test", test)
    assert "3 examples of test.parquet have no prediction" in err
    assert json.loads(said)["test_rows"] == 600
    err = predict("m.model", test, "-o", out).err
    assert "600 rows, 3 of them without a prediction (a value is not" in err
    lines = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert [r["row"] for r in lines if r["prediction"] is None] == [7, 207, 407]
    assert [r["row"] for r in lines] == list(range(600))


def test_predictions_have_keys_and_probabilities_in_the_format_of_their_name(replay, predict):
    write(key=[f"k{i}" for i in range(600)])
    replay(*SGD, "--exclude", "key", "--save", "m.svm")
    for name in ("out.parquet", "out.csv", "out.jsonl"):
        asked = ["--keep", "key", "--probabilities", "-o", name]
        predict("m.svm", "data.parquet", *asked)
    table = pq.read_table("out.parquet")
    assert table.column_names == [
        "file", "row", "key", "prediction", "decision_function", "probability",
        "probability of False", "probability of True",
    ]  # fmt: skip
    first = table.to_pylist()[0]
    assert first["key"] == "k0"
    assert first["probability of False"] + first["probability of True"] == 1
    assert pyarrow.csv.read_csv("out.csv").to_pylist() == table.to_pylist()
    lines = Path("out.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == table.to_pylist()
    predict("m.svm", "out.csv", "-o", "x.parquet", code=1)  # no features there


def test_a_test_file_of_other_columns_is_refused_or_named(replay):
    write()
    write("text.parquet", a=["x"] * 600)
    write("renamed.parquet", a=None, aa=[1.0] * 600)
    assert "column `a` is text there" in replay(*SGD, "--test", "text.parquet", code=1).err
    errors = replay(*SGD, "--test", "renamed.parquet", "--quiet").err
    assert "not in renamed.parquet, so missing everywhere: a" in errors
    assert "unknown to the model: aa" in errors


def test_labels_that_no_row_has_are_named(replay):
    write()
    write("others.parquet", y=["up"] * 30 + ["left"] * 570)
    err = replay(*SGD, "--test", "others.parquet", "--quiet").err
    assert "rows of others.parquet have labels that the model never" in err
    err = replay(*SGD, "--positive", "pink", "--quiet", code=1).err
    assert "has the label 'pink' of positive=" in err


def test_a_weight_column_weighs_and_is_no_feature(report):
    write("w.csv.parquet", w=[1.0] * 598 + [-1.0, 2.0])
    arguments = ["w.csv.parquet", "--weight", "w", "--learner", "sgd", "--save", "w.svm"]
    assert report(*arguments, "--test", write())["bad"] == {"bad weight": 1}
    assert "w" not in streamsvm.load("w.svm")["SVMSGDClassifier"].feature_names


def test_texts_that_are_numbers_are_told_and_learnt_as_numbers(replay, report, predict):
    price = [f" {a:+.6f}" for a in columns(1200)["a"]]
    changed = columns(1200) | {"a": None, "price": price, "day": ["2024-01-02", None] * 600}
    write(**changed)
    advice = " ".join(report(*SGD)["advice"])
    assert "--parse-numbers price" in advice and "--parse-numbers day" in advice
    changed["price"][1100] = "cheap"
    write(**changed)
    options = ["--parse-numbers", "--save", "n.svm", "--test", "data.parquet", "--checkpoint", "c"]
    found = report(*SGD, *options)
    assert found["bad"] == {"no number": 1} and found["test_rows"] == 1200
    assert not found["number_texts"]
    names = set(streamsvm.load("n.svm")["SVMSGDClassifier"].feature_names)
    assert names == {"b", "price", "day", "t=x", "t=y"}
    predict("n.svm", "data.parquet", "-o", "o.parquet", "--parse-numbers")
    assert predictions("o.parquet").count(None) == 1
    predict("n.svm", "data.parquet", "-o", "o.parquet", code=1)
    err = replay(*SGD, "--parse-numbers", "price", "--checkpoint", "c", code=1).err
    assert "parse_numbers=['day', 'price'], this source has" in err
