"""Compiled functions called by their address, so that callers are compiled without them.

What a compiled function calls by name becomes a part of it: it is optimised and stored once more
with every caller. A function that is large, or one of many that take each other's place, is better
called by its address. The types of its arguments are checked when the caller is compiled; the
address must be one that `address_of_code` gave for that signature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils

from streamsvm._compile import lowered_as


def address_of_code(function: Any, signature: Any) -> int:
    """Compile a function for a signature, or find it on disk; return where its code is.

    Parameters
    ----------
    function
        What `compiled` returned; it stays in memory as long as its code is used.
    signature
        Of numba: ``types.int64(types.int64, ...)``.

    Raises
    ------
    TypeError
        It returns something else than the signature says.

    """
    function.compile(signature.args)
    made = function.overloads[signature.args]
    if made.signature.return_type != signature.return_type:
        returned = made.signature.return_type
        raise TypeError(f"{function.__name__} returns {returned}, not {signature.return_type}")
    address: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return address


def caller_of(signature_of: Callable[..., Any]) -> Any:
    """Return call(address, *args), for compiled code: calls the code at an `address_of_code`.

    The caller is compiled without the function that it calls, and once for all functions of a
    signature.

    Parameters
    ----------
    signature_of
        Gives, for the types of the arguments after the address, the signature that the code was
        compiled for; None if there is none. Arguments that cannot be converted are refused when the
        caller is compiled.

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
