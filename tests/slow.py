"""Marks for what is slow: `pytest` leaves it out, `pytest -m slow` runs it."""

from pathlib import Path

import pytest

slow = pytest.mark.slow


def compiles(what):
    """Return the mark `slow` for what compiles this for few tests: those run in one part."""
    return pytest.mark.slow(what)


def slow_but(cases, *kept, compiling=None):
    """Return the cases of one argument; all but those that are kept are slow.

    `compiling` is what they compile (see `compiles`), or a function that returns it for a case.
    """

    def mark(case):
        what = compiling(case) if callable(compiling) else compiling
        return slow if what is None else compiles(what)

    return [
        case
        if any(case is one or case == one for one in kept)
        else pytest.param(case, marks=mark(case))
        for case in cases
    ]


of_tracking_bounds = compiles("TrackingSVMClassifier bounds")
"""The mark of budgets and reservoirs of tracking; windows are tried always."""

LONG = frozenset((Path(__file__).parent / "long_cases.txt").read_text().splitlines())
"""Tests of a second to 90, where others, or other cases, ask much the same: they are slow, too."""
