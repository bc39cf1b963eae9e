"""What somebody meets in the first hour: messages, columns without values, evaluation."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamsvm.cli.main import main


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, n=300, empty=True):
    draws = np.random.default_rng(0)
    a, b = draws.normal(size=(2, n))
    table = {"a": a, "b": b, "y": np.where(a > 0, "yes", "no")}
    if empty:
        table["nothing"] = pa.nulls(n, pa.float64())
    pq.write_table(pa.table(table), name)
    return name


def output(capsys, *arguments, code=0):
    assert main([*arguments]) == code
    out, err = capsys.readouterr()
    return out + err


def test_columns_that_hold_nothing_are_named(capsys):
    write("data.parquet")
    found = output(capsys, "replay", "data.parquet", "--target", "y", "--save", "m.svm")
    assert "all of nothing" in " ".join(found.split())
    test = ("--test", "data.parquet", "--columns", "a,nothing")
    found = output(capsys, "replay", "data.parquet", "--target", "y", *test)
    assert "without any value in data.parquet: nothing" in found


def test_predict_evaluates_where_there_are_labels(capsys):
    write("data.parquet")
    output(capsys, "replay", "data.parquet", "--target", "y", "--save", "m.svm")
    found = output(capsys, "predict", "m.svm", "data.parquet", "-o", "p.parquet", "--target", "y")
    predicted = np.array(pq.read_table("p.parquet")["prediction"].to_pylist())
    truth = np.array(pq.read_table("data.parquet")["y"].to_pylist())
    assert f"test error  {np.mean(predicted != truth):.2%} of 300 examples" in found
    found = output(
        capsys, "predict", "m.svm", "data.parquet", "-o", "p.parquet", "--positive", "yes", code=2
    )
    assert "--positive needs --target" in found
    found = output(capsys, "predict", "m.svm", "data.parquet", "--target", "y")
    assert f"test error  {np.mean(predicted != truth):.2%} of 300 examples" in found
    found = output(capsys, "predict", "m.svm", "data.parquet", code=2)
    assert "name --output OUT for the predictions, or --target" in found
    wanted = ("--target", "y", "--probabilities")
    found = output(capsys, "predict", "m.svm", "data.parquet", *wanted, code=2)
    assert "name --output OUT" in found


@pytest.mark.parametrize(
    ("command", "use"), [("evaluate", "predict MODEL FILE --target"), ("fit", "replay FILE")]
)
def test_commands_of_other_tools_are_answered_by_those_of_this_one(capsys, command, use):
    with pytest.raises(SystemExit):
        main([command, "x"])
    assert f"unknown command '{command}': use `{use}" in capsys.readouterr().err


def test_a_limit_below_the_checkpoint_is_said(capsys):
    write("data.parquet")
    arguments = ("replay", "data.parquet", "--target", "y", "--checkpoint", "c.svm", "--limit")
    output(capsys, *arguments, "200")
    found = " ".join(output(capsys, *arguments, "100").split())
    assert "nothing more was read: --limit 100 counts from the start, raise it" in found
    output(capsys, *arguments, "300")
    found = " ".join(output(capsys, *arguments, "400").split())
    assert "nothing more was read: there is nothing new" in found


def test_messages_speak_of_one_column_and_of_all_formats(capsys):
    write("data.parquet")
    found = output(capsys, "replay", "data.parquet", "--target", "y", "--columns", "bb", code=1)
    assert "feature `bb` is not a column of" in found
    found = output(capsys, "replay", "absent.csv", "--target", "y", code=1)
    assert "`absent.csv` does not exist" in found and ".jsonl" in found
    found = output(capsys, "replay", ".", "--target", "z", code=1)
    assert "target `z` is not a column of `.`" in found
    Path("rows.txt").write_text("a,y\n1,2\n")
    found = output(capsys, "replay", "rows.txt", "--target", "y", code=1)
    assert "names of other formats end in" in found and ".csv" in found


def test_drifts_and_gamma_are_said_once(capsys):
    write("data.parquet", 2000, empty=False)
    found = output(capsys, "replay", "data.parquet", "--target", "y", "--report", "folder")
    assert found.count("drifts") == 1 and "  objective" not in found
    # That of the first model, and of the model in use if it is another one.
    assert found.count("gamma ") <= 2 and "RBF" not in found
    report = json.loads(Path("folder/report.json").read_text())
    assert "drifts" in json.dumps(report)
