"""The sum of all models so far, without keeping them.

If a coefficient changes by delta when the sum of the weights of all models so far is A, it is in
the sum of all later models, but in none before: as delta (A_T - A) at last. So beside a coefficient
alpha_s one more number is enough, late_s, the sum of delta A over its changes: in the sum of all
models the coefficient is A_T alpha_s - late_s.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_leaf


@compiled_leaf
def summed(alpha, late, total, row, n):
    """Return sum_s (total alpha_s - late_s) k_s over s < n: f(x) of the sum of all models."""
    found = 0.0
    for s in range(n):
        found += (total * alpha[s] - late[s]) * np.float64(row[s])
    return found
