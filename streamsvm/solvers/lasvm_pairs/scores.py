"""Scores and probabilities of classes from the margins of binary problems.

One against one: the problem of classes a and b votes for the class that its margin says. The score
of a class is the number of its votes, plus the sum of its margins, each clipped to -1 .. 1, divided
by twice the number of classes: so margins decide between classes of equally many votes. Its
probability is that of the coupling of Price, Knerr, Personnaz and Dreyfus (1995),

    P(a) = 1 / (sum_b 1 / r_ab - (K_a - 1)),      r_ab = P(a | a or b),  K_a classes b,

where r_ab is the calibrated probability of the problem, and the P(a) are then divided by their sum.

One against the rest: the score of a class is the margin of its problem, its probability the
calibrated one divided by the sum over all classes.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner, compiled_leaf, compiled_within
from streamsvm.solvers.lasvm.state import bias_of
from streamsvm.solvers.lasvm_pairs.problems import REST
from streamsvm.support.calibration import probability

_LEAST = 1e-9
"""The least probability of a problem, and of a class."""


@compiled_leaf
def _gathered(alpha, slot, row, n):
    """Return sum_s alpha_s row[slot_s] over s < n: float64, int64, float32."""
    total = 0.0
    for s in range(n):
        # Unsigned, since an index that may be negative takes nearly twice the time.
        total += alpha[s] * np.float64(row[np.uint64(slot[s])])
    return total


@compiled_inner
def write_margins(state, row, out):
    """Write the margin of each problem into out, float64 (>= problems,)."""
    of = state.problems
    for p in range(of.table.size):
        a, n = of.segments[p].start, of.table[p].n
        f = _gathered(of.alpha[a : a + n], of.slot[a : a + n], row, n)
        out[p] = f + bias_of(of.table[p])


@compiled_within
def _couple(state, margins, k, out):
    """Write the scores, and into out[k:] what 1 / P(a) is before the division."""
    of = state.problems
    for p in range(of.table.size):
        f, a, b = margins[p], of.segments[p].positive, of.segments[p].negative
        r = min(1.0 - _LEAST, max(_LEAST, probability(of.calibration[p], f)))
        if b == REST:
            out[a] = f
            out[k + a] = 1.0 / r
            continue
        near = min(1.0, max(-1.0, f)) / (2.0 * k)
        out[a] += near + (1.0 if f > 0.0 else 0.0)
        out[b] += (1.0 if f < 0.0 else 0.0) - near
        # Each class has 1 less than the sum for each but one of its problems.
        out[k + a] += 1.0 / r - 1.0
        out[k + b] += 1.0 / (1.0 - r) - 1.0
    if of.table.size > 0 and of.segments[0].negative != REST:
        for c in range(k):
            out[k + c] += 1.0


@compiled_inner
def _distance(state, margins, scores):
    """Return how far a row is from the border of the class that is predicted.

    It is the least margin of that class over its problems, at least 0; of one against the rest, by
    how much its score is above the second best.
    """
    of, best, second, least = state.problems, np.int64(0), -np.inf, np.inf
    for c in range(1, scores.size):
        if scores[c] > scores[best]:
            second, best = scores[best], np.int64(c)
        else:
            second = max(second, scores[c])
    for p in range(of.table.size):
        if of.segments[p].negative == REST:
            return scores[best] - second
        if of.segments[p].positive == best:
            least = min(least, margins[p])
        elif of.segments[p].negative == best:
            least = min(least, -margins[p])
    return max(0.0, least)


@compiled_inner
def write_scores(state, margins, out):
    """Write the scores of all classes, and then their probabilities' logarithms.

    `margins` are float64 (>= problems,). `out` is float64 (2 classes,), written, or with one value
    more: how far the row is from the border to another class, see `_distance`.
    """
    k = out.size // 2
    for c in range(out.size):
        out[c] = 0.0
    _couple(state, margins, k, out)
    total = 0.0
    for c in range(k):
        out[k + c] = 1.0 / max(out[k + c], 1.0)
        total += out[k + c]
    for c in range(k):
        out[k + c] = np.log(max(_LEAST, out[k + c] / total))
    if out.size > 2 * k:
        out[2 * k] = _distance(state, margins, out[:k])
