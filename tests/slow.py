"""Marks for what is slow: `pytest` leaves it out, `pytest -m slow` runs it."""

import pytest

slow = pytest.mark.slow


def slow_but(cases, *kept):
    """Return the cases of one argument; all but those that are kept are slow."""
    return [
        case if any(case is one or case == one for one in kept) else pytest.param(case, marks=slow)
        for case in cases
    ]
