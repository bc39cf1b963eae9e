"""What the choice among models knows: their errors of late, and those of the predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.support.declaration import COUNT, FLAG, Field, Range, Sizes
from streamsvm.support.states import declare

IN_USE, N, N_WRONG, N_DRIFTS, LAST_DRIFT = range(5)
N_INFO = 5
"""The index of the model that predicts; examples, and wrong predictions, since the models began;
how often they began anew; and the number of the last example before that."""


class AdaptiveState(NamedTuple):
    """What is known of each model, and of the predictions."""

    faded: np.ndarray
    """The share of errors, in which each example counts less than the next one."""
    info: np.ndarray
    waiting: np.ndarray
    """How many of the last examples are not in that share yet; the model in use has learnt them
    all the same, the others have not."""
    asleep: np.ndarray
    """1 of models that do not learn at present."""


def _check(state: AdaptiveState, sizes: Sizes) -> None:
    if state.info[IN_USE] >= len(state.faded):
        raise ValueError("the model in use is none of the models")
    if state.asleep[state.info[IN_USE]]:
        raise ValueError("the model in use is asleep")


declare(
    AdaptiveState,
    {
        "faded": Field(("models",), range=Range(0.0, 1.0)),
        "info": Field((N_INFO,), np.int64, range=COUNT),
        "waiting": Field(("models",), np.int64, range=COUNT, optional=True),
        "asleep": Field(("models",), np.int64, range=FLAG, optional=True),
    },
    _check,
)


def begin_anew(state: AdaptiveState, n: int) -> Any:
    """Note that all models begin anew after n examples of the stream."""
    state.faded[:] = state.faded[state.info[IN_USE]]
    state.waiting[:] = state.asleep[:] = 0
    state.info[:] = state.info[IN_USE], 0, 0, state.info[N_DRIFTS] + 1, n
