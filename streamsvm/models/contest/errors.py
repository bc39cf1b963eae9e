"""What is known of the errors of each model, and of the predictions: whether there are more.

Of each the share of errors e is kept, in which older examples fade: e <- FADE e + (1 - FADE), or
FADE e if the prediction was right. Errors have become more when e is far above the share of wrong
predictions since the model began: by `LIMIT` standard deviations of e, if nothing changes (an EWMA
control chart: Ross, Adams, Tasoulis, Hand, Exponentially weighted moving average charts for
detecting concept drift, Pattern Recognition Letters 33, 2012).

A drift is said when e of the predictions is above that share by `ALARM` deviations, or by
`ALARM_OF_LATEST` if older examples fade faster: models may adapt before many were wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.solvers.adaptive import last_label
from streamsvm.solvers.adaptive.combination import N_MODELS, UNCOUNTED
from streamsvm.support.declaration import COUNT, FLAG, NOT_NEGATIVE, Range, Sizes, field
from streamsvm.support.states import declare

FADE = 0.997
LIMIT = 2.0
ALARM = 4.0
FADE_OF_LATEST = 0.98
ALARM_OF_LATEST = 6.0
APART = 1000
"""Within so many examples of a drift, what is noticed belongs to it."""

PREDICTIONS = N_MODELS
"""The place of the predictions, behind those of the models."""

SINCE, N_DRIFTS, LAST_DRIFT, CHANGED, TRIED = range(5)
N_INFO = 5
"""Entries of `info`: how many examples came since the last look; how many drifts were noticed, and
the number of the last example before the latest; and before a model last fell asleep or woke; what
fresh models took, in examples of the stream."""


class AdaptiveState(NamedTuple):
    """What is known of each model, and of the predictions."""

    faded: np.ndarray = field(N_MODELS + 1, range=Range(0.0, 1.0))
    """The share of errors, in which each example counts less than the next one."""
    n: np.ndarray = field(N_MODELS + 1, dtype=np.int64, range=COUNT)
    n_wrong: np.ndarray = field(N_MODELS + 1, dtype=np.int64, range=COUNT)
    """How many examples were predicted since the model began, and how many of them wrong."""
    risen: np.ndarray = field(N_MODELS + 1, dtype=np.int64, range=COUNT)
    """For how many examples errors have been far more than before; 0: they are not."""
    latest: np.ndarray = field(1, range=Range(0.0, 1.0))
    """The share of wrong predictions, in which examples count for a shorter time."""
    begun: np.ndarray = field(N_MODELS, dtype=np.int64, range=COUNT)
    """The number of the last example before those that the model learns from."""
    restarted: np.ndarray = field(N_MODELS, dtype=np.int64, range=COUNT)
    """The number of examples when it began anew, as a drift was noticed; 0: it did not."""
    alarm: np.ndarray = field(1, dtype=np.int64, range=FLAG)
    """1 from when a drift is noticed until errors are as before."""
    looks: np.ndarray = field(4, range=NOT_NEGATIVE)
    """`Looks` of first models that were before the present one."""
    info: np.ndarray = field(N_INFO, dtype=np.int64, range=COUNT)
    asked: np.ndarray = field(last_label.N_ASKED, dtype=np.int64, range=COUNT)
    """The rows that were predicted of late: see `last_label`."""


def _check(state: AdaptiveState, sizes: Sizes) -> None:
    if (state.n_wrong > state.n).any():
        raise ValueError("more predictions were wrong than there were")


declare(AdaptiveState, _check)


def are_counted(marks: np.ndarray) -> np.ndarray:
    """Return which examples count, bool (n,): those of weight 0 do not."""
    return marks < UNCOUNTED


def are_wrong(marks: np.ndarray, m: int) -> np.ndarray:
    """Return on which examples model m was wrong, bool (n,): see `combination.marks_of`."""
    return (marks >> m & 1) > 0


def note(state: AdaptiveState, marks: np.ndarray, are_awake: Sequence[bool]) -> None:
    """Note the errors on the next examples, of the models that are awake and of the predictions."""
    marks = marks[are_counted(marks)]
    for m in range(N_MODELS + 1):
        if m < N_MODELS and not are_awake[m]:
            continue
        wrong = are_wrong(marks, m)
        state.faded[m] = _after(state.faded[m], wrong, FADE)
        state.n[m] += len(wrong)
        state.n_wrong[m] += wrong.sum()
        is_more = _excess(state, m, state.faded[m], FADE) > LIMIT
        state.risen[m] = state.risen[m] + len(wrong) if is_more else 0
    state.latest[0] = _after(state.latest[0], are_wrong(marks, PREDICTIONS), FADE_OF_LATEST)


def _after(e: float, wrong: np.ndarray, fade: float) -> float:
    """Return the share of errors after further predictions, bool (n,)."""
    n = len(wrong)
    weights = fade ** np.arange(n - 1, -1, -1)
    return float(fade**n * e + (1.0 - fade) * weights[wrong].sum())


def begin_anew(state: AdaptiveState, m: int, wrong: np.ndarray) -> None:
    """Note that model m began anew: all that is known of its errors are those, bool (n,)."""
    state.faded[m], state.n[m], state.n_wrong[m] = wrong.mean(), len(wrong), wrong.sum()
    state.risen[m] = 0


def forget(state: AdaptiveState, m: int) -> None:
    """Forget the errors of a model that slept."""
    state.faded[m], state.n[m], state.n_wrong[m], state.risen[m] = 0.0, 0, 0, 0


def is_due(risen: int, every: int) -> bool:
    """Tell whether to try something after each so many examples, while errors have been more.

    Later it is tried after half as many again as there were: what did not help so far may not help.
    """
    return risen > 0 and risen % max(every, (1 << (risen.bit_length() - 1)) // 2) == 0


def _excess(state: AdaptiveState, m: int, e: float, fade: float) -> float:
    """Return by how many of its standard deviations e is above the share of wrong predictions."""
    mean = (int(state.n_wrong[m]) + 1) / (int(state.n[m]) + 2)
    deviation = math.sqrt(mean * (1.0 - mean) * (1.0 - fade) / (1.0 + fade))
    return float(e - mean) / deviation


def notices_drift(state: AdaptiveState, n: int) -> bool:
    """Tell whether a drift begins to show in the predictions after n examples, and note it."""
    excess = _excess(state, PREDICTIONS, state.faded[PREDICTIONS], FADE)
    if excess <= LIMIT:
        state.alarm[0] = 0
    if state.alarm[0]:
        return False
    of_latest = _excess(state, PREDICTIONS, state.latest[0], FADE_OF_LATEST)
    return (excess > ALARM or of_latest > ALARM_OF_LATEST) and note_drift(state, n)


def note_drift(state: AdaptiveState, n: int) -> bool:
    """Note a drift after n examples, if it is another one than the last; tell whether it is."""
    if state.info[N_DRIFTS] and n - state.info[LAST_DRIFT] < APART:
        return False
    state.alarm[0] = 1
    state.info[N_DRIFTS] += 1
    state.info[LAST_DRIFT] = n
    return True
