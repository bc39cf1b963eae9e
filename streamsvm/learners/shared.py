"""Objects that one thread changes while others read them."""

from __future__ import annotations

import copy
import ctypes
import sys
import threading
from typing import Any, Self

from streamsvm.support.owned import owned


def _place_of_holder() -> int | None:
    """Return where an RLock says, in a word that is not 0, that it is held: bytes from its start.

    Found by trying, as the interpreter promises none; None if it cannot be found.
    """
    lock = threading.RLock()

    def words() -> list[int]:
        n = type(lock).__basicsize__ // 8
        return [ctypes.c_int64.from_address(id(lock) + 8 * i).value for i in range(n)]

    seen = [words()]
    for change in (lock.acquire, lock.acquire, lock.release, lock.release):
        change()
        seen.append(words())
    for i in range(object.__basicsize__ // 8, len(seen[0])):
        if [found[i] != 0 for found in seen] == [False, True, True, True, False]:
            return 8 * i
    return None


HOLDER = _place_of_holder() if sys.implementation.name == "cpython" else None
"""Where compiled code sees whether an RLock is held, without taking it: bytes from its address.

Who has the interpreter's lock and finds the other one free is alone until that is given up.
"""


class Shared:
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
        self.__dict__.update(owned(contents))
        self._lock = threading.RLock()

    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        with self._lock:
            contents = copy.deepcopy(self.__getstate__(), known)
        copied = type(self).__new__(type(self))
        copied.__setstate__(contents)
        return copied
