"""Scales that change along the stream: the rows kept are rescaled, as the stream doubles.

After the trial of scale and width, a learner compares the features' standard deviations with those
in use after 2,048, 4,096, 8,192, ... examples. If one has changed enough, all rows kept are
multiplied by the ratio, and the model is computed anew from its coefficients: so the kernel always
compares rows of one scale. Where rows were best as they are, features that change are scaled so
that they weigh as much in distances as they did in the trial.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.bases.kernel.interfaces import AnyKernelLearner
from streamsvm.learners.bases.scaled_rows import padded, rescale
from streamsvm.support import states


def adapt(learner: AnyKernelLearner) -> dict[str, Any]:
    """Compare the scales with those in use, when the number of examples is a power of two.

    Returns the attributes of the learner that change, with their new values; the learner is not
    changed. The caller holds its lock.
    """
    if learner.is_sparse:
        # Sparse rows keep the factors that they have.
        return {"scales": None}
    scales = learner.scales
    assert scales is not None
    factors = scales.followed(_factors_in_use(learner, scales.is_flag.size))
    scales.begin_half()
    return {} if factors is None else with_factors(learner, factors)


def _factors_in_use(learner: AnyKernelLearner, d: int) -> np.ndarray:
    """Return what features are multiplied by now, float32 (d,)."""
    factors = learner.factors
    return padded(np.zeros(0, np.float32) if factors is None else factors, d)


def with_factors(learner: AnyKernelLearner, factors: np.ndarray) -> dict[str, Any]:
    """Return the attributes that change, with new values, if the rows kept are rescaled.

    The rows are dense. `factors`, float32 (d,), is what each feature is to be multiplied by. The
    learner is not changed; the caller holds its lock.
    """
    ratio = factors / _factors_in_use(learner, factors.size)
    old, solver = learner.state, learner.solver
    state = states.grown(old, states.capacity_of(old), states.n_columns(old), solver.cache_bytes)
    rescale(state.store.panels, ratio)
    solver.states.rebuild(state, solver.bound_kernel(state), len(learner.schema))
    return {"solver": solver.with_rows_scaled(state, ratio), "factors": factors}
