"""The schema of a model: a column for each feature name, and the conversion of events to rows.

A feature that an event lacks is NaN in its dense row, until `MissingValues` fills it, and 0 in a
sparse one. A feature that was never seen before gets the next column, and is 0 in all earlier rows.
New names are appended in the order in which they appear, sorted within one event, so that neither
the order of a dict nor batching changes a model.

A schema has at most `limit` names, of at most `LONGEST_NAME` characters each and `MOST_BYTES` bytes
together: others are left out and counted, so that no stream can fill the memory with names. With
`buckets` no names are stored: each is hashed to one of so many columns.
"""

import logging
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.features.events import check_number_feature, present, refusal, snapshot
from streamsvm.features.missing import ENOUGH, EVENTS, PRESENT, MissingValues, absence
from streamsvm.features.names import (
    HashedColumns,
    Name,
    Names,
    check_different,
    check_equal_to_themselves,
)
from streamsvm.features.packing import (
    MANY,
    are_columns,
    exceeds_single,
    first_bad,
    list_event,
    rows_of,
)
from streamsvm.support.rows import LARGEST, SparseRows, sorted_rows

_log = logging.getLogger(__name__)

LIMIT = 2**20
"""The default limit of names; so many names take about 150 MB."""


def in_order(names: Iterable[Name]) -> list[Name]:
    """Return names sorted, by type first, so that the order of a dict does not matter."""
    names = list(names)
    try:
        return sorted(names, key=lambda name: (type(name).__name__, name))
    except TypeError:
        return sorted(names, key=repr)


class Schema(Names):
    """The names of the columns, and the conversion of events and batches to rows with them.

    `limit` is the largest number of names; an event with more features is refused. `buckets` is
    None, or the number of columns that names are hashed to. `missing` says what takes the place of
    missing values in dense rows: see `MissingValues`.
    """

    def __init__(
        self,
        names: Iterable[Name] = (),
        limit: int = LIMIT,
        buckets: int | None = None,
        missing: str = "zero",
    ) -> None:
        super().__init__()
        self.limit = limit
        self.buckets = buckets
        self.missing = MissingValues(missing)
        # How often a feature of an example was left out, because the limit of names was reached.
        self.n_ignored = 0
        # The same for the last row read, which is counted only if it is learnt: see `extend`.
        self.n_left_out = 0
        self.hashed_columns = HashedColumns(buckets or 1)
        # How many events were predicted that had none of the features: see `note_predicted`.
        self.n_unknown = 0
        self.has_warned = False
        self.append(names)

    def __len__(self) -> int:
        return self.n_names if self.buckets is None else self.buckets

    @property
    def memory_usage(self) -> int:
        """The bytes of the names, and of what is counted of missing values."""
        return self.nbytes + self.missing.statistics.nbytes

    def __getstate__(self) -> tuple[Any, ...]:
        statistics = self.missing.statistics[:, : self.n_names].copy()
        return self.names, self.limit, self.buckets, self.missing.policy, self.n_ignored, statistics

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state[:4])  # type: ignore[misc]
        # A pickle may lend its memory, read-only.
        self.n_ignored, self.missing.statistics = state[4], state[5].copy()

    def extend(self, names: Iterable[Name]) -> None:
        """Append the names that are new, in their order, as the row that brought them is learnt.

        FeatureError: one is not equal to itself, as NaN is not; the schema has not changed.
        """
        left_out, self.n_left_out = self.n_left_out, 0
        if not isinstance(names, range):
            names = self.fitting(names)
            self._compare(names)
        self.append(names, check_equal_to_themselves)
        self.n_ignored += left_out

    def check_unnamed(self) -> None:
        """Refuse arrays after named features: raise FeatureError if a name is not an int."""
        if self.is_range or all(isinstance(name, int) for name in self.names):
            return
        raise FeatureError(
            f"an array has no feature names, and this model knows its features by name "
            f"({self.names[0]!r}, ...): pass a frame or an Arrow RecordBatch"
        )

    def note_predicted(self, names: Any, n: int = 1) -> None:
        """Count n events to be predicted with these names if none is known; warn of the first.

        `names` are a dict by name, or a sequence. Not where events may well have none, as texts
        have unknown words: there no feature is usually there.
        """
        if not (self.n_names and len(names)) or not self.index.keys().isdisjoint(names):
            return
        present, events = self.missing.statistics[[PRESENT, EVENTS]]
        if not (self.is_range or ((present >= ENOUGH) & (2.0 * present >= events)).any()):
            return
        self.n_unknown += n
        if not self.has_warned:
            self.has_warned = True
            _log.warning(
                "an event to be predicted has none of the features that the model knows (%s), but "
                "%s: what is predicted does not depend on it; %s",
                _some(self.names),
                _some(names),
                _OF_ARRAYS if self.is_range else "n_unknown_events counts such events",
            )

    def go_on_from(self, other: "Schema") -> None:
        """Take over what another one has counted and said of events that were predicted."""
        self.n_unknown, self.has_warned = other.n_unknown, other.has_warned

    def _compare(self, names: list[Name]) -> None:
        """Warn if the first names come after those of arrays, 0, 1, ..."""
        if names and self.n_names and isinstance(names[0], str) and self.is_range:
            _log.warning(
                "new features (%s) of a model that knows %s: %s",
                _some(names),
                _some(self.names),
                _OF_ARRAYS,
            )

    def _new_columns(self, new: list[Name]) -> tuple[dict[Name, int], list[Name]]:
        """Return {name: column} for new names, and the list of them, as far as there is room."""
        n = len(self.names)
        fitting = self.fitting(new)[: max(0, self.limit - n)]
        self.n_left_out, new = len(new) - len(fitting), fitting
        return {name: n + i for i, name in enumerate(new)}, new

    def _check_size(self, n: int, what: str = "an event", parts: str = "features") -> None:
        if n > self.limit:
            raise FeatureError(
                f"{what} of {n:,} {parts}: at most {self.limit:,} are taken (max_features)"
            )

    # Dense rows

    def row(self, x: Mapping[Name, Any]) -> np.ndarray:
        """Return an event as float32 (1, d), filled, without new features: stored rows have 0.

        FeatureError: a value is no number (a string, ...), infinite, or beyond single precision, or
        missing and refused; or there are more than `limit` features.
        """
        known = np.ascontiguousarray(self.wider_row(x)[0][:, : len(self.names)])
        return self.missing.filled(known, self.names)[0]

    def wider_row(self, x: Mapping[Name, Any]) -> tuple[np.ndarray, list[Name]]:
        """Return an event as float32 (1, d), new features in its last columns, and their names.

        Missing values are NaN; others are refused as by `row`. The schema does not change until
        `extend` is called with the names, as the event may still be refused for another reason.
        """
        event = snapshot(x)
        self.n_left_out = 0
        checked, index = self.checked(event), self.index
        columns, new = self._new_columns(in_order(name for name in checked if name not in index))
        row = np.full((1, len(self.names) + len(new)), np.nan, np.float32)
        for name, value in checked.items():
            column = index.get(name, columns.get(name))
            if column is not None:
                row[0, column] = value
        return row, new

    def checked(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return a copy of an event with its values as floats, without those that are missing.

        Values are refused as by `row`.
        """
        event = snapshot(x)
        self._check_size(len(event))
        numbers = {name: check_number_feature(name, value) for name, value in event.items()}
        return {name: number for name, number in numbers.items() if number == number}

    def wider_rows(
        self,
        names: Sequence[Name],
        values: np.ndarray,
        order: list[Name] | None,
        is_finite: bool = False,
    ) -> tuple[np.ndarray, list[Name]]:
        """Return a matrix as rows, new features in their last columns, and their names.

        The parameters are the fields of `Matrix`. The rows, float32 (n, d), share no memory with
        `values` if they hold NaN, as missing values are. FeatureError: a value is refused, two
        columns have one name, or there are more than `limit` names.
        """
        self._check_size(len(names), "a batch", "columns")
        check_different(names)
        candidates = in_order(names) if order is None else order
        index, place = self.index, {name: c for c, name in enumerate(names)}
        fresh = [name for name in candidates if name not in index]
        # A feature begins with its first value, which is mostly in the first row.
        late = [name for name in fresh if np.isnan(values[:1, place[name]]).all()]
        nothing = {name for name in late if np.isnan(values[:, place[name]]).all()}
        fresh = [name for name in fresh if name not in nothing]
        columns, new = self._new_columns(fresh)
        columns |= index
        places = np.array([columns.get(name, -1) for name in names], np.int64)
        x = _as_rows(values, places, len(self.names) + len(new))
        if is_finite:
            return x, new
        is_whole = first_bad(x) < 0
        if not is_whole or exceeds_single(values, x):
            for r, c in np.argwhere((np.abs(values) > LARGEST) & (places >= 0))[:1].tolist():
                raise FeatureError(f"row {r}: {refusal(names[c], values[r, c].item())}")
        return x if is_whole or not np.may_share_memory(x, values) else x.copy(), new

    # Sparse rows

    def sparse_row(self, x: Mapping[Name, Any]) -> tuple[SparseRows, list[Name]]:
        """Return an event as a sparse row with new features, and their names: see `wider_row`."""
        self.n_left_out = 0
        new: list[Name] = []
        event = self._complete(x)
        try:
            columns = np.frombuffer(array("i", map(self.index.__getitem__, event)), np.int32)
        except (KeyError, TypeError):
            columns, new = self._columns_of(event)
        return self._listed(event, columns, len(self) + len(new)), new

    def known_row(self, x: Mapping[Name, Any]) -> SparseRows:
        """Return an event as a sparse row without its new features: see `sparse_row`."""
        if self.buckets is not None:
            return self.sparse_row(x)[0]
        event, get = self._complete(x), self.index.get
        columns = np.array([get(name, -1) for name in event], np.int32)
        return self._listed(event, columns, len(self))

    def _complete(self, x: Mapping[Name, Any]) -> dict[Name, Any]:
        """Return an event without missing values; FeatureError if it lacks one that is required."""
        event = present(snapshot(x))
        if self.buckets is None:
            for c in self.missing.required(len(self)):
                if self.names[c] not in event:
                    raise FeatureError(absence(0, self.names[c]))
        return event

    def _columns_of(self, x: dict[Name, Any]) -> tuple[np.ndarray, list[Name]]:
        """Return the column of each feature, -1 where the limit is reached, and the new names."""
        self.checked(x)
        if self.buckets is not None:
            return self._hashed(x)[0], []
        index = self.index
        places, new = self._new_columns(in_order(name for name in x if name not in index))
        places |= {name: index[name] for name in x if name in index}
        return np.array([places.get(name, -1) for name in x], np.int32), new

    def _listed(self, x: dict[Name, Any], columns: np.ndarray, d: int) -> SparseRows:
        """Return an event as a sparse row of d features; `columns` holds the column of each value.

        `x` must be a snapshot. Values are refused as by `row`.
        """
        try:
            self._check_size(len(x))
            given = np.frombuffer(array("d", x.values()), np.float64)
        except (TypeError, AttributeError, OverflowError, np.exceptions.ComplexWarning):
            given = np.array(list(self.checked(x).values()))
        if len(given) != len(columns):
            raise FeatureError(f"{len(columns)} columns for the {len(given)} values of an event")
        if self.buckets is not None:
            given = given * self._hashed(x)[1]
        if len(given) > MANY:
            order = np.argsort(columns, kind="stable")
            columns, given = columns[order], given[order]
        kept, ranks = np.empty(len(given), np.uint32), np.empty(len(given), np.int32)
        listed, values = np.empty_like(ranks), np.empty(len(given), np.float32)
        n = list_event(columns, given, len(given), kept, ranks, listed, values)
        if n < 0:
            self.checked(x)
        return SparseRows(np.array([0, n]), listed[:n], values[:n], d)

    def known(self, rows: SparseRows) -> SparseRows:
        """Return rows without the features that the schema does not have."""
        d = len(self)
        if rows.d == d:
            return rows
        values = np.where(rows.columns < d, rows.values, np.float32(0.0))
        return sorted_rows(SparseRows(rows.start, rows.columns, values, d))

    def _hashed(self, names: Iterable[Name]) -> tuple[np.ndarray, np.ndarray]:
        """Return the column and the sign of each name; signs let collisions cancel on average."""
        places = np.array([self.hashed_columns[name] for name in names], np.int64)
        return (places >> 1).astype(np.int32), 1.0 - 2.0 * (places & 1)

    def sparse_rows(
        self, names: Sequence[Name], rows: SparseRows
    ) -> tuple[SparseRows, Sequence[Name]]:
        """Return sparse rows, whose columns have `names`, with the schema's columns; and new names.

        New features are in the last columns. FeatureError: a value is infinite, or there are more
        than `limit` names.
        """
        bad = first_bad(rows.values[None])
        if bad >= 0:
            r = int(np.searchsorted(rows.start, bad, side="right")) - 1
            message = refusal(names[rows.columns[bad]], rows.values[bad].item())
            raise FeatureError(f"row {r}: {message}")
        if self.buckets is not None:
            columns, signs = self._hashed(names)
            values = (rows.values * signs[rows.columns]).astype(np.float32)
            moved = SparseRows(rows.start, columns[rows.columns], values, self.buckets)
            return sorted_rows(moved), []
        self._check_size(len(names), "a batch", "columns")
        if isinstance(names, range) and self.is_range:
            more = range(len(self), len(names))
            return rows._replace(d=len(self) + len(more)), more
        index = self.index
        places, new = self._new_columns([name for name in names if name not in index])
        places |= index
        columns = np.array([places.get(name, -1) for name in names], np.int32)[rows.columns]
        values = np.where(columns >= 0, rows.values, np.float32(0.0))
        moved = SparseRows(rows.start, np.maximum(columns, 0), values, len(self) + len(new))
        return sorted_rows(moved), new


_OF_ARRAYS = (
    "features of arrays are named 0, 1, ..., others by the events or frames: learn and predict "
    "with one kind"
)


def _some(names: Iterable[Name]) -> str:
    """Return the first names, for a message."""
    first = [f"{name!r:.40}" for name in islice(names, 4)]
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "")


def _as_rows(values: np.ndarray, places: np.ndarray, d: int) -> np.ndarray:
    """Return values, (n, k), as float32 (n, d): column c moves to places[c], others are NaN."""
    n, k = values.shape
    whole = k == d and bool((places >= 0).all())
    if whole and (k == 0 or (places == np.arange(d)).all()) and not are_columns(values):
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, dtype=np.float32)
    x = np.empty((n, d), np.float32) if whole else np.full((n, d), np.nan, np.float32)
    if are_columns(values):
        rows_of(values.T, places, x)
        return x
    with np.errstate(over="ignore"):
        for c, place in enumerate(places.tolist()):
            if place >= 0:
                x[:, place] = values[:, c]
    return x
