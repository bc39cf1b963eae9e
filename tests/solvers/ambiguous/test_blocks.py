"""Steps on blocks against their slow twin, and the gap over the examples kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.solvers.ambiguous import blocks
from streamsvm.solvers.ambiguous.state import AmbiguousState, rebuild, row_of_slot
from streamsvm.solvers.bounds import UNBOUNDED, Budget
from streamsvm.support import states
from streamsvm.support.kernel_rows.bound_kernels import bound
from tests.reference.slow_ambiguous import SlowBlocks


def learnt(state, kernel, x, y, given, C=0.5, number=1, bounds=UNBOUNDED):
    one, margins = np.ones(1), np.ascontiguousarray(given[None], np.float64)
    rows = x[None].astype(np.float32)
    square = np.array([(rows**2).sum()], np.float32)
    numbers, schedule = np.array([number]), blocks.Schedule(0.0, bounds)
    blocks.learn_rows(
        state, kernel, rows, np.array([y]), C * one, one, numbers, square, schedule, margins
    )
    return margins[0]


def test_it_matches_its_slow_twin_while_labels_come():
    draws = np.random.default_rng(4)
    state = states.new_state(AmbiguousState, 4, 10**6, 1, classes=8)
    kernel, slow = bound(kernels.Linear(), state.store), SlowBlocks(4, 0.5)
    info = state.info[0]
    for i in range(60):
        k = 3 + i // 20
        info.n_classes = k
        slow.know(k)
        x = draws.normal(size=4).astype(np.float32).astype(np.float64)
        bag = {int(c) for c in draws.integers(0, k, draws.integers(1, 3))}
        given = np.isin(np.arange(k), list(bag)).astype(float)
        is_one = len(bag) == 1
        found = learnt(state, kernel, x, float(min(bag)) if is_one else -1.0, given, number=i + 1)
        np.testing.assert_allclose(found, slow.scores(x), atol=1e-4)
        slow.add(x, bag)
        for s in draws.integers(0, info.n, 2) if info.n else ():
            dual = info.dual
            is_new = state.known[s] < k
            blocks.sweep(state, kernel, s, s + 1, 4)
            slow.step(s)
            assert is_new or info.dual >= dual - 1e-9
    n = int(info.n)
    assert n == len(slow.examples)
    np.testing.assert_allclose(state.beta[:k, :n].T, betas_of(slow, k), atol=1e-4)
    assert info.dual == pytest.approx(slow.dual(), rel=1e-4)
    gap = blocks.kept_gap(state)
    assert gap.total == pytest.approx(slow.primal() - slow.dual(), rel=1e-3)
    assert (state.alpha[:n] <= 0.5 + 1e-12).all()
    # What regret bounds rest on: the dual is at most the primal over all losses summed, at any w.
    assert len(slow.summed) > 70
    assert info.losses == pytest.approx(0.5 * sum(loss for *_, loss in slow.summed), rel=1e-4)
    assert info.costs == pytest.approx(0.5 * len(slow.summed))
    for size in (0.0, 0.5, 1.0, 2.0):
        assert info.dual <= slow.primal_of_summed(size * slow.w)
    dual, f = info.dual, state.f.copy()
    rebuild(state, kernel, 4)
    assert info.dual == pytest.approx(dual, rel=1e-5)
    np.testing.assert_allclose(state.f[:, :n], f[:, :n], atol=1e-4)
    for _ in range(300):
        blocks.sweep(state, kernel, 0, n, 4)
    assert blocks.kept_gap(state).total < 1e-2 * info.dual
    # Examples that are taken back leave nothing.
    for s in range(n):
        blocks.remove(state, kernel, s, 4)
    assert abs(info.dual) < 1e-4 and np.abs(state.f[:, :n]).max() < 1e-4


def betas_of(slow, k):
    return [np.pad(example[2], (0, k - len(example[2]))) for example in slow.examples]


def copied(state, rows, C, limit):
    """Return the slow twin with the examples of a state."""
    info, slow = state.info[0], SlowBlocks(4, C, limit)
    slow.know(int(info.n_classes))
    for s in range(info.n):
        x, known = rows[int(state.store.entered[s])], int(state.known[s])
        bag = {int(y) for y in np.flatnonzero(state.bag[:known, s])}
        beta = state.beta[:known, s].copy()
        slow.examples.append([x, bag, beta, float(state.delta[s]), known, float(state.cost[s])])
        slow.w[:, :known] += np.outer(x, beta)
    return slow


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    limit=st.integers(2, 12),
    C=st.sampled_from([0.05, 0.5]),
    cache=st.sampled_from([0, 10**6]),
)
def test_a_budget_matches_its_slow_twin(seed, limit, C, cache):
    draws = np.random.default_rng(seed)
    state = states.new_state(AmbiguousState, 4, cache, 1, classes=8)
    kernel, info = bound(kernels.Linear(), state.store), state.info[0]
    rows = {}
    for i in range(60):
        k = info.n_classes = 3 + i // 30
        x = rows[i + 1] = draws.normal(size=4).astype(np.float32).astype(np.float64)
        # Few bags, so that there are neighbours.
        bag = [{0}, {1, 2}, {0, 2}, {k - 1}][int(draws.integers(4))]
        given_bag = np.isin(np.arange(k), list(bag)).astype(float)
        y = float(min(bag)) if len(bag) == 1 else -1.0
        # Anew each time: rounding decides which pairs have a loss after a step that ends where
        # theirs begins.
        slow = copied(state, rows, C, limit)
        found = learnt(state, kernel, x, y, given_bag, C, i + 1, Budget(float(limit)))
        np.testing.assert_allclose(found, slow.scores(x), atol=1e-4)
        slow.add(x, bag)
        n = int(info.n)
        assert n == len(slow.examples) <= limit
        np.testing.assert_allclose(state.beta[:k, :n].T, betas_of(slow, k), atol=1e-5)
        np.testing.assert_allclose(state.cost[:n], [example[5] for example in slow.examples])
        assert info.dual == pytest.approx(slow.dual(), rel=1e-4, abs=1e-5)
        for s in draws.integers(0, n, 2) if n else ():
            blocks.sweep(state, kernel, s, s + 1, 4)
    check_dual_state(state, kernel)


def check_dual_state(state, kernel):
    """Constraints hold, and what is kept up to date is what would be computed afresh."""
    info = state.info[0]
    n, k = int(info.n), int(info.n_classes)
    np.testing.assert_allclose(state.beta[:k, :n].sum(axis=0), 0.0, atol=1e-9)
    assert (state.alpha[:n] <= state.cost[:n] * (1.0 + 1e-9)).all()
    assert (state.delta[:n] <= state.alpha[:n] * (1.0 + 1e-9)).all()
    rows = [row_of_slot(state, kernel, s, 4)[:n].copy() for s in range(n)]
    dual, f, total = info.dual, state.f[:k, :n].copy(), info.delta_sum
    rebuild(state, kernel, 4)
    fresh = [row_of_slot(state, kernel, s, 4)[:n].copy() for s in range(n)]
    np.testing.assert_allclose(rows, fresh, rtol=1e-6)
    np.testing.assert_allclose(state.f[:k, :n], f, atol=1e-4)
    assert (info.dual, info.delta_sum) == pytest.approx((dual, total), rel=1e-4, abs=1e-5)
