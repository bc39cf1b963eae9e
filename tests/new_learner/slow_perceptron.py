"""The perceptron in plain NumPy."""

import numpy as np


def slow_perceptron(x, y, weight):
    """Return weights, bias and the margins from before each row was learnt."""
    w, b, margins = np.zeros(x.shape[1]), 0.0, []
    for row, sign, c in zip(x.astype(float), y, weight, strict=True):
        margins.append(w @ row + b)
        if c > 0.0 and sign * margins[-1] <= 0.0:
            w, b = w + c * sign * row, b + c * sign
    return w, b, np.array(margins)
