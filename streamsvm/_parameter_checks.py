"""Parameters and arguments, checked: what was given, what is accepted."""

from __future__ import annotations

import math
import numbers
import re
import sys
from collections.abc import Mapping, Set
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from streamsvm.errors import ParameterError

LARGEST_SIZE = 2**31 - 1
"""The largest bound on a number of things in memory; solvers number them by 32 bits."""

LARGEST_FACTOR = 1e12
"""The largest C, class weight and example weight. Their product and its square, times the number of
examples and the largest k(x, x), are then far from the largest number of double precision."""

MOST_STEPS = 1_000_000
"""The largest number of steps after one example."""

LARGEST_SEED = 2**256 - 1
"""The largest whole number that model files hold."""


LARGEST_ID = 2**61
"""Examples without ids are counted on from the largest one, which files must be able to hold."""


_NO_COLUMN = (str, bytes, bytearray, memoryview, Mapping, Set, pa.Scalar, np.void)


def shown(value: Any) -> str:
    """Return a value as some characters of one line, for a message."""
    try:
        return " ".join(f"{value!r:.80}".split())
    except ValueError:
        # Python refuses to write integers of thousands of digits.
        return "a huge number"


def column_of(given: Any, what: str, error: type[Exception]) -> Any:
    """Return what was given for the rows of a batch; of a frame of one column, this column.

    Parameters
    ----------
    given
        A list, array, series, or any other iterable that has an order; or a frame.
    what
        What the values are, in the plural.
    error
        Raised if it is none of these, but a text, dict, set, single value, or several columns.

    """
    if type(given) is list:
        return given
    kind, columns = type(given).__name__, _columns_of(given)
    if columns is not None:
        if len(columns) == 1:
            return columns[0]
        is_what = f"{kind} of {len(columns)} columns"
    elif isinstance(given, _NO_COLUMN) or not hasattr(type(given), "__iter__"):
        is_what = f"{kind}, {shown(given)}"
    elif (axes := getattr(given, "ndim", 1)) != 1:
        is_what = f"{kind} of {axes} dimensions"
    else:
        return given if hasattr(given, "__len__") else list(given)
    raise error(
        f"{what} are of type {is_what}: give one for each row, as a list, an array or series of "
        "one dimension, or a frame of one column"
    )


def _columns_of(given: Any) -> list[Any] | None:
    """Return the columns of a frame or record array; None: it is neither."""
    if isinstance(given, pa.RecordBatch):
        return list(given.columns)
    if isinstance(given, np.ndarray):
        return [given[name] for name in given.dtype.names] if given.dtype.names else None
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    # By their places: an integer name would be taken for the number of a row.
    return [frame[:, c].to_native() for c in range(frame.shape[1])]


def weights_of(w: Any, n: int) -> np.ndarray:
    """Return example weights as float64 (n,), from one number or n.

    Raises
    ------
    ParameterError
        They are not from 0 to `LARGEST_FACTOR`, or not one or n.

    """
    if isinstance(w, float) and w == 1.0:
        return np.ones(n)
    is_one = isinstance(w, numbers.Number) or (isinstance(w, np.ndarray) and w.ndim == 0)
    try:
        given = w if is_one else column_of(w, "weights", TypeError)
        is_masked = isinstance(given, np.ma.MaskedArray)
        values = np.asarray(given.astype(np.float64).filled(np.nan) if is_masked else given)
        is_number = values.dtype.kind in "biuf"
        if not is_number and not (values.dtype.kind == "O" and all(map(_is_number, values.flat))):
            raise TypeError
        weights = values.astype(np.float64)
        if weights.shape not in ((), (n,)):
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        given = "a number above 1e308" if isinstance(error, OverflowError) else shown(w)
        raise ParameterError(f"w={given}: use one number, or one a row ({n})") from error
    weights = np.broadcast_to(weights, (n,)).copy()
    good = (weights >= 0.0) & (weights <= LARGEST_FACTOR)
    if not good.all():
        bad = weights[~good][0]
        raise ParameterError(f"w={bad:g}: weights are numbers from 0 to {LARGEST_FACTOR:g}")
    return weights


def numbers_of(ids: Any, n: int) -> np.ndarray | None:
    """Return ids as int64 (n,), or None for none.

    Raises
    ------
    ParameterError
        They are no whole numbers from 1, one a row.

    """
    if ids is None:
        return None
    given = column_of(ids, "ids", ParameterError)
    try:
        values = np.asarray(given)
        if values.dtype.kind == "O":
            # pandas' Int64, for one.
            values = np.asarray(values.tolist())
    except ValueError:
        values = np.zeros(())
    is_whole = values.shape == (n,) and values.dtype.kind in "iu" and not np.ma.is_masked(given)
    if not is_whole or (n and not (values.min() >= 1 and values.max() <= LARGEST_ID)):
        raise ParameterError(
            f"ids: use {n} whole numbers of at least 1, and at most {LARGEST_ID}, one a row"
        )
    return values.astype(np.int64)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, complex)


def _check_is_number(name: str, value: Any) -> float:
    """Return a parameter as a float, which may be infinite, or refuse it with its name."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or isinstance(value, np.complexfloating):
        raise ParameterError(f"{name}={shown(value)}: use a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_number(name: str, value: Any, low: float, most: float = math.inf) -> float:
    """Return a parameter as a float, or refuse it with its name and range."""
    number = _check_is_number(name, value)
    if not (low <= number < math.inf and number <= most):
        limit = "" if most == math.inf or number < low else f" and at most {most:,g}"
        raise ParameterError(
            f"{name}={shown(value)}: use a finite number of at least {low:g}{limit}"
        )
    return number


def check_positive(name: str, value: Any) -> float:
    """Return a parameter as a float above 0, or refuse it with its name and range."""
    number = _check_is_number(name, value)
    if not 0.0 < number < math.inf:
        kind = "number" if math.isfinite(number) else "finite number"
        raise ParameterError(f"{name}={shown(value)}: use a {kind} above 0")
    return number


def check_cost(C: Any) -> float:
    """Return C as a float above 0 and at most `LARGEST_FACTOR`, or refuse it."""
    if (number := check_positive("C", C)) > LARGEST_FACTOR:
        raise ParameterError(f"C={C!r}: use a number above 0 and at most {LARGEST_FACTOR:g}")
    return number


def check_class_weight(class_weight: Any, takes_balanced: bool = False) -> None:
    """Refuse what is not None, a dict of factors, or "balanced" where it is taken."""
    if class_weight is None or (takes_balanced and class_weight == "balanced"):
        return
    if not isinstance(class_weight, dict):
        use = "None, 'balanced'" if takes_balanced else "None"
        given = f"class_weight={shown(class_weight)}"
        raise ParameterError(f"{given}: use {use} or a dict {{label: factor of C}}")
    for label, factor in class_weight.items():
        check_number(f"class_weight[{label!r}]", factor, 0, LARGEST_FACTOR)


def check_size(name: str, value: Any, least: int = 1, most: int = LARGEST_SIZE) -> int | None:
    """Return a bound as an int, None for none."""
    return None if value is None else check_whole(name, value, least, most, ", or None")


def check_whole(name: str, value: Any, least: int, most: int = sys.maxsize, other: str = "") -> int:
    """Return a whole number as an int; `other` says what else is accepted."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or value < least:
        given = f"{name}={shown(value)}"
        raise ParameterError(f"{given}: use a whole number of at least {least}{other}")
    if value > most:
        given = repr(value) if int(value).bit_length() <= 1024 else "a huge number"
        raise ParameterError(f"{name}={given}: use a whole number of at most {most}{other}")
    return int(value)


def check_seed(seed: Any) -> Any:
    """Return a seed as it was given, or refuse it."""
    check_size("seed", seed, 0, LARGEST_SEED)
    return seed


def check_pattern(name: str, value: Any) -> None:
    """Refuse what is neither a regular expression nor None."""
    try:
        re.compile("" if value is None else value + "")  # not bytes
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise ParameterError(
            f"{name}={value!r:.80}: use a regular expression, such as '^colour_', or None ({error})"
        ) from error
