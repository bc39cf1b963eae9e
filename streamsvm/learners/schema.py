"""Features by name: events and frames become rows of one growing matrix layout.

A feature that an event lacks counts 0 there; one that was never seen before gets the next column,
and counts 0 in all earlier rows. New names are taken in the order in which they appear, sorted
within one event, so that neither the order of a dict nor batching changes a model.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.errors import FeatureError

Name = Hashable
_LARGEST = float(np.finfo(np.float32).max)


def in_order(names: Iterable[Name]) -> list[Name]:
    """Return names sorted, by type first, so that the order of a dict does not matter."""
    names = list(names)
    try:
        return sorted(names, key=lambda name: (type(name).__name__, name))
    except TypeError:
        return sorted(names, key=repr)


@compiled
def narrow(values, row):  # type: ignore[no-untyped-def]
    """Copy values, float64 (d,), into row, float32 (d,); return whether all are finite there."""
    finite = True
    for c in range(values.size):
        row[c] = values[c]
        finite &= np.isfinite(row[c])
    return finite


@compiled
def first_bad(x):  # type: ignore[no-untyped-def]
    """Return row * width + column of the first value of x, float32 (n, d), not finite, or -1."""
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            if not np.isfinite(x[r, c]):
                return r * x.shape[1] + c
    return -1


class Schema:
    """The names of the columns, and the fast ways in."""

    def __init__(self, names: Iterable[Name] = ()) -> None:
        self.names: list[Name] = []
        self.index: dict[Name, int] = {}
        self.extend(names)

    def __len__(self) -> int:
        return len(self.names)

    def __getstate__(self) -> list[Name]:
        return self.names

    def __setstate__(self, names: list[Name]) -> None:
        self.__init__(names)  # type: ignore[misc]

    def extend(self, names: Iterable[Name]) -> None:
        """Append the names that are new, in their order."""
        before = len(self.names)
        for name in names:
            if name not in self.index:
                self.index[name] = len(self.names)
                self.names.append(name)
        if len(self.names) > before or not hasattr(self, "_pack"):
            self._compile_access()

    def _compile_access(self) -> None:
        width = len(self.names)
        self._pack = struct.Struct(f"{width}d")
        self._get = itemgetter(*self.names) if width > 1 else None

    def row(self, x: Mapping[Name, Any]) -> np.ndarray:
        """Return an event as float32 (1, d); unseen features count 0, as in all that is stored.

        Raises
        ------
        FeatureError
            A value is a string, None or anything else that is no number; NaN, infinite, or beyond
            single precision.

        """
        return np.ascontiguousarray(self.wider_row(x)[0][:, : len(self.names)])

    def packed(self, x: Mapping[Name, Any]) -> np.ndarray | None:
        """Return an event with exactly the known features as float64 (d,), read-only; else None.

        None also for values that are no plain numbers; what is not finite is passed on.
        """
        if self._get is None or len(x) != len(self.names):
            return None
        try:
            return np.frombuffer(self._pack.pack(*self._get(x)), np.float64)
        except (KeyError, struct.error, TypeError, OverflowError):
            return None

    def wider_row(self, x: Mapping[Name, Any]) -> tuple[np.ndarray, list[Name]]:
        """Return an event with unseen features as further columns, and their names.

        Nothing is taken note of until `extend` is called with the names: an event may still be
        refused for another reason.
        """
        values = self.packed(x)
        if values is not None:
            row = np.empty((1, len(self.names)), np.float32)
            if narrow(values, row[0]):
                return row, []
        return self._checked_row(x)

    def _checked_row(self, x: Mapping[Name, Any]) -> tuple[np.ndarray, list[Name]]:
        if not isinstance(x, Mapping):
            raise FeatureError(f"an event is a dict of features, not {type(x).__name__}: {x!r:.80}")
        checked = {name: check_number_feature(name, value) for name, value in x.items()}
        new = in_order(name for name in checked if name not in self.index)
        columns = self.index | {name: len(self.names) + i for i, name in enumerate(new)}
        row = np.zeros((1, len(columns)), np.float32)
        for name, value in checked.items():
            row[0, columns[name]] = value
        return row, new

    def rows(self, names: list[Name], values: np.ndarray) -> np.ndarray:
        """Return a matrix with its own column names as float32 (n, d): see `row`."""
        x, _ = self.wider_rows(names, values, None)
        return np.ascontiguousarray(x[:, : len(self.names)])

    def wider_rows(
        self, names: list[Name], values: np.ndarray, order: list[Name] | None
    ) -> tuple[np.ndarray, list[Name]]:
        """Return a matrix with unseen features as further columns, and their names.

        Parameters
        ----------
        names
            The columns of `values`.
        values
            Numbers, (n, len(names)); missing ones are 0 already.
        order
            The names in the order in which events one by one would show them; None = all in the
            first row.

        """
        with np.errstate(over="ignore"):
            x = np.ascontiguousarray(values, dtype=np.float32)
        bad = first_bad(x)
        if bad >= 0:
            r, c = divmod(bad, x.shape[1])
            raise FeatureError(f"row {r}: {_refusal(names[c], values[r, c].item())}")
        candidates = in_order(names) if order is None else order
        new = [name for name in candidates if name not in self.index]
        all_names = self.names + new
        if names == all_names:
            return x, new
        columns = self.index | {name: len(self.names) + i for i, name in enumerate(new)}
        out = np.zeros((len(x), len(all_names)), np.float32)
        for c, name in enumerate(names):
            out[:, columns[name]] = x[:, c]
        return out, new


def _refusal(name: Name, value: Any) -> str:
    if isinstance(value, float | np.floating) and _LARGEST < abs(float(value)) < math.inf:
        return f"feature {name!r} is {value!r}: beyond single precision (3.4e38); scale it first"
    return (
        f"feature {name!r} is {value!r}: only finite numbers are accepted; leave a missing feature "
        "out, one-hot encode text"
    )


def check_number_feature(name: Name, value: Any) -> float:
    """Return a feature's value as a float.

    Raises
    ------
    FeatureError
        It is no number, not finite, or beyond single precision.

    """
    if isinstance(value, (str, bytes, complex)) or value is None:
        raise FeatureError(_refusal(name, value))
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise FeatureError(_refusal(name, value)) from error
    if not abs(number) <= _LARGEST:
        raise FeatureError(_refusal(name, number))
    return number
