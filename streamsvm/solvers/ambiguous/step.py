"""The ambiguous SVM: a label is a bag of candidates, ranked above all other labels.

At least one label of an example's bag Y is correct; the others are there by chance. With scores
s_y = <w_y, x> of all labels, the mean pairwise loss of an example is

    L = 1 / (|Y| |not Y|) sum over y in Y, z not in Y of max(0, 1 - s_y + s_z),

and the problem min |w|^2 / 2 + C sum_i L_i. Label y has the coefficient u_y of the example: the
share of pairs that it is in and that have a loss, with a minus for labels outside of the bag. So

    L = D - sum_y u_y s_y,     D = sum of u_y over the bag,     |Psi|^2 = |x|^2 sum_y u_y^2,

and a step moves each w_y by alpha u_y x. `dual_step` is the step of the dual along the coefficients
with the largest loss, Algorithm 23 (AMBIGSVMDUALSTEP): alpha = L / |Psi|^2, at most C.

Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), section 6.1.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled, compiled_within


@compiled
def scores(weights, columns, values, n_labels, out):
    """Write the scores of the first labels into `out`, float64 (n_labels,) or longer.

    `weights` are float64 (features, labels), `columns` integers and `values` floats: the features
    of an example that are not 0, each at most once.
    """
    out[:n_labels] = 0.0
    for k in range(columns.size):
        row, value = weights[columns[k]], values[k]
        for y in range(n_labels):
            out[y] += value * row[y]


@compiled
def coefficients(out, in_bag, n_labels, u):
    """Write u, float64 (n_labels,) or longer, for the scores `out`; return the loss, sum of u^2.

    `in_bag` is bool (n_labels,) or longer. All is 0 if no label is in the bag, or each.
    """
    u[:n_labels] = 0.0
    n_in = 0
    for y in range(n_labels):
        n_in += in_bag[y]
    if n_in == 0 or n_in == n_labels:
        return 0.0, 0.0
    # Counted as whole numbers first, so that they are exact.
    for y in range(n_labels):
        if in_bag[y]:
            least = out[y] - 1.0
            for z in range(n_labels):
                if not in_bag[z] and out[z] > least:
                    u[y] += 1.0
                    u[z] -= 1.0
    n_pairs = float(n_in) * (n_labels - n_in)
    loss, square = 0.0, 0.0
    for y in range(n_labels):
        u[y] /= n_pairs
        loss += u[y] * ((1.0 if in_bag[y] else 0.0) - out[y])
        square += u[y] * u[y]
    return max(0.0, loss), square


@compiled_within
def step_length(loss, square, C):
    """Return the step, and what the dual gains; `square` is |Psi|^2."""
    if loss <= 0.0:
        return 0.0, 0.0
    alpha = C if loss >= C * square else loss / square
    return alpha, alpha * (loss - 0.5 * alpha * square)


@compiled
def dual_step(weights, columns, values, in_bag, n_labels, C, out, u):
    """Learn an example (Algorithm 23); return its loss before, the step, and the gain in the dual.

    Arguments as of `scores` and `coefficients`. `weights` change; `out` has the scores from before,
    and the scores after are these plus alpha |x|^2 u. Nothing happens if the bag is empty or has
    all labels; the step is C if the example has no features.
    """
    scores(weights, columns, values, n_labels, out)
    loss, square = coefficients(out, in_bag, n_labels, u)
    if loss <= 0.0:
        return 0.0, 0.0, 0.0
    diagonal = 0.0
    for k in range(columns.size):
        # In double precision: `float` of numba leaves single precision as it is.
        diagonal += np.float64(values[k]) * np.float64(values[k])
    alpha, gain = step_length(loss, square * diagonal, C)
    for k in range(columns.size):
        row, value = weights[columns[k]], alpha * values[k]
        for y in range(n_labels):
            row[y] += value * u[y]
    return loss, alpha, gain
