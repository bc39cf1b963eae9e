"""Running mean and variance of features, which a single value far away cannot ruin.

Three rules, with a limit of `clip` standard deviations:

* Scaled values lie within -clip .. clip.
* In mean and variance a value counts as at most 2 clip standard deviations from the mean: it
  multiplies the variance of n values by at most 1 + (2 clip)^2 / n, however large it is. A true
  change of scale is followed all the same, as the limit grows with the variance. (At clip instead
  of 2 clip, features with long tails would be scaled by too small a variance.)
* The last quarter of the values is also looked at alone. When its standard deviation is below a
  tenth of that of all values (a hundredth, if these are few), the earlier values are forgotten.
  This follows a change of level or to a smaller scale, and recovers from a value far away among the
  first ones.

With a limit of infinity these are the plain mean and variance (Welford).
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled, compiled_inner, compiled_within

COUNT, MEAN, VARIANCE, N_CLIPPED, RECENT, FIRST, SUM, SQUARES = range(8)
"""The rows of statistics, float64 (8, features). Count, mean and variance; how many values were
further away than `clip`; of the recent values, which are looked at alone: their count, the first of
them, and the sums of the others' differences from it and of the squares of these."""
N_ROWS = 8

ENOUGH = 20
"""Distances are measured after so many values; the first few may lie close together by chance."""

_SHARE_OF_FEW, _SHARE_OF_MANY, _MANY = 1e-4, 1e-2, 100.0
"""Below this share of the variance of all values, that of the recent ones replaces it: the first
of fewer than `_MANY` recent values, which may be close together by chance, else the second."""


@compiled_within
def learn_value(statistics, f, value, clip):
    """Update the statistics, float64 (N_ROWS, d), by a value of feature f."""
    old_mean, old_variance = statistics[MEAN, f], statistics[VARIANCE, f]
    counted = value
    # First what is cheap, and almost always enough.
    if (value - old_mean) * (value - old_mean) > clip * clip * old_variance:
        counted = _counted(statistics, f, value, clip)
    statistics[COUNT, f] += 1.0
    count = statistics[COUNT, f]
    mean = old_mean + (counted - old_mean) / count
    spread = (counted - old_mean) * (counted - mean)
    statistics[MEAN, f] = mean
    statistics[VARIANCE, f] = old_variance + (spread - old_variance) / count
    if clip < np.inf:
        if statistics[RECENT, f] == 0.0:
            statistics[FIRST, f] = value
        # As the first value is one of them, the sums cannot cancel, whatever it is.
        difference = value - statistics[FIRST, f]
        statistics[RECENT, f] += 1.0
        statistics[SUM, f] += difference
        statistics[SQUARES, f] += difference * difference
        if statistics[RECENT, f] >= ENOUGH and 4.0 * statistics[RECENT, f] >= count:
            _compare_recent(statistics, f)


@compiled_inner
def _counted(statistics, f, value, clip):
    """Return what a value far away counts as, and count it."""
    if not is_far(statistics, f, value, clip):
        return value
    statistics[N_CLIPPED, f] += 1.0
    if not is_far(statistics, f, value, 2.0 * clip):
        return value
    limit = 2.0 * clip * statistics[VARIANCE, f] ** 0.5
    return statistics[MEAN, f] + (limit if value > statistics[MEAN, f] else -limit)


@compiled_inner
def is_far(statistics, f, value, limit):
    """Tell whether a value is over `limit` deviations from the mean of enough, unequal values."""
    variance = statistics[VARIANCE, f]
    if statistics[COUNT, f] < ENOUGH or variance == 0.0:
        return False
    difference = value - statistics[MEAN, f]
    return difference * difference > limit * limit * variance


@compiled_inner
def _compare_recent(statistics, f):
    """Forget the earlier values if the recent ones are much closer together; begin anew."""
    n = statistics[RECENT, f]
    shift = statistics[SUM, f] / n
    variance = statistics[SQUARES, f] / n - shift * shift
    share = _SHARE_OF_MANY if n >= _MANY else _SHARE_OF_FEW
    if 0.0 < variance < share * statistics[VARIANCE, f]:
        statistics[COUNT, f] = n
        statistics[MEAN, f] = statistics[FIRST, f] + shift
        statistics[VARIANCE, f] = variance
    statistics[RECENT, f] = statistics[SUM, f] = statistics[SQUARES, f] = 0.0


@compiled_within
def scaled(statistics, f, value, clip):
    """Return a value of feature f in standard deviations from the mean; 0 without variance."""
    variance = statistics[VARIANCE, f]
    if variance > 0.0:
        distance = (value - statistics[MEAN, f]) / variance**0.5
        if distance > clip:
            return clip
        return distance if distance >= -clip else -clip
    return 0.0


@compiled
def far_value(statistics, columns, values, limit):
    """Return the number of the first value further than `limit` from its mean, or -1.

    Columns are int64 (d,), the feature of each value, float64 (d,); below 0: it is not looked at.
    """
    if limit < np.inf:
        for t in range(values.size):
            if columns[t] >= 0 and is_far(statistics, columns[t], values[t], limit):
                return t
    return -1
