"""The moments of features over the rows of all shards, in which values far away count less.

One value of 1e30 would make the plain variance of its feature so large that all others were 0. On a
stream a value counts as at most 2 clip standard deviations from the mean of those before. Here it
does of all values: mean and deviation are those of some rows, drawn from all, without values that
are far from them. So the moments do not depend on the order of the rows, nor on the workers.
Without values beyond the limits they are the plain ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.names import Name
from streamsvm.preprocessing.scaled_features import merged
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.support.feature_statistics import COUNT

_SAMPLE = 5000
"""So many rows tell the limits."""

_LEAST_CLIP = 5.0
"""With a `clip` below this, usual values would count as far away."""

_RARE = 0.05
"""At most so many values differ from the usual one, if a feature is the same in almost all rows."""

_EQUAL = 2.0**-23
"""Values with a smaller deviation than so much of their mean are equal in single precision."""


def values_of(matrix: Any, names: list[Name]) -> np.ndarray:
    """Return features of rows, float64 (n, d), NaN where a row lacks one."""
    if isinstance(matrix, SparseMatrix):  # which is not scaled
        return np.zeros((0, len(names)))
    place = {name: f for f, name in enumerate(names)}
    columns = [c for c, name in enumerate(matrix.names) if name in place]
    found = np.full((len(matrix.values), len(names)), np.nan)
    found[:, [place[matrix.names[c]] for c in columns]] = matrix.values[:, columns]
    return found


def moments_of(
    matrices: list[Any], names: list[Name], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return count, mean, variance, and how many values count as a limit: float64 (4, d)."""
    found = np.zeros((4, len(names)))
    for matrix in matrices:
        values = values_of(matrix, names)
        is_there = ~np.isnan(values)
        clipped = np.clip(values, low, high)
        # Differences from the least value: of values that are the same they are 0 exactly.
        least = np.fmin.reduce(clipped, axis=0, initial=np.inf)
        least[least == np.inf] = 0.0
        counted = np.where(is_there, clipped - least, 0.0)
        count = is_there.sum(axis=0)
        n = np.maximum(1, count)
        mean = counted.sum(axis=0) / n
        variance = (np.where(is_there, counted - mean, 0.0) ** 2).sum(axis=0) / n
        n_far = (is_there & (clipped != values)).sum(axis=0)
        found = merged(found, np.array([count, least + mean, variance, n_far]))
    return found


def learn_moments(
    scaler: StandardScaler, names: list[Name], n_rows: int, ask: Callable[..., list[np.ndarray]]
) -> None:
    """Give a scaler the moments of these features, and count far values.

    `ask` calls a method of all shards, and returns what each has answered.
    """
    names = [name for name in names if not scaler.is_one_hot(name)]
    low, high = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    if scaler.clip is not None:
        numbers = 1 + np.random.default_rng(0).choice(n_rows, min(n_rows, _SAMPLE), replace=False)
        rows = np.concatenate(ask("values", names, numbers))
        for f, values in enumerate(rows.T):
            low[f], high[f] = _limits(values[~np.isnan(values)], max(scaler.clip, _LEAST_CLIP))
    found = reduce(merged, ask("moments", names, low, high))
    learnt = np.flatnonzero(found[COUNT] > 0.0)
    scaler.replace_moments([names[f] for f in learnt.tolist()], found[:, learnt])


def _limits(values: np.ndarray, clip: float) -> tuple[float, float]:
    """Return 2 clip deviations from the mean of values that are within clip of them.

    Infinite ones, if these are the same.
    """
    usual, limit = np.median(values) if len(values) else 0.0, clip
    others = values[values != usual]
    is_rare = len(others) <= _RARE * len(values)
    if is_rare:
        # Little would be left but the usual value. Of n others one is at most sqrt(n) deviations
        # from their mean, and there are few.
        values, limit = others, min(clip, _LEAST_CLIP)
    while len(values):
        mean, deviation = values.mean(), values.std()
        if deviation <= _EQUAL * abs(mean):
            break
        low, high = mean - 2.0 * clip * deviation, mean + 2.0 * clip * deviation
        is_far = np.abs(values - mean) > limit * deviation
        if not is_far.any():
            return (min(low, usual), max(high, usual)) if is_rare else (low, high)
        values = values[~is_far]
    return -np.inf, np.inf
