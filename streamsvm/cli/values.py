"""Readers of the values of options: what is out of range is refused before anything runs."""

import argparse
import json
import math
from collections.abc import Callable
from typing import Any


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a reader of whole numbers of a range, a ``type`` for `argparse`.

    >>> from streamsvm.cli.values import whole
    >>> whole(1)("20")
    20
    """
    wanted = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r}: use a whole number {wanted}")
        return value

    return read


def number(text: str) -> float:
    """Read a finite number of at least 0."""
    return _finite(text, "a number of at least 0", lambda value: value >= 0.0)


def positive(text: str) -> float:
    """Read a finite number above 0."""
    return _finite(text, "a number above 0", lambda value: value > 0.0)


def limit(text: str) -> float | None:
    """Read a finite number of at least 1, or "none": None."""
    if text.lower() == "none":
        return None
    return _finite(text, "a number of at least 1, or none", lambda value: value >= 1.0)


def _finite(text: str, wanted: str, is_meant: Callable[[float], bool]) -> float:
    value = _float(text)
    if not (math.isfinite(value) and is_meant(value)):
        raise argparse.ArgumentTypeError(f"{text!r}: use {wanted}")
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def number_or_share(text: str) -> float:
    """Read a number of examples, as an int, or a share of them, as a float from 0 to 1."""
    if text.endswith("%"):
        found = _float(text[:-1]) / 100.0
    else:
        found = int(text) if text.isdecimal() else _float(text)
    if isinstance(found, float) and not 0.0 <= found <= 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r}: use a number of examples, as 100, or a share, as 1% or .01, up to 100%"
        )
    return found


def path(text: str) -> str:
    """Read a path; an empty one, which a script's unset variable gives, is none."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a path")
    return text


def names(text: str) -> list[str]:
    """Read names with commas between them."""
    found = text.split(",")
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r}: use names with commas between them")
    return found


def split(text: str | None) -> list[str]:
    """Return the names in an option; none if it was not given, or is empty."""
    return text.split(",") if text else []


def label_of(text: str) -> Any:
    """Return the label that a text means: its JSON value, or the text itself.

    ``True`` and ``False`` may be written as in Python.

    >>> from streamsvm.cli.values import label_of
    >>> label_of("False"), label_of("7"), label_of("spam")
    (False, 7, 'spam')
    """
    if text in ("True", "False"):
        return text == "True"
    try:
        label = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(label, (list, dict)) else label
