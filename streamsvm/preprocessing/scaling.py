"""Compiled loops that learn the statistics of features, and that scale values by them."""

from __future__ import annotations

from streamsvm._compile import compiled
from streamsvm.native_events.scaler_path import learn_value, scaled
from streamsvm.support.rows import LARGEST

ONE_HOT, UNKNOWN = -1, -2
"""In place of a column: a one-hot feature, which is not scaled; a feature not learnt yet."""


@compiled
def learn_and_scale(statistics, columns, values, absent, learn, scale):
    """Learn rows one after the other, and scale each in place.

    Parameters
    ----------
    statistics
        float64 (3, n_features): counts, means, variances.
    columns
        int64 (c,): the feature of each column of `values`; below 0: leave the column as it is.
    values
        float64 (n, c), overwritten.
    absent
        bool (n, c): whether a row lacks a feature; (0, 0) if no feature is missing.
    learn, scale
        Whether to learn, and whether to scale; a row is learnt before it is scaled.

    """
    some_absent = absent.size > 0
    for r in range(values.shape[0]):
        for c in range(values.shape[1]):
            f = columns[c]
            if f < 0 or (some_absent and absent[r, c]):
                continue
            value = values[r, c]
            if learn:
                learn_value(statistics, f, value)
            if scale:
                values[r, c] = scaled(statistics, f, value)


@compiled
def are_usable(values):
    """Tell whether no value, float64 (d,), is NaN or beyond single precision."""
    usable = True
    for t in range(values.size):
        usable &= abs(values[t]) <= LARGEST
    return usable


@compiled
def learn_event(statistics, columns, values):
    """Learn values, float64 (d,), of columns, int64 (d,); return False if one is not usable.

    Then nothing is learnt.
    """
    if not are_usable(values):
        return False
    for t in range(values.size):
        if columns[t] >= 0:
            learn_value(statistics, columns[t], values[t])
    return True


@compiled
def scale_event(statistics, columns, values, out):
    """Write scaled values into out, float64 (d,); return False if one is not usable."""
    if not are_usable(values):
        return False
    for t in range(values.size):
        f = columns[t]
        if f >= 0:
            out[t] = scaled(statistics, f, values[t])
        else:
            out[t] = values[t] if f == ONE_HOT else 0.0
    return True
