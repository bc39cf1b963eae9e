"""LaRank's reserve, whose rows are revisited: near the optimum of all rows, and what must hold."""

import numpy as np
import pytest

from streamsvm import LaRankClassifier, kernels
from streamsvm.errors import ParameterError
from streamsvm.support.rows import dense
from tests.reference.slow_larank import dual_of
from tests.slow import slow_but

RBF = kernels.RBF(gamma=2.0)


def rows(n, k=4, seed=0, noise=0.3):
    """Return rows and classes; those of the first tenth are all of class 0."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
    y = (np.floor(2 * x[:, 0] + 2 * x[:, 1] ** 2) % k).astype(int)
    y = np.where(rng.random(n) < noise, rng.integers(0, k, n), y)
    y[: n // 10] = 0
    return x, y


def gram_of(x):
    return np.exp(-RBF.gamma * ((x[:, None] - x[None]).astype(float) ** 2).sum(axis=2))


def held(model):
    x, facts = model.solver.kept_rows.rows()
    return dense(x), facts


def beta_of(model, n, k):
    """Return the coefficients of examples 1 .. n, whose classes are 0 .. k - 1."""
    found, (_, coefficients, entered) = np.zeros((n, k)), model.model.expansion()
    live = entered > 0
    order = [model.classes.index(c) for c in range(k)]
    found[entered[live] - 1] = coefficients[live][:, order]
    return found


def gap_of(model, x, y, cost):
    """Return the dual and the duality gap over rows that were examples 1, 2, ..."""
    gram, every = gram_of(x), np.arange(len(y))
    beta = beta_of(model, len(y), 4)
    dual, f = dual_of(gram, y, beta), gram @ beta
    own = f[every, y]
    f[every, y] = -np.inf
    losses = cost * np.maximum(0.0, 1.0 - own + f.max(axis=1))
    return dual, beta[every, y].sum() - 2.0 * dual + losses.sum()


@pytest.mark.parametrize("is_sparse", slow_but([False, True], False))
def test_with_all_rows_in_reserve_one_pass_reaches_the_batch_optimum(is_sparse):
    x, y = rows(240, seed=5)
    w = np.random.default_rng(1).uniform(0.2, 3.0, 240)
    parameters = {"C": 10.0, "tau": 1e-5, "sparse": is_sparse, "seed": 1}
    model, without = (LaRankClassifier(RBF, reserve=n, **parameters) for n in (240, 0))
    for learner in (model, without):
        learner.learn_many(x, y, w=w)
        learner.finish(share=0.0)
    dual, gap = gap_of(model, x, y, 10.0 * w)
    # No dual is above the primal objective: so the optimum is at most this gap away.
    assert gap <= 2e-4 * dual
    assert without.dual < (1.0 - 1e-3) * dual
    # The dual and the bounds are those of the coefficients.
    beta = beta_of(model, 240, 4)
    own = beta[np.arange(240), y]
    assert model.dual == pytest.approx(dual, rel=1e-5)
    assert np.abs(beta.sum(axis=1)).max() < 1e-9
    assert (own >= 0.0).all() and (own <= 10.0 * w * (1.0 + 1e-12)).all()
    beta[np.arange(240), y] = 0.0
    assert (beta <= 0.0).all()


def test_finish_ends_when_the_gap_over_kept_and_reserve_is_small():
    x, y = rows(300, seed=2)
    for share in (0.1, 0.01):
        model = LaRankClassifier(RBF, C=0.5, reserve=300, seed=1)
        model.learn_many(x, y)
        model.finish(share=share)
        dual, gap = gap_of(model, x, y, 0.5)
        # As much again for the rows that are not kept.
        assert gap <= 2.0 * share * dual * (1.0 + 1e-3)


def test_the_dual_never_falls_and_scores_are_up_to_date():
    x, y = rows(250, seed=3)
    model = LaRankClassifier(RBF, C=20.0, reserve=250, seed=1)
    model.learn_many(x, y)
    looks, duals, goes_on = model.solver.revisits(model.model), [model.dual], True
    while goes_on:
        goes_on = looks.learn_violating()
        duals.append(model.dual)
    assert len(duals) > 3 and (np.diff(duals) >= -1e-9 * duals[-1]).all()
    number = looks._facts["number"]
    scores = model.decision_function_many(x)[number - 1]
    np.testing.assert_allclose(looks._f, scores, atol=1e-3)


def test_a_window_is_not_left():
    x, y = rows(400, seed=3)
    model = LaRankClassifier(RBF, C=10.0, window=100, seed=1)
    model.learn_many(x, y)
    assert held(model)[1]["number"].min() > 300
    model.finish(share=0.0)
    assert model.kept_numbers().min() > 300
    dual, gap = gap_of(model, x, y, 10.0 * (np.arange(400) >= 300))
    assert gap <= 5e-3 * dual


def test_examples_of_one_class_alone_are_looked_at_when_there_is_another():
    x, _ = rows(60)
    model = LaRankClassifier(RBF, reserve=60, seed=1)
    model.learn_many(x[:30], np.zeros(30, int))
    assert model.n_support_patterns == 0 and model.solver.kept_rows.n_rows == 30
    model.finish()
    model.learn_many(x[30:], np.ones(30, int))
    model.finish(share=0.0)
    assert model.kept_numbers().min() <= 30


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ParameterError, match="reserve=5 with K=2: K keeps all examples"):
        LaRankClassifier(reserve=5, K=2)
    with pytest.raises(ParameterError, match="reserve=5 with max_support_vectors=10"):
        LaRankClassifier(reserve=5, max_support_vectors=10)
    model = LaRankClassifier(K=2, seed=1)
    model.learn_many(*rows(60))
    assert model.memory_parts["reserve"] == 0
