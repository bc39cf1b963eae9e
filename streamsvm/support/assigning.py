"""Copying into parts of arrays, in compiled code.

Numba compiles ``target[:] = source`` together with the text of its error for shapes that differ,
which takes two seconds for each type.
"""

from __future__ import annotations

from streamsvm._compile import compiled_within


@compiled_within
def assign(target, source):
    """Copy a one-dimensional array into the first entries of another one."""
    if target.ndim != 1 or source.ndim != 1:
        raise ValueError("only arrays of one dimension are copied")
    for i in range(source.size):
        target[i] = source[i]
