"""LASVM for several classes: against twins and scikit-learn, and what must always hold."""

import numpy as np
import pytest
from sklearn.svm import SVC

from streamsvm import LASVMClassifier, TrackingMonitor, kernels
from tests.kernels.test_values import expected
from tests.learners.test_all_learners import saved
from tests.reference.slow_lasvm_pairs import SlowPairs
from tests.slow import slow_but

RBF = kernels.RBF(gamma=2.0)
DENSE, SPARSE = "LASVM of several classes dense", "LASVM of several classes sparse"
PLAIN = {"kernel": RBF, "delta_max": None}


def rows(n, k=4, seed=0, noise=0.1):
    """Return rows and classes 0 .. k - 1, the first k of which are those of the first k rows."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
    y = (np.floor(2 * x[:, 0] + 2 * x[:, 1] ** 2) % k).astype(int)
    y = np.where(rng.random(n) < noise, rng.integers(0, k, n), y)
    y[:k] = range(k)
    return x, y


def members(model, pair):
    """Return numbers, coefficients and gradients of the members of a problem."""
    of = model.state.problems
    p = model._problems().index(pair)
    start, n = of.segments[p].start, of.table[p].n
    at = np.arange(start, start + n)
    at = at[of.lower[at] != of.upper[at]]
    at = at[np.argsort(of.entered[at])]
    return of.entered[at], of.alpha[at], of.gradient[at]


def pairs(k):
    return [(a, b) for b in range(k) for a in range(b)]


@pytest.mark.parametrize("second_order", [False, True])
def test_the_decisions_are_those_of_a_slow_lasvm_for_each_pair(second_order):
    x, y = rows(160, seed=3)
    slow = SlowPairs(expected(RBF, x, x), y, np.full(160, 2.0), 1e-5, second_order)
    model = LASVMClassifier(**PLAIN, C=2.0, tau=1e-5, second_order=second_order)
    for i in range(160):
        slow.learn(i)
        model.learn_one(dict(enumerate(x[i].tolist())), int(y[i]))
    # Where two steps are as good, each takes another one: the optimum is the same.
    slow.finish(range(160))
    model.finish()
    for pair, own in slow.pairs.items():
        number, alpha, _ = members(model, pair)
        found = np.zeros(160)
        found[number - 1] = alpha
        np.testing.assert_allclose(found, own.alpha, atol=2e-3)
    np.testing.assert_allclose(model.decision_function_many(x), slow.scores(), atol=1e-3)
    assert (model.predict_many(x) == slow.scores().argmax(axis=1)).all()
    assert model.dual == pytest.approx(slow.dual, rel=1e-6)


def optimum(x, y, C, rest, weights=None):
    """Return the sum of the dual optima of the binary problems, by scikit-learn."""
    total, k = 0.0, int(y.max()) + 1
    for a, b in [(c, None) for c in range(k)] if rest else pairs(k):
        own = np.ones(len(y), bool) if b is None else (y == a) | (y == b)
        w = None if weights is None else weights[own]
        svc = SVC(C=C, gamma=RBF.gamma, tol=1e-5).fit(x[own], y[own] == a, w)
        alpha, vectors = svc.dual_coef_[0], svc.support_vectors_
        total += np.abs(alpha).sum() - 0.5 * alpha @ expected(RBF, vectors, vectors) @ alpha
    return total


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("is_sparse", slow_but([False, True], False, compiling=SPARSE))
def test_one_pass_and_revisits_reach_the_optimum_of_all_problems(multiclass, is_sparse):
    x, y = rows(400, seed=5, noise=0.3)
    w = np.random.default_rng(1).uniform(0.2, 3.0, 400)
    best = optimum(x, y, 10.0, multiclass == "ovr", w)
    parameters = {"kernel": RBF, "C": 10.0, "multiclass": multiclass, "sparse": is_sparse}
    model, without = (LASVMClassifier(**parameters, reserve=n) for n in (400, 0))
    for learner in (model, without):
        learner.learn_many(x, y, w=w)
        looks = learner.looks
        learner.finish()
        assert learner.looks == looks
    assert model.dual == pytest.approx(best, rel=1e-4)
    assert abs(without.dual / best - 1.0) > 1e-4
    assert model.delta <= model.tau and model.duality_gap() < 1e-3


def test_f_of_the_reserve_is_up_to_date():
    x, y = rows(300, seed=1, noise=0.4)
    model = LASVMClassifier(kernel=RBF, C=20.0, reserve=300)
    model.learn_many(x, y)
    looks, goes_on = model.solver.revisits(model.model), True
    while goes_on:
        while not model.solver.improve_some(model.model.n_features, 0.0)[0]:
            pass
        goes_on = looks.learn_violating()
    sides, bias = model._problems(), model.bias
    for r, (number, own) in enumerate(zip(looks._facts["number"], looks._class_of, strict=True)):
        f = model.pair_margins_one(dict(enumerate(x[number - 1].tolist())))
        for a, b in sides:
            if own in (a, b):
                column = b if own == a else a
                assert looks._f[r, column] == pytest.approx(f[a, b] - bias[a, b], abs=1e-3)


def test_a_late_class_leaves_the_problem_of_the_first_two_as_it_was():
    x, y = rows(200, 2, seed=2)
    model, two = LASVMClassifier(kernel=RBF), LASVMClassifier(kernel=RBF)
    for learner in (model, two):
        learner.learn_many(x, y)
    extra = np.array([[0.9, 0.9, 0.9]], np.float32)
    model.learn_many(extra, [7])
    assert model.classes == [0, 1, 7] and model.predict_many(extra) == [7]
    # Here the first label is the positive one.
    number, alpha, gradient = members(model, (0, 1))
    n = int(two.state.info[0].n)
    kept = np.flatnonzero(two.state.lower[:n] != two.state.upper[:n])
    kept = kept[np.argsort(two.state.store.entered[kept])]
    np.testing.assert_array_equal(number, two.state.store.entered[kept])
    np.testing.assert_array_equal(alpha, -two.state.alpha[kept])
    np.testing.assert_array_equal(gradient, -two.state.gradient[kept])
    assert model.bias[0, 1] == -two.bias
    # Those of the other two begin with a few examples.
    assert len(members(model, (0, 7))[0]) <= 6


def test_gap_and_certificate_are_sums_over_the_problems():
    x, y = rows(500, 3, seed=7)
    model = LASVMClassifier(kernel=RBF)
    monitor = TrackingMonitor(model, every=100)
    monitor.learn_many(x, y)
    gram, total = expected(RBF, x, x), 0.0
    for a, b in model._problems():
        number, alpha, _ = members(model, (a, b))
        at, sign = number - 1, np.where(y[number - 1] == a, 1.0, -1.0)
        g = sign - gram[np.ix_(at, at)] @ alpha
        # Each problem at its own bias: the middle of its interval.
        low, high = np.minimum(0.0, sign), np.maximum(0.0, sign)
        b = 0.5 * (g[alpha < high].max() + g[alpha > low].min())
        total += np.maximum(0.0, sign * (g - b)).sum() - alpha @ (g - b)
    assert model.kept_gap().total == pytest.approx(total, rel=1e-3)
    assert model.certificate.value > 0.0
    now = monitor.get()
    assert now["kept_certificate"] >= now["seen_gap"] > 0.0
    # A problem leaves examples out: this is not a gap of all.
    assert now["gap"] is now["certificate"] is None and now["kept_gap"] > 0.0
    # An example counts once, in however many problems it is used.
    assert now["n_support_vectors"] == model.n_support_vectors
    assert now["n_free"] + now["n_bounded"] == model.n_support_vectors


def test_probabilities_follow_the_scores_and_are_calibrated():
    x, y = rows(3000, seed=8, noise=0.2)
    model = LASVMClassifier(kernel=RBF)
    model.learn_many(x[:2000], y[:2000])
    p = model.predict_proba_many(x[2000:])
    p = np.column_stack([p[c] for c in range(4)])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    right = p.argmax(axis=1) == y[2000:]
    # The coupling is cautious on these noisy labels: .64 at an accuracy of .76.
    assert right.mean() > 0.7 and 0.0 < right.mean() - p.max(axis=1).mean() < 0.15
    truth = p[np.arange(1000), y[2000:]]
    assert np.log(truth).mean() > np.log(0.4)
    event = dict(enumerate(x[0].tolist()))
    assert set(model.decision_function_one(event)) == set(model.classes)
    assert len(model.pair_margins_one(event)) == 6
    assert sum(model.predict_proba_one(event).values()) == pytest.approx(1.0)


def test_many_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 4)
    x = np.column_stack([np.cos(y * 0.0628), np.sin(y * 0.0628)]) + rng.normal(0, 1e-3, (400, 2))
    order = rng.permutation(400)
    model = LASVMClassifier(kernel=kernels.RBF(gamma=500.0), C=10.0, cache_mb=20)
    model.learn_many(x[order].astype(np.float32), y[order])
    assert np.mean(model.predict_many(x.astype(np.float32)) == y) > 0.95


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("reserve", [None, 0])
def test_class_weights_by_name_in_finish_and_monitor(multiclass, reserve):
    x, y = rows(400)
    names = [f"class {label}" for label in y]
    weights, factors = {"class 1": 3.0}, np.where(y == 1, 3.0, 1.0)
    by_name = LASVMClassifier(**PLAIN, multiclass=multiclass, reserve=reserve, class_weight=weights)
    monitor = TrackingMonitor(by_name)
    for row, name in zip(x[:50].tolist(), names, strict=False):
        monitor.learn_one(dict(enumerate(row)), name)
    assert np.isfinite(monitor.get()["kept_gap"])
    by_name.learn_many(x[50:], names[50:])
    by_example = LASVMClassifier(**PLAIN, multiclass=multiclass, reserve=reserve)
    by_example.learn_many(x, names, w=factors)
    for model in (by_name, by_example):
        model.finish()
    assert by_name.dual == pytest.approx(by_example.dual, rel=1e-4)


def test_problems_that_grow_keep_kernel_rows_with_the_smallest_cache():
    draws = np.random.default_rng(0)
    centres = draws.normal(size=(12, 5))
    small, large = (
        LASVMClassifier(kernels.RBF(gamma=0.3), C=1.0, cache_mb=mb, reserve=0) for mb in (0, 200)
    )
    for step in range(24):
        # Classes come one after the other, so that some problems are full before others begin.
        y = draws.integers(0, min(12, 3 + step // 2), 50)
        x = centres[y] + 0.9 * draws.normal(size=(50, 5))
        expected = large.predict_then_learn_many(x, y.tolist())
        assert small.predict_then_learn_many(x, y.tolist()) == expected
    for model in (small, large):
        segments = model.state.problems.segments
        assert len(segments) == 66 and (segments["n_lines"] > 0).all()
        # No segment reaches into another one.
        start, room = segments["start"], segments["room"]
        order = np.argsort(start)
        assert (start[order][1:] >= (start + room)[order][:-1]).all()


@pytest.mark.parametrize(
    "given",
    slow_but([{}, {"max_support_vectors": 60}], {}, compiling=DENSE)
    + slow_but([{"sparse": True}], compiling=SPARSE),
    ids=str,
)
def test_a_kept_id_keeps_its_features_and_its_class(given, tmp_path):
    # Gradients are of the row that is kept: with those of another one a loaded model would differ.
    rng = np.random.default_rng(0)
    x, y = rows(400, k=3)
    x[rng.random(x.shape) < 0.3] = 0.0
    model = LASVMClassifier(RBF, C=10.0, **given)
    model.learn_many(x, y, ids=rng.integers(1, 250, len(y)))
    model.learn_many(x, rng.permutation(y), ids=rng.integers(1, 250, len(y)))
    loaded = saved(model, tmp_path / "model.svm")
    decisions = model.decision_function_many(x)
    np.testing.assert_array_equal(loaded.decision_function_many(x), decisions)
    for one in (model, loaded):
        one.finish()
        one.learn_many(*rows(100, k=3, seed=5))
    assert loaded.dual == model.dual
    np.testing.assert_array_equal(loaded.decision_function_many(x), model.decision_function_many(x))
