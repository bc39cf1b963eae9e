"""The dual step of the ambiguous SVM against its slow twin, and what holds of any stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.solvers.ambiguous import linear
from streamsvm.solvers.ambiguous.state import LinearState
from streamsvm.support import states
from tests.reference.slow_ambiguous import SlowAmbiguous


def new_state(n_features, n_labels):
    sizes = {"slots": 1, "features": n_features, "classes": n_labels + 2, "parts": 0}
    state = states.new(LinearState, sizes)  # labels to come have room
    state.info[0].n_classes = n_labels
    return state


def learnt(state, x, bag, C):
    """Learn an example by the last weights, without a bias; return its loss before."""
    info, rows, one = state.info[0], x[None].astype(np.float32), np.ones(1)
    info.losses = 0.0
    margins = np.isin(np.arange(info.n_classes), list(bag)).astype(float)[None]
    linear.learn_rows(
        state, kernels.Linear(), rows, np.array([-1.0]), C * one, one, np.array([1]),
        (rows**2).sum(axis=1), linear.Schedule(0.0, 0.0), margins,
    )  # fmt: skip
    return info.losses / C


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 6),
    C=st.sampled_from([0.01, 0.3, 5.0]),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_dual_step(seed, n_labels, C, scale):
    draws = np.random.default_rng(seed)
    slow, state = SlowAmbiguous(5, n_labels, C), new_state(5, n_labels)
    info, weights = state.info[0], state.weights
    for _ in range(20):
        x = (scale * draws.normal(size=5) * draws.integers(0, 2, 5)).astype(np.float32)
        bag = {int(y) for y in draws.integers(0, n_labels, draws.integers(0, n_labels + 2))}
        before, dual = weights.copy(), info.dual
        loss = learnt(state, x, bag, C)
        assert loss == pytest.approx(slow.learn(x.astype(float), bag)[0], rel=1e-9, abs=1e-12)
        if not 0 < len(bag) < n_labels:
            assert loss == 0.0 and info.dual == dual and (weights == before).all()
    np.testing.assert_allclose(weights[:5, :n_labels], slow.w[:5], atol=1e-10)
    assert not weights[:, n_labels:].any()
    np.testing.assert_allclose(weights.sum(1), 0.0, atol=1e-9)
    assert info.dual == pytest.approx(slow.dual_value(), rel=1e-9, abs=1e-9)
    # Weak duality, whatever w: the dual is at most the primal of the whole stream at w = 0.
    assert info.dual <= C * 20 + 1e-9
