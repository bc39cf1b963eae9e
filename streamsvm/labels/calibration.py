"""Probabilities from margins, fitted as the stream goes (Platt scaling, online).

P(+1 | f) = 1 / (1 + exp(-(slope f + offset))). Each margin is one that the model gave *before* it
learnt the example, so that the fit is honest. The update is an online Newton step on the log loss:
the curvature is a discounted sum (examples of the last few thousand count), so that the fit follows
a drifting model.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled

_DISCOUNT = 0.9995
_PRIOR = 1.0
_SMALLEST_SLOPE = 1e-3
_ALL, _EVERY = 1024.0, 8.0


def new_calibration() -> np.ndarray:
    """Return the state, float64 (5,): slope, offset, and a, b, d of the curvature."""
    return np.array([2.0, 0.0, _PRIOR, 0.0, _PRIOR])


@compiled
def probability(calibration, margin):
    """Return P(+1) at a margin."""
    z = calibration[0] * margin + calibration[1]
    # Beyond 30 the result is 0 or 1 to all digits that matter, and exp might overflow.
    return 1.0 / (1.0 + np.exp(-min(30.0, max(-30.0, z))))


@compiled
def update_one(calibration, margin, y):
    """Learn a margin with label y, +1 or -1."""
    # A margin far outside says no more than one that is clearly outside.
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
    """Learn margins, float64 (n,), with labels y, float64 (n,) of +1 and -1, in order."""
    for r in range(y.size):
        update_one(calibration, margins[r], y[r])


def new_thinned() -> np.ndarray:
    """Return the state for `update_thinned`, float64 (6,): `new_calibration`, and a count."""
    return np.append(new_calibration(), 0.0)


@compiled
def update_thinned_one(calibration, margin, y):
    """Learn a margin if it is one of the first, or its turn."""
    calibration[5] += 1.0
    if calibration[5] <= _ALL or calibration[5] % _EVERY == 0.0:
        update_one(calibration, margin, y)


@compiled
def update_thinned(calibration, margins, y):
    """Learn every margin of the first 1,024, then every eighth.

    For learners that are as fast as that: learning a margin takes 25 nanoseconds.
    """
    r = 0
    while r < y.size:
        update_thinned_one(calibration, margins[r], y[r])
        r += 1
        if calibration[5] > _ALL:
            # Those whose turn it is not are not looked at one by one.
            idle = min(np.int64(_EVERY - 1.0 - calibration[5] % _EVERY), y.size - r)
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


@compiled
def update_temperature_one(temperature, f, y):
    """Learn scores, float64 (classes,), of an example of class y."""
    most = f.max()
    total, mean, square = 0.0, 0.0, 0.0
    for c in range(f.size):
        p = np.exp(max(-30.0, temperature[0] * (f[c] - most)))
        # A score far below the best one says no more than one that is clearly below.
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
