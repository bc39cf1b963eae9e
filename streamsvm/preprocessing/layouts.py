"""How events are read by transformers, and which of their features are one-hot."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.features.event_reader import packer
from streamsvm.features.events import check_number_feature
from streamsvm.features.names import Name
from streamsvm.preprocessing.scaling import are_usable


class Layout(NamedTuple):
    """How to read events that have the same names in the same order."""

    columns: np.ndarray  # int64: the columns of the names, or `ONE_HOT`, `UNKNOWN`
    pack: Callable[..., bytes]  # packs their values as float64

    @classmethod
    def of(cls, columns: Sequence[int] | np.ndarray) -> Layout:
        """Return the layout of events whose names have these columns."""
        return cls(np.array(columns, np.int64), packer("d", len(columns)))


def is_one_hot(name: Name, pattern: str | None) -> bool:
    """Tell whether a feature is one-hot by its name, or as a regular expression is found in it."""
    if not isinstance(name, str):
        return False
    return "=" in name or (pattern is not None and bool(re.search(pattern, name)))


def values_of(layout: Layout, event: dict[Name, Any]) -> np.ndarray:
    """Return the values of an event as float64 (d,); raise FeatureError if one is not usable."""
    try:
        # Of bytes that can be written, as all other arrays are.
        values = np.frombuffer(bytearray(layout.pack(*event.values())), np.float64)
    except (struct.error, TypeError, OverflowError):
        values = np.array([check_number_feature(*pair) for pair in event.items()])
    if not are_usable(values):
        for pair in event.items():
            check_number_feature(*pair)
        raise FeatureError("a value is NaN in one look at the event, and not in another")
    return values
