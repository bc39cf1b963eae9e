"""Looks at a fixed state: their mean is the gap, their frequency C_i, and B bounds them."""

import numpy as np
import pytest

from streamsvm import LaRankClassifier, LASVMClassifier, TrackingSVMClassifier, kernels
from streamsvm.solvers.larank import uniform
from streamsvm.solvers.lasvm import gap as lasvm_gap
from streamsvm.solvers.tracking import linear, step
from streamsvm.support.looks import heavy_member

RBF = kernels.RBF(gamma=1.0)
N = 20_000


def learnt(model, n=120, weights=None, classes=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    y = (np.abs(x[:, 0] * x[:, 1]) * 3).astype(int) % classes
    model.learn_many(x, y.tolist(), w=rng.uniform(0.1, 5.0, n) if weights is None else weights)
    return model


def own_gap(model):
    """Return the gap at the learner's own bias, over the sum of the C_i."""
    gap = model.kept_gap()
    return gap.total / gap.cost


def tracking(kernel):
    return TrackingSVMClassifier(kernel=kernel, K=2, averaged=False, seed=1)


# How a model is made, and how it is looked at.
MODELS = {
    "lasvm": (lambda: LASVMClassifier(kernel=RBF), lasvm_gap.look),
    "lasvm, budget": (
        lambda: LASVMClassifier(kernel=RBF, max_support_vectors=30),
        lasvm_gap.look,
    ),
    "tracking": (lambda: tracking(RBF), lambda state: step._look(state, 1.0)),
    "linear": (
        lambda: tracking(kernels.Linear()),
        lambda state: linear._look(state, 1.0, 1.0, 1.0, 2),
    ),
    "larank": (
        lambda: LaRankClassifier(kernel=RBF, K=2, seed=1),
        lambda state: uniform.look(state, 1.0),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_mean_of_looks_is_the_gap(name):
    make, look = MODELS[name]
    model = learnt(make(), classes=3 if name == "larank" else 2)
    before, values = model.looks, []
    for _ in range(N // 10):
        was = model.looks
        look(model.state)
        values.append(model.looks.total - was.total)
    values = np.array(values)
    error = values.std() / np.sqrt(len(values))
    assert own_gap(model) > 0.0
    assert values.mean() == pytest.approx(own_gap(model), abs=5.0 * error + 1e-9)
    assert (values >= -1e-9).all() and values.max() <= model.looks.most * (1.0 + 1e-9)
    assert model.looks.squares - before.squares == pytest.approx((values**2).sum(), rel=1e-6)


@pytest.mark.parametrize("most", [0.0, 5.0, 1e9])
def test_members_are_drawn_in_proportion_to_their_box(most):
    draws = np.array([12345], np.uint64)
    members, cost = np.array([3, 0, 2]), np.array([1.0, 99.0, 5.0, 4.0])
    found = [heavy_member(draws, members, 3, cost, most) for _ in range(N)]
    shares = np.bincount(found, minlength=4) / N
    np.testing.assert_allclose(shares, np.array([1.0, 0.0, 5.0, 4.0]) / 10.0, atol=0.02)


def test_one_heavy_example_is_found_without_trying_for_ever():
    draws = np.array([7], np.uint64)
    cost = np.full(1000, 1e-9)
    cost[17] = 1e9
    members = np.arange(1000)
    assert {int(heavy_member(draws, members, 1000, cost, 1e9)) for _ in range(50)} == {17}


@pytest.mark.parametrize("name", MODELS)
def test_looks_change_no_model(name):
    make, look = MODELS[name]
    a, b = learnt(make()), learnt(make())
    look(a.state)
    x = np.random.default_rng(5).normal(size=(30, 2))
    for model in (a, b):
        model.learn_many(x, (x[:, 0] > 0).astype(int).tolist())
    np.testing.assert_array_equal(a.decision_function_many(x), b.decision_function_many(x))
