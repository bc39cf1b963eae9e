"""Exact regression, exact one-class SVMs, and changes of all examples at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
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
KINDS = ["normal", "grid", "near", "line", "point"]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    kernel=st.sampled_from(KERNELS),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    epsilon=st.sampled_from([0.0, 0.1, 1.0]),
    cache=st.sampled_from([TINY, LARGE]),
)
def test_regression_is_optimal_after_each_change(seed, kind, kernel, C, epsilon, cache):
    draws = np.random.default_rng(seed)
    x, _ = rows_of(draws, kind, 30, 2)
    y = np.round(3.0 * np.sin(x[:, 0]) + 0.5 * draws.normal(size=30), 1)
    examples = Values(kernel, x, y, C, epsilon, cache)
    for _ in changed(examples, draws, 60, of_all=True):
        examples.check(1e-8 * max(1.0, examples.C[0]))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    kernel=st.sampled_from(KERNELS),
    nu=st.sampled_from([0.05, 0.5, 1.0]),
    are_weighted=st.booleans(),
    cache=st.sampled_from([TINY, LARGE]),
)
def test_one_class_is_optimal_after_each_change(seed, kind, kernel, nu, are_weighted, cache):
    draws = np.random.default_rng(seed)
    x, _ = rows_of(draws, kind, 30, 2)
    weights = draws.uniform(0.5, 2.0, 30) if are_weighted else np.ones(30)
    examples = Normal(kernel, x, weights, nu, cache)
    for _ in changed(examples, draws, 60, of_all=True):
        examples.check(1e-8 * max(1.0, np.abs(examples.gram).max()))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    kernel=st.sampled_from(KERNELS),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    cache=st.sampled_from([TINY, LARGE]),
)
def test_classes_are_optimal_after_changes_of_all(seed, kind, kernel, C, cache):
    draws = np.random.default_rng(seed)
    x, y = rows_of(draws, kind, 40, 2)
    examples = Examples(kernel, x, y, C * draws.choice([0.3, 1.0, 3.0]), cache)
    for _ in changed(examples, draws, 60, of_all=True):
        examples.check(1e-7 * max(1.0, examples.C[0]))


def test_costs_of_all_there_and_back():
    x, y = rows_of(np.random.default_rng(4), "normal", 80, 2)
    examples = Examples(RBF, x, y, 3.0)
    examples.add(*range(80))
    before = examples.problem.dual
    for factor in (1e3, 1e-6, 1e3):
        examples.set_all_costs(factor)
        examples.check(1e-6)
    assert examples.problem.dual == pytest.approx(before, rel=1e-8)


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
