"""Kernel perceptrons, passive-aggressive learning, Pegasos and the Huller as learners."""

import numpy as np
import pytest

from streamsvm import (
    HullerClassifier,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    TrackingMonitor,
    kernels,
)
from streamsvm.errors import ParameterError

FAMILY = (KernelPerceptronClassifier, KernelPAClassifier, KernelPegasosClassifier)
RBF = kernels.RBF(gamma=1.0)


def rings(n=400, seed=0):
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 2)).astype(np.float32)
    return x, (x**2).sum(axis=1) + 0.2 * draws.normal(size=n) < 1.4


def by_hand(model, x, kernel=RBF):
    """Return margins from the support vectors that the model shows."""
    found = model.support_vectors()
    k = [[kernels.evaluate(kernel, row, z) for z in found.rows] for row in x]
    return np.array(k) @ found.coefficients + getattr(model, "bias", 0.0)


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("limit", [None, 30])
@pytest.mark.parametrize("cls", FAMILY)
def test_the_support_vectors_are_the_model(cls, limit, averaged):
    x, y = rings()
    model = cls(RBF, averaged=averaged, max_support_vectors=limit, seed=0)
    model.learn_many(x, y)
    margins = model.decision_function_many(x[:20])
    np.testing.assert_allclose(margins, by_hand(model, x[:20]), rtol=1e-4, atol=1e-4)
    assert model.n_support_vectors <= (limit or 400)
    assert np.mean(np.array(model.predict_many(x)) == y) > 0.9
    w2 = model.squared_norm
    found = model.support_vectors()
    gram = [[kernels.evaluate(RBF, a, b) for b in found.rows] for a in found.rows]
    assert w2 == pytest.approx(found.coefficients @ np.array(gram) @ found.coefficients, rel=1e-3)


def test_the_hullers_support_vectors_are_its_model():
    x, y = rings(seed=1)
    model = HullerClassifier(RBF, seed=0)
    assert model.bias == 0.0 and model.distance == 0.0
    model.learn_many(x, y)
    margins = model.decision_function_many(x[:20])
    np.testing.assert_allclose(margins, by_hand(model, x[:20]), rtol=1e-3, atol=1e-3)
    coefficients = model.support_vectors().coefficients
    # Scaled so that the margin is 1: the coefficients of each class sum to 2 / distance^2.
    assert coefficients.sum() == pytest.approx(0.0, abs=1e-6 * np.abs(coefficients).sum())
    assert coefficients[coefficients > 0].sum() == pytest.approx(2.0 / model.distance**2, rel=1e-6)


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.Polynomial(degree=2)])
@pytest.mark.parametrize("budget", ["merge", "project"])
def test_budgets_with_other_kernels(kernel, budget):
    x, y = rings()
    model = KernelPAClassifier(kernel, max_support_vectors=10, budget=budget, seed=0)
    model.learn_many(x, y)
    margins = model.decision_function_many(x[:20])
    assert model.n_support_vectors <= 10 and np.isfinite(margins).all()
    np.testing.assert_allclose(margins, by_hand(model, x[:20], kernel), rtol=1e-3, atol=1e-3)


def test_an_average_is_the_default_unless_vectors_are_lost():
    averages = {
        (None, None): True,
        (50, None): True,
        (50, "merge"): True,
        (50, "remove"): False,
        (None, "remove"): True,
    }
    for (limit, budget), expected in averages.items():
        model = KernelPerceptronClassifier(max_support_vectors=limit, budget=budget)
        assert bool(model.solver.schedule.averaged) == expected, (limit, budget)
    assert "last model" in KernelPegasosClassifier(averaged=False).description


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: KernelPAClassifier(mode="PA-3"), "mode='PA-3': use one of 'PA', 'PA-I', 'PA-II'"),
        (lambda: KernelPAClassifier(mode="PA", class_weight={1: 2.0}), "'PA-I' or 'PA-II'"),
        (lambda: KernelPAClassifier(C=0.0), "C=0.0"),
        (lambda: KernelPegasosClassifier(l2=0.0), "l2=0.0"),
        (lambda: KernelPegasosClassifier(l2=1e-320), "use a finite number of at least 1e-100"),
        (lambda: KernelPegasosClassifier(budget="remove"), "use None or one of 'project', 'merge'"),
        (lambda: KernelPerceptronClassifier(budget="magic"), "budget='magic': use None or one"),
        (lambda: KernelPerceptronClassifier(margin=-1.0), "margin=-1.0"),
        (lambda: KernelPerceptronClassifier(max_support_vectors=1), "max_support_vectors=1"),
        (
            lambda: KernelPerceptronClassifier(voted=True, max_support_vectors=50),
            "leave max_support_vectors and averaged out",
        ),
        (lambda: KernelPerceptronClassifier(voted=True, averaged=True), "the votes of all models"),
        (lambda: KernelPerceptronClassifier(class_weight="balanced"), "use None or a dict"),
        (lambda: HullerClassifier(reprocess=-1), "reprocess=-1"),
    ],
)
def test_what_is_refused_says_what_is_accepted(make, said):
    with pytest.raises(ParameterError) as error:
        make()
    assert said in str(error.value)


@pytest.mark.parametrize("cls", [*FAMILY, HullerClassifier])
def test_a_monitor_follows_the_objective(cls):
    x, y = rings()
    monitor = TrackingMonitor(cls(RBF, seed=0), every=100)
    monitor.learn_many(x, y)
    model = monitor.model
    signs = np.where(y, 1.0, -1.0)
    margin = 0.0 if cls is KernelPerceptronClassifier else 1.0
    losses = np.maximum(0.0, margin - signs * model.decision_function_many(x))
    expected = losses.mean()
    if cls is KernelPegasosClassifier:
        expected += 0.5 * model.l2 * model.squared_norm
    classes = np.array([model.targets.number_of(label) for label in y.tolist()])
    assert model.objective_of(x, classes, np.ones(len(y))) == pytest.approx(expected, rel=1e-6)
    assert np.isfinite(monitor.get()["objective"])
    assert model.certificate.value is None and model.certificate.reason.startswith("no certificate")


def test_gamma_follows_the_data_with_every_budget():
    """Gamma changes several times within the first examples; what depends on it is kept right."""
    x, y = rings(1500)
    for budget in ("project", "remove", "merge"):
        model = KernelPerceptronClassifier(max_support_vectors=20, budget=budget, seed=0)
        model.learn_many(np.float32(3.0) * x, y)
        assert model.kernel_ != kernels.RBF(gamma=1.0)
        margins = by_hand(model, 3.0 * x[:10], model.kernel_)
        np.testing.assert_allclose(
            model.decision_function_many(np.float32(3.0) * x[:10]), margins, rtol=1e-3, atol=1e-3
        )
        state, n = model.state, int(model.state.info[0].n)
        rows = model.support_vectors().rows
        if budget != "merge":
            assert len(rows) == n
            gram = np.array([[kernels.evaluate(model.kernel_, a, b) for b in rows] for a in rows])
            order = np.argsort(state.store.entered[:n])
            if budget == "remove":
                f = gram @ state.alpha[:n][order]
                np.testing.assert_allclose(state.f[:n][order], f, rtol=1e-3, atol=1e-3)
            else:
                inverse = state.inverse[:n, :n][np.ix_(order, order)]
                np.testing.assert_allclose(inverse @ gram, np.eye(n), atol=0.02)


def test_vectors_that_depend_by_a_new_gamma_still_span_a_projection():
    # Of the first 64 rows all distances are small; of the next, in one column, a thousand times.
    draws = np.random.default_rng(0)
    x = draws.normal(size=(600, 3)).astype(np.float32) * np.float32(1e-3)
    x[64:, 0] += draws.normal(size=536)
    y = x[:, 1] > 0
    model = KernelPAClassifier(max_support_vectors=50, seed=0)
    model.learn_many(x[:64], y[:64])
    before = model.kernel_
    model.learn_many(x[64:], y[64:])
    assert model.kernel_ != before
    assert np.abs(model.support_vectors().coefficients).max() < 1e4
    assert np.abs(model.decision_function_many(x)).max() < 100.0


@pytest.mark.parametrize(
    "cls", [KernelPerceptronClassifier, KernelPAClassifier, KernelPegasosClassifier]
)
def test_merged_vectors_do_not_get_worse_with_the_stream(cls):
    """With the mean of all models errors rose from .16 to .36 (PA-I), .23 to .60 (perceptron)."""
    centres = np.random.default_rng(81).normal(size=(2, 6)) * 1.2
    draws = np.random.default_rng(5)
    y = draws.integers(0, 2, 12_000)
    x = (centres[y] + draws.normal(size=(len(y), 6))).astype(np.float32)
    model = cls(max_support_vectors=100, budget="merge", seed=1)
    wrong = np.array(model.predict_then_learn_many(x, y.tolist())) != y
    assert wrong[-3000:].mean() < wrong[:3000].mean() + 0.04
