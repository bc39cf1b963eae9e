"""Exact incremental SVMs of every kind: optimal after whatever change, on whatever data."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from streamsvm import kernels
from tests.reference.slow_incremental import SlowExact, dual_of, solved
from tests.solvers.incremental.problems import (
    KERNELS,
    LARGE,
    TINY,
    Examples,
    Normal,
    Values,
    changed,
    rows_of,
)

RBF = kernels.RBF(gamma=0.5)
KINDS = ["normal", "grid", "near", "line", "point", "zero"]


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_its_slow_twin(seed, C):
    draws = np.random.default_rng(seed)
    x, y = rows_of(draws, "normal", 60, 2)
    fast = Examples(RBF, x, y, C)
    # No two reach their bounds at once.
    fast.C *= draws.uniform(0.5, 1.5, 60)
    slow = SlowExact(fast.gram, y, *fast.bounds(np.arange(60)))
    for i in range(60):
        fast.add(i)
        slow.add(i)
        if i % 3 == 2:
            gone = int(draws.choice(slow.here))
            fast.remove(gone)
            slow.remove(gone)
        np.testing.assert_allclose(fast.beta, slow.beta, rtol=0, atol=1e-8 * C)
        assert abs(fast.problem.bias - slow.b) <= 1e-8
        members = fast.problem.state.members[: fast.problem.state.info[0].m]
        assert sorted(fast.here[members]) == sorted(slow.margin)
    assert fast.problem.dual == pytest.approx(slow.dual, rel=1e-10)


def examples_of(kind_of_problem, draws, kind, kernel, d, C, cache):
    x, y = rows_of(draws, kind, 30, d)
    if kind_of_problem == "regression":
        y = np.round(3.0 * np.sin(x[:, 0]) + 0.5 * draws.normal(size=30), 1)
        return Values(kernel, x, y, C, draws.choice([0.0, 0.1, 1.0]), cache)
    if kind_of_problem == "one class":
        weights = draws.choice([1.0, 2.0]) ** draws.uniform(-1.0, 1.0, 30)
        return Normal(kernel, x, weights, draws.choice([0.05, 0.5, 1.0]), cache)
    return Examples(kernel, x, y, C * draws.choice([0.3, 1.0, 3.0]), cache)


@pytest.mark.parametrize(
    ("kind_of_problem", "of_all"),
    [("classes", False), ("classes", True), ("regression", True), ("one class", True)],
)
@settings(max_examples=50)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    d=st.integers(1, 3),
    kernel=st.sampled_from(KERNELS),
    C=st.sampled_from([0.1, 1.0, 10.0, 30.0, 100.0, 1000.0]),
    cache=st.sampled_from([TINY, LARGE]),
)
def test_it_is_optimal_after_each_change(kind_of_problem, of_all, seed, kind, d, kernel, C, cache):
    draws = np.random.default_rng(seed)
    C = min(C, 30.0) if of_all else C
    examples = examples_of(kind_of_problem, draws, kind, kernel, d, C, cache)
    for _ in changed(examples, draws, 70, of_all):
        # Costs of all that change leave larger terms behind.
        of_terms = 1e-7 * max(1.0, examples.C[0])
        is_rough = of_all and kind_of_problem == "classes"
        examples.check(of_terms if is_rough else examples.atol)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    kernel=st.sampled_from(KERNELS),
    C=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_its_dual_is_that_of_another_solver(seed, kind, kernel, C):
    draws = np.random.default_rng(seed)
    x, y = rows_of(draws, kind, 40, 2)
    examples = Examples(kernel, x, y, C)
    list(changed(examples, draws, 50))
    here = examples.here
    gram, target = examples.gram[np.ix_(here, here)], y[here]
    try:
        beta = solved(gram, target, *examples.bounds(here))
    except ArithmeticError:
        # Rows that are almost alike: the other solver does not get there.
        reject()
    assert examples.problem.dual == pytest.approx(dual_of(gram, target, beta), rel=1e-8, abs=1e-12)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["normal", "grid"]),
    kernel=st.sampled_from(KERNELS),
    C=st.sampled_from([0.1, 10.0, 1000.0]),
)
def test_what_is_taken_back_was_never_there(seed, kind, kernel, C):
    draws = np.random.default_rng(seed)
    x, y = rows_of(draws, kind, 40, 2)
    kept, gone = np.arange(25), np.arange(25, 40)
    once = Examples(kernel, x, y, C)
    once.add(*kept)
    decisions = []
    for _ in range(2):
        back = Examples(kernel, x, y, C)
        back.add(*draws.permutation(40))
        back.remove(*draws.permutation(gone))
        assert back.problem.dual == pytest.approx(once.problem.dual, rel=1e-9, abs=1e-12)
        assert sorted(back.here) == kept.tolist()
        decisions.append(back.problem.decisions(x))
    # Without a margin vector the bias is not unique.
    if once.problem.state.info[0].m and back.problem.state.info[0].m:
        w = [f - f.mean() for f in (once.problem.decisions(x), *decisions)]
        np.testing.assert_allclose(w[1], w[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(w[2], w[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_bounds_there_and_back(kind, kernel):
    draws = np.random.default_rng(4)
    x, y = rows_of(draws, kind, 50, 2)
    examples, some = Examples(kernel, x, y, 3.0), np.arange(0, 50, 2)
    examples.add(*range(50))
    before = examples.problem.dual
    for C in (1e-12, 30.0, 1e-3, 1e3, 3.0):
        examples.set_costs(some, C)
        examples.check(1e-7)
    for factor in (1e3, 1e-6, 1e3):
        examples.set_all_costs(factor)
        examples.check(1e-6)
    assert examples.problem.dual == pytest.approx(before, rel=1e-8)


def test_one_class_and_nothing():
    x, y = rows_of(np.random.default_rng(0), "normal", 20, 2)
    examples = Examples(RBF, x, np.ones(20), 1.0)
    examples.add(*range(20))
    examples.check()
    assert not examples.beta.any() and (examples.problem.decisions(x) >= 1.0).all()
    examples.remove(*range(20))
    assert examples.problem.n == 0 and examples.problem.dual == 0.0
    examples.y = y
    examples.add(*range(20))
    examples.check()
    assert set(np.sign(examples.problem.decisions(x))) == {1.0, -1.0}


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_copies_of_one_row_with_both_labels(kernel):
    n, draws = 300, np.random.default_rng(1)
    examples = Examples(kernel, np.ones((n, 2)), np.where(draws.random(n) < 0.5, 1.0, -1.0), 10.0)
    examples.add(*range(n))
    examples.check()
    examples.remove(*draws.permutation(n)[:280])
    examples.check()
    assert examples.problem.state.info[0].n_steps < 5 * n


def test_a_large_margin_set_and_features_that_come_later():
    draws = np.random.default_rng(2)
    x, y = rows_of(draws, "normal", 200, 3)
    x[:100, 1:] = 0.0
    examples = Examples(kernels.RBF(gamma=50.0), x, y, 1000.0, TINY)
    for i in range(200):
        low, high = examples.bounds(i)
        examples.problem.add(x[i, : 1 if i < 100 else 3], y[i], low, high, i)
    assert examples.problem.state.info[0].m > 100
    examples.check(1e-7)
    f = examples.problem.decisions(x)
    np.testing.assert_allclose(f, examples.gram @ examples.beta + examples.problem.bias, atol=1e-9)
    np.testing.assert_array_equal(examples.problem.decisions(np.c_[x, np.zeros(200)]), f)


def test_bounds_with_which_the_margin_set_grows():
    x, y = rows_of(np.random.default_rng(12), "normal", 150, 2)
    examples = Examples(kernels.RBF(gamma=50.0), x, y, 0.01)
    examples.add(*range(150))
    for C in (1000.0, 0.3, 1000.0):
        examples.set_costs(np.random.default_rng(13).permutation(150)[:140], C)
        examples.check(1e-7)
    assert examples.problem.state.members.size > 100


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("kind", ["normal", "near"])
def test_rows_of_any_scale(kind, C, scale):
    """Violations are at most a small share of the terms of the gradients."""
    draws = np.random.default_rng(7)
    x, y = rows_of(draws, kind, 40, 2)
    cubic = kernels.Polynomial(degree=3, gamma=min(1.0, 1.0 / scale**2), coef0=0.0)
    for kernel in (kernels.Linear(), kernels.RBF(gamma=0.5 / scale**2), RBF, cubic):
        examples = Examples(kernel, scale * x, y, C)
        for _ in changed(examples, draws, 100):
            assert examples.violation() <= 1e-8 + 1e-11 * examples.terms


@pytest.mark.parametrize("n_changes", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_long_stream_stays_optimal(n_changes):
    """A window of 200 examples slides; rounding errors do not add up."""
    draws = np.random.default_rng(8)
    x, y = rows_of(draws, "normal", 1000, 2)
    examples, worst, window = Examples(RBF, x, y, 10.0), 0.0, 200
    for t in range(n_changes // 2 + window):
        examples.add(t % 1000)
        if t >= window:
            examples.remove((t - window) % 1000)
        if t % 20 == 0:
            worst = max(worst, examples.violation())
    examples.check(1e-9)
    assert worst <= 1e-9


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("at", range(1, 40, 3))
def test_an_interruption_changes_nothing(at, monkeypatch):
    """What is interrupted is finished before the next change."""
    x, y = rows_of(np.random.default_rng(9), "normal", 100, 2)
    some = np.arange(0, 40, 2)

    def interrupted(examples, change):
        problem, calls = examples.problem, []
        fetch = type(problem).fetch

        def failing(self, s):
            calls.append(s)
            if len(calls) == at:
                raise StoppedError
            fetch(self, s)

        with monkeypatch.context() as patch:
            patch.setattr(type(problem), "fetch", failing)
            try:
                change(examples)
            except StoppedError:
                return True
        return False

    changes = [
        lambda examples: examples.add(90),
        lambda examples: examples.remove(3),
        lambda examples: examples.set_costs(some, 0.01),
        lambda examples: examples.set_costs(some, 50.0),
        lambda examples: examples.remove(5),
    ]
    found = []
    for fails in (False, True):
        examples = Examples(RBF, x, y, 10.0, TINY)
        examples.add(*range(90))
        for change in changes:
            if fails:
                interrupted(examples, change)
                examples.problem.settle()
            else:
                change(examples)
            examples.check()
        found.append(examples)
    np.testing.assert_array_equal(found[0].here, found[1].here)
    np.testing.assert_allclose(found[1].beta, found[0].beta, rtol=0, atol=1e-9)


def test_a_row_that_was_being_added_is_not_taken_for_one_of_another_kernel(monkeypatch):
    x, y = rows_of(np.random.default_rng(5), "normal", 40, 2)
    examples = Examples(RBF, x, y, 5.0)
    examples.add(*range(39))

    def stopped(problem, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(examples.problem), "follow", stopped)
        with pytest.raises(KeyboardInterrupt):
            examples.add(39)
    examples.problem.settle()
    assert examples.problem.row_of_new is None
    examples.set_kernel(KERNELS[-1])
    examples.gram = Examples(KERNELS[-1], x, y, 5.0).gram
    examples.check()
