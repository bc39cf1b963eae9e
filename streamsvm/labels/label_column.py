"""The labels of a batch as integer codes, so that work on labels is done once for each class."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from streamsvm._parameter_checks import column_of
from streamsvm.errors import LabelError

Label = Hashable

Labels = Iterable[Label]
"""n labels: see `LabelColumn.of`."""

MISSING = -1
"""The code of a missing label."""

_NEAR = _FEW = 64
_NO_LABELS = frozenset(("NA", "N/A", "n/a", "NULL", "null"))


def objects(values: Iterable[Any]) -> np.ndarray:
    """Return values as an array of objects; of tuples alone NumPy would make rows."""
    return np.array([*values, None], object)[:-1]


class LabelColumn(Sequence[Any]):
    """A sequence of labels, stored as the distinct labels and a code for each row.

    Parameters
    ----------
    codes
        int64 (n,): the index in `values` of the label of each row; `MISSING` for None.
    values
        Distinct labels, plain Python values. Not all of them need to occur.

    Examples
    --------
    >>> from streamsvm.labels.label_column import LabelColumn
    >>> column = LabelColumn.of(["spam", "ham", None, "spam"])
    >>> column.codes.tolist(), column.values, column[1:].tolist()
    ([0, 1, -1, 0], ['spam', 'ham'], ['ham', None, 'spam'])

    """

    def __init__(self, codes: np.ndarray, values: list[Any]) -> None:
        self.codes, self.values = codes, values

    @classmethod
    def of(cls, labels: Any) -> LabelColumn:
        """Return labels as a column, or the column given; None and NaN are missing labels.

        Labels are a list, an array of NumPy or Arrow, a series of pandas or polars, the one column
        of a frame, or any other iterable that has an order. Raises LabelError if they are none of
        these, or one is not hashable.
        """
        if isinstance(labels, cls):
            return labels
        labels = column_of(labels, "labels", LabelError)
        if isinstance(labels, (pa.Array, pa.ChunkedArray)):
            return cls._of_arrow(labels)
        # Not a subclass: labels of a masked array may be missing.
        if type(labels) is np.ndarray and labels.ndim == 1 and labels.dtype.kind == "b":
            return cls(labels.astype(np.int64), [False, True])
        if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biufU":
            with contextlib.suppress(pa.ArrowException):
                return cls._of_arrow(pa.array(labels))
        for method in ("tolist", "to_list"):
            if hasattr(labels, method):
                return cls.of_values(getattr(labels, method)())
        return cls.of_values(labels)

    @classmethod
    def _of_arrow(cls, labels: Any) -> LabelColumn:
        if isinstance(labels, pa.ChunkedArray):
            labels = labels.combine_chunks()
        if pa.types.is_null(labels.type):
            return cls(np.full(len(labels), MISSING), [])
        if pa.types.is_boolean(labels.type) and not labels.null_count:
            return cls(labels.to_numpy(zero_copy_only=False).astype(np.int64), [False, True])
        try:
            coded = labels if pa.types.is_dictionary(labels.type) else labels.dictionary_encode()
        except pa.ArrowException:
            return cls.of_values(labels.to_pylist())
        indices = coded.indices.cast(pa.int64())
        codes = np.array(indices.fill_null(MISSING).to_numpy(zero_copy_only=False))
        values = coded.dictionary.to_pylist()
        if holds_lists(coded.type) or any(map(_is_missing, values)):
            return cls.of_values(cls(codes, values))
        return cls(codes, values)

    @classmethod
    def of_values(cls, labels: Iterable[Any]) -> LabelColumn:
        """Return a column of labels, equal ones of which are one value."""
        code_of: dict[Any, int] = {}
        codes = []
        for label in labels:
            if isinstance(label, np.generic):
                label = label.item()
            elif isinstance(label, pa.Scalar):
                label = label.as_py()
            if _is_missing(label):
                codes.append(MISSING)
                continue
            try:
                codes.append(code_of.setdefault(label, len(code_of)))
            except TypeError as error:
                raise LabelError(
                    f"the label {label!r} is not hashable: use a string or a number; "
                    "AmbiguousSVMClassifier learns lists and sets of candidates"
                ) from error
        return cls(np.array(codes, np.int64), list(code_of))

    @classmethod
    def joined(cls, columns: list[LabelColumn]) -> LabelColumn:
        """Return the concatenation of columns."""
        code_of: dict[Any, int] = {}
        codes = []
        for column in columns:
            places = [code_of.setdefault(value, len(code_of)) for value in column.values]
            codes.append(np.array([*places, MISSING], np.int64)[column.codes])
        return cls(np.concatenate([np.zeros(0, np.int64), *codes]), list(code_of))

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, at: int) -> Any: ...

    @overload
    def __getitem__(self, at: slice) -> LabelColumn: ...

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return LabelColumn(self.codes[at], self.values)
        code = int(self.codes[at])
        return None if code == MISSING else self.values[code]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the labels as a list."""
        # The code of a missing label, -1, indexes the last entry.
        found: list[Any] = objects([*self.values, None])[self.codes].tolist()
        return found

    def take(self, kept: np.ndarray) -> LabelColumn:
        """Return the labels of the rows with these indices."""
        return LabelColumn(self.codes[kept], self.values)

    def mapped(self, change: Callable[[Any], Any]) -> LabelColumn:
        """Return the column with each label replaced by change(label); None is a missing label."""
        changed = LabelColumn.of_values(map(change, self.values))
        return LabelColumn(np.append(changed.codes, MISSING)[self.codes], changed.values)

    def numbers(self, number: Callable[[Any], float]) -> np.ndarray:
        """Return number(label) of each row, float64 (n,); NaN for a missing label."""
        if len(self) < len(self.values):
            # There may be thousands of labels, and one row.
            return np.array([np.nan if y is None else number(y) for y in self], np.float64)
        return np.array([*map(number, self.values), np.nan])[self.codes]

    def places_in(self, seen: list[Any]) -> np.ndarray:
        """Return int64 (n,): the index in `seen` of the label of each row, which is there."""
        # The column may list labels of later rows, too, which are not.
        place_of = {label: i for i, label in enumerate(seen)}
        return self.numbers(lambda label: place_of.get(label, 0)).astype(np.int64)

    def present(self) -> list[tuple[Any, int]]:
        """Return (label, its first row) of each label that occurs, ordered by the first row."""
        if len(self) < len(self.values) or len(self.values) > _FEW:
            found, first_rows = np.unique(self.codes, return_index=True)
            rows = sorted(zip(first_rows.tolist(), found.tolist(), strict=True))
            return [(self.values[code], first) for first, code in rows if code != MISSING]
        firsts = []
        for code, label in enumerate(self.values):
            # Most labels occur in the first rows: look there before scanning all.
            for codes in (self.codes[:_NEAR], self.codes):
                own = codes == code
                first = int(own.argmax()) if len(own) else 0
                if len(own) and own[first]:
                    firsts.append((first, label))
                    break
        if len(firsts) > 1:
            firsts.sort(key=lambda found: found[0])
        return [(label, first) for first, label in firsts]

    def runs(self, seen: list[Any]) -> list[tuple[int, int]]:
        """Return ranges of rows, split at the first row of each label that is not in `seen`."""
        if not len(self):
            return []
        known = set(seen)
        firsts = [first for label, first in self.present() if label not in known]
        starts = sorted({0, *firsts})
        return list(zip(starts, [*starts[1:], len(self)], strict=True))


def labels_like(column: pa.Array, kind: pa.DataType) -> LabelColumn:
    """Return a column of labels, whose texts are read as labels of the type of others, or of lists.

    What is only kept of a text file is text; a text that is no such label stays a text.
    """
    kind = getattr(kind, "value_type", kind)
    labels = LabelColumn.of(column)
    if not pa.types.is_string(column.type) or pa.types.is_string(kind):
        return labels
    if pa.types.is_boolean(kind):
        return labels.mapped(lambda y: {"true": True, "false": False}.get(y.lower(), y))
    read = int if pa.types.is_integer(kind) else float

    def number(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            return None if text in _NO_LABELS else text

    return labels.mapped(number)


def holds_lists(kind: pa.DataType) -> bool:
    """Tell whether a column of Arrow has lists, or the like, for values."""
    return bool(pa.types.is_nested(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _is_missing(label: Any) -> bool:
    """Tell whether a label is None, NaN or pandas' NA."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        # A comparison of NA has no truth value. Nor have those of arrays, which are refused later.
        return not isinstance(label, (np.ndarray, list))


class Pairs:
    """Pairs of a label and the prediction for the same row, made before the row was learnt.

    Predictions are None before any label was learnt. `parts` are (labels, predictions) of
    consecutive rows, as columns.
    """

    def __init__(self, *parts: tuple[LabelColumn, LabelColumn]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, pairs: list[tuple[Any, Any]]) -> Pairs:
        """Return the pairs of a list of (label, prediction)."""
        columns = (LabelColumn.of([pair[i] for pair in pairs]) for i in (0, 1))
        return cls((next(columns), next(columns)))

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(*self.parts, *other.parts)

    def __len__(self) -> int:
        return sum(len(labels) for labels, _ in self.parts)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for labels, predicted in self.parts:
            yield from zip(labels, predicted, strict=True)

    def scored_parts(self, room: int, size: int) -> Iterator[Pairs]:
        """Yield the pairs in order: first those of `room` predictions, then of `size` each.

        Rows without a prediction do not count; the last part may have fewer.
        """
        left = room
        for labels, predicted in self.parts:
            ends = np.cumsum(predicted.codes != MISSING)
            start, done = 0, 0
            while start < len(labels):
                stop = min(int(np.searchsorted(ends, done + left)) + 1, len(labels))
                yield Pairs((labels[start:stop], predicted[start:stop]))
                left -= int(ends[stop - 1]) - done
                start, done, left = stop, int(ends[stop - 1]), left or size

    def counts(self) -> list[tuple[Any, Any, int]]:
        """Return (label, prediction, number of rows); the same two may come more than once."""
        found = []
        for labels, predicted in self.parts:
            k = len(predicted.values) + 1
            counts = np.bincount(labels.codes * k + predicted.codes + 1)
            for code in np.flatnonzero(counts).tolist():
                guess = predicted.values[code % k - 1] if code % k else None
                found.append((labels.values[code // k], guess, int(counts[code])))
        return found
