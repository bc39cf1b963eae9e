"""The first examples of a stream, kept until the rate of a linear learner is chosen by them.

The 10 % rule (thesis 2010, 3.2.3): a pass over some examples with several values of t0; the one
with the lowest primal objective is taken. Here the examples are the first 1, 4, 16, ..., 1024, and
the learner goes on as if it had had that t0 from the start: its weights become those of the pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.learners.event_block import COUNT, ROOM, Block, has_room, new_block
from streamsvm.solvers import linear_state
from streamsvm.solvers.linear_rate import T0, Search, choose_rate
from streamsvm.solvers.linear_state import LinearState, Schedule
from streamsvm.support.rows import Rows, SparseRows, joined, shape

LAST = 1024
"""How many examples are kept at most."""


def next_look(n: int) -> int:
    """Return how many examples there are when it is looked back the next time: a power of 4."""
    return 1 << 2 * ((n.bit_length() + 1) // 2)


_Part = tuple[Rows, np.ndarray, np.ndarray]


class FirstRows:
    """Rows, what they are learnt as, and their weights."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._block: Block | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of what belongs to them; it may be asked for while others learn."""
        rows = (x if isinstance(x, SparseRows) else (x,) for x, _, _ in self._parts)
        parts = sum(part.nbytes for x in rows for part in x if isinstance(part, np.ndarray))
        block = self._block
        if block is None:
            return parts
        n = int(block.head[COUNT])
        each = block.start.itemsize + block.y.itemsize + block.weight.itemsize
        value = block.values.itemsize + (block.columns.itemsize if len(block.columns) else 0)
        return parts + n * each + int(block.start[n]) * value

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code goes on with the block, not with a copy of it.
        self._gather()
        return {"_parts": self._parts, "_block": None}

    def add(self, x: Rows, y: np.ndarray, weight: np.ndarray) -> None:
        """Keep rows: these arrays themselves."""
        self._gather()
        self._parts.append((x, y, weight))

    def block(self, room: int, most: int, width: int, is_sparse: bool) -> Block:
        """Return where compiled code may `keep` the next events, so many, and then it waits.

        There will be no more than `most`, of so many features. Whoever was given another block
        before must not use it any more.
        """
        block = self._block
        if block is None or not has_room(block, most, width, is_sparse):
            self._gather()
            self._block = block = new_block(most, width, is_sparse)
        block.head[ROOM] = room
        return block

    @property
    def is_full(self) -> bool:
        """Whether compiled code has no room for the next event."""
        return self._block is not None and self._block.head[ROOM] == 0

    def close_block(self) -> None:
        """Take the events out of the block; nobody uses it until it is given again."""
        self._gather()
        if self._block is not None:
            self._block.head[ROOM] = -1

    def drop_block(self) -> None:
        """Free the block's memory; its events are kept."""
        self._gather()
        self._block = None

    def _gather(self) -> None:
        """Take the events out of the block: a copy of them."""
        if self._block is None or not self._block.head[COUNT]:
            return
        head, start, columns, values, y, weight = self._block
        n = int(head[COUNT])
        stop = int(start[n])
        rows: Rows
        if len(columns):
            used = columns[:stop].copy()
            d = int(used.max(initial=-1)) + 1
            rows = SparseRows(start[: n + 1].copy(), used, values[:stop].copy(), d)
        else:
            # New features make rows longer.
            widths = np.diff(start[: n + 1])
            rows = np.zeros((n, int(widths[-1])), np.float32)
            rows[np.arange(rows.shape[1]) < widths[:, None]] = values[:stop]
        self._parts.append((rows, y[:n].copy(), weight[:n].copy()))
        head[COUNT] = 0

    def all(self, d: int) -> _Part:
        """Return all rows, with d features, and what belongs to them."""
        self._gather()
        if not self._parts:
            return np.zeros((0, d), np.float32), np.zeros(0), np.zeros(0)
        blocks, y, weight = zip(*self._parts, strict=True)
        found = (joined(list(blocks), d), np.concatenate(y), np.concatenate(weight))
        # Fewer parts for the next time.
        self._parts = [found]
        return found

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change what rows are learnt as."""
        self._gather()
        self._parts = [(x, change(y), weight) for x, y, weight in self._parts]


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


def learn_best(
    x: Rows,
    y: np.ndarray,
    weight: np.ndarray,
    schedule: Schedule,
    state: LinearState,
    second: float | None,
    kind: float,
) -> Schedule:
    """Pass over the rows, from nothing, by the t0 that gives the lowest primal objective.

    Parameters
    ----------
    x, y, weight
        All rows that were learnt so far, what they are learnt as, weights.
    schedule
        The schedule but for its t0.
    state
        Becomes that of the pass.
    second
        That of `linear_state.new_state`.
    kind
        That of `Search`.

    Returns
    -------
    The schedule with that t0.

    """
    square, outputs, d = mean_square(x), len(state.info), shape(x)[1]
    # SGD leaves the weights of other features alone, and so all but few of 2^18 hashed ones.
    narrow = None if second or schedule.skip <= 0.0 else _narrowed(x, d)
    rows, width = (x, d) if narrow is None else (narrow[1], len(narrow[0]))
    trial, found = (linear_state.new_state(outputs, width, second) for _ in range(2))
    margins, best = np.zeros((len(y), outputs)), np.array([np.inf, np.inf, 1.0])
    search = Search(
        kind, second or 0.0, rows, y, weight, schedule, square, margins, trial, found, best
    )
    choose_rate(search, round(math.log2(square / (schedule.t0 * schedule.lam))))
    if narrow is None:
        state.weights[:, :, :d] = found.weights[:, :, :d]
    else:
        state.weights[:, :, narrow[0]] = found.weights[..., : len(narrow[0])]
    state.info[:] = found.info
    return schedule._replace(t0=float(best[T0]))


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
