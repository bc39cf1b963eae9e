"""Seeded random draws in compiled code: an xorshift64 generator, whose state is one word.

The word is in an array of the learner's state, so that it is pickled, saved and copied with it.
(Passing a NumPy Generator to a compiled function takes 7 microseconds a call.)
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner

_S7, _S11, _S13, _S17 = np.uint64(7), np.uint64(11), np.uint64(13), np.uint64(17)


def new_draws(seed: int | None) -> np.ndarray:
    """Return the state, uint64 (1,), for a seed; for None, seeded by the operating system."""
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    # xorshift would return zeros for ever from state zero.
    return np.where(state == 0, np.uint64(0x9E3779B97F4A7C15), state)


@compiled_inner
def uniform(draws):
    """Return a float in [0, 1) and advance the state."""
    word = draws[0]
    word ^= word << _S13
    word ^= word >> _S7
    word ^= word << _S17
    draws[0] = word
    # The upper 53 bits: the precision of a float64.
    return np.float64(word >> _S11) * (1.0 / 9007199254740992.0)


@compiled_inner
def below(draws, n):
    """Return an integer drawn uniformly from 0 .. n-1 and advance the state."""
    return np.int64(uniform(draws) * n)
