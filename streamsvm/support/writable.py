"""Copies of the attributes of objects, where arrays are read-only or must not be shared."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

import numpy as np

_PLAIN_STATE: Any = object.__getstate__


def writable(contents: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an object with copies of read-only arrays.

    Unpickling with out-of-band buffers (protocol 5, memory-mapped files) makes such arrays. They
    are copied inside tuples and lists, too. An array that occurs several times is copied once.
    """
    copies: dict[int, np.ndarray] = {}
    return {name: _writable(part, copies) for name, part in contents.items()}


def _writable(content: Any, copies: dict[int, np.ndarray]) -> Any:
    if isinstance(content, np.ndarray) and not content.flags.writeable:
        if id(content) not in copies:
            copies[id(content)] = content.copy()
        return copies[id(content)]
    if isinstance(content, (tuple, list)):
        parts = [_writable(part, copies) for part in content]
        if any(new is not old for new, old in zip(parts, content, strict=True)):
            return content._make(parts) if hasattr(content, "_make") else type(content)(parts)
    if _is_plain_part(content):
        # It was just made, and belongs to this object only.
        parts_of = content.__dict__
        parts_of.update({name: _writable(part, copies) for name, part in parts_of.items()})
    return content


def _is_plain_part(content: Any) -> bool:
    """Tell whether it is an object of this package without a way of its own to be copied."""
    kind: Any = type(content)
    return _is_ours(content) and kind.__getstate__ is _PLAIN_STATE


def _is_ours(content: Any) -> bool:
    """Tell whether it is an object of this package, or of a class that derives from one of it."""
    of_package = any(kind.__module__.startswith("streamsvm.") for kind in type(content).__mro__)
    return of_package and hasattr(content, "__dict__")


def own_copies(contents: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an object with copies of all that may be changed in place.

    Arrays, lists, dicts and objects of this package are copied, also inside each other and inside
    tuples; sets and deques, too. Other objects, such as labels and feature names, are shared. An
    object that occurs several times is copied once.
    """
    copies: dict[int, Any] = {}
    return {name: _own(part, copies) for name, part in contents.items()}


def _own(content: Any, copies: dict[int, Any]) -> Any:
    if id(content) not in copies:
        copies[id(content)] = _copied(content, copies)
    return copies[id(content)]


def _copied(content: Any, copies: dict[int, Any]) -> Any:
    kind: Any = type(content)
    if isinstance(content, np.ndarray):
        return content.copy("K")
    if kind is list:
        return [_own(part, copies) for part in content]
    if isinstance(content, dict):
        made = copy.copy(content)
        made.update({key: _own(part, copies) for key, part in content.items()})
        return made
    if isinstance(content, (set, deque)):
        return copy.copy(content)
    if isinstance(content, tuple):
        parts = [_own(part, copies) for part in content]
        if all(new is old for new, old in zip(parts, content, strict=True)):
            return content
        return kind._make(parts) if hasattr(kind, "_make") else kind(parts)
    if not _is_ours(content):
        return content
    if kind.__getstate__ is not _PLAIN_STATE:
        return copy.copy(content)
    made = kind.__new__(kind)
    made.__dict__.update({name: _own(part, copies) for name, part in content.__dict__.items()})
    return made
