"""Predict with the model that errs least of late, and notice when errors become more.

Of each model the share of errors e is kept, in which older examples fade: e <- FADE e + (1 - FADE),
or FADE e if the prediction was right. The model in use stays until another one's e is smaller by
`LEAD`, so that chance does not change it each time.

Of the other models the best one stays awake, if its e is not larger by `AWAY` than that of the
model in use, of several classes by `AWAY_OF_SEVERAL`: there it takes three times as long to learn.
The rest fall asleep, but not while they catch up. They wake when errors have become more, and now
and then those whose e is not larger by `HOPELESS`, of several classes by `HOPELESS_OF_SEVERAL`.

Errors have become more when e of the model in use is far above the share of wrong predictions since
the models began: by `LIMIT` standard deviations of e, if nothing changes (an EWMA control chart:
Ross, Adams, Tasoulis, Hand, Exponentially weighted moving average charts for detecting concept
drift, Pattern Recognition Letters 33, 2012).

A drift is said when e is above that share by `ALARM` deviations, or by `ALARM_OF_LATEST` if older
examples fade faster: a model may adapt before many predictions were wrong.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamsvm.solvers.adaptive import last_label
from streamsvm.support.declaration import COUNT, FLAG, Range, Sizes, field
from streamsvm.support.states import declare

FADE = 0.997
LEAD = 0.005
AWAY, AWAY_OF_SEVERAL = 0.04, 0.01
HOPELESS, HOPELESS_OF_SEVERAL = 0.1, 0.03
LIMIT = 2.0
ALARM = 4.0
FADE_OF_LATEST = 0.98
ALARM_OF_LATEST = 6.0
APART = 1000
"""Within so many examples of a drift, what is noticed belongs to it."""

IN_USE, N, N_WRONG, N_DRIFTS, LAST_DRIFT = range(5)
N_INFO = 5
"""The index of the model that predicts; examples, and wrong predictions, since the models began;
how many drifts were noticed; and the number of the last example before that."""


class AdaptiveState(NamedTuple):
    """What is known of each model, and of the predictions."""

    faded: np.ndarray = field("models", range=Range(0.0, 1.0))
    """The share of errors, in which each example counts less than the next one."""
    info: np.ndarray = field(N_INFO, dtype=np.int64, range=COUNT)
    waiting: np.ndarray = field("models", dtype=np.int64, range=COUNT)
    """How many of the last examples are not in that share yet; the model in use has learnt them
    all the same, the others have not."""
    uncounted: np.ndarray = field("models", dtype=np.int64, range=COUNT)
    """How many of these came before the model began anew: what it errs on them does not count."""
    asleep: np.ndarray = field("models", dtype=np.int64, range=FLAG)
    """1 of models that do not learn at present."""
    alarm: np.ndarray = field(1, dtype=np.int64, range=FLAG)
    """1 from when a drift is noticed until errors are as before."""
    latest: np.ndarray = field(1, range=Range(0.0, 1.0))
    """The share of wrong predictions, in which examples count for a shorter time."""
    risen: np.ndarray = field(1, dtype=np.int64, range=COUNT)
    """For how many examples errors have been far more than before; 0: they are not."""
    asked: np.ndarray = field(last_label.N_ASKED, dtype=np.int64, range=COUNT)
    """The rows that were predicted of late: see `last_label`."""


def _check(state: AdaptiveState, sizes: Sizes) -> None:
    if state.info[IN_USE] >= len(state.faded):
        raise ValueError("the model in use is none of the models")
    if state.asleep[state.info[IN_USE]]:
        raise ValueError("the model in use is asleep")
    if state.info[N_WRONG] > state.info[N]:
        raise ValueError("more predictions were wrong than there were")


declare(AdaptiveState, _check)


def fade(state: AdaptiveState, m: int, wrong: np.ndarray, waiting: int = 0) -> None:
    """Note on which of the last examples, bool (n,), model m was wrong before it learnt them.

    `waiting` is how many examples it has yet to learn.
    """
    state.faded[m] = _after(state.faded[m], wrong, FADE)
    state.waiting[m] = waiting


def _after(e: float, wrong: np.ndarray, fade: float) -> float:
    """Return the share of errors after further predictions, bool (n,)."""
    n = len(wrong)
    weights = fade ** np.arange(n - 1, -1, -1)
    return float(fade**n * e + (1.0 - fade) * weights[wrong].sum())


def note_predictions(state: AdaptiveState, wrong: np.ndarray) -> None:
    """Note the errors of the predictions, bool (n,), as `fade` does those of the model in use."""
    fade(state, int(state.info[IN_USE]), wrong)
    state.latest[0] = _after(state.latest[0], wrong, FADE_OF_LATEST)
    state.info[N] += len(wrong)
    state.info[N_WRONG] += wrong.sum()


def choose(state: AdaptiveState) -> None:
    """Use the awake model without waiting examples that errs least, if it is ahead by `LEAD`."""
    faded = np.where((state.asleep > 0) | (state.waiting > 0), np.inf, state.faded)
    best = int(faded.argmin())
    if faded[best] < faded[state.info[IN_USE]] - LEAD:
        state.info[IN_USE] = best


def fall_asleep(state: AdaptiveState, away: float = AWAY) -> None:
    """Let the models sleep but for the one in use, and the best other if it errs not far more.

    That is if its e is not larger by `away`. Models that have examples to learn yet stay awake
    until they can be compared.
    """
    used = int(state.info[IN_USE])
    is_asleep, waits = state.asleep > 0, state.waiting > 0
    faded = np.where(is_asleep | waits, np.inf, state.faded)
    faded[used] = np.inf
    other = int(faded.argmin())
    state.asleep[:] = is_asleep | ~waits
    state.asleep[used] = 0
    if faded[other] <= state.faded[used] + away:
        state.asleep[other] = 0


def wake(state: AdaptiveState, away: float) -> None:
    """Wake models that sleep, if their e is not larger by `away` than that of the model in use."""
    limit = state.faded[state.info[IN_USE]] + away
    state.asleep[state.faded <= limit] = 0


def begin_anew(state: AdaptiveState) -> None:
    """Note that all models begin anew: what came before tells nothing of their errors."""
    state.faded[:] = state.faded[state.info[IN_USE]]
    state.risen[:] = 0
    state.info[[N, N_WRONG]] = 0


def note_risen(state: AdaptiveState, n: int) -> None:
    """Note, after n further examples, whether errors are far more than before."""
    is_more = _excess(state, state.faded[state.info[IN_USE]], FADE) > LIMIT
    state.risen[0] = state.risen[0] + n if is_more else 0


def _excess(state: AdaptiveState, e: float, fade: float) -> float:
    """Return by how many of its standard deviations e is above the share of wrong predictions."""
    n, n_wrong = int(state.info[N]), int(state.info[N_WRONG])
    mean = (n_wrong + 1) / (n + 2)
    deviation = math.sqrt(mean * (1.0 - mean) * (1.0 - fade) / (1.0 + fade))
    return float(e - mean) / deviation


def notices_drift(state: AdaptiveState, n: int) -> bool:
    """Tell whether a drift begins to show in the errors after n examples, and note it."""
    excess = _excess(state, state.faded[state.info[IN_USE]], FADE)
    if excess <= LIMIT:
        state.alarm[0] = 0
    if state.alarm[0]:
        return False
    is_drift = excess > ALARM or _excess(state, state.latest[0], FADE_OF_LATEST) > ALARM_OF_LATEST
    return is_drift and note_drift(state, n)


def note_drift(state: AdaptiveState, n: int) -> bool:
    """Note a drift after n examples, if it is another one than the last; tell whether it is."""
    if state.info[N_DRIFTS] and n - state.info[LAST_DRIFT] < APART:
        return False
    state.alarm[0] = 1
    state.info[N_DRIFTS] += 1
    state.info[LAST_DRIFT] = n
    return True
