"""What the choice among models knows: their errors of late, and those of the predictions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.solvers.adaptive import last_label
from streamsvm.support.declaration import COUNT, FLAG, Range, Sizes, field
from streamsvm.support.states import declare

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
    repeats: np.ndarray = field(last_label.N_REPEATS)
    """What is known of labels that repeat: see `last_label`."""
    asked: np.ndarray = field(last_label.N_ASKED, dtype=np.int64, range=COUNT)
    """The rows that were predicted of late: see `last_label`."""


def _check(state: AdaptiveState, sizes: Sizes) -> None:
    if state.info[IN_USE] >= len(state.faded):
        raise ValueError("the model in use is none of the models")
    if state.asleep[state.info[IN_USE]]:
        raise ValueError("the model in use is asleep")
    if state.info[N_WRONG] > state.info[N]:
        raise ValueError("more predictions were wrong than there were")
    last_label.check(state.repeats)


declare(AdaptiveState, _check)
