"""The measured duality gap, from the gradients that a solver keeps.

Without bias (Usunier, Bordes, Bottou 2010, equation 4), over the active set::

    gap = sum_i max((C_i - a_i) g_i, -a_i g_i)

With a bias, for any b (the kept examples of LASVM; sum_s alpha_s = 0)::

    gap(b) = sum_s [ C_s max(0, y_s (g_s - b)) - alpha_s (g_s - b) ]

which is convex and piecewise linear in b; the least is at one of the g_s between g_min and g_max.
Of several classes (no bias; a_i^c = -beta_i^c >= 0 for c other than y_i)::

    gap = sum_i [ C_i max(0, max_c h_i(c)) - sum_c a_i^c h_i(c) ],   h_i(c) = g_{i,y_i} - g_{i,c}

Examples that were left out have alpha = 0: they add their hinge losses, estimated from a sample.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.lasvm.state import bias
from streamsvm.solvers.tracking.linear import product, row_at
from streamsvm.solvers.tracking.state import add_scaled
from streamsvm.support.row_cache import kernel_row

SAMPLED_MEMBERS = 4096
"""Members that the gap of a linear model is measured on; more of them are sampled."""


class KeptGap(NamedTuple):
    """The gap on the examples kept, not normalised."""

    total: float  # P - D over the examples kept
    box: float  # sum of their C_i
    shift: float  # what to add to the learner's margins for the bias at which this was measured


class Discarded(NamedTuple):
    """The hinge losses of examples that were left out, estimated from a sample of them."""

    total: float
    low: float
    high: float
    box: float  # sum of their C_i


NONE_DISCARDED = Discarded(0.0, 0.0, 0.0, 0.0)


@compiled
def _gap_of(members, coefficients, f, box, y):
    """Sum equation 4 over members; f[m] belongs to members[m]."""
    total, boxes = 0.0, 0.0
    for m in range(members.size):
        s = members[m]
        a = y[s] * coefficients[s]
        g = 1.0 - y[s] * f[m]
        total += max((box[s] - a) * g, -a * g)
        boxes += box[s]
    return total, boxes


@compiled
def _tracking(state, kernel, averaged, d):
    n, n_members = state.active.counts[0].n, state.active.counts[0].n_members
    f = state.f[:n].copy()
    if averaged:
        for t in range(state.info[0].n_touched):
            s = state.touched[t]
            change = state.average[s] - state.alpha[s]
            if change != 0.0:
                line = kernel_row(state.cache, kernel, state.store, s, n, d)
                add_scaled(f, state.cache.values[line], change, n)
    members = state.active.members[:n_members]
    own = np.empty(n_members)
    for m in range(n_members):
        own[m] = f[members[m]]
    coefficients = state.average if averaged else state.alpha
    return _gap_of(members, coefficients, own, state.box, state.y)


def tracking_gap(state, kernel, d, averaged=True) -> KeptGap:
    """Return the gap of the averaged classifier, or of the last iterate.

    Parameters
    ----------
    state
        A `TrackingState`.
    kernel
        Its kernel.
    d
        Number of features.
    averaged
        Whether the mean of the iterates is meant: P at its w, D at its coefficients.

    """
    total, box = _tracking(state, kernel, bool(averaged), d)
    return KeptGap(total, box, 0.0)


@compiled
def _linear(state, scale, members, averaged, d):
    w = state.w_average if averaged else state.w
    f = np.empty(members.size)
    for m in range(members.size):
        f[m] = scale * product(w, row_at(state.store, members[m], d))
    coefficients = state.average if averaged else state.alpha
    return _gap_of(members, coefficients, f, state.box, state.y)


def linear_gap(state, kernel, d, averaged=True, draws=None) -> KeptGap:
    """Return the gap of a model with explicit w; beyond 4,096 members, an unbiased estimate.

    Parameters
    ----------
    state
        A `LinearTrackingState`.
    kernel, d, averaged
        As for `tracking_gap`.
    draws
        A NumPy Generator for the sample of members.

    """
    counts = state.active.counts[0]
    members = state.active.members[: int(counts.n_members)]
    factor = 1.0
    if len(members) > SAMPLED_MEMBERS:
        draws = draws or np.random.default_rng(0)
        factor = len(members) / SAMPLED_MEMBERS
        members = members[draws.integers(0, len(members), SAMPLED_MEMBERS)]
    total, box = _linear(state, kernel.scale, members, bool(averaged), d)
    return KeptGap(factor * total, factor * box, 0.0)


@compiled
def _hinge_at(state, b):
    """Return sum_s C_s max(0, y_s (g_s - b)) and sum_s C_s."""
    hinge, boxes = 0.0, 0.0
    for s in range(state.info[0].n):
        box = state.upper[s] - state.lower[s]
        hinge += box * max(0.0, state.y[s] * (state.gradient[s] - b))
        boxes += box
    return hinge, boxes


@compiled
def best_bias(state):
    """Return the b at which the gap of a LASVM state is least."""
    info = state.info[0]
    if info.i < 0 or info.j < 0 or info.g_max <= info.g_min:
        return bias(state)
    # The slope just right of b: C of the negatives below, less C of the positives above.
    slope, n_between = 0.0, 0
    between = np.empty(info.n)
    boxes = np.empty(info.n)
    for s in range(info.n):
        box = state.upper[s] - state.lower[s]
        if box == 0.0:
            continue
        g = state.gradient[s]
        if g > info.g_max:
            slope -= box if state.y[s] > 0.0 else 0.0
        elif g <= info.g_min:
            slope += box if state.y[s] < 0.0 else 0.0
        else:
            between[n_between], boxes[n_between] = g, box
            n_between += 1
            slope -= box if state.y[s] > 0.0 else 0.0
    b = info.g_min
    # Passing any g raises the slope by its C, whichever its label.
    order = np.argsort(between[:n_between])
    for p in range(n_between):
        if slope >= 0.0:
            break
        b = between[order[p]]
        slope += boxes[order[p]]
    return b


@compiled
def _lasvm(state):
    b = best_bias(state)
    hinge, boxes = _hinge_at(state, b)
    pull = 0.0
    for s in range(state.info[0].n):
        pull += state.alpha[s] * (state.gradient[s] - b)
    return hinge - pull, boxes, b


def lasvm_gap(state, own_bias: float) -> KeptGap:
    """Return the gap of a LASVM state at the best b; `own_bias` is that of its margins."""
    total, box, b = _lasvm(state)
    return KeptGap(total, box, b - own_bias)


def discarded(losses: np.ndarray, boxes: np.ndarray, n: int) -> Discarded:
    """Estimate the sum of losses of n examples from a uniform sample of them.

    Parameters
    ----------
    losses
        float64 (m,): C_i max(0, 1 - y_i f(x_i)) of the sample.
    boxes
        float64 (m,): their C_i.
    n
        How many examples the sample stands for.

    Returns
    -------
    The estimate, and about 95 % bounds: the normal interval of the sample with one more example of
    loss C, so that a sample without any loss does not claim certainty.

    """
    m = len(losses)
    if n == 0:
        return NONE_DISCARDED
    if m == 0:
        return Discarded(math.nan, 0.0, math.inf, math.nan)
    mean_box = float(boxes.mean())
    padded = np.append(losses, mean_box)
    half = 1.96 * float(padded.std()) / math.sqrt(len(padded))
    mean = float(losses.mean())
    return Discarded(
        n * mean,
        n * max(0.0, min(mean, float(padded.mean()) - half)),
        n * (float(padded.mean()) + half),
        n * mean_box,
    )


@compiled
def _larank(state):
    total, boxes = 0.0, 0.0
    for s in range(state.info[0].n):
        box = state.box[s]
        if box == 0.0:
            continue
        own, most = state.gradient[state.y[s], s], 0.0
        for c in range(state.info[0].n_classes):
            h = own - state.gradient[c, s]
            most = max(most, h)
            at = state.place[c, s]
            if c != state.y[s] and at >= 0:
                total += state.coefficient[c, at] * h
        total += box * most
        boxes += box
    return total, boxes


def larank_gap(state) -> KeptGap:
    """Return the gap of several classes over the support patterns of a `LaRankState`."""
    total, box = _larank(state)
    return KeptGap(total, box, 0.0)
