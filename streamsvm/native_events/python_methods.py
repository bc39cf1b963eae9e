"""Compiled functions that the interpreter calls as it calls its own: methods of an object.

On its usual way into compiled code each argument is looked at and turned into a number, which takes
longer than all that is done with a short event. Here a function gets its arguments as they are,
objects, and gives an object back: nothing is between the interpreter and the machine code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from streamsvm._compile import CFunction, array_at, compiled_within
from streamsvm.native_events.python_objects import incref, item_of_tuple, of_python

# Of the interpreter's method definitions.
_ONE_ARGUMENT, _ARGUMENTS = 0x0008, 0x0080

_content: Any = of_python("PyBytes_AsString", types.int64, types.int64)


class _Definition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


def methods_of(function: CFunction) -> Callable[[bytes, Any], Callable[..., Any]]:
    """Return what makes a function a method of a table.

    Parameters
    ----------
    function
        Takes an owner and one object, or an owner, the address of arguments and their number; gives
        an object back, a `new_reference`, and does not fail.

    Returns
    -------
    A function of a table, bytes that the method finds by `table_of` its owner, and of whatever must
    live as long as the method; it returns the method.

    """
    function.compile()
    flags = _ONE_ARGUMENT if function.n_arguments == 2 else _ARGUMENTS
    # The interpreter keeps the address of it: both live as long as what is returned.
    definition = _Definition(function.__name__.encode(), function.address, flags, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    new.restype = ctypes.py_object

    def method(table: bytes, held: Any) -> Callable[..., Any]:
        owner = (table, held, function, definition)
        made: Callable[..., Any] = new(ctypes.addressof(definition), owner, None)
        return made

    return method


@compiled_within
def table_of(owner):
    """Return the address of the table that a method belongs to."""
    return _content(item_of_tuple(owner, 0))


@compiled_within
def argument(arguments, i):
    """Return argument i of a method."""
    return array_at(arguments + 8 * i, (1,), np.int64)[0]


@compiled_within
def new_reference(thing):
    """Return an object, which something else keeps alive so far, as a result."""
    incref(thing)
    return thing
