"""What compiled code asks of Python's own objects: dicts, lists, strings and numbers.

An object is its address, int64, as `id` gives it, and belongs to somebody else who keeps it alive.
Only for functions that hold the interpreter's lock: `compiled_with_python`, `compiled_for_c`. The
functions are the interpreter's own, found by name when machine code is loaded; none raises: what
one of them would raise is cleared.
"""

from __future__ import annotations

import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import types

from streamsvm._compile import array_at, compiled_within, prefetch


def of_python(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of the interpreter's, by its name and numba's types, for compiled code."""
    return types.ExternalFunction(name, result(*arguments))


_OBJECT = _ADDRESS = types.int64

dict_next: Any = of_python("PyDict_Next", types.int32, _OBJECT, _ADDRESS, _ADDRESS, _ADDRESS)
"""dict_next(dict, at, key, value): 0 at the end; else write a key and its value, and go on from
the position at address `at`, which is 0 at first."""

dict_size: Any = of_python("PyDict_Size", types.int64, _OBJECT)
"""dict_size(dict)."""

hash_of: Any = of_python("PyObject_Hash", types.int64, _OBJECT)
"""hash_of(object): of names."""

compare_text: Any = of_python("PyUnicode_Compare", types.int32, _OBJECT, _OBJECT)
"""compare_text(a, b): below 0, 0, above 0, as strings are ordered."""

_are_equal: Any = of_python("PyObject_RichCompareBool", types.int32, _OBJECT, _OBJECT, types.int32)

list_size: Any = of_python("PyList_Size", types.int64, _OBJECT)
"""list_size(list)."""

item_of_list: Any = of_python("PyList_GetItem", _OBJECT, _OBJECT, types.int64)
"""item_of_list(list, i): i is one of its places."""

item_of_tuple: Any = of_python("PyTuple_GetItem", _OBJECT, _OBJECT, types.int64)
"""item_of_tuple(tuple, i): the same."""

new_dict: Any = of_python("PyDict_New", _OBJECT)
"""new_dict(): a dict of the caller's own; 0 if there is no memory."""

decref: Any = of_python("Py_DecRef", types.void, _OBJECT)
"""decref(object): one less holds it; 0 is none."""

incref: Any = of_python("Py_IncRef", types.void, _OBJECT)
"""incref(object): one more holds it."""

_new_float: Any = of_python("PyFloat_FromDouble", _OBJECT, types.float64)
_set: Any = of_python("PyDict_SetItem", types.int32, _OBJECT, _OBJECT, _OBJECT)
_put: Any = of_python("PyList_SetItem", types.int32, _OBJECT, types.int64, _OBJECT)
_length: Any = of_python("PyTuple_Size", types.int64, _OBJECT)
_append: Any = of_python("PyList_Append", types.int32, _OBJECT, _OBJECT)
_text_at: Any = of_python("PyUnicode_AsUTF8AndSize", _ADDRESS, _OBJECT, _ADDRESS)
_whole_of: Any = of_python("PyLong_AsSsize_t", types.int64, _OBJECT)
_float_of: Any = of_python("PyLong_AsDouble", types.float64, _OBJECT)
_has_failed: Any = of_python("PyErr_Occurred", _OBJECT)
_clear: Any = of_python("PyErr_Clear", types.void)
_EQUAL = 2

HAS_LOCK = not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether there is a lock to hold; without it another thread could change what is looked at."""

# The type is the last part of every object's head; a float's value is all that follows it.
_TYPE = object.__basicsize__ - 8
_VALUE = float.__basicsize__ - 8
_TEXT = "".__sizeof__() - 1

_KINDS = (float, np.float64, np.float32, int, bool, str, tuple, dict, Counter, defaultdict)
FLOAT, FLOAT64, FLOAT32, WHOLE, BOOL, TEXT, TUPLE, DICT, COUNTER, DEFAULTDICT = range(len(_KINDS))
N_KINDS = len(_KINDS)

PLAIN = frozenset((dict, Counter, defaultdict))
"""The types whose contents are those of their dict, whatever they make up for what is missing."""

_NAMES = frozenset((str, int))


def are_names(things: Iterable[Any]) -> bool:
    """Tell whether objects run no code of others when they are hashed or compared.

    They are strings, ints, or tuples of these.
    """
    things = list(things)
    kinds = set(map(type, things))
    tuples = (thing for thing in things if type(thing) is tuple) if tuple in kinds else ()
    return kinds - {tuple} <= _NAMES and all(_NAMES.issuperset(map(type, t)) for t in tuples)


def kinds() -> np.ndarray:
    """Return the types that are told apart, as addresses: int64 (N_KINDS,)."""
    return np.array([id(kind) for kind in _KINDS], np.int64)


@compiled_within
def kind_of(thing):
    """Return the type of an object: its address."""
    return array_at(thing + _TYPE, (1,), np.int64)[0]


@compiled_within
def look_ahead(thing):
    """Have an object brought near: its head, and the text that follows that of a string."""
    start = array_at(thing, (1, _TEXT // 8 + 1), np.int64)
    prefetch(start, 0, 0)
    prefetch(start, 0, _TEXT // 8)


@compiled_within
def is_plain(thing, kinds):
    """Tell whether an object is of a type in `PLAIN`."""
    kind = kind_of(thing)
    return kind == kinds[DICT] or kind == kinds[COUNTER] or kind == kinds[DEFAULTDICT]


@compiled_within
def is_simple(thing, kinds):
    """Tell whether an object is a string, an int or a bool."""
    kind = kind_of(thing)
    return kind == kinds[TEXT] or kind == kinds[WHOLE] or kind == kinds[BOOL]


@compiled_within
def is_name(thing, kinds):
    """Tell whether an object is one of those that `are_names`."""
    kind = kind_of(thing)
    if kind != kinds[TUPLE]:
        return kind == kinds[TEXT] or kind == kinds[WHOLE]
    for i in range(_length(thing)):
        kind = kind_of(item_of_tuple(thing, i))
        if kind != kinds[TEXT] and kind != kinds[WHOLE]:
            return False
    return True


@compiled_within
def number(value, kinds):
    """Return the float that a number is; NaN for what may run code of its own to become one."""
    kind = kind_of(value)
    if kind == kinds[FLOAT] or kind == kinds[FLOAT64]:
        return array_at(value + _VALUE, (1,), np.float64)[0]
    if kind == kinds[FLOAT32]:
        return np.float64(array_at(value + _VALUE, (1,), np.float32)[0])
    if kind != kinds[WHOLE] and kind != kinds[BOOL]:
        return np.nan
    found = _float_of(value)
    if found == -1.0 and _has_failed() != 0:
        _clear()
        return np.nan
    return found


@compiled_within
def are_equal(a, b, kinds):
    """Tell whether two names are equal."""
    if kind_of(a) == kinds[TEXT] and kind_of(b) == kinds[TEXT]:
        # Half the time of the general function.
        return compare_text(a, b) == 0
    found = _are_equal(a, b, _EQUAL)
    if found < 0:
        # No room on the stack.
        _clear()
    return found == 1


@compiled_within
def whole_number(value):
    """Return an int as int64; -1 if it is too large, too."""
    found = _whole_of(value)
    if found == -1 and _has_failed() != 0:
        _clear()
    return found


@compiled_within
def text_at(text, length):
    """Return the address of a string as UTF-8, and write its length at another; or 0."""
    found = _text_at(text, length)
    if found == 0:
        _clear()
    return found


@compiled_within
def store_reference(things, i, name):
    """Put a name into place i of a list of names, which keeps it alive."""
    incref(name)
    _put(things, i, name)


@compiled_within
def append(names, name):
    """Append a name to a list; False: nothing is done."""
    if _append(names, name) == 0:
        return True
    _clear()
    return False


@compiled_within
def put_number(things, name, value):
    """Put a float into a dict under a name; False: it was not."""
    number = _new_float(value)
    is_put = number != 0 and _set(things, name, number) == 0
    decref(number)
    if not is_put:
        _clear()
    return is_put
