"""Copying into parts of arrays, in compiled code.

Numba compiles ``target[:] = source`` together with the text of its error for shapes that differ,
which takes two seconds for each type.
"""

from __future__ import annotations

from streamsvm._compile import compiled_within


@compiled_within
def assign(target, source):
    """Copy a one-dimensional array into the first entries of another one."""
    for i in range(source.size):
        target[i] = source[i]
