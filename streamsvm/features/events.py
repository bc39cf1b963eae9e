"""Snapshots of events, and their values as floats."""

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.features.names import Name
from streamsvm.support.rows import LARGEST

Event = Mapping[Any, object]
"""Features by name. A name is any hashable; as a key of `Mapping` it must be the type given."""

_PLAIN = frozenset((Counter, defaultdict, OrderedDict))
_ADVICE = "pass a plain dict, which no other thread changes meanwhile"


def snapshot(x: Any) -> dict[Name, Any]:
    """Return a copy of an event, any mapping, as a new plain dict in the event's order.

    A dict (also a `Counter`, `defaultdict` or `OrderedDict`) is copied in one step, which no other
    thread can interrupt, and without a call of ``__missing__``. Any other mapping, and any other
    subclass of dict, is read by ``items()``, which must agree with its iteration and its length.
    FeatureError: the event is no mapping, or contradicts itself.
    """
    if x.__class__ is dict or x.__class__ in _PLAIN:
        return dict.copy(x)
    if not isinstance(x, Mapping):
        raise FeatureError(f"an event is a dict of features, not {type(x).__name__}: {x!r:.80}")
    try:
        pairs, names, n = list(x.items()), list(x), len(x)
        content = dict(pairs)
    except (TypeError, ValueError, LookupError, RuntimeError) as error:
        raise FeatureError(
            f"an event of type {type(x).__name__} cannot be read ({error!r}); {_ADVICE}"
        ) from error
    if not (len(content) == len(pairs) == n and list(content) == names):
        raise FeatureError(
            f"an event of type {type(x).__name__} contradicts itself: items() gives {len(pairs)} "
            f"features, iterating gives {len(names)}, and len() is {n}, or their names or their "
            f"order differ; {_ADVICE}"
        )
    return content


_USUAL = (float, int)


def present(event: dict[Name, Any]) -> dict[Name, Any]:
    """Return an event without missing values: None and NaN."""
    missing = [name for name, value in event.items() if is_missing(value)]
    return {n: v for n, v in event.items() if n not in missing} if missing else event


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, or a null."""
    if value.__class__ in _USUAL:
        return bool(value != value)
    if isinstance(value, np.complexfloating):
        return False
    try:
        return value is None or value is np.ma.masked or math.isnan(value)
    except (TypeError, ValueError, OverflowError):
        return is_null(value)


def is_null(value: Any) -> bool:
    """Tell whether a value is pandas' NA or NaT, or a null of Arrow, which are no numbers."""
    # By their names, as pandas need not be there.
    return (
        type(value).__name__ in ("NAType", "NaTType") or getattr(value, "is_valid", None) is False
    )


def fault_of(value: Any) -> str:
    """Return what is wrong with a value that is no finite number of single precision."""
    size = math.inf
    if isinstance(value, int | float):
        # Not converted: an integer may be larger than any float.
        size = abs(value)
    elif isinstance(value, np.floating):
        size = abs(float(value))
    return (
        "beyond single precision (3.4e38)" if LARGEST < size < math.inf else "not a finite number"
    )


def refusal(name: Name, value: Any) -> str:
    """Return the message for a value that is refused."""
    # Python refuses to write integers of thousands of digits.
    is_long = isinstance(value, int) and value.bit_length() > 256
    shown = f"an integer of {value.bit_length()} bits" if is_long else repr(value)
    if (fault := fault_of(value)) != "not a finite number":
        return f"feature {name!r} is {shown}: {fault}; correct it, or leave the feature out"
    return (
        f"feature {name!r} is {shown}: only finite numbers are accepted; leave a missing feature "
        "out (or give None), one-hot encode text"
    )


def check_number_feature(name: Name, value: Any) -> float:
    """Return a feature's value as a float; NaN if it is missing: None, NaN, or another null.

    FeatureError: the value is no number, infinite, or beyond single precision.
    """
    if value is None or value is np.ma.masked:
        return math.nan
    if isinstance(value, (str, bytes, complex, np.complexfloating)):
        raise FeatureError(refusal(name, value))
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        if is_null(value):
            return math.nan
        raise FeatureError(refusal(name, value)) from error
    if abs(number) > LARGEST:
        raise FeatureError(refusal(name, number))
    return number
