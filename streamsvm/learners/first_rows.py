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
from streamsvm.losses import value
from streamsvm.solvers import linear_state, sgd, sgdqn
from streamsvm.solvers.linear_state import (
    LinearState,
    Schedule,
    margin_of,
    objective,
    sign_of,
)
from streamsvm.support.rows import Rows, SparseRows, count, joined, shape

LAST = 1024
"""How many examples are kept at most."""

_FEW = 8
_STEPS = range(-12, 4)
"""Rates that are tried: 2^k over the mean of ||x||^2."""


class _Event(NamedTuple):
    columns: bytes | None  # int32; None: the row is dense
    values: bytes  # float32
    d: int
    y: float
    weight: float


class FirstRows:
    """Rows, what they are learnt as, and their weights."""

    def __init__(self) -> None:
        self._blocks: list[Rows] = []
        self._y: list[np.ndarray] = []
        self._weight: list[np.ndarray] = []
        # Events, not a block yet: an array each would take longer than learning them.
        self._events: list[_Event] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        listed = (b if isinstance(b, SparseRows) else (b,) for b in self._blocks)
        blocks = sum(part.nbytes for b in listed for part in b if isinstance(part, np.ndarray))
        return blocks + sum(len(event.columns or b"") + len(event.values) for event in self._events)

    def add(self, x: Rows, y: np.ndarray, weight: np.ndarray) -> None:
        """Keep rows: these arrays themselves."""
        self._gather()
        self._blocks.append(x)
        self._y.append(y)
        self._weight.append(weight)

    def add_event(self, x: Rows, y: float, weight: float) -> None:
        """Keep a copy of one row; of the kind and width of the last, but after `add`."""
        if isinstance(x, SparseRows):
            event = _Event(x.columns.tobytes(), x.values.tobytes(), x.d, y, weight)
        else:
            event = _Event(None, x.tobytes(), x.shape[1], y, weight)
        self._events.append(event)

    def _gather(self) -> None:
        """Make a block of the events."""
        if not self._events:
            return
        columns, values, widths, y, weight = zip(*self._events, strict=True)
        self._events = []
        content = np.frombuffer(b"".join(values), np.float32)
        if columns[0] is not None:
            start = np.cumsum([0, *(len(part) // 4 for part in columns)], dtype=np.int64)
            places = np.frombuffer(b"".join(columns), np.int32)
            self._blocks.append(SparseRows(start, places, content, max(widths)))
        else:
            self._blocks.append(content.reshape(len(y), widths[0]))
        self._y.append(np.array(y))
        self._weight.append(np.array(weight))

    def all(self, d: int) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return all rows, with d features, and what belongs to them."""
        self._gather()
        if not self._y:
            return np.zeros((0, d), np.float32), np.zeros(0), np.zeros(0)
        found = (joined(self._blocks, d), np.concatenate(self._y), np.concatenate(self._weight))
        # Fewer blocks for the next time.
        self._blocks, self._y, self._weight = [found[0]], [found[1]], [found[2]]
        return found

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change what rows are learnt as."""
        self._gather()
        self._y = [change(y) for y in self._y]


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


@compiled
def primal(state, x, y, weight, schedule):  # type: ignore[no-untyped-def]
    """Return the primal objective over rows: lambda / 2 ||w||^2 + mean of weight times loss.

    Parameters
    ----------
    state, x, y, weight, schedule
        As in `sgd.learn_rows`.

    """
    outputs, losses = state.info.shape[0], 0.0
    for r in range(count(x)):
        for o in range(outputs):
            side = sign_of(y[r], o, outputs)
            s = side * margin_of(state, x, r, o, schedule)
            losses += weight[r] * value(schedule.loss, s)
    return objective(state, schedule, losses / max(1, count(x)))


@compiled
def _begin_again(state, second):  # type: ignore[no-untyped-def]
    state.weights[:] = 0.0
    state.weights[:, 1:] = second
    state.info[:] = 0.0
    for o in range(state.info.shape[0]):
        state.info[o, linear_state.SCALE] = state.info[o, linear_state.P] = 1.0


@compiled
def _best(state, trial, second, x, y, weight, s, t0s, is_qn):  # type: ignore[no-untyped-def]
    """Make the state that of the best pass, with a second one to try; return which t0 it had."""
    margins = np.empty((count(x), state.info.shape[0]))
    best, least = 0, 0.0
    for k in range(t0s.size):
        own = Schedule(s.loss, s.lam, t0s[k], s.power, s.skip, s.averaged, s.choose, s.bias_rate)
        _begin_again(trial, second)
        if is_qn:
            sgdqn.learn_rows(trial, x, y, weight, own, margins)
        else:
            sgd.learn_rows(trial, x, y, weight, own, margins)
        cost = primal(trial, x, y, weight, own)
        # Of equals the slower rate.
        if k == 0 or cost < least:
            best, least = k, cost
            state.weights[:], state.info[:] = trial.weights, trial.info
    return best


def best_of(
    x: Rows,
    y: np.ndarray,
    weight: np.ndarray,
    schedule: Schedule,
    new_state: Callable[[], LinearState],
    second: float | None,
    is_qn: bool,
) -> tuple[Schedule, LinearState]:
    """Return the schedule whose t0 gave the lowest primal objective after a pass, and its state.

    Parameters
    ----------
    x, y, weight
        Rows, what they are learnt as, weights.
    schedule
        The schedule but for its t0.
    new_state, second
        Gives an empty state; what its second parts are filled with, if there are any.
    is_qn
        Whether to learn as SGD-QN, not as SGD.

    """
    square = mean_square(x)
    steps = _STEPS if len(y) >= _FEW else (0,)
    t0s = np.array([max(1.0, square / (2.0**k * schedule.lam)) for k in steps])
    state = new_state()
    # SGD leaves the weights of other features alone, and so all but few of 2^18 hashed ones.
    narrow = None if is_qn or schedule.skip <= 0.0 else _narrowed(x, state.weights.shape[2])
    if narrow is None:
        best = _best(state, new_state(), second or 0.0, x, y, weight, schedule, t0s, is_qn)
    else:
        used, rows = narrow
        own, trial = (linear_state.new_state(len(state.info), len(used), second) for _ in range(2))
        best = _best(own, trial, second or 0.0, rows, y, weight, schedule, t0s, is_qn)
        state.weights[:, :, used], state.info[:] = own.weights[..., : len(used)], own.info
    return schedule._replace(t0=float(t0s[best])), state


def _narrowed(x: Rows, d: int) -> tuple[np.ndarray, SparseRows] | None:
    """Return the columns of sparse rows that are used, and the rows with these alone, if few of d.

    None if that is not worth it.
    """
    if not isinstance(x, SparseRows):
        return None
    first, stop = int(x.start[0]), int(x.start[-1])
    if 4 * (stop - first) > d:
        return None
    used, columns = np.unique(x.columns[first:stop], return_inverse=True)
    return used, SparseRows(
        x.start - first, columns.astype(np.int32), x.values[first:stop], len(used)
    )
