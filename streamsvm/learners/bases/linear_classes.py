"""What becomes of linear weights when a class comes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamsvm.labels.growing_labels import GrowingLabels
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import AVERAGE_BIAS, BIAS, LinearState


def state_of(
    state: LinearState,
    labels: GrowingLabels,
    is_turned: bool,
    signed: slice,
    second: float | None,
) -> LinearState:
    """Return a state for labels of which the last one is new; the given one is left as it is.

    Parameters
    ----------
    state
        That of the labels without the last one.
    labels
        All of them.
    is_turned
        Of two labels: whether the first one has the other sign now.
    signed
        The parts of the weights that have a sign.
    second
        Where the second part of new weights begins: see `linear_state.new_state`.

    """
    weights, info = state
    if labels.is_binary:
        if is_turned:
            state = LinearState(weights.copy(), info.copy())
            state.weights[:, signed] *= -1.0
            state.info[:, (BIAS, AVERAGE_BIAS)] *= -1.0
        return state
    outputs, room = len(labels.seen), weights.shape[2]
    if len(info) > 1:
        return linear_state.grown(state, outputs, room, second)
    state = linear_state.new_state(outputs, room, second)
    for output, sign in zip(_pair_of(labels), (1.0, -1.0), strict=True):
        state.weights[output], state.info[output] = weights[0], info[0]
        state.weights[output, signed] *= sign
        state.info[output, [BIAS, AVERAGE_BIAS]] *= sign
    return state


def spread_to(labels: GrowingLabels) -> Callable[[np.ndarray], np.ndarray]:
    """Return what makes class numbers of the signs of two classes, now that there are three."""
    positive, negative = _pair_of(labels)
    return lambda signs: np.where(signs > 0.0, float(positive), float(negative))


def _pair_of(labels: GrowingLabels) -> tuple[int, int]:
    """Return the numbers of the first two labels, the positive one first."""
    return labels.seen.index(labels.positive), labels.seen.index(labels.negative)
