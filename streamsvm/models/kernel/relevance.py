"""Which features matter: those that correlate with a class, alone or in a product of two.

A kernel of the distances of rows counts each feature alike, so that a few that matter are lost
among hundreds that do not. The search takes a correlation of each product of two standardised
columns with each class; what it finds is a candidate of a `Race`, no more.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from streamsvm._compile import compiled

_OF_PRODUCT = 0.2
"""The work for a product of two features of a row, for a class, in about nanoseconds."""
_MOST = 1e9
"""If the work were more than this, all features count as relevant."""
_FAINT = 0.2
"""Irrelevant features are multiplied by this at most: what matters later is not lost."""
_RELEVANT = 5.0
"""A feature is relevant if it, or its product with another, correlates with a class by so many
standard errors: of 500 features, all 125,000 products of noise stay below."""
_LONG = 4.0
"""Values count as at most so many standard deviations from the mean."""
_SMALLEST = 1e-30
"""A standard deviation up to this one is none."""


@compiled
def _find_relevant(rows, signs, variance, start, limit, found):
    n, d = rows.shape
    sums, all_squares = np.empty(d, np.float32), np.empty(d, np.float32)
    squares = np.empty(d, np.float32)
    for c in range(found.size):
        sums[:] = np.float32(0.0)
        squares[:] = np.float32(0.0)
        all_squares[:] = np.float32(0.0)
        for r in range(n):
            sign = signs[r]
            for k in range(d):
                product = rows[r, start + c] * rows[r, k]
                all_squares[k] += product * product
                product *= sign
                sums[k] += product
                squares[k] += product * product
        for k in range(d):
            # Of a rare class either one may be too small by chance.
            most = max(squares[k], variance * all_squares[k])
            found[c] |= sums[k] * sums[k] > limit * most


def search(
    x: np.ndarray, classes: np.ndarray, budget: float
) -> Generator[float, None, np.ndarray | None]:
    """Find what features of rows x, float32 (n, d), are multiplied by: float64 (d,).

    None: all matter for the `classes`, int (n,), or none does. Yields the work of each part, about
    `budget` at most.
    """
    (n, d), n_classes = x.shape, len(np.unique(classes))
    of_column = _OF_PRODUCT * n * d * n_classes
    if not of_column or of_column * d > _MOST:
        return None
    rows = standardised(x)
    found, width = np.zeros(d, bool), 1 + int(budget / of_column)
    for start in range(0, d, width):
        stop = min(start + width, d)
        found[start:stop] = are_relevant(rows, classes, 1 + start, 1 + stop)
        yield (stop - start) * of_column
    return _weights_of(found) if 0 < found.sum() < d else None


def standardised(x: np.ndarray) -> np.ndarray:
    """Return rows of mean 0 and deviation 1, float32 (n, 1 + d), a column of ones before them."""
    centred = x - x.mean(axis=0, dtype=np.float64)
    deviations = centred.std(axis=0)
    has_scale = deviations > _SMALLEST
    rows = np.where(has_scale, centred, 0.0) / np.where(has_scale, deviations, 1.0)
    return np.pad(np.clip(rows, -_LONG, _LONG), ((0, 0), (1, 0)), constant_values=1.0).astype("f4")


def are_relevant(rows: np.ndarray, classes: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Tell which columns of `standardised` rows are relevant, alone or by a product."""
    found, numbers = np.zeros(stop - start, bool), np.unique(classes)
    for number in numbers[:1] if len(numbers) == 2 else numbers:
        is_one = classes == number
        signs = is_one.astype(np.float32) - np.float32(is_one.mean())
        _find_relevant(rows, signs, np.var(signs), start, np.float32(_RELEVANT**2), found)
    return found


def _weights_of(relevant: np.ndarray) -> np.ndarray:
    """Return what features are multiplied by: those that are irrelevant weigh like one together."""
    n_faint = int((~relevant).sum())
    return np.where(relevant, 1.0, min(_FAINT, 1.0 / math.sqrt(max(1, n_faint))))
