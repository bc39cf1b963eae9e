"""Features that tell of labels, in plain NumPy."""

import numpy as np


def slow_relevance(rows, classes):
    """Return whether each feature is relevant, given a column of ones and the features."""
    found = np.zeros(rows.shape[1], bool)
    products = rows[:, :, None] * rows[:, None, :]
    for number in np.unique(classes):
        signs = (classes == number) - np.mean(classes == number)
        sums = np.tensordot(signs, products, 1)
        squares = np.tensordot(signs**2, products**2, 1)
        all_squares = signs.var() * (products**2).sum(axis=0)
        found |= (sums**2 > 25.0 * np.maximum(squares, all_squares)).any(axis=1)
    return found[1:]
