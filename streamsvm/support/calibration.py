"""Probabilities from margins, calibrated online (Platt scaling).

P(class 1 | f) = 1 / (1 + exp(-(slope f + offset))). Each margin f was computed *before* the model
learnt the example, so that the fit is not biased towards examples already learnt. The update is an
online Newton step on the log loss. Its curvature is a discounted sum, in which the last few
thousand examples count, so that the fit follows a drifting model.

Of a bag of classes, of which one is right, the slope of `softmax` is fitted to the log of the bag's
probability, the sum of those of its candidates. To take the best candidate for the label would make
it too sure: that is best by chance, too.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled, compiled_inner

_DISCOUNT = 0.9995
_PRIOR = 1.0
_SMALLEST_SLOPE = 1e-3
_LEARN_ALL_UP_TO, _LEARN_EVERY = 1024.0, 8.0


def new_calibration() -> np.ndarray:
    """Return the state, float64 (5,): slope, offset, and a, b, d of the curvature."""
    return np.array([2.0, 0.0, _PRIOR, 0.0, _PRIOR])


@compiled
def probability(calibration, margin):
    """Return P(class 1) at a margin."""
    z = calibration[0] * margin + calibration[1]
    # Beyond 30 the result is 0 or 1 to all digits that matter, and exp might overflow.
    return 1.0 / (1.0 + np.exp(-min(30.0, max(-30.0, z))))


@compiled_inner
def update_one(calibration, margin, y):
    """Learn a margin of an example of class y, 0 or 1."""
    # Clipped: a very large margin tells no more than a large one.
    f = min(5.0, max(-5.0, margin))
    p = probability(calibration, f)
    error = (1.0 if y > 0.0 else 0.0) - p
    weight = max(p * (1.0 - p), 1e-4)
    fresh = (1.0 - _DISCOUNT) * _PRIOR
    calibration[2] = _DISCOUNT * calibration[2] + fresh + weight * f * f
    calibration[3] = _DISCOUNT * calibration[3] + weight * f
    calibration[4] = _DISCOUNT * calibration[4] + fresh + weight
    a, b, d = calibration[2], calibration[3], calibration[4]
    determinant = a * d - b * b
    slope = calibration[0] + error * (d * f - b) / determinant
    calibration[0] = max(slope, _SMALLEST_SLOPE)
    calibration[1] += error * (a - b * f) / determinant


@compiled
def update_calibration(calibration, margins, y):
    """Learn margins, float64 (n,), of examples of classes y, float64 (n,) of 0 and 1, in order."""
    for r in range(y.size):
        update_one(calibration, margins[r], y[r])


@compiled_inner
def label_index(scores):
    """Return the index of the label that scores, float64 (classes,), or a margin (1,), predict."""
    if scores.size == 1:
        return 1 if scores[0] > 0.0 else 0
    best = 0
    for c in range(1, scores.size):
        if scores[c] > scores[best]:
            best = c
    return best


def new_thinned() -> np.ndarray:
    """Return the state for `update_thinned`, float64 (6,): `new_calibration`, and a count."""
    return np.append(new_calibration(), 0.0)


@compiled_inner
def update_thinned_one(calibration, margin, y):
    """Learn one margin, or only count it: see `update_thinned`."""
    calibration[5] += 1.0
    if calibration[5] <= _LEARN_ALL_UP_TO or calibration[5] % _LEARN_EVERY == 0.0:
        update_one(calibration, margin, y)


@compiled
def update_thinned(calibration, margins, y):
    """Learn all of the first 1,024 margins, then every eighth.

    For fast linear learners, where the 25 ns that learning a margin takes would matter.
    """
    r = 0
    while r < y.size:
        update_thinned_one(calibration, margins[r], y[r])
        r += 1
        if calibration[5] > _LEARN_ALL_UP_TO:
            # Skip to the next margin that is learnt.
            idle = min(np.int64(_LEARN_EVERY - 1.0 - calibration[5] % _LEARN_EVERY), y.size - r)
            calibration[5] += idle
            r += idle


def new_temperature() -> np.ndarray:
    """Return the state for several classes, float64 (2,): slope, and its curvature."""
    return np.array([2.0, _PRIOR])


@compiled
def softmax(temperature, scores):
    """Return P(c) = exp(slope f_c) / sum_c exp(slope f_c), float64 like scores."""
    p = np.empty(scores.size)
    most, total = scores.max(), 0.0
    for c in range(scores.size):
        p[c] = np.exp(max(-30.0, temperature[0] * (scores[c] - most)))
        total += p[c]
    for c in range(scores.size):
        p[c] /= total
    return p


@compiled_inner
def update_temperature_one(temperature, f, y):
    """Learn scores, float64 (classes,), of an example of class y."""
    most = f.max()
    total, mean, square = 0.0, 0.0, 0.0
    for c in range(f.size):
        p = np.exp(max(-30.0, temperature[0] * (f[c] - most)))
        # Clipped: a score very far below the best one tells no more than one far below.
        z = max(-5.0, f[c] - most)
        total += p
        mean += p * z
        square += p * z * z
    mean, square = mean / total, square / total
    own = max(-5.0, f[y] - most)
    fresh = (1.0 - _DISCOUNT) * _PRIOR
    temperature[1] = _DISCOUNT * temperature[1] + fresh + max(square - mean * mean, 1e-6)
    slope = temperature[0] + (own - mean) / temperature[1]
    temperature[0] = max(slope, _SMALLEST_SLOPE)


@compiled
def update_temperature(temperature, scores, y):
    """Learn rows of scores, float64 (n, classes), with classes y, float64 (n,), in order."""
    for r in range(y.size):
        update_temperature_one(temperature, scores[r], np.int64(y[r]))


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
