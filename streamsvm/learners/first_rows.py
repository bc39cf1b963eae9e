"""The first examples of a stream, kept until the rate of a linear learner is chosen by them.

The 10 % rule (thesis 2010, 3.2.3): a pass over some examples with several values of t0; the one
with the lowest primal objective is taken. Here the examples are the first 1, 2, 4, ..., 1024, and
the learner goes on as if it had had that t0 from the start: its weights become those of the pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled
from streamsvm.losses import values_of
from streamsvm.solvers.linear_state import LinearState, Schedule, margins_of, objective
from streamsvm.support.rows import Rows, SparseRows, joined, shape

LAST = 1024
"""How many examples are kept at most."""

_FEW = 8
_STEPS = range(-12, 4)
"""Rates that are tried: 2^k over the mean of ||x||^2."""


class FirstRows:
    """Rows, what they are learnt as, and their weights."""

    def __init__(self) -> None:
        self._blocks: list[Rows] = []
        self._y: list[np.ndarray] = []
        self._weight: list[np.ndarray] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        listed = (b if isinstance(b, SparseRows) else (b,) for b in self._blocks)
        return sum(part.nbytes for b in listed for part in b if isinstance(part, np.ndarray))

    def add(self, x: Rows, y: np.ndarray, weight: np.ndarray) -> None:
        """Keep rows: these arrays themselves."""
        self._blocks.append(x)
        self._y.append(y)
        self._weight.append(weight)

    def all(self, d: int) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return all rows, with d features, and what belongs to them."""
        if not self._y:
            return np.zeros((0, d), np.float32), np.zeros(0), np.zeros(0)
        found = (joined(self._blocks, d), np.concatenate(self._y), np.concatenate(self._weight))
        # Fewer blocks for the next time.
        self._blocks, self._y, self._weight = [found[0]], [found[1]], [found[2]]
        return found

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change what rows are learnt as."""
        self._y = [change(y) for y in self._y]


class Trial(NamedTuple):
    """What became of a pass."""

    cost: float  # the primal objective over the rows
    schedule: Schedule
    state: LinearState


@compiled
def _sum_of_squares(values):  # type: ignore[no-untyped-def]
    # In the order of the values, so that zeros do not change a bit.
    total = 0.0
    for t in range(values.size):
        total += np.float64(values[t]) * np.float64(values[t])
    return total


def mean_square(x: Rows) -> float:
    """Return the mean of ||x||^2 over rows; 1 if all are 0."""
    if isinstance(x, SparseRows):
        total = _sum_of_squares(x.values[int(x.start[0]) : int(x.start[-1])])
    else:
        total = _sum_of_squares(x.ravel())
    return total / shape(x)[0] if total > 0.0 else 1.0


def best_of(
    x: Rows,
    y: np.ndarray,
    weight: np.ndarray,
    schedule: Schedule,
    new_state: Callable[[], LinearState],
    learn: Callable[[LinearState, Rows, np.ndarray, np.ndarray, Schedule, np.ndarray], None],
) -> Trial:
    """Return the pass over the rows, from nothing, whose t0 gave the lowest primal objective.

    Parameters
    ----------
    x, y, weight
        Rows, what they are learnt as, weights.
    schedule
        The schedule but for its t0.
    new_state, learn
        Give an empty state; learn rows, and write their margins.

    """
    square = mean_square(x)
    best: Trial | None = None
    for k in _STEPS if len(y) >= _FEW else (0,):
        t0 = max(1.0, square / (2.0**k * schedule.lam))
        own = schedule._replace(t0=t0)
        state = new_state()
        margins = np.zeros((len(y), state.info.shape[0]))
        learn(state, x, y, weight, own, margins)
        cost = primal(state, x, y, weight, own)
        # Of equals the slower rate.
        if best is None or cost < best.cost:
            best = Trial(cost, own, state)
    assert best is not None
    return best


def primal(
    state: LinearState, x: Rows, y: np.ndarray, weight: np.ndarray, schedule: Schedule
) -> float:
    """Return the primal objective over rows: lambda / 2 ||w||^2 + mean of weight times loss."""
    outputs = state.info.shape[0]
    margins = np.zeros((len(y), outputs))
    margins_of(state, x, schedule, margins)
    total, losses = 0.0, np.zeros(len(y))
    for o in range(outputs):
        sides = y if outputs == 1 else np.where(y == o, 1.0, -1.0)
        values_of(schedule.loss, sides * margins[:, o], losses)
        total += float(weight @ losses)
    return float(objective(state, schedule, total / max(1, len(y))))
