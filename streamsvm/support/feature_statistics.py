"""Running mean and variance of features, which a single value far away cannot ruin.

Three rules, with a limit of `clip` standard deviations:

* Scaled values lie within -clip .. clip.
* In mean and variance a value counts as at most 2 clip standard deviations from the mean: it
  multiplies the variance of n values by at most 1 + (2 clip)^2 / n, however large it is. A true
  change of scale is followed all the same, as the limit grows with the variance. (At clip instead
  of 2 clip, features with long tails would be scaled by too small a variance.)
* The last quarter of the values is also looked at alone. When its standard deviation is below a
  hundredth of that of all values, the earlier values are forgotten. This follows a change of level
  or to a smaller scale, and recovers from a value far away among the first ones.

With a limit of infinity these are the plain mean and variance (Welford).
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled

COUNT, MEAN, VARIANCE, N_CLIPPED, RECENT, FIRST, SUM, SQUARES = range(8)
"""The rows of statistics, float64 (8, features). Count, mean and variance; how many values were
further away than `clip`; of the recent values, which are looked at alone: their count, the first of
them, and the sums of the others' differences from it and of the squares of these."""
N_ROWS = 8

ENOUGH = 20
"""Distances are measured after so many values; the first few may lie close together by chance."""

_MUCH_SMALLER = 1e-4
"""Below this share of the variance of all values, that of the recent ones replaces it."""


@compiled
def learn_value(statistics, f, value, clip):
    """Update the statistics, float64 (N_ROWS, d), by a value of feature f."""
    counted = value
    if clip < np.inf and is_far(statistics, f, value, clip):
        statistics[N_CLIPPED, f] += 1.0
        if is_far(statistics, f, value, 2.0 * clip):
            limit = 2.0 * clip * statistics[VARIANCE, f] ** 0.5
            counted = statistics[MEAN, f] + (limit if value > statistics[MEAN, f] else -limit)
    statistics[COUNT, f] += 1.0
    old_mean = statistics[MEAN, f]
    statistics[MEAN, f] += (counted - old_mean) / statistics[COUNT, f]
    spread = (counted - old_mean) * (counted - statistics[MEAN, f])
    statistics[VARIANCE, f] += (spread - statistics[VARIANCE, f]) / statistics[COUNT, f]
    if clip < np.inf:
        _learn_recent(statistics, f, value)


@compiled
def is_far(statistics, f, value, limit):
    """Tell whether a value is more than `limit` standard deviations from the mean.

    It is not while there are few values, or if all of them were equal.
    """
    variance = statistics[VARIANCE, f]
    if statistics[COUNT, f] < ENOUGH or variance == 0.0:
        return False
    difference = value - statistics[MEAN, f]
    return difference * difference > limit * limit * variance


@compiled
def _learn_recent(statistics, f, value):
    """Add a value, as it is, to the recent ones; look at them when they are a quarter of all."""
    if statistics[RECENT, f] == 0.0:
        statistics[FIRST, f] = value
    # As the first value is one of them, the sums cannot cancel, whatever it is.
    difference = value - statistics[FIRST, f]
    statistics[RECENT, f] += 1.0
    statistics[SUM, f] += difference
    statistics[SQUARES, f] += difference * difference
    n = statistics[RECENT, f]
    if n < ENOUGH or 4.0 * n < statistics[COUNT, f]:
        return
    shift = statistics[SUM, f] / n
    variance = statistics[SQUARES, f] / n - shift * shift
    if 0.0 < variance < _MUCH_SMALLER * statistics[VARIANCE, f]:
        statistics[COUNT, f] = n
        statistics[MEAN, f] = statistics[FIRST, f] + shift
        statistics[VARIANCE, f] = variance
    statistics[RECENT, f] = statistics[SUM, f] = statistics[SQUARES, f] = 0.0


@compiled
def scaled(statistics, f, value, clip):
    """Return a value of feature f in standard deviations from the mean; 0 without variance."""
    variance = statistics[VARIANCE, f]
    if variance > 0.0:
        distance = (value - statistics[MEAN, f]) / variance**0.5
        return min(max(distance, -clip), clip)
    return 0.0


@compiled
def far_value(statistics, columns, values, limit):
    """Return the number of the first value that is too far from its mean; -1: there is none.

    Parameters
    ----------
    statistics
        float64 (N_ROWS, n_features).
    columns
        int64 (d,): the feature of each value; below 0: it is not looked at.
    values
        float64 (d,).
    limit
        How many standard deviations are too far.

    """
    if limit < np.inf:
        for t in range(values.size):
            if columns[t] >= 0 and is_far(statistics, columns[t], values[t], limit):
                return t
    return -1
