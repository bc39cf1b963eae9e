"""The gamma of an RBF kernel, computed from the data seen so far.

gamma = 1 / (sum over features of their variance), which is 2 / (mean squared distance of two
examples). It is scikit-learn's ``gamma="scale"``, except that each feature has its own mean, and
1 / d for standardised features. It is computed again whenever the number of examples reaches a
power of two, up to 1024, and is constant afterwards: the model is rebuilt at most ten times, while
it is small.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.support.rows import Rows, SparseRows, shape, sparse

LAST_SET = 1024
_LEAST_CHANGE = 0.05


def new_moments(n_features: int) -> np.ndarray:
    """Return the state, float64 (2, n_features): means and sums of squared deviations."""
    return np.zeros((2, n_features))


@compiled
def update_moments(moments, n_before, x):
    """Update the moments with rows x, float32 (n, d), one by one; `n_before` rows came before."""
    for r in range(x.shape[0]):
        count = n_before + r + 1.0
        for c in range(x.shape[1]):
            change = x[r, c] - moments[0, c]
            moments[0, c] += change / count
            moments[1, c] += change * (x[r, c] - moments[0, c])


@compiled
def update_sums(sums, start, columns, values):
    """Add sparse rows to the sums, float64 (2, n_features), of values and of their squares."""
    for t in range(start[0], start[start.size - 1]):
        value = np.float64(values[t])
        sums[0, columns[t]] += value
        sums[1, columns[t]] += value * value


def updated(moments: np.ndarray, n_before: int, x: Rows) -> np.ndarray:
    """Return the moments (dense rows) or the sums (sparse rows), updated with rows x."""
    missing = shape(x)[1] - moments.shape[1]
    if missing > 0:
        moments = np.pad(moments, ((0, 0), (0, missing)))
    if isinstance(x, SparseRows):
        update_sums(moments, x.start, x.columns, x.values)
    else:
        update_moments(moments, n_before, x)
    return moments


def sums_of(moments: np.ndarray, n: int) -> np.ndarray:
    """Return the sums of values and of squares of n rows from their moments."""
    means, squares = moments
    return np.array([n * means, squares + n * means**2])


def moments_of(sums: np.ndarray, n: int) -> np.ndarray:
    """Return the moments of n rows from their sums."""
    means = sums[0] / max(n, 1)
    return np.array([means, sums[1] - n * means**2])


def moments_over(x: Rows) -> np.ndarray:
    """Return the moments of n rows."""
    found = updated(new_moments(0), 0, x)
    return moments_of(found, shape(x)[0]) if isinstance(x, SparseRows) else found


def without(moments: np.ndarray, n: int, x: Rows, is_sparse: bool) -> np.ndarray:
    """Return moments (or sums, `is_sparse`) as if n rows had the means and variances of the others.

    The others are the n rows that `moments` are of, without the rows x.
    """
    left, d = n - shape(x)[0], moments.shape[1]
    if left < 1:
        return new_moments(d)
    sums = moments if is_sparse else sums_of(moments, n)
    gone = updated(new_moments(d), 0, sparse(x))[:, :d]
    sums = (sums - gone) * (n / left)
    return sums if is_sparse else np.maximum(moments_of(sums, n), [[-np.inf], [0.0]])


def gamma_of(moments: np.ndarray, n: int) -> float:
    """Return 1 / (sum of the variances), or 1 / d while all examples are equal."""
    return gamma_for(float(moments[1].sum()) / max(n, 1), moments.shape[1])


def gamma_for(variance: float, d: int) -> float:
    """Return 1 / variance, the sum over d features, or 1 / d if single precision has none of it."""
    # Above, kernels would compute with a gamma of 0.
    return 1.0 / min(variance, 1e30) if variance > 1e-30 else 1.0 / max(1, d)


def is_worth_it(old: float, new: float) -> bool:
    """Tell whether gamma changed enough to rebuild the model."""
    return abs(new - old) > _LEAST_CHANGE * old


def next_power_of_two(n: int) -> int:
    """Return the smallest power of two above n."""
    return 1 << int(n).bit_length()
