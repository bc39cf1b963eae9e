"""Fading of LASVM's coefficients and costs, so that merged vectors do not outlive a drift.

Vectors that stand for many examples have large costs, and after a drift newer examples are no match
for them. So when errors have become more, all alpha_s and all C_s are multiplied once by `RHO`, and
errors are counted anew. From then on an older example counts `RHO` times as much as one that comes.
Zero sum and boxes stay valid, and but for the bias predictions stay as they are, until new examples
change them: a false alarm costs little. While errors do not become more, nothing fades.

Errors have become more when the share of late, e <- FADE e + (1 - FADE) [wrong], is above that of
all examples since the last fading by `LIMIT` standard deviations of e (an EWMA control chart: Ross,
Adams, Tasoulis, Hand, Pattern Recognition Letters 33, 2012).
"""

from __future__ import annotations

import math

from streamsvm._compile import compiled_inner
from streamsvm.solvers.lasvm.state import refresh_extremes
from streamsvm.support.looks import note_cost

FADE = 0.997
LIMIT = 4.0
RHO = 0.1

LEAST_COST = 1e-100
"""Smaller costs do not shrink: a cost of 0 marks a dead slot."""


@compiled_inner
def note_error(info, is_wrong):
    """Count an example, and whether it was predicted wrong before it was learnt."""
    info.n_watched += 1
    info.n_wrong += is_wrong
    info.wrong_of_late = FADE * info.wrong_of_late + (1.0 - FADE) * is_wrong


@compiled_inner
def errs_more(info):
    """Tell whether errors have become more than chance explains."""
    # At most 1, whatever the counts in a file are.
    mean = min(1.0, (info.n_wrong + 1.0) / (info.n_watched + 2.0))
    deviation = math.sqrt(mean * (1.0 - mean) * (1.0 - FADE) / (1.0 + FADE))
    return info.wrong_of_late > mean + LIMIT * deviation


@compiled_inner
def fade(state, rho):
    """Multiply coefficients, costs and weights by rho, and begin to count errors anew."""
    info = state.info[0]
    info.n_watched, info.n_wrong, info.wrong_of_late = 0, 0, 0.0
    dual = 0.0
    info.n_over = 0
    info.n_zero = 0
    for s in range(info.n):
        cost = state.upper[s] - state.lower[s]
        if cost == 0.0:
            continue
        state.alpha[s] *= rho
        if cost > LEAST_COST:
            state.lower[s] *= rho
            state.upper[s] *= rho
            state.store.weight[s] *= rho
            note_cost(info, state.upper[s] - state.lower[s])
        # g = y - f, and f is a sum over coefficients.
        state.gradient[s] = state.y[s] - rho * (state.y[s] - state.gradient[s])
        dual += 0.5 * state.alpha[s] * (state.y[s] + state.gradient[s])
        info.n_zero += int(state.alpha[s] == 0.0)
    info.lost += info.dual - dual
    info.dual = dual
    refresh_extremes(state)
