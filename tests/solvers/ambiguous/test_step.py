"""The dual step of the ambiguous SVM against its slow twin, and what holds of any stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.solvers.ambiguous.step import coefficients, dual_step, scores
from tests.reference.slow_ambiguous import SlowAmbiguous, pairwise_loss


def learnt(weights, x, bag, n_labels, C):
    in_bag = np.zeros(weights.shape[1], bool)
    in_bag[list(bag)] = True
    columns = np.flatnonzero(x)
    room = np.empty(weights.shape[1])
    return dual_step(
        weights, columns, x[columns], in_bag, n_labels, C, room, np.empty(weights.shape[1])
    )


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 6),
    C=st.sampled_from([0.01, 0.3, 5.0]),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_dual_step(seed, n_labels, C, scale):
    draws = np.random.default_rng(seed)
    slow = SlowAmbiguous(5, n_labels, C)
    weights = np.zeros((5, n_labels + 2))  # labels to come have room
    losses = dual = 0.0
    for _ in range(20):
        x = scale * draws.normal(size=5) * draws.integers(0, 2, 5)
        bag = {int(y) for y in draws.integers(0, n_labels, draws.integers(0, n_labels + 2))}
        loss, alpha, gain = learnt(weights, x, bag, n_labels, C)
        assert (loss, alpha) == pytest.approx(slow.learn(x, bag), rel=1e-9, abs=1e-12)
        assert 0.0 <= alpha <= C
        losses, dual = losses + loss, dual + gain
        if not 0 < len(bag) < n_labels:
            assert loss == gain == 0.0
    np.testing.assert_allclose(weights[:, :n_labels], slow.w[:5], atol=1e-10)
    assert not weights[:, n_labels:].any()
    np.testing.assert_allclose(weights.sum(1), 0.0, atol=1e-9)
    assert dual == pytest.approx(slow.dual_value(), rel=1e-9, abs=1e-9)
    # Weak duality, whatever w: the dual is at most the primal of the whole stream at w = 0.
    assert dual <= C * 20 + 1e-9


def test_loss_after_a_step_of_full_length_is_smaller():
    draws = np.random.default_rng(1)
    weights, x = draws.normal(size=(4, 7)), draws.normal(size=4)
    in_bag, out, u = np.arange(7) < 3, np.empty(7), np.empty(7)
    before, _, _ = learnt(weights, x, range(3), 7, 1e9)
    scores(weights, np.arange(4), x, 7, out)
    after, _ = coefficients(out, in_bag, 7, u)
    assert after == pytest.approx(pairwise_loss(x @ weights, range(3)))
    assert after < before


def test_an_example_without_features_counts_its_loss_only():
    weights = np.ones((2, 3))
    assert learnt(weights, np.zeros(2), {0}, 3, 0.5) == (1.0, 0.5, 0.5)
    assert (weights == 1.0).all()
