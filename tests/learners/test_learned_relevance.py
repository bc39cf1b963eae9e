"""Weights of features in the distance of rows, learnt by gradient."""

import numpy as np
import pytest

from streamsvm.models.kernel import learned_relevance
from streamsvm.models.kernel.learned_relevance import MOST_CLASSES, Absolute, Squared, learn
from streamsvm.models.rank_bits import ranks_of


def learnt(x, classes, starts=None, kind=Squared):
    """Return the weights, and the work that was said."""
    starts = [np.ones(x.shape[1])] if starts is None else starts
    steps, work = learn(kind(x), classes, starts), 0.0
    while True:
        try:
            work += next(steps)
        except StopIteration as end:
            return end.value, work


def xor(n=512, d=6, seed=0):
    x = np.random.default_rng(seed).uniform(-1.7, 1.7, (n, d)).astype(np.float32)
    return x, (x[:, 1] * x[:, 3] > 0.0).astype(int)


def slow_loss(x, y, w, halves):
    """Return the losses of two halves, each predicted by the other, in double precision."""
    total = 0.0
    for one, other in (halves, halves[::-1]):

        def kernel(a, b):
            return np.exp(-np.einsum("j,abj->ab", w, (a[:, None, :] - b[None, :, :]) ** 2)) + 1.0

        a, b = x[one].astype(float), x[other].astype(float)
        f = kernel(b, a) @ np.linalg.solve(kernel(a, a) + np.eye(len(a)), y[one])
        total += np.logaddexp(0.0, -2.0 * y[other] * f).sum()
    return total


@pytest.mark.parametrize("kind", [Squared, Absolute])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_gradient_is_that_of_the_loss_at_fixed_coefficients(n_classes, kind):
    # The coefficients of the other half are those of the weights before: they do not follow.
    draws = np.random.default_rng(n_classes)
    rows = kind(draws.normal(size=(60, 3)).astype(np.float32))
    x = rows.x
    classes = draws.integers(0, n_classes, 60)
    y, w = learned_relevance._targets(classes), np.array([0.3, 0.1, 0.7])
    halves = [np.arange(0, 60, 2), np.arange(1, 60, 2)]
    _, found = learned_relevance._loss_and_gradient(rows, y, w, (*halves, np.arange(20)))
    expected = np.zeros(3)
    for one, other in (halves, halves[::-1]):
        a, b = x[one].astype(float), x[other].astype(float)
        power = 2 if kind is Squared else 1
        squares = np.abs(a[None, :, :] - b[:, None, :]) ** power

        def f(w, squares=squares):
            return np.exp(-squares @ w) + 1.0

        own = np.exp(-(np.abs(a[:, None, :] - a[None, :, :]) ** power) @ w) + 1.0 + np.eye(len(a))
        coefficients = np.linalg.solve(own, y[one])
        for j in range(3):
            up, down = w.copy(), w.copy()
            up[j] *= np.exp(1e-5)
            down[j] *= np.exp(-1e-5)
            losses = [
                np.logaddexp(0.0, -2.0 * y[other] * (f(v) @ coefficients)).sum() for v in (up, down)
            ]
            expected[j] += (losses[0] - losses[1]) / 2e-5
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_the_two_features_that_matter_together_weigh_most():
    x, classes = xor()
    w, work = learnt(x, classes)
    assert w.max() == 1.0 and set(np.argsort(w)[-2:]) == {1, 3}
    assert w[[0, 2, 4, 5]].max() < 0.1
    assert work > 0.0
    y = np.where(classes == 1, 1.0, -1.0)[:, None]
    halves = [np.arange(0, 512, 2), np.arange(1, 512, 2)]
    equal = slow_loss(x, y, np.full(6, 1.0 / 6.0), halves)
    assert slow_loss(x, y, 2.0 * w, halves) < 0.6 * equal
    # They are powers, so that last digits do not decide.
    powers = 4.0 * np.log2(w[w > 1e-4])
    np.testing.assert_allclose(powers, np.round(powers), atol=1e-9)
    assert np.array_equal(w, learnt(x * np.float32(1.0 + 1e-6), classes)[0])
    # A constant feature and one far value do no harm.
    x[:, 0], x[5, 2] = 7.0, 1e30
    w, _ = learnt(x, classes)
    assert np.isfinite(w).all() and set(np.argsort(w)[-2:]) == {1, 3}


def test_each_step_says_its_work():
    x, _ = xor(seed=1)
    classes = np.random.default_rng(3).integers(0, 2, len(x))
    # Labels at random: soon no step lowers the loss.
    n_steps = len(list(learn(Squared(x), classes, [np.ones(6)])))
    assert learned_relevance.PATIENCE < n_steps < learned_relevance.STEPS


def test_ranks_that_matter_weigh_most():
    x, classes = xor()
    w, _ = learnt(ranks_of(np.sinh(5.0 * x)), classes, kind=Absolute)
    assert set(np.argsort(w)[-2:]) == {1, 3} and w[[1, 3]].min() > 5.0 * w[[0, 2, 4, 5]].max()
    assert w.max() > 2.0


def test_several_classes_and_a_start():
    x, _ = xor(n=600, d=4)
    classes = 3 * (x[:, 0] > 0.4) + np.digitize(x[:, 2], [-0.6, 0.6])
    w, _ = learnt(x, classes, [np.ones(4), np.array([1.0, 1e-2, 1.0, 1e-2])])
    assert w[[1, 3]].max() < 0.2 * w[[0, 2]].min()
    many = np.arange(600) % (MOST_CLASSES + 4)
    assert learned_relevance._targets(many).shape == (600, MOST_CLASSES)
