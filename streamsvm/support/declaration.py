"""Declarations of the fields of a state: axes, dtype and range; and the checks that use them.

`states` allocates, grows and strips states by their declarations. Model files are written and
checked by them: compiled code does not check sizes and indices again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.support.rows import Rows, SparseRows

_LARGEST_COUNT = 2**62

Sizes = Mapping[str, int]
"""The length of each named axis: "slots", "features", "classes", "window", ..."""


class Range(NamedTuple):
    """The values that an array or a scalar may hold; never NaN."""

    low: float = -math.inf
    high: float = math.inf
    axis: str | None = None  # `high` is added to the length of this axis
    infinite: bool = False  # whether infinities may occur within low .. high
    only_ends: bool = False  # whether only `low` and `high` themselves are right

    def check(self, what: str, values: Any, sizes: Sizes) -> None:
        """Refuse values outside of the range, by a ValueError that says `what` they are."""
        high = self.high if self.axis is None else sizes[self.axis] + self.high
        array = np.asarray(values)
        good = (array >= self.low) & (array <= high)
        if self.only_ends:
            good &= (array == self.low) | (array == high)
        if not self.infinite and array.dtype.kind == "f":
            good &= np.isfinite(array)
        if not good.all():
            worst = array[~good].flat[0]
            how = "one of" if self.only_ends else "within"
            raise ValueError(f"{what}: {worst} is not {how} {self.low:g} .. {high:g}")


FINITE = Range()
NOT_NEGATIVE = Range(0)
COUNT = Range(0, _LARGEST_COUNT)
FLAG = Range(0, 1)
SIGN = Range(-1, 1, only_ends=True)
BOX = Range(0, 1e100)
"""Of C_i and example weights: so far from the largest number that squares and sums are finite."""


def index_of(axis: str, none: int = 0) -> Range:
    """Return the range of indices along an axis; `none` is -1 if -1 stands for no index."""
    return Range(none, -1, axis)


def count_of(axis: str) -> Range:
    """Return the range of a number of entries along an axis."""
    return Range(0, 0, axis)


class Field(NamedTuple):
    """One array of a state."""

    axes: tuple[int | str, ...]
    dtype: Any = np.float64
    fill: float = 0  # the initial value of all entries
    range: Range = FINITE
    n_used: str | None = None  # the scalar with the number of used entries; None: all are used
    scratch: bool = False  # the content is not needed after a call

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """Return the shape of the array for axes of these lengths."""
        return tuple(axis if isinstance(axis, int) else sizes[axis] for axis in self.axes)

    def new(self, sizes: Sizes) -> np.ndarray:
        """Allocate the array; it has room for at least one feature."""
        lengths = {**sizes, "features": max(1, sizes.get("features", 0))}
        if self.fill == 0:
            # Not `full`: the system provides zeroed memory only when it is first used.
            return np.zeros(self.shape(lengths), self.dtype)
        return np.full(self.shape(lengths), self.fill, self.dtype)


def field(
    *axes: int | str,
    dtype: Any = np.float64,
    fill: float = 0,
    range: Range = FINITE,
    n_used: str | None = None,
    scratch: bool = False,
) -> Any:
    """Return the declaration of an array, as the default of a field: see `states.declare`."""
    return Field(axes, dtype, fill, range, n_used, scratch)


DRAWS = field(1, dtype=np.uint64, range=Range(1))
"""The state of a random generator: see `support.draws`."""


class Record(NamedTuple):
    """A record array of one row: the scalars of a state."""

    dtype: np.dtype
    initial: Mapping[str, float] = {}  # 0 for scalars that are not named
    ranges: Mapping[str, Range] = {}  # `COUNT` or `FINITE` for scalars that are not named
    reset: tuple[str, ...] = ()  # scalars that describe scratch: neither copied nor loaded

    def new(self) -> Any:
        """Allocate the record."""
        record: Any = np.zeros(1, self.dtype).view(np.recarray)
        for name, value in self.initial.items():
            record[0][name] = value
        return record

    def copy_of(self, old: Any) -> Any:
        """Return a copy of a record, in which the scalars named in `reset` are initial again."""
        record = self.new()
        for name in self.dtype.names or ():
            if name not in self.reset:
                record[0][name] = old[0][name]
        return record

    def as_json(self, record: Any) -> dict[str, Any]:
        """Return the scalars by name, as JSON values."""
        return {name: record[0][name].item() for name in self.dtype.names or ()}

    def checked(self, what: str, values: Any, sizes: Sizes) -> dict[str, Any]:
        """Return the scalars in a JSON object from a file, without those named in `reset`.

        ValueError: one is missing, of another type, out of its range, or unknown.
        """
        if not isinstance(values, dict):
            raise ValueError(f"{what} is no JSON object")
        for name in self.dtype.names or ():
            if name not in values:
                raise ValueError(f"{what}.{name} is missing")
        found = {}
        for name, value in values.items():
            if name not in (self.dtype.names or ()):
                raise ValueError(f"{what}.{name} is unknown")
            whole = self.dtype[name].kind == "i"
            given = as_int(f"{what}.{name}", value) if whole else as_float(f"{what}.{name}", value)
            if name not in self.reset:
                wanted = self.ranges.get(name, COUNT if whole else FINITE)
                wanted.check(f"{what}.{name}", given, sizes)
                found[name] = given
        return found


def as_int(what: str, value: Any, low: int = -_LARGEST_COUNT, high: int = _LARGEST_COUNT) -> int:
    """Return a JSON value that must be a whole number from `low` to `high`, else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what}: {value!r:.40} is no whole number from {low} to {high}")
    return value


def as_float(what: str, value: Any) -> float:
    """Return a JSON value that must be a number, else ValueError, as of NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e308:
        if not (isinstance(value, float) and math.isinf(value)):
            raise ValueError(f"{what}: {value!r:.40} is no number")
    return float(value)


class NamedArrays:
    """Arrays from a file, each to be taken once, and checked; else ValueError."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._left = dict(arrays)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def length_of(self, name: str, axis: int) -> int:
        """Return the length of an axis of an array that was not taken yet."""
        if name not in self._left or self._left[name].ndim <= axis:
            raise ValueError(f"the array {name!r} is missing, or has other axes")
        return self._left[name].shape[axis]

    def take(
        self, name: str, field: Field, sizes: Sizes, scalars: Mapping[str, Any] | None = None
    ) -> np.ndarray:
        """Return an array, and remove it from those that are left.

        `sizes` count only entries in use, and `scalars` are those that `Field.n_used` may name:
        then only the used entries are returned.
        """
        array = self._taken(name)
        shape = field.shape(sizes)
        if field.n_used is not None:
            shape = ((scalars or {}).get(field.n_used, 0), *shape[1:])
        if array.dtype != np.dtype(field.dtype) or array.shape != shape:
            raise ValueError(
                f"{name} is {array.dtype} {array.shape}, wanted {np.dtype(field.dtype)} {shape}"
            )
        field.range.check(name, array, sizes)
        return array

    def take_rows(self, n: int, d: int, prefix: str = "") -> Rows:
        """Return n rows of d features, stored as by `rows_as_arrays`, with names that begin so."""
        if prefix + "rows" in self._left:
            return self.take(prefix + "rows", Field((n, d), np.float32), {})
        start = self.take(prefix + "row_start", Field((n + 1,), np.int64), {})
        stop = int(start[-1])
        if start[0] != 0 or (np.diff(start) < 0).any():
            raise ValueError("row_start does not ascend from 0")
        columns = self.take(prefix + "columns", Field((stop,), np.int32, range=Range(0, d - 1)), {})
        values = self.take(prefix + "values", Field((stop,), np.float32), {})
        descends = np.diff(columns) <= 0
        # Columns may descend only from one row to the next.
        begins = start[1:-1]
        descends[begins[(begins > 0) & (begins < stop)] - 1] = False
        if descends.any():
            raise ValueError("the columns of a sparse row do not ascend")
        return SparseRows(start, columns, values, d)

    def _taken(self, name: str) -> np.ndarray:
        if name not in self._left:
            raise ValueError(f"the array {name!r} is missing")
        return self._left.pop(name)

    def taken_with(self, prefix: str) -> dict[str, np.ndarray]:
        """Take all arrays whose names begin so, unchecked; return them by what follows."""
        names = [name for name in self._left if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._left.pop(name) for name in names}

    def check_all_taken(self) -> None:
        """Refuse arrays that were not taken."""
        if self._left:
            raise ValueError(f"the array {next(iter(self._left))!r} belongs to nothing")


def copy_arrays(old: Any, new: Any, names: Sequence[str] = ()) -> None:
    """Copy the arrays of a NamedTuple, or those named only, into longer ones."""
    for name in names or old._fields:
        source = getattr(old, name)
        getattr(new, name)[tuple(map(slice, source.shape))] = source


def rows_as_arrays(rows: Rows) -> dict[str, np.ndarray]:
    """Return rows as arrays by name, for `NamedArrays.take_rows`."""
    if isinstance(rows, SparseRows):
        return {"row_start": rows.start, "columns": rows.columns, "values": rows.values}
    return {"rows": rows}


Check = Callable[[Any, dict[str, Any]], None]
"""check(state, sizes) raises ValueError if parts of a state from a file contradict each other."""
