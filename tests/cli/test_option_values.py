"""Every option of every subcommand with values at and beyond the ends: no traceback, ever.

The options come from the parsers, so that a new one is tried without being named here.
"""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamsvm.cli import history, report, running
from streamsvm.cli.learners import ADDED_BY_HAND
from streamsvm.cli.main import main
from streamsvm.cli.parameters import parameters
from streamsvm.cli.parser import names as reads_names
from streamsvm.cli.parser import path as reads_path
from tests.cli.write_reference import subcommands
from tests.slow import slow_but

NUMBERS = ("0", "-1", "nan", "inf", "1e400", str(10**20), "text", "")
PATHS = ("", ".", "folder", "/dev/null", "/proc/x", "nowhere/x", "data.parquet/x", "a\0b")
COMMANDS = subcommands()
LEARNERS = {found.name: next(iter(found.texts)) for found in parameters(ADDED_BY_HAND)}
NEEDED = {"shuffle_buffer": ["--seed", "1"], "speed": ["--timestamp", "a"]}


def options(command, are_paths):
    for action in COMMANDS[command]._actions:
        takes_more = action.type not in (None, reads_names)
        if takes_more and (action.type is reads_path) is are_paths:
            yield action


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    n = 12
    table = {"a": np.arange(n) * 1.0, "b": np.arange(n) % 5 * 1.0, "y": np.arange(n) % 2 > 0}
    pq.write_table(pa.table(table), "data.parquet")


def code_of(arguments, capsys):
    """Run the command; its exit code, with an error of one line if it is not 0."""
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    err = capsys.readouterr().err
    assert code in (0, 1, 2), arguments
    if code:
        said = [line for line in err.splitlines() if line.startswith("streamsvm")]
        assert len(said) == 1 and "Traceback" not in err, (arguments, err)
        assert "Errno" not in err, (arguments, err)
    return code


REPLAYED = list(options("replay", False))
SOME = [action for action in REPLAYED if action.dest not in LEARNERS]


@pytest.mark.parametrize("action", slow_but(REPLAYED, *SOME), ids=lambda action: action.dest)
def test_numbers(action, capsys):
    name = action.dest
    more = ["--learner", LEARNERS[name]] if name in LEARNERS else []
    if name in ("gamma", "degree", "coef0"):
        more = ["--kernel", "polynomial"]
    for value in NUMBERS:
        endless = name in ("epochs", "K", "candidates", "max_reprocess", "reprocess", "iterations")
        if endless and value == str(10**20):
            continue
        given = ["replay", "data.parquet", "--target", "y", "--quiet", *NEEDED.get(name, []), *more]
        code = code_of([*given, f"{action.option_strings[-1]}={value}"], capsys)
        if value in ("text", ""):
            # A learner of sentences may refuse the file first: it has no lists.
            is_of_sentences = LEARNERS.get(name, "").startswith("sequence")
            assert code == 2 or (code == 1 and is_of_sentences), (name, value)


@pytest.mark.parametrize(
    "wrong",
    [
        "--rate 0", "--rate nan", "--rate -1", "--rate inf", "--seed -1", "--shuffle-buffer -1",
        "--metrics-port 99999", "--hashing 99999999999", "--window 99999999999999999999",
        "--learner tracking --window 99999999999999999999", "--degree 0", "--limit 0",
    ],
)  # fmt: skip
def test_numbers_that_are_wrong_arguments(wrong, capsys):
    given = ["replay", "data.parquet", "--target", "y", *wrong.split()]
    assert code_of(given, capsys) == 2


def test_too_little_memory_is_one_line(capsys, monkeypatch):
    def run(*_, **__):
        raise MemoryError("Unable to allocate 373 GiB")

    monkeypatch.setattr(running.Run, "execute", run)
    assert code_of(["replay", "data.parquet", "--target", "y", "--quiet"], capsys) == 1


@pytest.mark.parametrize("action", options("consume", False), ids=lambda action: action.dest)
def test_numbers_of_consume_are_refused_by_the_same_words(action, capsys):
    # Parsed only: a run needs a broker.
    values = [value for value in NUMBERS if value not in ("0", str(10**20))]
    refused = 0
    for value in values:
        given = ["--brokers", "b", "--topic", "t", "--target", "y"]
        try:
            COMMANDS["consume"].parse_args([*given, f"{action.option_strings[-1]}={value}"])
        except SystemExit as end:
            refused += 1
            assert end.code == 2 and capsys.readouterr().err.count("\n") == 2
    assert refused == len(values) or action.dest in LEARNERS or action.dest in ("gamma", "coef0")


def arguments_with(command, action, value):
    """Return a command line that is right but for the value of one path."""
    given = {
        "replay": {"file": "data.parquet", "--target": "y"},
        "predict": {"model": "m.svm", "file": "data.parquet", "--output": "out.parquet"},
    }[command]
    name = action.option_strings[-1] if action.option_strings else action.dest
    given = {**given, name: value}
    return [
        command,
        *(v for k, v in given.items() if not k.startswith("--")),
        *(f"{k}={v}" for k, v in given.items() if k.startswith("--")),
    ]


@pytest.mark.parametrize("command", ["replay", "predict"])
def test_paths(command, capsys, monkeypatch):
    assert main(["replay", "data.parquet", "--target", "y", "--save", "m.svm"]) == 0
    actions = list(options(command, True))
    assert len(actions) >= 3
    capsys.readouterr()
    for action in actions:
        for value in PATHS:
            more = [] if command == "predict" else ["--quiet"]
            code = code_of([*arguments_with(command, action, value), *more], capsys)
            if not value or "\0" in value:
                assert code == 2, (action.dest, value)
            is_output = action.dest in ("save", "checkpoint", "report", "output", "dead_letters")
            if is_output and value in ("/proc/x", "nowhere/x", "data.parquet/x"):
                assert code == 1, (action.dest, value)
            if action.dest in ("save", "checkpoint", "output") and value in (".", "/dev/null"):
                assert code == 2, (action.dest, value)
    assert Path("/dev/null").is_char_device() and not Path("nowhere").exists()


@pytest.mark.parametrize("value", [*PATHS, "data.parquet", "3.json"])
def test_avro_schemas(value, capsys):
    Path("3.json").write_text("3")
    given = ["consume", "--brokers", "b", "--topic", "t", "--target", "y", "--decode", "avro"]
    assert code_of([*given, f"--avro-schema={value}"], capsys) in (1, 2)


def test_outputs_are_tried_before_the_run(capsys, monkeypatch):
    monkeypatch.setattr(running, "Run", None)
    Path("a_file").touch()
    for option, value, said in (
        ("--report", "a_file", "a file of that name is there; name a folder"),
        ("--report", "/proc/x", "cannot write in /proc"),
        ("--save", "folder", "is a folder: name a file"),
        ("--save", "/dev/null", "is not a regular file"),
        ("--checkpoint", ".", "is a folder: name a file"),
        ("--dead-letters", "folder", "is a folder: name a file"),
        ("--dead-letters", "nowhere/x", "make it first"),
    ):
        assert main(["replay", "data.parquet", "--target", "y", option, value]) in (1, 2)
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("failing", ["save", "report", "both"])
def test_whatever_fails_in_the_end_the_report_is_printed(failing, capsys, monkeypatch):
    def fail(*_):
        raise OSError("the disk is full")

    if failing != "report":
        monkeypatch.setattr(report, "save_model", fail)
    if failing != "save":
        monkeypatch.setattr(history, "write", fail)
    more = ["--save", "m.svm", "--report", "rep", "--json", "--quiet"]
    assert main(["replay", "data.parquet", "--target", "y", *more]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["learnt"] == 12
    assert err == "streamsvm: the disk is full\n" * (2 if failing == "both" else 1)
    assert os.path.exists("m.svm") == (failing == "report")
    assert os.path.exists("rep/index.html") == (failing == "save")


def test_an_interruption_in_the_end_prints_the_report(capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(history, "write", stop)
    assert main(["replay", "data.parquet", "--target", "y", "--report", "rep"]) == 130
    assert "progressive accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--save", "--checkpoint"])
def test_labels_that_cannot_be_saved_are_refused_at_once(option, capsys):
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    n = 3000
    table = pa.table({"a": np.arange(n) * 1.0, "y": days[np.arange(n) % 2]})
    pq.write_table(table, "data.parquet")
    others = table.set_column(1, "y", pa.array(days[np.arange(n) % 2] + 365))
    pq.write_table(others, "other.parquet")
    assert main(["replay", "data.parquet", "--target", "y", "--test", "other.parquet"]) == 0
    out, err = capsys.readouterr()
    assert "2020-01-01 (1,500" in out and "never learnt (2020-12-31, 2021-01-01)" in err
    assert main(["replay", "data.parquet", "--target", "y", option, "m.svm"]) == 1
    out, err = capsys.readouterr()
    assert "the label 2020-01-01 of type date cannot be saved" in err and "examples/s" not in err
    assert not out


@pytest.mark.parametrize(
    "wrong",
    [
        ("--kernel", "linear", "--gamma", "2"),
        ("--degree", "4"),
        ("--parse-numbers", ""),
        ("--class-weight", "True=heavy"),
        ("--label-delay", "5", "--label-moment", "absent"),
    ],
    ids=" ".join,
)
def test_options_that_would_have_no_effect_are_refused(wrong, capsys):
    assert code_of(["replay", "data.parquet", "--target", "y", "--quiet", *wrong], capsys) == 2


def test_class_weights_are_given_by_label(capsys):
    arguments = ["replay", "data.parquet", "--target", "y", "--json", "--class-weight", "True=10"]
    assert main(arguments) == 0
    assert "class_weight={True: 10.0}" in json.loads(capsys.readouterr().out)["parameters"]
