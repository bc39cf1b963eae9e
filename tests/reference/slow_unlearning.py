"""Taking an example back from LASVM as formulas: a full Gram matrix, all gradients afresh.

Its coefficient goes to 0 by pair steps of fixed length, each with the partner for which the dual
gains most, or loses least.
"""

import numpy as np


def without(gram, y, alpha, cost, s):
    """Return the coefficients of all examples when that of example s has gone to others.

    `alpha` is signed, `cost` are the C_i; nothing is changed.
    """
    alpha = alpha.copy()
    low, high = np.minimum(0.0, y * cost), np.maximum(0.0, y * cost)
    others = np.arange(len(y)) != s
    while alpha[s] != 0.0:
        g = y - gram @ alpha
        if alpha[s] > 0.0:
            partner = max(np.flatnonzero(others & (alpha < high)), key=lambda i: g[i])
            step = min(alpha[s], high[partner] - alpha[partner])
        else:
            partner = min(np.flatnonzero(others & (alpha > low)), key=lambda i: g[i])
            step = max(alpha[s], low[partner] - alpha[partner])
        alpha[s] -= step
        alpha[partner] += step
        if abs(alpha[s]) < 1e-12:
            alpha[s] = 0.0
    return alpha


def dual(gram, y, alpha):
    """Return the dual objective."""
    return alpha @ y - 0.5 * alpha @ gram @ alpha
