"""NamedTuples of arrays in memory, as compiled code lays them out.

A compiled function that takes a state of thirty arrays from Python has an entry that unpacks them
all, which is larger than most functions, and takes microseconds at each call. So what is called for
each event takes the address of a block of words instead, which Python writes once.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numba.extending import intrinsic


def words_of(value: Any) -> list[int]:
    """Return a NamedTuple of arrays, numbers, None and NamedTuples as words of 8 bytes.

    Code that reads it counts no references: the caller keeps the arrays alive. TypeError: it holds
    something else.
    """
    if isinstance(value, tuple):
        return [word for part in value for word in words_of(part)]
    if isinstance(value, np.ndarray):
        place: int = value.__array_interface__["data"][0]
        # Neither owner nor parent.
        return [0, 0, value.size, value.itemsize, place, *value.shape, *value.strides]
    if type(value) is float:
        return list(struct.unpack("q", struct.pack("d", value)))
    if type(value) is int or value is None:
        return [value or 0]
    raise TypeError(f"arrays, floats and ints are wanted, not {type(value).__name__}")


@intrinsic
def value_at(typing: Any, address: Any, kind: Any) -> Any:
    """Return the tuple at an address, as a value; `kind` is its type."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value_type = context.get_value_type(signature.return_type)
        return builder.load(builder.inttoptr(args[0], value_type.as_pointer()))

    return kind.instance_type(address, kind), codegen
