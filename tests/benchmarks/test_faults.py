"""The results of faults have the table of the command that makes them."""

from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")

from benchmarks.faults import __main__ as faults

PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "faults.md"


def test_the_page_has_each_fault_that_is_tried():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index("| what goes wrong | what happens |") + 2
    assert lines[start : start + len(faults.FAULTS)] == [one.line for one in faults.FAULTS]
    assert not any(lines[start + len(faults.FAULTS) :])


@pytest.mark.parametrize("words", ["a value of 1e100", "another file of the same name"])
def test_the_command_makes_them(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["faults", words])
    assert faults.main() == 0
    assert words in capsys.readouterr().out
