"""The ambiguous SVM: a label is a bag of candidates, ranked above all other labels.

At least one label of an example's bag Y is correct; the others are there by chance. With scores
s_y = <w_y, x> of all labels, the mean pairwise loss of an example is

    L = 1 / (|Y| |not Y|) sum over y in Y, z not in Y of max(0, 1 - s_y + s_z),

and the problem min |w|^2 / 2 + C sum_i L_i. Label y has the coefficient u_y of the example: the
share of pairs that it is in and that have a loss, with a minus for labels outside of the bag. So

    L = D - sum_y u_y s_y,     D = sum of u_y over the bag,     |Psi|^2 = |x|^2 sum_y u_y^2,

and a step moves each w_y by alpha u_y x. The step of the dual along the coefficients with the
largest loss is Algorithm 23 (AMBIGSVMDUALSTEP): alpha = L / |Psi|^2, at most C.

Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), section 6.1.
"""

from __future__ import annotations

from streamsvm._compile import compiled_inner, compiled_within


@compiled_inner
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
