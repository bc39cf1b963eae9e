"""Predict with the model that errs least of late, and notice when errors become more.

Of each model the share of errors e is kept, in which older examples fade: e <- FADE e + (1 - FADE),
or FADE e if the prediction was right. The model in use stays until another one's e is smaller by
`LEAD`, so that chance does not change it at each example.

Errors have become more when e of the model in use is far above the share of wrong predictions since
the models began: by `LIMIT` standard deviations of e, if nothing changes (an EWMA control chart:
Ross, Adams, Tasoulis, Hand, Exponentially weighted moving average charts for detecting concept
drift, Pattern Recognition Letters 33, 2012).
"""

from __future__ import annotations

import math

from streamsvm._compile import compiled
from streamsvm.solvers.adaptive.state import IN_USE, N_WRONG, AdaptiveState, N

FADE = 0.997
LEAD = 0.005
LIMIT = 2.0


@compiled
def choose(faded, info, wrong):
    """Note the errors of the models on an example; return the index of the one that predicted it.

    Parameters
    ----------
    faded, info
        The arrays of an `AdaptiveState`, updated.
    wrong
        int: bit m is 1 if model m predicted the example wrong, before it learnt it.

    """
    used = info[IN_USE]
    info[N] += 1
    info[N_WRONG] += (wrong >> used) & 1
    best = used
    for m in range(faded.size):
        faded[m] = FADE * faded[m] + (1.0 - FADE) * ((wrong >> m) & 1)
        if faded[m] < faded[best]:
            best = m
    if faded[best] < faded[used] - LEAD:
        info[IN_USE] = best
    return used


@compiled
def follow(faded, info, wrong, is_example, chosen):
    """Do what `choose` does for n rows.

    Parameters
    ----------
    faded, info
        As for `choose`.
    wrong
        int64 (n,).
    is_example
        bool (n,): False for rows that are only predicted, and whose labels are not known.
    chosen
        int64 (n,), written: the index of the model in use when the row came.

    """
    for r in range(chosen.size):
        chosen[r] = choose(faded, info, wrong[r]) if is_example[r] else info[IN_USE]


def errs_more(state: AdaptiveState) -> bool:
    """Tell whether the model in use errs far more of late than predictions did before."""
    n, n_wrong = int(state.info[N]), int(state.info[N_WRONG])
    mean = (n_wrong + 1) / (n + 2)
    deviation = math.sqrt(mean * (1.0 - mean) * (1.0 - FADE) / (1.0 + FADE))
    return bool(state.faded[state.info[IN_USE]] > mean + LIMIT * deviation)
