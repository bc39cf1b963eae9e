"""Calls of compiled functions by address, so that the caller is compiled without the function.

A compiled function that is called by name is optimised and stored again as part of every caller. A
large function, or one of many with the same signature, is better called by its address. The types
of its arguments are checked when the caller is compiled. Whether the address is one that
`address_of_code` returned for that signature cannot be checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils

from streamsvm._compile import lowered_as


def address_of_code(function: Any, signature: Any) -> int:
    """Compile a function for a signature, or load it from the cache; return its address.

    The caller keeps the function, which `compiled` returned, alive while the address is used.
    TypeError: it returns another type than the signature, one of numba's, says.
    """
    function.compile(signature.args)
    made = function.overloads[signature.args]
    if made.signature.return_type != signature.return_type:
        returned = made.signature.return_type
        raise TypeError(f"{function.__name__} returns {returned}, not {signature.return_type}")
    address: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return address


def caller_of(signature_of: Callable[..., Any]) -> Any:
    """Return call(address, *args), by which compiled code can call the function at an address.

    ``signature_of(*types)`` returns the signature of the function at the address, for arguments of
    these types, or None. The compiler refuses calls with None, and calls whose arguments cannot be
    converted to the signature.
    """

    def call(address: int, *args: Any) -> Any:
        raise RuntimeError("addresses are for compiled code")

    def typer(context: Any, args: Any) -> Any:
        wanted = signature_of(*args[1:])
        if wanted is None or len(wanted.args) != len(args) - 1 or args[0] != types.int64:
            return None
        for given, kind in zip(args[1:], wanted.args, strict=True):
            if context.can_convert(given, kind) is None:
                return None
        return wanted.return_type(types.int64, *wanted.args)

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        returned, kinds = signature.return_type, signature.args[1:]
        kind = context.call_conv.get_function_type(returned, kinds)
        code = builder.inttoptr(args[0], kind.as_pointer())
        status, result = context.call_conv.call_function(builder, code, returned, kinds, args[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    lowered_as(call, typer, lower)
    return call
