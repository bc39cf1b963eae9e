"""Predict with the model that errs least of late, and notice when errors become more.

Of each model the share of errors e is kept, in which older examples fade: e <- FADE e + (1 - FADE),
or FADE e if the prediction was right. The model in use stays until another one's e is smaller by
`LEAD`, so that chance does not change it each time.

A model whose e is larger by `AWAY` than that of the model in use falls asleep. It wakes when errors
have become more.

Errors have become more when e of the model in use is far above the share of wrong predictions since
the models began: by `LIMIT` standard deviations of e, if nothing changes (an EWMA control chart:
Ross, Adams, Tasoulis, Hand, Exponentially weighted moving average charts for detecting concept
drift, Pattern Recognition Letters 33, 2012).
"""

from __future__ import annotations

import math

import numpy as np

from streamsvm.solvers.adaptive.state import IN_USE, N_WRONG, AdaptiveState, N

FADE = 0.997
LEAD = 0.005
AWAY = 0.04
LIMIT = 2.0


def fade(state: AdaptiveState, m: int, wrong: np.ndarray) -> None:
    """Note the errors of model m on the last examples.

    Parameters
    ----------
    state
        The state, updated.
    m
        The index of the model.
    wrong
        bool (n,): whether it predicted each wrong, before it learnt it.

    """
    n = len(wrong)
    weights = FADE ** np.arange(n - 1, -1, -1)
    state.faded[m] = FADE**n * state.faded[m] + (1.0 - FADE) * weights[wrong].sum()
    state.waiting[m] = 0


def note_predictions(state: AdaptiveState, wrong: np.ndarray) -> None:
    """Note the errors of the predictions, bool (n,), as `fade` does those of the model in use."""
    fade(state, int(state.info[IN_USE]), wrong)
    state.info[N] += len(wrong)
    state.info[N_WRONG] += wrong.sum()


def choose(state: AdaptiveState) -> None:
    """Use the model with the smallest share of errors from now on, if it is ahead by `LEAD`."""
    faded = np.where(state.asleep > 0, np.inf, state.faded)
    best = int(faded.argmin())
    if faded[best] < faded[state.info[IN_USE]] - LEAD:
        state.info[IN_USE] = best


def fall_asleep(state: AdaptiveState) -> None:
    """Let the models sleep that err far more than the model in use."""
    state.asleep[state.faded > state.faded[state.info[IN_USE]] + AWAY] = 1


def errs_more(state: AdaptiveState) -> bool:
    """Tell whether the model in use errs far more of late than predictions did before."""
    n, n_wrong = int(state.info[N]), int(state.info[N_WRONG])
    mean = (n_wrong + 1) / (n + 2)
    deviation = math.sqrt(mean * (1.0 - mean) * (1.0 - FADE) / (1.0 + FADE))
    return bool(state.faded[state.info[IN_USE]] > mean + LIMIT * deviation)
