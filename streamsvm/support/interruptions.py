"""Compiled calls whose results are known whatever interrupts the program."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from typing import Any


def append_result(
    results: list[Any], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """Call a compiled function, and append what it returns to `results`.

    Signal handlers, such as that of Ctrl-C, run between two steps of Python code, and may raise an
    exception just after a function has returned, before its result is assigned. Here there is no
    Python code in between: if `results` is no longer after an exception, nothing was done.
    """
    results.extend(starmap(function, [arguments]))
