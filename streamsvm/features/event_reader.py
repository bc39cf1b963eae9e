"""Events as packed bytes, ready to be copied into the buffers of compiled code."""

import math
import struct
import warnings
from collections.abc import Iterable
from functools import cache
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np

from streamsvm.features.events import Event, check_number_feature, is_missing, present, snapshot
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema, in_order
from streamsvm.support.rows import LARGEST

LONGEST = 1024
"""The largest number of features of a sparse event that is read here."""

Packed = tuple[int, int, bytes, bytes, tuple[Name, ...] | list[Name]]
"""The number of values; the number of features of the schema with the new ones; the values
(float64); their columns (int32; empty for a dense event); the names of the new features."""

COMPLEX = np.exceptions.ComplexWarning
"""What NumPy warns of as it converts its complex numbers to floats, without the imaginary part."""

UNUSUAL = (KeyError, TypeError, ValueError, OverflowError, struct.error, COMPLEX)
"""What reading and packing raises if an event is not usual; the general path raises the proper
error, or learns it."""


def refuse_complex() -> None:
    """Let NumPy's complex numbers raise `COMPLEX` where this package converts them.

    To look at the type of each value would take longer than to read the event.
    """
    warnings.filterwarnings("error", category=COMPLEX, module=r"streamsvm\.")


refuse_complex()


@cache
def packer(kind: str, n: int) -> Any:
    """Return a function that packs n numbers as bytes: "d" as float64, "i" as int32."""
    return struct.Struct(f"{n}{kind}").pack


def getter(names: list[Name]) -> Any:
    """Return a function that reads the values of at least two names as a tuple."""
    return itemgetter(*names)


def are_usable(values: bytes) -> bool:
    """Tell whether all values, float64, are missing or finite in single precision."""
    return not bool((np.abs(np.frombuffer(values)) > LARGEST).any())


class EventReader:
    """Reads events as rows of the features of a schema, which is not changed."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def dense(self, x: Event, learning: bool) -> Packed | None:
        """Return the values of all features of the schema, NaN for those that the event lacks.

        `learning`: new features are appended; else they are checked and left out. None: the general
        path must read the event, because a value is no number, say.
        """
        try:
            x = snapshot(x)
            if len(x) > self.schema.limit:
                return None
            if None in x.values():
                x = present(x)
            new = self.new_names(x, self.schema.n_names, learning)
            if new is None:
                return None
            get = x.get
            values = [get(name, math.nan) for name in self.schema.names]
            values += map(x.__getitem__, new)
            return len(values), len(values), packer("d", len(values))(*values), b"", new
        except UNUSUAL:
            return None

    def new_names(self, x: dict[Name, Any], d: int, learning: bool) -> Any:
        """Return the new names of an event; None if the schema has no room for all of them."""
        index = self.schema.index
        if x.keys() <= index.keys():
            return ()
        # A new feature begins with its first value.
        new = [n for n, value in x.items() if n not in index and not is_missing(value)]
        if learning:
            # Of an event read before, which was refused, some may not have fitted.
            self.schema.n_left_out = 0
            fits = d + len(new) <= self.schema.limit and len(self.schema.fitting(new)) == len(new)
            return in_order(new) if fits else None
        for name in new:
            check_number_feature(name, x[name])
        return ()

    def sparse(self, x: Event, learning: bool) -> Packed | None:
        """Return the features of an event with their columns, -1 for a feature that is left out.

        With hashed names, twice the column, plus 1 if the value changes its sign. `learning` and
        None are as for `dense`; None also for an event of more than `LONGEST` features.
        """
        try:
            x = snapshot(x)
            n, schema = len(x), self.schema
            if n > LONGEST or (schema.buckets is None and n > schema.limit):
                return None
            d, new = len(schema), ()
            columns: Iterable[int]
            if schema.buckets is not None:
                columns = map(schema.hashed_columns.__getitem__, x)
            else:
                columns = tuple(map(schema.index.get, x, repeat(-1)))
                if learning and -1 in columns:
                    new = self.new_names(x, d, learning)
                    if new is None:
                        return None
                    at = {name: d + i for i, name in enumerate(new)}
                    pairs = zip(x, columns, strict=True)
                    columns = [c if c >= 0 else at.get(name, -1) for name, c in pairs]
            packed = packer("i", n)(*columns)
            return n, d + len(new), packer("d", n)(*x.values()), packed, new
        except UNUSUAL:
            return None
