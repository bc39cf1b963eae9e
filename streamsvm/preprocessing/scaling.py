"""Compiled loops that learn the statistics of features, and that scale values by them."""

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.support.feature_statistics import is_far, learn_value, scaled
from streamsvm.support.rows import LARGEST

CLIP, REJECT = range(2)
"""Entries of `limits`: in standard deviations from the mean, or infinity."""

ONE_HOT, UNKNOWN = -1, -2
"""Columns of features that are not scaled: one-hot ones, and those that were never learnt."""


@compiled
def learn_and_scale(statistics, columns, values, limits, learnt, scale, refused):
    """Learn rows one after the other, and scale each in place.

    `statistics` are float64 (N_ROWS, n_features). `columns`, int64 (c,), has the feature of each
    column of `values`, float64 (n, c); below 0: it is left as it is. NaN, a missing value, stays.
    `limits`, float64 (2,), are `CLIP` and `REJECT`. `learnt`, bool (n,), says which rows to learn;
    a row is learnt before it is scaled, if `scale`. `refused`, int64 (n,), is -1: of a row with a
    value beyond `REJECT`, which is neither learnt nor scaled, the column of the first such value is
    written.
    """
    for r in range(values.shape[0]):
        learn = learnt[r]
        if learn and limits[REJECT] < np.inf:
            refused[r] = _far_column(statistics, columns, values, r, limits[REJECT])
            if refused[r] >= 0:
                continue
        for c in range(values.shape[1]):
            f, value = columns[c], values[r, c]
            if f < 0 or value != value:
                continue
            if learn:
                learn_value(statistics, f, value, limits[CLIP])
            if scale:
                values[r, c] = scaled(statistics, f, value, limits[CLIP])


@compiled_inner
def _far_column(statistics, columns, values, r, limit):
    """Return the column of the first value of row r that is too far from its mean, or -1."""
    for c in range(values.shape[1]):
        # NaN is not far.
        if columns[c] >= 0 and is_far(statistics, columns[c], values[r, c], limit):
            return c
    return -1


@compiled
def are_usable(values):
    """Tell whether no value, float64 (d,), is NaN or beyond single precision."""
    usable = True
    for t in range(values.size):
        usable &= abs(values[t]) <= LARGEST
    return usable


@compiled
def learn_event(statistics, columns, values, clip):
    """Learn values, float64 (d,), of columns, int64 (d,); return False if one is not usable.

    Then nothing is learnt.
    """
    if not are_usable(values):
        return False
    for t in range(values.size):
        if columns[t] >= 0:
            learn_value(statistics, columns[t], values[t], clip)
    return True


@compiled
def scale_event(statistics, columns, values, clip):
    """Scale values, float64 (d,), of columns, int64 (d,); return False if one is not usable.

    Then nothing is scaled.
    """
    if not are_usable(values):
        return False
    for t in range(values.size):
        f = columns[t]
        if f >= 0:
            values[t] = scaled(statistics, f, values[t], clip)
        elif f != ONE_HOT:
            values[t] = 0.0
    return True
