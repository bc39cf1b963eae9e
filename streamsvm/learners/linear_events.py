"""The short way of one dense event of two classes to the weights and back.

Plain arrays only: each costs 40 nanoseconds on the way from Python, where an object that holds them
all costs ten times that.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.learners.calibration import update_calibration
from streamsvm.learners.packing import narrow
from streamsvm.solvers import sgd, sgdqn
from streamsvm.solvers.linear_state import LinearState, Schedule, margin_of


@compiled
def _schedule(numbers):  # type: ignore[no-untyped-def]
    return Schedule(
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]
    )


@compiled
def margin(values, row, weights, info, averaged):  # type: ignore[no-untyped-def]
    """Return the margin of an event, float64 (d,); NaN if a value is not finite.

    `row` is scratch, float32 (1, d).
    """
    if not narrow(values, row[0]):
        return np.nan
    return margin_of(LinearState(weights, info), row, 0, 0, averaged)


@compiled
def learn(values, row, weights, info, y, schedule, calibration):  # type: ignore[no-untyped-def]
    """Learn an event with sign y; return False, and change nothing, if a value is not finite.

    Parameters
    ----------
    values, row, weights, info
        As in `margin`.
    y
        float64 (3,): the sign; its weight; 0 for SGD, else 1 for SGD-QN or 2 with the mean of
        inverses. Then scratch, float64 (1,) more.
    schedule
        float64 (7,): a `Schedule`.
    calibration
        See `calibration`.

    """
    if not narrow(values, row[0]):
        return False
    state, own = LinearState(weights, info), _schedule(schedule)
    if y[2] == 0.0:
        f = sgd.learn_row(state, row, 0, 0, y[0], y[1], own)
    else:
        f = sgdqn.learn_row(state, row, 0, 0, y[0], y[1], own, y[2] == 2.0)
    y[3] = f
    update_calibration(calibration, y[3:4], y[0:1])
    return True
