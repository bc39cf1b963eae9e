"""Dicts, lists, strings and numbers of Python, read and written by compiled code.

An object is given as its address, int64, as `id` returns it; the caller keeps it alive. The
functions are only for code that holds the global interpreter lock: `compiled_with_python` and
`compiled_for_c`. They call the interpreter's C API, and clear the exceptions that it raises.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
from numba import types

from streamsvm._compile import array_at, compiled_within, prefetch
from streamsvm.features.names import LONGEST_NAME
from streamsvm.native_events.availability import TYPE_OFFSET, VALUE_OFFSET


def of_python(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of the interpreter's C API for compiled code, by name and numba's types."""
    return types.ExternalFunction(name, result(*arguments))


_OBJECT = _ADDRESS = types.int64

dict_next: Any = of_python("PyDict_Next", types.int32, _OBJECT, _ADDRESS, _ADDRESS, _ADDRESS)
"""dict_next(dict, at, key, value): write the next key and its value to these addresses, and advance
the position at address `at`, which is 0 at first; return 0 if there is no further key."""

dict_size: Any = of_python("PyDict_Size", types.int64, _OBJECT)
"""dict_size(dict)."""

hash_of: Any = of_python("PyObject_Hash", types.int64, _OBJECT)
"""hash_of(object): the hash of a name."""

compare_text: Any = of_python("PyUnicode_Compare", types.int32, _OBJECT, _OBJECT)
"""compare_text(a, b): below 0 if string a sorts before b, 0 if they are equal, else above 0."""

_find: Any = of_python(
    "PyUnicode_FindChar", types.int64, _OBJECT, types.uint32, types.int64, types.int64, types.int32
)

list_size: Any = of_python("PyList_Size", types.int64, _OBJECT)
"""list_size(list)."""

item_of_list: Any = of_python("PyList_GetItem", _OBJECT, _OBJECT, types.int64)
"""item_of_list(list, i): item i of a list, borrowed; i is not checked."""

item_of_tuple: Any = of_python("PyTuple_GetItem", _OBJECT, _OBJECT, types.int64)
"""item_of_tuple(tuple, i): item i of a tuple, borrowed; i is not checked."""

new_dict: Any = of_python("PyDict_New", _OBJECT)
"""new_dict(): a new dict, whose only reference is the caller's; 0 if there is no memory."""

decref: Any = of_python("Py_DecRef", types.void, _OBJECT)
"""decref(object): give a reference back; address 0 is ignored."""

incref: Any = of_python("Py_IncRef", types.void, _OBJECT)
"""incref(object): take a reference."""

_new_float: Any = of_python("PyFloat_FromDouble", _OBJECT, types.float64)
_set: Any = of_python("PyDict_SetItem", types.int32, _OBJECT, _OBJECT, _OBJECT)
_put: Any = of_python("PyList_SetItem", types.int32, _OBJECT, types.int64, _OBJECT)
_append: Any = of_python("PyList_Append", types.int32, _OBJECT, _OBJECT)
_text_at: Any = of_python("PyUnicode_AsUTF8AndSize", _ADDRESS, _OBJECT, _ADDRESS)
_length_of: Any = of_python("PyUnicode_GetLength", types.int64, _OBJECT)
# Unlike the other functions for ints it does not raise when a number is too large. An exception is
# a new object, which may start the garbage collector, and that runs finalizers: arbitrary code.
_whole_of: Any = of_python("PyLong_AsLongLongAndOverflow", types.int64, _OBJECT, _ADDRESS)
_clear: Any = of_python("PyErr_Clear", types.void)

_TEXT_OFFSET = "".__sizeof__() - 1
_END = 2**63 - 1

_KINDS = (float, np.float64, np.float32, int, bool, str, dict, Counter, defaultdict)
FLOAT, FLOAT64, FLOAT32, INT, BOOL, STR, DICT, COUNTER, DEFAULTDICT = range(len(_KINDS))
_OVERFLOW = len(_KINDS)
N_KINDS = len(_KINDS) + 1

PLAIN = frozenset((dict, Counter, defaultdict))
"""The types that can be iterated like a dict: a default for missing keys does not matter."""


def new_kinds() -> np.ndarray:
    """Return the addresses of the types that are told apart, and a scratch word: int64 (N_KINDS,).

    The functions below take this array, or one that begins with the same numbers, as `kinds`.
    """
    return np.array([*map(id, _KINDS), 0], np.int64)


@compiled_within
def kind_of(thing):
    """Return the address of the type of an object."""
    return array_at(thing + TYPE_OFFSET, (1,), np.int64)[0]


@compiled_within
def prefetch_object(thing):
    """Prefetch the header of an object, and the text that follows that of a string."""
    start = array_at(thing, (1, _TEXT_OFFSET // 8 + 1), np.int64)
    prefetch(start, 0, 0)
    prefetch(start, 0, _TEXT_OFFSET // 8)


@compiled_within
def is_plain(thing, kinds):
    """Tell whether an object is of a type in `PLAIN`."""
    kind = kind_of(thing)
    return kind == kinds[DICT] or kind == kinds[COUNTER] or kind == kinds[DEFAULTDICT]


@compiled_within
def is_simple(thing, kinds):
    """Tell whether an object is a string, an int or a bool: a label for `are_equal`."""
    kind = kind_of(thing)
    return kind == kinds[STR] or kind == kinds[INT] or kind == kinds[BOOL]


@compiled_within
def whole_number(value, kinds):
    """Return an int as int64, and whether it fits into 64 bits."""
    at = kinds.ctypes.data + 8 * _OVERFLOW
    found = _whole_of(value, at)
    return found, array_at(at, (1,), np.int32)[0] == 0


@compiled_within
def is_name(thing, kinds):
    """Tell whether an object is a string, or an int within 64 bits: a name for `are_equal`."""
    kind = kind_of(thing)
    if kind == kinds[STR]:
        return True
    return kind == kinds[INT] and whole_number(thing, kinds)[1]


@compiled_within
def is_long(name, kinds):
    """Tell whether a name is a string of more than `LONGEST_NAME` characters."""
    return kind_of(name) == kinds[STR] and _length_of(name) > LONGEST_NAME


@compiled_within
def number(value, kinds):
    """Return a number as a float; NaN if its type is not one of `kinds`, or it is too large."""
    kind = kind_of(value)
    if kind == kinds[FLOAT] or kind == kinds[FLOAT64]:
        return array_at(value + VALUE_OFFSET, (1,), np.float64)[0]
    if kind == kinds[FLOAT32]:
        return np.float64(array_at(value + VALUE_OFFSET, (1,), np.float32)[0])
    if kind != kinds[INT] and kind != kinds[BOOL]:
        return np.nan
    found, fits = whole_number(value, kinds)
    return np.float64(found) if fits else np.nan


@compiled_within
def are_equal(a, b, kinds):
    """Tell whether two strings, ints or bools are equal; False for ints beyond 64 bits."""
    is_text = kind_of(a) == kinds[STR]
    if is_text != (kind_of(b) == kinds[STR]):
        return False
    if is_text:
        return compare_text(a, b) == 0
    first, first_fits = whole_number(a, kinds)
    second, second_fits = whole_number(b, kinds)
    return first == second and first_fits and second_fits


@compiled_within
def contains(text, character):
    """Tell whether a string contains a character, given by its code point."""
    return _find(text, character, 0, _END, 1) >= 0


@compiled_within
def text_at(text, length):
    """Return the address of a string's UTF-8, or 0; write its length to the address `length`."""
    found = _text_at(text, length)
    if found == 0:
        _clear()
    return found


@compiled_within
def store_reference(things, i, name):
    """Replace item i of a list; the list gets a reference of its own."""
    incref(name)
    _put(things, i, name)


@compiled_within
def append(names, name):
    """Append a name to a list; return whether that succeeded."""
    if _append(names, name) == 0:
        return True
    _clear()
    return False


@compiled_within
def put_number(things, name, value):
    """Put a float into a dict under a name; return whether that succeeded."""
    number = _new_float(value)
    is_put = number != 0 and _set(things, name, number) == 0
    decref(number)
    if not is_put:
        _clear()
    return is_put
