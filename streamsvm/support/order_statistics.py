"""The n-th smallest of numbers, in compiled code.

Numba compiles ``np.partition`` for some five seconds, most of them for the check of its arguments.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner


@compiled_inner
def order_statistic(values, n):
    """Return the number that stands at place n, from 0, when the values are sorted (Hoare's FIND).

    values: (size,), moved about; none is NaN.
    """
    low, high = np.int64(0), np.int64(values.size - 1)
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < n < i:
            break
        if n <= j:
            high = j
        else:
            low = i
    return values[n]
