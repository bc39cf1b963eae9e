"""The search for a rate against its slow twin."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.solvers.linear import rate as linear_rate
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.rate import FASTEST, SLOWEST, STEP, T0, Search
from streamsvm.solvers.linear.step import SGD, SGDQN, learn_rows
from streamsvm.support.rows import sparse
from tests.reference import slow_linear
from tests.solvers.linear.test_linear import NAMES, problem, schedule

SOLVERS = ((SGD, 0.0), (SGDQN, 1.0 / 1e-2))


def search_of(solver, x, y, weight, own, second, outputs=1):
    """Return a search over rows; what it writes to holds anything."""
    states = [linear_state.new_state(outputs, 7, second) for _ in range(2)]
    for state in states:
        state.weights[:], state.info[:] = 3.0, 4.0
    square = float((x.astype(float) ** 2).sum() / len(x))
    margins, best = np.empty((len(y), outputs)), np.array([np.inf, np.inf, 1.0])
    return Search(solver, second, x, y, weight, own, square, margins, *states, best)


def passed(search, solver, step):
    """Return the cost and the state of a pass from nothing."""
    t0 = max(1.0, search.square / (2.0**step * search.schedule.lam))
    own = search.schedule._replace(t0=t0)
    state = linear_state.new_state(len(search.found.info), 7, search.second)
    x, y, weight = search.x, search.y, search.weight
    learn_rows(state, solver, x, y, weight, own, np.empty_like(search.margins))
    return linear_state.primal(state, x, y, weight, own), state, t0


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 99),
    st.sampled_from([1, 7, 8, 40, 256, 257, 700]),
    st.integers(-20, 9),
    st.sampled_from(NAMES),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from([1, 3]),
)
def test_what_is_found_is_what_the_slow_twin_finds(seed, n, last, name, kind, is_sparse, outputs):
    x, y, weight = problem(seed, n, share=0.6)
    if outputs > 1:
        y = np.random.default_rng(seed).integers(0, outputs, n).astype(float)
    solver, second = SOLVERS[kind]
    own = schedule(name, averaged=1e-15 if kind == 0 else 0.0, choose=1.0)
    x[0, 0] = 1.0
    search = search_of(solver, x, y, weight, own, second, outputs)
    search = search._replace(x=sparse(x) if is_sparse else x)
    linear_rate.choose_rate(search, last)
    step = slow_linear.best_step(lambda k: passed(search, solver, k)[0], n, last)
    cost, state, t0 = passed(search, solver, step)
    # To the bit with full optimization only: sums may be vectorized where a pass is inlined.
    close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-15)
    close(search.best, [cost, step, t0])
    close(search.found.weights, state.weights)
    close(search.found.info, state.info)


@pytest.mark.parametrize("n", [3, 100, 600])
@pytest.mark.parametrize("kind", [0, 1])
def test_objectives_that_are_not_finite_leave_the_slowest_rate(n, kind):
    x, y, weight = problem(2, n)
    solver, second = SOLVERS[kind]
    search = search_of(solver, x, y, weight + np.inf, schedule(), second)
    linear_rate.choose_rate(search, 1)
    expected = {3: 0, 100: SLOWEST, 600: SLOWEST}[n]
    assert search.best[STEP] == expected <= FASTEST
    assert search.best[T0] == passed(search, solver, expected)[2]
