"""The calibration of several classes, learnt from examples of which only a bag of classes is known.

The slope of `calibration.softmax` is fitted to the log of the bag's probability, the sum of those
of its candidates. To take the best candidate for the label would make it too sure: that is best by
chance, too.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.support.calibration import update_temperature_one

_SMALLEST_SLOPE = 1e-3
_DISCOUNTED = 0.999
"""What an example leaves of the curvature at least."""


@compiled
def update_bag(temperature, f, in_bag):
    """Learn scores, float64 (classes,), of an example whose candidates have in_bag[c] above 0."""
    best = -1
    for c in range(f.size):
        if in_bag[c] > 0.0 and (best < 0 or f[c] > f[best]):
            best = c
    if best < 0:
        return
    most, total, mean, square = f.max(), 0.0, 0.0, 0.0
    for c in range(f.size):
        if in_bag[c] > 0.0:
            p = np.exp(max(-30.0, temperature[0] * (f[c] - most)))
            z = max(-5.0, f[c] - most)
            total += p
            mean += p * z
            square += p * z * z
    mean, square = mean / total, square / total
    # As of the best candidate, then less: the gradient has the mean score of all candidates, and
    # the curvature is less by their variance, as it is not known which one is right.
    less, before = mean - max(-5.0, f[best] - most), temperature[1]
    update_temperature_one(temperature, f, best)
    temperature[0] = max(temperature[0] + less / temperature[1], _SMALLEST_SLOPE)
    temperature[1] = max(_DISCOUNTED * before, temperature[1] - (square - mean * mean))


@compiled
def update_labels_and_bags(temperature, scores, y, bags):
    """Learn rows of scores, float64 (n, classes), in order.

    y, float64 (n,), is the class of a row; or negative: its candidates are those in its row of
    `bags`, float64 (n, classes).
    """
    for r in range(y.size):
        if y[r] < 0.0:
            update_bag(temperature, scores[r], bags[r])
        else:
            update_temperature_one(temperature, scores[r], np.int64(y[r]))
