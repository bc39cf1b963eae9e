"""Fading of LASVM's coefficients and boxes, so that merged vectors do not outlive a drift.

Vectors that stand for many examples have large boxes, and after a drift newer examples are no match
for them. So when errors have become more, all alpha_s and all C_s are multiplied by

    rho = 1 - 1 / max(limit, 50)

each time that room is made within a budget of `limit` vectors: after so many new vectors, an older
one counts 1 / e as much (not less with smaller limits, as few examples make no model). Zero sum and boxes stay valid, and what was near an optimum stays near that
of faded costs. While errors do not become more, nothing fades.

Errors have become more when the share of late, e <- FADE e + (1 - FADE) [wrong], is above that of
all examples by `LIMIT` standard deviations of e (an EWMA control chart: Ross, Adams, Tasoulis,
Hand, Pattern Recognition Letters 33, 2012).
"""

from __future__ import annotations

import math

from streamsvm._compile import compiled
from streamsvm.solvers.lasvm.state import refresh_extremes
from streamsvm.support.looks import note_box

FADE = 0.997
LIMIT = 2.0

_FEWEST = 50

_LEAST_BOX = 1e-100
"""Smaller boxes do not shrink: a box of 0 marks a dead slot."""


@compiled
def note_error(info, is_wrong):
    """Count an example, and whether it was predicted wrong before it was learnt."""
    info.n_watched += 1
    info.n_wrong += is_wrong
    info.wrong_of_late = FADE * info.wrong_of_late + (1.0 - FADE) * is_wrong


@compiled
def errs_more(info):
    """Tell whether errors have become more than chance explains."""
    # At most 1, whatever the counts in a file are.
    mean = min(1.0, (info.n_wrong + 1.0) / (info.n_watched + 2.0))
    deviation = math.sqrt(mean * (1.0 - mean) * (1.0 - FADE) / (1.0 + FADE))
    return info.wrong_of_late > mean + LIMIT * deviation


@compiled
def factor_of(limit):
    """Return rho within a budget of `limit` vectors."""
    return 1.0 - 1.0 / max(limit, _FEWEST)


@compiled
def fade(state, rho):
    """Multiply all coefficients, boxes and weights by rho; book the change of the dual as lost."""
    info = state.info[0]
    dual = 0.0
    info.n_zero = 0
    for s in range(info.n):
        box = state.upper[s] - state.lower[s]
        if box == 0.0:
            continue
        state.alpha[s] *= rho
        if box > _LEAST_BOX:
            state.lower[s] *= rho
            state.upper[s] *= rho
            state.store.weight[s] *= rho
            note_box(info, state.upper[s] - state.lower[s])
        # g = y - f, and f is a sum over coefficients.
        state.gradient[s] = state.y[s] - rho * (state.y[s] - state.gradient[s])
        dual += 0.5 * state.alpha[s] * (state.y[s] + state.gradient[s])
        info.n_zero += int(state.alpha[s] == 0.0)
    info.lost += info.dual - dual
    info.dual = dual
    refresh_extremes(state)
