"""The reserve, whose rows are revisited: against LIBSVM, a slow twin, and what must always hold."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamsvm
from streamsvm import LaRankClassifier, LASVMClassifier, kernels
from streamsvm.models.kernel import finishing, revisits
from streamsvm.models.kernel import reserve as reserves
from streamsvm.models.kernel.reserve import FACTS, STRETCHES, Reserve
from streamsvm.solvers.lasvm_pairs import state as pairs_state
from streamsvm.support.rows import dense, sparse, taken
from tests.kernels.test_values import expected as by_numpy
from tests.learners.test_lasvm import optimum, rows
from tests.learners.test_lasvm_classes import rows as of_classes
from tests.reference.slow_larank import dual_of
from tests.reference.slow_lasvm import SlowLASVM
from tests.slow import slow_but

RBF = kernels.RBF(gamma=2.0)


def gram_of(x):
    return by_numpy(RBF, x, x)


def facts_of(numbers, margins, arrived=None):
    facts = np.zeros(len(numbers), FACTS)
    facts["number"], facts["margin"], facts["class"], facts["weight"] = numbers, margins, 1.0, 1.0
    facts["arrived"] = numbers if arrived is None else arrived
    return facts


def held(reserve):
    x, facts = reserve.rows()
    return dense(x), facts


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40),
    st.sampled_from([None, 1, 15, 60]),
    st.lists(st.integers(1, 70), min_size=1, max_size=5),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_a_reserve_does_not_depend_on_how_the_stream_is_cut(most, window, sizes, is_sparse, seed):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    x = np.where(rng.random((n, 3)) < 0.5, rng.normal(size=(n, 3)), 0.0).astype(np.float32)
    facts = facts_of(np.arange(1, n + 1), rng.normal(size=n))
    kind = sparse if is_sparse else np.ascontiguousarray
    one, many = Reserve(most, window), Reserve(most, window)
    for r in range(n):
        one.add(kind(x[r : r + 1]), facts[r : r + 1])
        assert one.n_rows <= most
    start = 0
    for size in sizes:
        many.add(kind(x[start : start + size]), facts[start : start + size])
        start += size
    for got, expected in zip(held(many), held(one), strict=True):
        np.testing.assert_array_equal(got, expected)
    kept = held(one)[1]
    np.testing.assert_array_equal(held(one)[0], x[kept["number"] - 1])
    assert window is None or (kept["arrived"] > n - window).all()
    assert one.nbytes == many.nbytes


def test_the_smallest_margins_stay_in_each_stretch_of_the_stream():
    n, most = 8000, 400
    rng = np.random.default_rng(0)
    # Margins grow with the stream, as those of a model that learns do.
    margins = rng.uniform(size=n) + np.linspace(0.0, 5.0, n)
    reserve = Reserve(most)
    reserve.add(np.zeros((n, 1), np.float32), facts_of(np.arange(1, n + 1), margins))
    kept = held(reserve)[1]["number"]
    shares = np.bincount((kept - 1) * STRETCHES // n, minlength=STRETCHES)
    # The last rows came after an eighth had left, and have its room.
    assert shares.min() > 0.7 * most / STRETCHES and shares[:-1].max() < 1.2 * most / STRETCHES
    assert shares[-1] <= 2.0 * most / STRETCHES
    for s in range(STRETCHES - 1):
        of_stretch = np.arange(1 + s * n // STRETCHES, 1 + (s + 1) * n // STRETCHES)
        own = margins[kept[np.isin(kept, of_stretch)] - 1]
        # Rows that came before the reserve was full compete with few others.
        assert np.median(own) <= np.quantile(margins[of_stretch - 1], 0.2)


@pytest.mark.parametrize("kind", [sparse, np.ascontiguousarray])
def test_the_default_is_bounded_in_bytes_and_large_margins_leave_first(monkeypatch, kind):
    monkeypatch.setattr(reserves, "MOST_BYTES", 50_000)
    margins = np.random.default_rng(0).uniform(-1.0, 9.0, 5000)
    x, facts = kind(np.ones((5000, 5), np.float32)), facts_of(np.arange(1, 5001), margins)
    one, many = Reserve(None), Reserve(None)
    for r in range(5000):
        one.add(taken(x, [r]) if kind is sparse else x[r : r + 1], facts[r : r + 1])
        assert one.nbytes <= 50_000
        if r == 399:
            # There is room.
            assert one.n_rows == 400 and one.threshold == np.inf
        elif r == 999:
            # The smallest margins of all, above 2.5.
            kept, most = held(one)[1]["margin"], one.threshold
            assert 2.5 < most < 8.0 and kept.max() < 8.0
            assert (np.sort(margins[:1000])[:350] == np.sort(kept)[:350]).all()
    many.add(x, facts)
    assert one.threshold == many.threshold == 2.5
    kept = held(one)[1]
    np.testing.assert_array_equal(kept, held(many)[1])
    assert one.nbytes == many.nbytes > 35_000 and kept["margin"].max() <= 2.5
    # Of these each stretch has its share.
    shares = np.bincount((kept["number"] - 1) * STRETCHES // 5000, minlength=STRETCHES)
    assert shares.min() > 0.5 * shares.mean()


def test_the_default_holds_all_rows_while_there_is_room():
    # With large C many of the margins, of early models too, are above 2.5.
    x, y = rows(600, seed=5, noise=0.3)
    model = LASVMClassifier(kernel=RBF, C=1000.0)
    model.learn_many(x, y)
    assert (held(model.solver.kept_rows)[1]["margin"] > 2.5).mean() > 0.1
    model.finish()
    assert model.dual == pytest.approx(optimum(x, y, gram_of(x), 1000.0), rel=1e-4)


def test_of_an_example_that_comes_again_the_last_time_counts():
    reserve = Reserve(100)
    x = np.arange(4, dtype=np.float32).reshape(4, 1)
    reserve.add(x, facts_of([7, 8, 7, 9], [0.0, 1.0, 0.5, 0.2], [1, 2, 3, 4]))
    x, facts = held(reserve)
    assert facts["number"].tolist() == [8, 7, 9] and x[:, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("weights", [None, "weights", "balanced"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_with_all_rows_in_reserve_one_pass_reaches_libsvms_optimum(C, weights, is_sparse):
    x, y = rows(400, seed=5, noise=0.6)
    w = np.random.default_rng(1).uniform(0.1, 3.0, 400) if weights == "weights" else 1.0
    class_weight = "balanced" if weights == "balanced" else None
    parameters = {"kernel": RBF, "C": C, "class_weight": class_weight, "sparse": is_sparse}
    more = {"sample_weight": w} if weights == "weights" else {}
    new = {"class_weight": class_weight}
    best = optimum(x, y, gram_of(x), C, new=new, **more)
    model, without = (LASVMClassifier(**parameters, reserve=n) for n in (400, 0))
    for learner in (model, without):
        learner.learn_many(x, y, w=w)
        looks = learner.looks
        learner.finish()
        # The certificate is about the examples of the stream, and there was none.
        assert learner.looks == looks
    assert model.dual == pytest.approx(best, rel=1e-4)
    assert abs(without.dual / best - 1.0) > 1e-4
    # The dual, the sum and the boxes are those of the coefficients.
    found = model.support_vectors()
    alpha, own = found.coefficients, found.entered - 1
    signs = np.where(y, 1.0, -1.0)[own]
    fresh = alpha @ signs - 0.5 * alpha @ gram_of(x)[np.ix_(own, own)] @ alpha
    assert model.dual == pytest.approx(fresh, rel=1e-5)
    classes = np.array([model.targets.number_of(label) for label in y[own].tolist()])
    cost = model.costs_now(classes, np.broadcast_to(w, 400)[own])
    assert abs(alpha.sum()) < 1e-9 * C * 400
    assert (alpha * signs > 0.0).all() and (abs(alpha) <= cost * (1.0 + 1e-12)).all()


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1.0, 50.0]), st.sampled_from([None, 40, 400]))
def test_the_dual_never_falls_and_f_is_up_to_date(seed, C, most):
    x, y = rows(250, seed=seed, noise=0.5)
    model = LASVMClassifier(kernel=RBF, C=C, reserve=most)
    model.learn_many(x, y)
    looks, duals = revisits.Revisits(model.model), [model.dual]
    while True:
        while not model.solver.improve_some(model.model.n_features, 0.0)[0]:
            pass
        duals.append(model.dual)
        goes_on = looks.learn_violating()
        duals.append(model.dual)
        if not goes_on:
            break
    assert (np.diff(duals) >= -1e-9 * duals[-1]).all()
    number = looks._facts["number"]
    expected = model.margins_many(x)[number - 1] - model.solver.biases[0]
    np.testing.assert_allclose(looks._f, expected, atol=2e-5 * C)
    others = ~np.isin(number, model.kept_numbers())
    violations = model.solver.violations(looks._facts["class"], expected)
    assert violations[others].max(initial=0.0) <= model.tau + 2e-5 * C


def test_it_ends_where_the_slow_twin_ends():
    x, y = rows(150, seed=2, noise=0.6)
    gram, signs = gram_of(x), np.where(y, 1.0, -1.0)
    slow = SlowLASVM(gram, signs, np.full(150, 10.0), 1e-4)
    model = LASVMClassifier(kernel=RBF, C=10.0, tau=1e-4, reserve=150)
    for k in range(150):
        slow.learn(k)
    model.learn_many(x, y)
    slow.finish(reserve=range(150))
    model.finish()
    assert model.dual == pytest.approx(slow.dual, rel=1e-5)
    f = gram[:, slow.S] @ slow.alpha[slow.S]
    np.testing.assert_allclose(model.decision_function_many(x) - model.bias, f, atol=5e-3)


def test_a_window_is_not_left():
    x, y = rows(500, seed=3, noise=0.6)
    model = LASVMClassifier(kernel=RBF, C=10.0, window=100)
    model.learn_many(x, y)
    assert held(model.solver.kept_rows)[1]["number"].min() > 400
    model.finish()
    assert model.kept_numbers().min() > 400
    last, signs = slice(400, 500), y[400:]
    assert model.dual == pytest.approx(optimum(x[last], signs, gram_of(x[last]), 10.0), rel=1e-3)


def test_a_reserve_that_was_full_is_as_full_in_files_and_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(reserves, "MOST_BYTES", 8_000)
    x, y = rows(300, seed=4)
    model = LASVMClassifier(kernel=RBF, C=10.0)
    model.learn_many(x[:200], y[:200])
    model.save(tmp_path / "model.svm")
    copies = [streamsvm.load(tmp_path / "model.svm"), pickle.loads(pickle.dumps(model))]
    thresholds = {one.solver.kept_rows.threshold for one in (model, *copies)}
    assert len(thresholds) == 1 and np.isfinite([*thresholds]).all()
    for learner in (model, *copies):
        learner.learn_many(x[200:], y[200:])
        learner.finish()
    for other in copies:
        for got, expected in zip(
            held(other.solver.kept_rows), held(model.solver.kept_rows), strict=True
        ):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("step", [1, -1], ids=["negative_first", "positive_first"])
def test_the_reserve_has_the_numbers_of_classes(step):
    x, y = rows(300, seed=4)
    order = np.argsort(y[:40], kind="stable")[::step]
    x[:40], y[:40] = x[:40][order], y[:40][order]
    model = LASVMClassifier(kernel=RBF, C=10.0, reserve=300)
    # The other class is not known before the second call, nor can it be guessed.
    labels = np.where(y, "yes", "no")
    n_of_one = np.flatnonzero(y != y[0])[0]
    model.learn_many(x[:n_of_one], labels[:n_of_one])
    model.learn_many(x[n_of_one:], labels[n_of_one:])
    facts = held(model.solver.kept_rows)[1]
    assert len(facts) == len(y)
    assert (facts["class"] == (y != y[0])[facts["number"] - 1]).all()


@pytest.mark.parametrize(
    "model", [LASVMClassifier(max_support_vectors=10), LaRankClassifier(K=2, seed=1)], ids=repr
)
def test_with_a_budget_or_where_all_is_kept_there_is_no_reserve(model):
    model.learn_many(*rows(60))
    assert model.memory_parts["reserve"] == 0


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradients_are_those_of_the_coefficients_after_finish(d, n_classes):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(400, d)).astype(np.float32)
    y = (3 * x[:, 0] + rng.normal(size=400)).round().astype(int) % n_classes
    model = LASVMClassifier(kernel=RBF, C=100.0)
    model.learn_many(x, y)
    model.finish()
    check_gradients(model, x)


def check_gradients(model, x):
    """Compare the gradients of all problems with those of their coefficients."""
    state, gram = model.state, gram_of(x.astype(float))
    views = [state]
    if len(model.classes) > 2:
        views = [pairs_state.problem(state, p) for p in range(len(state.problems.table))]
    for own in views:
        info = own.info[0]
        n = int(info["n"])
        live = own.lower[:n] != own.upper[:n]
        at = own.store.entered[:n][live] - 1
        fresh = own.y[:n][live] - gram[np.ix_(at, at)] @ own.alpha[:n][live]
        np.testing.assert_allclose(own.gradient[:n][live], fresh, atol=1e-3)
        assert info["g_max"] - info["g_min"] <= model.tau


def test_another_thread_may_change_the_kernel_between_two_looks(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1100, 5)).astype(np.float32)
    x[600:] *= 3.0
    y = x[:, 0] * x[:, 1] + 0.5 * rng.normal(size=1100) > 0.0
    model = LASVMClassifier(gamma="scale", scale=False, C=10.0)
    model.learn_many(x[:600], y[:600])
    improve, calls = finishing.improve, []

    def learning_meanwhile(*args):
        done = improve(*args)
        if len(calls) == 1:
            model.learn_many(x[600:], y[600:])
        calls.append(model.kernel_.gamma)
        return done

    monkeypatch.setattr(finishing, "improve", learning_meanwhile)
    model.finish()
    assert len(set(calls)) > 1
    monkeypatch.setattr("tests.learners.test_revisits.RBF", model.kernel_)
    check_gradients(model, x)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_a_class_of_weight_0_are_not_looked_at_for_ever(n_classes, caplog):
    x, _ = rows(300, seed=4, noise=0.5)
    y = np.arange(300) % n_classes
    model = LASVMClassifier(kernel=RBF, class_weight={0: 0.0})
    model.learn_many(x, y)
    model.finish()
    assert not caplog.records


# LaRank


def rows_of_classes(n, noise=0.3, **given):
    """Return rows and classes; those of the first tenth are all of class 0."""
    x, y = of_classes(n, noise=noise, **given)
    y[: n // 10] = 0
    return x, y


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
def test_with_all_rows_in_reserve_one_pass_reaches_the_batch_optimum_of_larank(is_sparse):
    x, y = rows_of_classes(240, seed=5)
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
    x, y = rows_of_classes(300, seed=2)
    for share in (0.1, 0.01):
        model = LaRankClassifier(RBF, C=0.5, reserve=300, seed=1)
        model.learn_many(x, y)
        model.finish(share=share)
        dual, gap = gap_of(model, x, y, 0.5)
        # As much again for the rows that are not kept.
        assert gap <= 2.0 * share * dual * (1.0 + 1e-3)


def test_the_dual_never_falls_and_scores_are_up_to_date():
    x, y = rows_of_classes(250, seed=3)
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


def test_a_window_is_not_left_of_larank():
    x, y = rows_of_classes(400, seed=3)
    model = LaRankClassifier(RBF, C=10.0, window=100, seed=1)
    model.learn_many(x, y)
    assert held(model.solver.kept_rows)[1]["number"].min() > 300
    model.finish(share=0.0)
    assert model.kept_numbers().min() > 300
    dual, gap = gap_of(model, x, y, 10.0 * (np.arange(400) >= 300))
    assert gap <= 5e-3 * dual


def test_examples_of_one_class_alone_are_looked_at_when_there_is_another():
    x, _ = rows_of_classes(60)
    model = LaRankClassifier(RBF, reserve=60, seed=1)
    model.learn_many(x[:30], np.zeros(30, int))
    assert model.n_support_patterns == 0 and model.solver.kept_rows.n_rows == 30
    model.finish()
    model.learn_many(x[30:], np.ones(30, int))
    model.finish(share=0.0)
    assert model.kept_numbers().min() <= 30
