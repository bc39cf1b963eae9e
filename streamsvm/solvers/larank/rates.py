"""What LaRank's operations gain and cost: the rates of the adaptive schedule (Algorithm 22)."""

from __future__ import annotations

from streamsvm._compile import compiled_within
from streamsvm.support.clock import cycles

_LEAST = 0.05
"""mu of Algorithm 22: no rate is a smaller share of the largest one, or it would never recover."""

_SMALLEST = 1e-6

_SECONDS = (2e-8, 1e-9, 1.5e-11, 4e-10)
"""What is charged for an operation, a kernel value, each feature in it, a gradient updated."""


@compiled_within
def begin(state, clock):
    """Begin an operation: nothing gained, nothing spent."""
    if clock > 0.0:
        state.info[0].began = cycles()
    state.info[0].gained = 0.0
    state.info[0].work = _SECONDS[0]


@compiled_within
def charge(state, n_features, n_values, n_updates):
    """Add the cost of a part of an operation to what it has cost so far."""
    operation, value, feature, update = _SECONDS
    state.info[0].work += operation + n_values * (value + n_features * feature) + n_updates * update


@compiled_within
def rate(state, clock, before):
    """Return the rate of an operation after it was done once more (Algorithm 22, line 16)."""
    info = state.info[0]
    if clock > 0.0:
        info.work = 1e-9 * max(1, cycles() - info.began)
    best = max(info.rate_new, info.rate_old, info.rate_optimize)
    return max(0.05 * info.gained / info.work + 0.95 * before, _LEAST * best, _SMALLEST)
