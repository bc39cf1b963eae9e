"""Objects that one thread changes while others read them."""

from __future__ import annotations

import copy
import threading
from array import array
from collections.abc import Callable
from typing import Any, Self


class SeenLock:
    """A lock that its holder may take again, and that compiled code sees without taking it.

    Who has the interpreter's lock, and finds this one free, is alone until that is given up.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._held = array("q", [0])
        self.address = self._held.buffer_info()[0]
        """Of an int64: how often it is held."""

    def __enter__(self) -> None:
        self._lock.acquire()
        self._held[0] += 1

    def __exit__(self, *error: object) -> None:
        self._held[0] -= 1
        self._lock.release()


class Shared:
    """Has a lock that all hold who use the content; copies are of one moment, with their own."""

    _new_lock: Callable[[], Any] = threading.RLock

    def __init__(self) -> None:
        self._lock = self._new_lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(contents)
        self._lock = self._new_lock()

    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        with self._lock:
            contents = copy.deepcopy(self.__getstate__(), known)
        copied = type(self).__new__(type(self))
        copied.__setstate__(contents)
        return copied
