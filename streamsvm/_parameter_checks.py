"""Parameters and arguments, checked: what was given, what is accepted."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np

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


def weights_of(w: Any, n: int) -> np.ndarray:
    """Return example weights as float64 (n,), from one number or n.

    Raises
    ------
    ParameterError
        They are not from 0 to `LARGEST_FACTOR`, or not one or n.

    """
    if isinstance(w, float) and w == 1.0:
        return np.ones(n)
    try:
        given = np.asarray(w)
        if given.dtype.kind == "c":
            raise TypeError
        weights = np.broadcast_to(given.astype(np.float64), (n,)).copy()
    except (TypeError, ValueError, OverflowError) as error:
        # A number may have too many digits to be written.
        shown = "a number above 1e308" if isinstance(error, OverflowError) else f"{w!r:.80}"
        raise ParameterError(f"w={shown}: use one number, or one a row ({n})") from error
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
    numbers = np.asarray(ids)
    is_whole = numbers.shape == (n,) and numbers.dtype.kind in "iu"
    if not is_whole or (n and not (numbers.min() >= 1 and numbers.max() <= LARGEST_ID)):
        raise ParameterError(
            f"ids: use {n} whole numbers of at least 1, and at most {LARGEST_ID}, one a row"
        )
    return numbers.astype(np.int64)


def _check_is_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ParameterError(f"{name}={value!r}: use a number")


def check_number(name: str, value: Any, low: float, most: float = math.inf) -> float:
    """Return a parameter as a float, or refuse it with its name and range."""
    _check_is_number(name, value)
    if not (low <= value < math.inf and value <= most):
        limit = "" if most == math.inf or value < low else f" and at most {most:,g}"
        raise ParameterError(f"{name}={value!r}: use a finite number of at least {low:g}{limit}")
    return float(value)


def check_positive(name: str, value: Any) -> float:
    """Return a parameter as a float above 0, or refuse it with its name and range."""
    _check_is_number(name, value)
    if not 0.0 < value < math.inf:
        kind = "number" if math.isfinite(value) else "finite number"
        raise ParameterError(f"{name}={value!r}: use a {kind} above 0")
    return float(value)


def check_cost(C: Any) -> float:
    """Return C as a float above 0 and at most `LARGEST_FACTOR`, or refuse it."""
    if check_positive("C", C) > LARGEST_FACTOR:
        raise ParameterError(f"C={C!r}: use a number above 0 and at most {LARGEST_FACTOR:g}")
    return float(C)


def check_class_weight(class_weight: Any, takes_balanced: bool = False) -> None:
    """Refuse what is not None, a dict of factors, or "balanced" where it is taken."""
    if class_weight is None or (takes_balanced and class_weight == "balanced"):
        return
    if not isinstance(class_weight, dict):
        use = "None, 'balanced'" if takes_balanced else "None"
        given = f"class_weight={class_weight!r}"
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
        raise ParameterError(f"{name}={value!r}: use a whole number of at least {least}{other}")
    if value > most:
        # A number may have too many digits to be written.
        shown = repr(value) if int(value).bit_length() <= 1024 else "a huge number"
        raise ParameterError(f"{name}={shown}: use a whole number of at most {most}{other}")
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
