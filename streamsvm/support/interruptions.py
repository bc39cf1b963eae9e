"""Calls of which it is known, whatever interrupts the program, whether they were made."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from itertools import starmap
from typing import Any, Self

Changes = tuple[dict[str, Any], dict[str, Any]]
"""The attributes of an object, and those that change, with their new values."""


def append_result(
    results: list[Any], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """Call a compiled function, and append what it returns to `results`.

    Signal handlers, such as that of Ctrl-C, run between two steps of Python code, and may raise an
    exception just after a function has returned, before its result is assigned. Here there is no
    Python code in between: if `results` is no longer after an exception, nothing was done.
    """
    results.extend(starmap(function, [arguments]))


def change_together(changes: list[Changes]) -> None:
    """Change attributes of several objects; what interrupts it changes all of them or none."""
    # Without Python code in between, as above.
    deque(starmap(dict.update, changes), 0)


class Replaceable:
    """Base class of objects that are not changed, but replaced by others, in one step."""

    def changed(self, **attributes: object) -> Self:
        """Return one with other values of some attributes, which shares all else."""
        new = copy.copy(self)
        new.__dict__.update(attributes)
        return new
