"""What somebody meets in the first hour: columns without values, a limit, what is said once."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.cli.conftest import columns, write


def said(result):
    return " ".join("".join(result).split())


def test_columns_that_hold_nothing_are_named(replay):
    write(nothing=pa.nulls(600, pa.float64()))
    assert "all of nothing" in said(replay("data.parquet", "--save", "m.svm"))
    test = ("--test", "data.parquet", "--columns", "a,nothing")
    found = said(replay("data.parquet", *test))
    assert "without any value in data.parquet: nothing" in found


def test_a_limit_below_the_checkpoint_is_said(replay):
    arguments = (write(), "--checkpoint", "c.svm", "--limit")
    replay(*arguments, "400")
    found = said(replay(*arguments, "200"))
    assert "nothing more was read: --limit 200 counts from the start, raise it" in found
    replay(*arguments, "600")
    found = said(replay(*arguments, "800"))
    assert "nothing more was read: there is nothing new" in found


def test_drifts_and_gamma_are_said_once(replay):
    a = columns(2000)["a"]
    write(**columns(2000) | {"t": None, "y": np.where(a > 0, "yes", "no")})
    found = "".join(replay("data.parquet", "--report", "folder"))
    assert found.count("drifts") == 1 and "  objective" not in found
    # That of the first model, and of the model in use if it is another one.
    assert found.count("gamma ") <= 2 and "RBF" not in found
    assert "drifts" in json.dumps(json.loads(Path("folder/report.json").read_text()))
