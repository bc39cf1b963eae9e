"""The best linear model by cutting planes: the loss of all rows is nowhere below one of them.

``loss(w) >= max_t <a_t, w> + b_t`` and ``>= 0``; with this in place of the loss, the problem is a
small one, whose optimum bounds that of the true one from below (Teo, Vishwanathan, Smola and Le,
Bundle methods for regularized risk minimization, JMLR 11, 2010).
"""

from __future__ import annotations

import numpy as np

_MOST_STEPS = 20_000


def dual_weights(
    gram: np.ndarray, b: np.ndarray, weights: np.ndarray, accuracy: float
) -> tuple[np.ndarray, float]:
    """Maximise ``<b, s> - s' gram s / 2`` over s >= 0 of sum 1 at most; return s and the value.

    The value is at most `accuracy` below the maximum, unless that takes too many steps. `gram` are
    the dot products of the a_t. It begins with `weights`, and makes steps on two of them at a time,
    as SMO does.
    """
    m = len(b)
    q, slopes = np.zeros((m + 1, m + 1)), np.append(b, 0.0)
    q[:m, :m] = gram
    s = np.append(weights, 1.0 - weights.sum())  # the last one is that of the plane 0
    g = slopes - q @ s
    for _ in range(_MOST_STEPS):
        i, used = int(np.argmax(g)), np.flatnonzero(s > 0.0)
        differences = g[i] - g[used]
        if differences.max() <= accuracy:
            break
        curvatures = np.maximum(q[i, i] + q[used, used] - 2.0 * q[i, used], 1e-12)
        at = int(np.argmax(np.maximum(differences, 0.0) ** 2 / curvatures))
        j, step = used[at], min(float(differences[at] / curvatures[at]), s[used[at]])
        s[i] += step
        s[j] -= step
        g -= step * (q[:, i] - q[:, j])
    return s[:m], float(slopes @ s - 0.5 * s @ q @ s)
