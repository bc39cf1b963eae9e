"""The rate search: keeps the first examples of a stream, and chooses the rate t0 by them.

The 10 % rule (thesis 2010, 3.2.3): learn some examples with several values of t0, and take the
value with the lowest primal objective. Here these are the first 1, 4, 16, ..., 1024 examples. The
learner then continues with the weights of the best pass, as if it had used its t0 from the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.errors import StreamSVMError
from streamsvm.native_events.event_block import COUNT, STOP, Block, new_block
from streamsvm.solvers.linear.rate import T0, Search, choose_rate
from streamsvm.solvers.linear.state import LinearState, Schedule
from streamsvm.solvers.linear.step import Step
from streamsvm.support.declaration import (
    NOT_NEGATIVE,
    Field,
    NamedArrays,
    Range,
    Sizes,
    index_of,
    rows_as_arrays,
)
from streamsvm.support.rows import Rows, SparseRows, shape, sparse

LAST = 1024
"""The number of examples at the last search; no more are kept."""

_SIGNS = Field(("examples",), range=Range(-1.0, 1.0))
_FIELDS = {
    "first_y": _SIGNS._replace(range=index_of("outputs")),
    "first_weight": Field(("examples",), range=NOT_NEGATIVE),
}
"""The arrays in model files, beside the rows."""


def next_search(n: int) -> int:
    """Return the number of examples at the first search after n examples: a power of 4."""
    return 1 << 2 * ((n.bit_length() + 1) // 2)


class RateSearchRows:
    """The first rows of a stream, with their signs (or classes) and weights, in one block."""

    def __init__(self) -> None:
        nothing: Any = [np.zeros(0, kind) for kind in (np.int32, np.float32, float, float)]
        self._block = new_block((np.zeros(1, np.int64), *nothing), False)

    @property
    def block(self) -> Block:
        """The block to which compiled code appends events."""
        return self._block

    @property
    def is_sparse(self) -> bool:
        """Whether rows are stored as their nonzero features."""
        return self._block.is_sparse

    @property
    def nbytes(self) -> int:
        """Bytes of rows, signs and weights; may be read while another thread learns."""
        return sum(array.nbytes for array in self._block.content())

    def __getstate__(self) -> Any:
        # A copy gets its own block, as compiled code has the address of this one.
        return self._block.content(), self._block.is_sparse

    def __setstate__(self, state: Any) -> None:
        self._block = new_block(*state)

    def add(self, x: Rows, y: np.ndarray, weight: np.ndarray) -> None:
        """Append copies of rows with their signs (or classes) and weights.

        Meanwhile the fast path is closed, and nothing else adds rows.
        """
        if self._block.is_sparse or isinstance(x, SparseRows):
            x = sparse(x)
            own = slice(int(x.start[0]), int(x.start[-1]))
            start, columns, values = x.start[1:] - x.start[0], x.columns[own], x.values[own]
        else:
            start, columns = x.shape[1] * np.arange(1, len(x) + 1), np.empty(0, np.int32)
            values = x.ravel()
        self.kept_rows(len(y), values.size, isinstance(x, SparseRows))
        block, (n, stop) = self._block, self._block.size
        block.start[n + 1 : n + 1 + len(y)] = stop + start
        block.columns[stop : stop + columns.size] = columns
        block.values[stop : stop + values.size] = values
        block.y[n : n + len(y)], block.weight[n : n + len(y)] = y, weight
        # Last, so that an interruption before it leaves the old rows only. Not added to the count:
        # whatever ran meanwhile, all rows up to this number have been written.
        block.head[COUNT] = n + len(y)

    def all(self, d: int) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return all rows over d features, their signs (or classes), and their weights.

        They are views of the block, valid until rows are added; dense rows of different lengths are
        copied.
        """
        block = self._block
        start, columns, values, y, weight = block.content()
        # Compiled code, which reads the rows next, checks no index.
        is_whole = len(y) == len(weight) == start.size - 1 and columns.size == (
            values.size if block.is_sparse else 0
        )
        if not (is_whole and _are_sound(start, columns, values.size, d, block.is_sparse)):
            raise StreamSVMError("the first rows of a linear learner are damaged: report this")
        rows = SparseRows(start, columns, values, d)
        return (rows if block.is_sparse else _dense(start, values, d)), y, weight

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Convert the signs of all rows by the function `change`."""
        y = self._block.content()[3]
        y[:] = change(y)

    def become_sparse(self, rows: SparseRows) -> None:
        """Store rows as their nonzero features from now on; `rows` are all rows so far."""
        y, weight = self._block.content()[3:]
        self._block = new_block((rows.start, rows.columns, rows.values, y, weight), True)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._block.size[0]

    # Events that compiled code appends

    def make_block(self, stop: int, most: int, width: int, is_sparse: bool) -> None:
        """Open the block for events that compiled code appends, until there are `stop` in it.

        It gets room for `most` more events of up to `width` features. It may be replaced: addresses
        of the old one then dangle and must not be used.
        """
        self.kept_rows(most, most * width, is_sparse)
        self._block.head[STOP] = stop

    def kept_rows(self, events: int, values: int, is_sparse: bool) -> None:
        """Reserve memory for so many more events and values."""
        if is_sparse and not self._block.is_sparse:
            self._replace(_made_sparse)
        if not self._block.has_room(events, values):
            # At least doubled, so that adding rows one by one takes linear time.
            n, stop = self._block.size
            events, values = max(events, n, 16), max(values, stop, 1024)
            self._replace(lambda old: new_block(old.content(), old.is_sparse, events, values))

    def _replace(self, made_of: Callable[[Block], Block]) -> None:
        """Replace the block by one that holds the same events."""
        while True:
            block, n = self._block, self._block.head[COUNT]
            new = made_of(block)
            # A fast path may be bound to the old block, which must get no further events.
            block.head[STOP] = -1
            # A signal handler may have added events meanwhile, or opened the block: then again. No
            # handler can run between these two lines, as they call nothing.
            if self._block is block and block.head[COUNT] == n and block.head[STOP] == -1:
                self._block = new
                return

    @property
    def is_full(self) -> bool:
        """Whether compiled code has appended the last event that it may."""
        head = self._block.head
        return bool(head[COUNT] == head[STOP])

    def close_block(self) -> None:
        """Keep compiled code from appending events until `make_block` is called again."""
        self._block.head[STOP] = -1

    def drop_room(self) -> None:
        """Free the memory reserved for more events; the block is replaced."""
        self._replace(lambda old: new_block(old.content(), old.is_sparse))

    # Model files

    def as_arrays(self, d: int) -> dict[str, np.ndarray]:
        """Return the arrays of a model file, of rows over d features."""
        rows, y, weight = self.all(d)
        return rows_as_arrays(rows) | {"first_y": y, "first_weight": weight}

    @classmethod
    def from_arrays(cls, arrays: NamedArrays, n: int, sizes: Sizes) -> RateSearchRows:
        """Return n rows with the content that `as_arrays` returned; `ValueError` if it is damaged.

        `sizes` are the numbers of "features" and of "outputs".
        """
        if n > LAST:
            raise ValueError("there are more examples than are kept for the rate search")
        fields = _FIELDS | ({"first_y": _SIGNS} if sizes["outputs"] == 1 else {})
        y, weight = (arrays.take(k, f, {**sizes, "examples": n}) for k, f in fields.items())
        found, rows = cls(), arrays.take_rows(n, sizes["features"])
        if n:
            found.add(rows, y, weight)
        return found


def _made_sparse(block: Block) -> Block:
    """Return a block with the same rows as their nonzero features."""
    start, _, values, y, weight = block.content()
    rows = sparse(_dense(start, values, int(np.diff(start).max(initial=0))))
    return new_block((rows.start, rows.columns, rows.values, y, weight), True)


@compiled
def _are_sound(start, columns, n_values, d, is_sparse):
    """Tell whether the values from start[r] to start[r + 1] are those of a row of d features."""
    if start[0] != 0 or start[-1] != n_values:
        return False
    for r in range(start.size - 1):
        width = start[r + 1] - start[r]
        if width < 0 or (not is_sparse and width > d):
            return False
    for t in range(columns.size):
        if not 0 <= columns[t] < d:
            return False
    return True


def _dense(start: np.ndarray, values: np.ndarray, d: int) -> np.ndarray:
    """Return rows of d features, 0 for features that appeared after a row."""
    n = start.size - 1
    if values.size == n * d:
        return values.reshape(n, d)
    rows = np.zeros((n, d), np.float32)
    _spread(start, values, rows)
    return rows


@compiled
def _spread(start, values, rows):
    """Write the values from start[r] to start[r + 1] into row r of `rows`, float32 (n, d).

    `start` has been checked: see `_are_sound`.
    """
    for r in range(rows.shape[0]):
        for c in range(start[r + 1] - start[r]):
            rows[r, c] = values[start[r] + c]


@compiled
def _sum_of_squares(values):
    # One by one, so that dense and sparse rows give the same bits: adding zeros changes nothing.
    total = 0.0
    for t in range(values.size):
        total += np.float64(values[t]) * np.float64(values[t])
    return total


@compiled
def _squares(values, start, squares):
    for r in range(squares.size):
        squares[r] = _sum_of_squares(values[start[r] : start[r + 1]])


def mean_square(x: Rows) -> float:
    """Return the mean of ||x||^2 over rows; 1 if all are 0.

    A row counts as at most 10,000 times the median: otherwise all rates would follow one outlier.
    """
    n, d = shape(x)
    if isinstance(x, SparseRows):
        start, values = x.start, x.values
    else:
        start, values = np.arange(n + 1) * d, x.ravel()
    squares = np.empty(n)
    _squares(values, start, squares)
    limit = 1e4 * float(np.median(squares))
    if squares.max() > limit > 0.0:
        return float(np.minimum(squares, limit).mean())
    total = _sum_of_squares(values[int(start[0]) : int(start[-1])])
    return total / n if total > 0.0 else 1.0


def learn_best(
    x: Rows,
    y: np.ndarray,
    weight: np.ndarray,
    schedule: Schedule,
    state: LinearState,
    second: float | None,
    step: Step,
) -> Schedule:
    """Return the schedule with the t0 whose pass over all rows has the lowest primal objective.

    `x`, `y` and `weight` are the rows learnt so far, their signs (or classes) and weights; `state`
    is overwritten with that after the best pass. `second` is as of `linear_state.new_state`,
    `step` as of `LinearSolver`.
    """
    square, outputs, d = mean_square(x), len(state.info), shape(x)[1]
    # SGD changes only the weights of features in the rows, few of 2^18 hashed ones: the passes are
    # made on these columns alone.
    narrow = None if second or schedule.skip <= 0.0 else _narrowed(x, d)
    rows, width = (x, d) if narrow is None else (narrow[1], len(narrow[0]))
    room = (outputs, state.weights.shape[1], max(1, width))
    trial, found = (LinearState(np.empty(room), np.empty_like(state.info)) for _ in range(2))
    margins, best = np.zeros((len(y), outputs)), np.array([np.inf, np.inf, 1.0])
    search = Search(
        step, second or 0.0, rows, y, weight, schedule, square, margins, trial, found, best
    )
    choose_rate(search, round(math.log2(square / (schedule.t0 * schedule.lam))))
    columns = slice(d) if narrow is None else narrow[0]
    state.weights[:, :, columns] = found.weights[:, :, :width]
    state.info[:] = found.info
    return schedule._replace(t0=float(best[T0]))


def _narrowed(x: Rows, d: int) -> tuple[np.ndarray, SparseRows] | None:
    """Return the columns that occur in sparse rows, and the rows with only these columns.

    None if the rows are dense, or if more than a quarter of the d columns may occur.
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
