"""The sum of all models so far, without keeping them.

If a coefficient changes by delta when the sum of the weights of all models so far is A, it is in
the sum of all later models, but in none before: as delta (A_T - A) at last. So beside a coefficient
alpha_s one more number is enough, late_s, the sum of delta A over its changes: in the sum of all
models the coefficient is A_T alpha_s - late_s.

If each coefficient changes once only, and in the order of s, then late_s / alpha_s is the A of its
change: all models are known, and can vote.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner, compiled_leaf


@compiled_leaf
def summed(alpha, late, total, row, n):
    """Return sum_s (total alpha_s - late_s) k_s over s < n: f(x) of the sum of all models."""
    found = 0.0
    for s in range(n):
        found += (total * alpha[s] - late[s]) * np.float64(row[s])
    return found


@compiled_inner
def voted(alpha, late, total, row, n):
    """Return the sum of the signs of f(x) of all models, each times the weight of its model.

    Coefficient s, not 0, must have changed once, after those before it; total is A_T.
    """
    f, votes, before = 0.0, 0.0, 0.0
    for s in range(n):
        at = np.rint(late[s] / alpha[s])
        votes += (at - before) * np.sign(f)
        f += alpha[s] * np.float64(row[s])
        before = at
    return votes + (total - before) * np.sign(f)
