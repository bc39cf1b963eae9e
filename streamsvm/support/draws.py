"""Seeded random draws inside compiled code: xorshift64*, one word of state in an array.

The generator's state is part of a learner's state, so that it is pickled, saved and copied with it.
(Passing a NumPy Generator to a compiled function costs 7 microseconds a call.)
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled

_MULTIPLIER = np.uint64(0x2545F4914F6CDD1D)
_S12, _S25, _S27, _S11 = np.uint64(12), np.uint64(25), np.uint64(27), np.uint64(11)


def new_draws(seed: int | None) -> np.ndarray:
    """Return the state, uint64 (1,), for a seed; a fresh one from the system for None."""
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    # Zero is the one state that xorshift never leaves.
    return np.where(state == 0, np.uint64(0x9E3779B97F4A7C15), state)


@compiled
def uniform(draws):  # type: ignore[no-untyped-def]
    """Return a float in [0, 1) and advance the state."""
    word = draws[0]
    word ^= word >> _S12
    word ^= word << _S25
    word ^= word >> _S27
    draws[0] = word
    return np.float64((word * _MULTIPLIER) >> _S11) * (1.0 / 9007199254740992.0)


@compiled
def below(draws, n):  # type: ignore[no-untyped-def]
    """Return an integer drawn uniformly from 0 .. n-1 and advance the state."""
    return np.int64(uniform(draws) * n)
