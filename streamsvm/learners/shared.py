"""Objects that one thread changes while others read them."""

from __future__ import annotations

import copy
import threading
from typing import Any, Self


class Shared:
    """Has a lock that all hold who use the content; copies are of one moment, with their own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(contents)
        self._lock = threading.RLock()

    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        with self._lock:
            contents = copy.deepcopy(self.__getstate__(), known)
        copied = type(self).__new__(type(self))
        copied.__setstate__(contents)
        return copied
