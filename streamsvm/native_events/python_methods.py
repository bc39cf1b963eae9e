"""Compiled functions as built-in methods, which the interpreter calls like its own C functions.

A call of a numba function converts each argument, which takes longer than learning a short event.
The functions here take Python objects by address and return one, so nothing is converted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from streamsvm._compile import CFunction, array_at, compiled_within
from streamsvm.native_events.python_objects import incref, item_of_tuple, of_python

# METH_O and METH_FASTCALL of the interpreter's method definitions.
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
    """Return a factory of built-in methods that call a compiled function.

    The function takes an owner and one object; or an owner, the address of an array of arguments
    and their number. It returns a `new_reference` to an object, and never raises.

    The factory is ``method(table, held)``: `table` are bytes that the compiled function finds by
    ``table_of(owner)``; `held` is any object that is to live as long as the method.
    """
    function.compile()
    flags = _ONE_ARGUMENT if function.n_arguments == 2 else _ARGUMENTS
    # The interpreter stores its address, so each method keeps a reference to it.
    definition = _Definition(function.__name__.encode(), function.address, flags, None)
    new = ctypes.PyDLL(None).PyCFunction_NewEx
    new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    new.restype = ctypes.py_object

    def method(table: bytes, held: Any) -> Callable[..., Any]:
        owner = (table, held, function, definition)
        made: Callable[..., Any] = new(ctypes.addressof(definition), owner, None)
        return made

    return method


@compiled_within
def table_of(owner):
    """Return the address of the `table` that a method was made with."""
    return _content(item_of_tuple(owner, 0))


@compiled_within
def argument(arguments, i):
    """Return argument i, an object, of an array of arguments at an address."""
    return array_at(arguments + 8 * i, (1,), np.int64)[0]


@compiled_within
def new_reference(thing):
    """Return an object that is kept alive elsewhere with one more reference, for the caller."""
    incref(thing)
    return thing
