"""Objects that one thread changes while others read them."""

from __future__ import annotations

import copy
import threading
from typing import Any, Self

from streamsvm.support.writable import writable


class Locked:
    """Has a lock that all hold who use the content; copies are of one moment, with their own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def clone(self, new_params: Any = None, include_attributes: bool = False) -> Any:
        """Return a new one of the same parameters, or with what it has learnt: see River's."""
        if include_attributes and not new_params:
            # Not attribute by attribute, which a lock does not bear.
            return copy.deepcopy(self)
        return super().clone(new_params, include_attributes)  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(writable(contents))
        self._lock = threading.RLock()

    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        with self._lock:
            contents = copy.deepcopy(self.__getstate__(), known)
        copied = type(self).__new__(type(self))
        copied.__setstate__(contents)
        return copied
