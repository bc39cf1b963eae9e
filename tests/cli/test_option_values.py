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

from streamsvm.cli import history, running
from streamsvm.cli import report as report_of_command
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
def _data(_folder):
    Path("folder").mkdir()
    n = 12
    table = {"a": np.arange(n) * 1.0, "b": np.arange(n) % 5 * 1.0, "y": np.arange(n) % 2 > 0}
    pq.write_table(pa.table(table), "data.parquet")


@pytest.fixture
def code_of(capsys):
    """Run the command; its exit code, with an error of one line if it is not 0."""

    def run(arguments):
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

    return run


REPLAYED = list(options("replay", False))
SOME = [action for action in REPLAYED if action.dest not in LEARNERS]


@pytest.mark.parametrize("action", slow_but(REPLAYED, *SOME), ids=lambda action: action.dest)
def test_numbers(action, code_of):
    name = action.dest
    more = ["--learner", LEARNERS[name]] if name in LEARNERS else []
    if name in ("gamma", "degree", "coef0"):
        more = ["--kernel", "polynomial"]
    for value in NUMBERS:
        endless = name in ("epochs", "K", "candidates", "max_reprocess", "reprocess", "iterations")
        if endless and value == str(10**20):
            continue
        given = ["replay", "data.parquet", "--target", "y", "--quiet", *NEEDED.get(name, []), *more]
        code = code_of([*given, f"{action.option_strings[-1]}={value}"])
        if value in ("text", ""):
            # A learner of sentences may refuse the file first: it has no lists.
            is_of_sentences = LEARNERS.get(name, "").startswith("sequence")
            assert code == 2 or (code == 1 and is_of_sentences), (name, value)


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
def test_paths(command, code_of):
    assert code_of(["replay", "data.parquet", "--target", "y", "--save", "m.svm"]) == 0
    actions = list(options(command, True))
    assert len(actions) >= 3
    for action in actions:
        for value in PATHS:
            more = [] if command == "predict" else ["--quiet"]
            code = code_of([*arguments_with(command, action, value), *more])
            if not value or "\0" in value:
                assert code == 2, (action.dest, value)
            is_output = action.dest in ("save", "checkpoint", "report", "output", "dead_letters")
            if is_output and value in ("/proc/x", "nowhere/x", "data.parquet/x"):
                assert code == 1, (action.dest, value)
            if action.dest in ("save", "checkpoint", "output") and value in (".", "/dev/null"):
                assert code == 2, (action.dest, value)
    assert Path("/dev/null").is_char_device() and not Path("nowhere").exists()


@pytest.mark.parametrize("value", [*PATHS, "data.parquet", "3.json"])
def test_avro_schemas(value, code_of):
    Path("3.json").write_text("3")
    given = ["consume", "--brokers", "b", "--topic", "t", "--target", "y", "--decode", "avro"]
    assert code_of([*given, f"--avro-schema={value}"]) in (1, 2)


@pytest.mark.parametrize(
    ("failing", "error", "code", "said"),
    [
        (["execute"], MemoryError("Unable to allocate 373 GiB"), 1, "Unable to allocate 373 GiB"),
        (["save_model"], OSError("the disk is full"), 1, "the disk is full"),
        (["write"], OSError("the disk is full"), 1, "the disk is full"),
        (["save_model", "write"], OSError("the disk is full"), 1, "the disk is full"),
        (["write"], KeyboardInterrupt(), 130, ""),
    ],
)
def test_whatever_fails_in_the_end_the_report_is_printed(
    failing, error, code, said, replay, monkeypatch
):
    def fail(*_, **__):
        raise error

    for name in failing:
        of = {"execute": running.Run, "save_model": report_of_command, "write": history}[name]
        monkeypatch.setattr(of, name, fail)
    more = ["--save", "m.svm", "--report", "rep", "--json", "--quiet"]
    out, err = replay("data.parquet", *more, code=code)
    assert failing == ["execute"] or json.loads(out)["learnt"] == 12
    if code == 1:
        assert [line.endswith(said) for line in err.splitlines()] == [True] * len(failing)
        assert err.startswith("streamsvm: ")
        assert os.path.exists("m.svm") == (failing == ["write"])
        assert os.path.exists("rep/index.html") == (failing == ["save_model"])


def test_labels_that_no_file_of_a_model_holds_can_be_learnt(replay):
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")[np.arange(3000) % 2]
    table = pa.table({"a": np.arange(3000) * 1.0, "y": days})
    pq.write_table(table, "data.parquet")
    pq.write_table(table.set_column(1, "y", pa.array(days + 365)), "other.parquet")
    out, err = replay("data.parquet", "--test", "other.parquet")
    assert "2020-01-01 (1,500" in out and "never learnt (2020-12-31, 2021-01-01)" in err


def test_class_weights_are_given_by_label(report):
    found = report("data.parquet", "--class-weight", "True=10")
    assert "class_weight={True: 10.0}" in found["parameters"]
