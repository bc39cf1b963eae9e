"""Whether compiled code may read Python objects on this interpreter, and how to switch that off.

The environment variable ``STREAMSVM_NATIVE_EVENTS`` is read at import: ``0`` switches native events
off; with ``debug`` every call first compares the addresses in its table with those of the arrays.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
import threading
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from streamsvm._compile import JIT, address_of
from streamsvm.errors import ParameterError

TRIED = ((3, 11), (3, 12), (3, 13))
"""Versions of CPython under which the tests of native events have passed."""

VARIABLE = "STREAMSVM_NATIVE_EVENTS"

# Offsets in bytes from the address of an object: of the pointer to its type, which ends the header
# of every object, and of the value of a float, which follows the header.
TYPE_OFFSET = object.__basicsize__ - 8
VALUE_OFFSET = float.__basicsize__ - 8


def _mode() -> str:
    mode = os.environ.get(VARIABLE, "").strip().lower() or "1"
    if mode not in ("0", "1", "debug"):
        raise ParameterError(f"{VARIABLE}={mode!r}: use 0 (off), 1 (on) or debug")
    return mode


def _word_at(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _lock_offset() -> int | None:
    """Return the offset of a word of an RLock that is 0 exactly while the lock is free.

    In bytes from the address of the lock; None if there is no such word. The interpreter does not
    document the layout of locks, so it is found by trial.
    """
    lock = threading.RLock()

    def words() -> list[int]:
        return [_word_at(id(lock) + 8 * i) for i in range(type(lock).__basicsize__ // 8)]

    seen = [words()]
    for change in (lock.acquire, lock.acquire, lock.release, lock.release):
        change()
        seen.append(words())
    for i in range(object.__basicsize__ // 8, len(seen[0])):
        if [found[i] != 0 for found in seen] == [False, True, True, True, False]:
            return 8 * i
    return None


def _are_types_found() -> bool:
    """Tell whether the type of each sample object is at `TYPE_OFFSET`."""
    numbers: tuple[Any, ...] = (1.5, np.float64(1.5), np.float32(1.5), 7, True)
    others: tuple[Any, ...] = ("name", {}, Counter(), defaultdict(int))
    return all(_word_at(id(x) + TYPE_OFFSET) == id(type(x)) for x in numbers + others)


def _are_values_found() -> bool:
    """Tell whether the value of each sample float is at `VALUE_OFFSET`."""
    numbers = (0.0, -1.5, 1e300, 5e-324)
    kinds: tuple[tuple[Any, Any], ...] = (
        (float, ctypes.c_double),
        (np.float64, ctypes.c_double),
        (np.float32, ctypes.c_float),
    )
    for kind, c_kind in kinds:
        for number in numbers:
            with np.errstate(over="ignore"):
                thing = kind(number)
            if c_kind.from_address(id(thing) + VALUE_OFFSET).value != thing:
                return False
    return True


def _own_api() -> ctypes.PyDLL:
    """Return the interpreter's C functions as objects of our own.

    Those of `ctypes.pythonapi` are shared with all libraries of the process, which may have given
    them other types of arguments.
    """
    return ctypes.PyDLL(ctypes.pythonapi._name, handle=ctypes.pythonapi._handle)


def _are_functions_right() -> bool:
    """Tell whether the interpreter's C functions return what is expected for sample objects."""
    api = _own_api()
    api.PyDict_Next.argtypes = (ctypes.py_object, *[ctypes.c_void_p] * 3)
    api.PyLong_AsLongLongAndOverflow.argtypes = (ctypes.py_object, ctypes.c_void_p)
    api.PyLong_AsLongLongAndOverflow.restype = ctypes.c_longlong
    api.PyUnicode_Compare.argtypes = (ctypes.py_object, ctypes.py_object)
    event = {"a": 1.0, "b": 2, 3: True}
    position, key, value, overflow = (ctypes.c_int64(0) for _ in range(4))
    read = []
    while api.PyDict_Next(event, *map(ctypes.addressof, (position, key, value))):
        read.append((key.value, value.value))
    if read != [(id(name), id(number)) for name, number in event.items()]:
        return False
    found = []
    for number in (-1, 2**63 - 1, -(2**63), 2**63):
        at = ctypes.addressof(overflow)
        overflow.value = 0
        found.append((api.PyLong_AsLongLongAndOverflow(number, at), overflow.value != 0))
    if found != [(-1, False), (2**63 - 1, False), (-(2**63), False), (-1, True)]:
        return False
    pairs = (("a", "b"), ("b", "a"), ("name", "".join(["na", "me"])))
    return [int(np.sign(api.PyUnicode_Compare(*pair))) for pair in pairs] == [-1, 1, 0]


def _is_layout_known() -> bool:
    try:
        return _are_types_found() and _are_values_found() and _are_functions_right()
    except (AttributeError, ctypes.ArgumentError):
        return False


def _is_tried() -> bool:
    # Without the global interpreter lock another thread could change an event while it is read.
    has_lock = not sysconfig.get_config_var("Py_GIL_DISABLED")
    return sys.implementation.name == "cpython" and sys.version_info[:2] in TRIED and has_lock


_MODE = _mode()
DEBUG = _MODE == "debug"
"""Whether each call first compares the addresses in its table with those of the arrays."""

LOCK_OFFSET = _lock_offset() if JIT and _is_tried() else None
POSSIBLE = LOCK_OFFSET is not None and _is_layout_known()
"""Whether compiled code can read the objects of this interpreter: checked at import."""

SWITCH = np.array([POSSIBLE and _MODE != "0"], np.int64)
"""int64 (1,): not 0 while native events are on; compiled code reads it at each call."""

SWITCH_ADDRESS = address_of(SWITCH)


def is_on() -> bool:
    """Tell whether events of linear learners and scalers are read by compiled code.

    Returns
    -------
    True while native events are on. Always False on an interpreter version under which they were
    not tested, or whose objects have another layout.

    """
    return bool(SWITCH[0])


def switch(on: bool) -> bool:
    """Switch native events on or off, for all models of this process, from the next call on.

    Parameters
    ----------
    on
        Whether compiled code may read events. Without it results are the same, but slower.

    Returns
    -------
    Whether native events are on now: False if this interpreter does not allow them.

    """
    SWITCH[0] = POSSIBLE and bool(on)
    return is_on()
