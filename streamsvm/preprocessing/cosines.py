"""Compiled loops that compute random Fourier features of rows.

Angles are in turns (1 is 2 pi), so that whole turns are dropped by subtracting them. Of an angle of
2^52 turns nothing would be left, so values count as at most `_MOST_TURNS` in either direction.
"""

import math

import numpy as np

from streamsvm._compile import compiled, compiled_inner

_TURN = 2.0 * math.pi

_MOST_TURNS = 7e10  # no power of 2, which times a weight of single precision is whole turns

# The Taylor series of the sine of x turns: 7 terms are exact to 7e-10 within a quarter turn, which
# is less than single precision can tell.
_S1, _S3, _S5, _S7, _S9, _S11, _S13 = (
    (-1) ** (k // 2) * _TURN**k / math.factorial(k) for k in range(1, 14, 2)
)


@compiled_inner
def _cosine(turns):
    # No branches and no library call, so that loops of it are vectorised.
    rest = turns - np.floor(turns + 0.5)
    x = 0.25 - abs(rest)
    s = x * x
    return x * (_S1 + s * (_S3 + s * (_S5 + s * (_S7 + s * (_S9 + s * (_S11 + s * _S13))))))


@compiled_inner
def _limited(value, most):
    return min(max(np.float64(value), -most), most)


@compiled_inner
def _finish(angles, scale, out):
    """Write the cosines, then the sines, of scaled angles into out, float32 (2 h,)."""
    h = angles.size
    height = math.sqrt(1.0 / h)
    for j in range(h):
        out[j] = height * _cosine(scale * angles[j])
    for j in range(h):
        out[h + j] = height * _cosine(scale * angles[j] - 0.25)


@compiled
def map_dense(values, order, directions, scale, out):
    """Write the random features of rows, float64 (n, c), into out, float32 (n, 2 h).

    `order`, int64 (d,), are columns of `values`; products are added up in this order. `directions`,
    float32 (d, h), are the random weights of these; `scale` is what makes turns of angles.
    """
    angles, most = np.empty(directions.shape[1]), _MOST_TURNS / scale
    for r in range(values.shape[0]):
        angles[:] = 0.0
        for t in range(order.size):
            # In single precision, as sparse rows and learners store values.
            value = _limited(np.float32(values[r, order[t]]), most)
            if value != 0.0:
                for j in range(angles.size):
                    angles[j] += value * np.float64(directions[t, j])
        _finish(angles, scale, out[r])


@compiled
def map_sparse(start, places, values, directions, scale, out):
    """Write the random features of rows that list their nonzero values: see `map_dense`.

    Row r has the entries start[r] .. start[r + 1] - 1; `start` is int64 (n + 1,). `places` and
    `values`, int64 and float32, have the row of `directions` and the value of each entry, in the
    order in which products are added up.
    """
    angles, most = np.empty(directions.shape[1]), _MOST_TURNS / scale
    for r in range(start.size - 1):
        angles[:] = 0.0
        for t in range(start[r], start[r + 1]):
            value = _limited(values[t], most)
            if value != 0.0:
                for j in range(angles.size):
                    angles[j] += value * np.float64(directions[places[t], j])
        _finish(angles, scale, out[r])
