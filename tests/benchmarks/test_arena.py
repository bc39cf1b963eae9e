"""The arena: its own functions."""

from __future__ import annotations

import shutil

import pytest

from benchmarks import arena, moa


def test_it_says_what_moa_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="needs Java 17 or newer, and Maven"):
        moa.check()


def test_figures() -> None:
    found = arena.figures([1, 1, 1, 0], [1, 1, 0, 0])
    shares = {"accuracy": 0.75, "kappa": 0.5, "gmean": (2.0 / 3.0) ** 0.5, "f1": 2.0 / 3.0}
    assert found == pytest.approx({name: 100.0 * share for name, share in shares.items()})


def test_a_learner_that_takes_too_long_is_left_out() -> None:
    events = [({"a": 1.0}, True)] * 50
    assert arena.measured("last label", events, 60.0) is not None
    assert arena.measured("last label", events, 0.0) is None


def test_means_leave_a_column_empty_that_has_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    def cell(accuracy: float) -> dict[str, float]:
        return {"accuracy": accuracy, "us": 2.0}

    found = {"x": {"a": cell(80.0), "b": cell(90.0)}, "y": {"a": cell(60.0), "b": None}}
    arena._means(found, ["a", "b"])
    assert capsys.readouterr().out.splitlines() == [
        "| mean of 2 | 70.0 |  |",
        "| mean rank among these 1 | 1.00 |  |",
        "| us an event, mean | 2 |  |",
        "| mean of 1 | 80.0 | 90.0 |",
        "| mean rank among these 2 | 2.00 | 1.00 |",
        "| us an event, mean | 2 | 2 |",
    ]


def test_times_are_compared_on_the_streams_that_both_took(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = {"adaptive": {"us": 200.0}, "LASVM or LaRank": {"us": 100.0}, "ARF": None}
    found = {"x": one, "y": one | {"adaptive": {"us": 90.0}, "ARF": {"us": 900.0}}}
    arena._times(found)
    assert capsys.readouterr().out.splitlines() == [
        "adaptive takes 1.45 times as long as LASVM or LaRank in the mean, at most 2.00 times (x)",
        "adaptive takes 0.10 times as long as ARF in the mean, at most 0.10 times (y)",
    ]
