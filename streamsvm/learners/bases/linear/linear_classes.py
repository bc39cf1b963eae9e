"""Changes of the weights of a linear learner when a new class appears."""

from __future__ import annotations

from streamsvm.labels.growing_labels import GrowingLabels, pair_of
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import AVERAGE_BIAS, BIAS, LinearState


def state_of(
    state: LinearState,
    labels: GrowingLabels,
    is_turned: bool,
    signed: slice,
    second: float | None,
) -> LinearState:
    """Return a state for labels of which the last one is new.

    Parameters
    ----------
    state
        The state from before the new label; it is not changed.
    labels
        All labels, including the new one.
    is_turned
        With two labels: whether the sign of the first one changes.
    signed
        The parts of the weights that change their sign with the labels.
    second
        The initial value of the second part of weights: see `linear_state.new_state`.

    Returns
    -------
    The given state if nothing changes, otherwise a new one.

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
    for output, sign in zip(pair_of(labels), (1.0, -1.0), strict=True):
        state.weights[output], state.info[output] = weights[0], info[0]
        state.weights[output, signed] *= sign
        state.info[output, [BIAS, AVERAGE_BIAS]] *= sign
    return state
