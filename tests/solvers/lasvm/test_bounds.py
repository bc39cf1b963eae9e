"""LASVM within a window or a budget: what must hold after every row, and what is booked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.solvers.bounds import MERGE, MERGE_MEAN, RARE, bounds_of
from streamsvm.solvers.lasvm import bounds as lasvm_bounds
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.support.dense_store import rows_of
from tests.reference.slow_window import SlowWindow
from tests.solvers.lasvm.test_step import Stream, check_after_every_row, live_of, problem

RBF = kernels.RBF(gamma=0.5)
LINEAR = kernels.Linear(scale=0.7)
POLICIES = (MERGE, MERGE_MEAN)
PLAIN = lasvm.Schedule(1e-3, 1.0, np.inf, 0.0, 1.0)
EAGER = lasvm.Schedule(1e-3, 1.0, 0.5, 50.0, 0.0)
NOTHING_LEAVES = lasvm.Schedule(1e-3, 0.0, np.inf, 0.0, 1.0)
"""But by age: without REPROCESS no example is found to be no support vector."""


def within(window=None, limit=None, policy=MERGE, schedule=PLAIN, rare=RARE):
    return schedule._replace(bounds=bounds_of(window, limit, policy, rare=rare))


def policy_of(schedule):
    return getattr(schedule.bounds, "policy", None)


WAYS = [
    within(window=20),
    within(window=2, schedule=EAGER),
    within(window=25, limit=10, policy=MERGE),
    within(window=25, limit=10, policy=MERGE_MEAN),
    *(within(limit=12, policy=policy) for policy in POLICIES),
    *(within(limit=3, policy=policy, schedule=EAGER) for policy in POLICIES),
]


@pytest.mark.parametrize("schedule", WAYS)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 70),
    d=st.integers(1, 4),
    C=st.sampled_from([0.05, 1.0, 30.0]),
    weighted=st.booleans(),
    linear=st.booleans(),
)
def test_invariants_after_every_row(schedule, seed, n, d, C, weighted, linear):
    x, y = problem(seed, n, d)
    cost = C * (np.random.default_rng(seed).uniform(0.2, 2, n) if weighted else np.ones(n))
    # Merging is for RBF kernels.
    kernel = LINEAR if linear and policy_of(schedule) != MERGE else RBF
    stream = Stream(x, y, cost, kernel, schedule)
    held = SlowWindow(schedule.bounds.window)

    def is_within_bounds(k):
        held.note(y[k], k + 1, 2)
        live = live_of(stream.state)
        assert len(live) <= schedule.bounds.limit
        if schedule.bounds.window:
            entered = np.abs(stream.state.store.entered[live]).tolist()
            assert all(held.holds(y[i - 1], i, k + 1) for i in entered)

    check_after_every_row(stream, is_within_bounds)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 150),
    window=st.integers(1, 40),
    rare=st.sampled_from([0.0, RARE, 0.3, 1.0]),
    share=st.sampled_from([0.02, 0.1, 0.5]),
)
def test_the_last_of_each_class_stay_and_what_is_older_leaves(seed, n, window, rare, share):
    rng = np.random.default_rng(seed)
    x, _ = problem(seed, n, 2)
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    # Examples without weight count for none of a class.
    cost = np.where(rng.random(n) < 0.1, 0.0, 1.0)
    schedule = within(window, schedule=NOTHING_LEAVES, rare=rare)
    stream, held, kept = Stream(x, y, cost, RBF, schedule), SlowWindow(window, rare), set()
    for k in range(n):
        if cost[k] > 0.0:
            held.note(y[k], k + 1, 2)
        stream.learn(k, k + 1)
        now = set(stream.state.store.entered[live_of(stream.state)].tolist())
        assert now - {k + 1} == {i for i in kept if held.holds(y[i - 1], i, k + 1)}
        kept = now
        generation = max(1, int(window * rare / 2)) if rare else 0
        assert len(kept) <= window + 4 * generation
    stream.check()


def test_nothing_is_lost_while_nothing_leaves():
    x, y = problem(0, 60, 3)
    free = Stream(x, y, np.ones(60), RBF, PLAIN).all()
    wide = Stream(x, y, np.ones(60), RBF, within(window=60, limit=60)).all()
    assert wide.state.info[0].lost == free.state.info[0].lost == 0.0
    np.testing.assert_array_equal(free.coefficients(), wide.coefficients())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([0.3, 5.0]), st.sampled_from([LINEAR, RBF]))
def test_removing_all_one_after_the_other(seed, C, kernel):
    x, y = problem(seed, 40, 3)
    stream = Stream(x, y, np.full(40, C), kernel, PLAIN).all()
    rng = np.random.default_rng(seed)
    for slot in rng.permutation(live_of(stream.state)):
        before, lost = stream.fresh_dual(), float(stream.info.lost)
        lasvm_bounds.remove(stream.state, stream.solver_kernel, int(slot), 3)
        stream.check()
        change = before - stream.fresh_dual()
        booked = stream.info.lost - lost
        assert booked == pytest.approx(change, rel=1e-6, abs=1e-9 * (1.0 + abs(before)))
    assert len(live_of(stream.state)) == 0 and stream.info.dual == pytest.approx(0.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(POLICIES), st.sampled_from([0.3, 5.0]))
def test_making_room_again_and_again(seed, policy, C):
    x, y = problem(seed, 40, 2)
    stream = Stream(x, y, np.full(40, C), RBF, PLAIN).all()
    state, info = stream.state, stream.info
    while len(live_of(state)) > 2:
        m, before, lost = len(live_of(state)), stream.fresh_dual(), float(info.lost)
        costs, weights = (state.upper - state.lower).sum(), state.store.weight[live_of(state)].sum()
        slot = lasvm_bounds.make_room(state, stream.solver_kernel, policy, 2)
        stream.check()
        live = live_of(state)
        assert len(live) == m - 1
        change = before - stream.fresh_dual()
        scale = 1.0 + abs(before) + (state.upper - state.lower).sum()
        assert info.lost - lost == pytest.approx(change, rel=1e-6, abs=1e-9 * scale)
        now = (state.upper - state.lower).sum(), state.store.weight[live].sum()
        if slot >= 0:
            # Somebody stands for one more.
            assert slot in live and now == pytest.approx((costs, weights))


def test_the_least_harmful_is_the_one_that_costs_least():
    for seed in range(20):
        x, y = problem(seed, 40, 2)
        stream = Stream(x, y, np.full(40, 5.0), RBF, PLAIN).all()
        state, b = stream.state, lasvm.bias(stream.state)
        live = live_of(state)
        a = np.abs(state.alpha[live])
        losses = a * state.y[live] * (state.gradient[live] - b) + 0.5 * a * a
        found, loss = lasvm_bounds.cheapest_to_remove(state)
        assert found == live[np.argmin(losses)] and loss == pytest.approx(losses.min())


def test_a_merged_vector_keeps_the_sum_and_lies_between_two():
    done = 0
    for seed in range(20):
        x, y = problem(seed, 30, 2)
        stream = Stream(x, y, np.full(30, 5.0), RBF, PLAIN).all()
        state = stream.state
        for _ in range(10):
            live = live_of(state)
            before = {int(s): (state.alpha[s], rows_of(state.store, s + 1, 2)[s]) for s in live}
            slot = lasvm_bounds.make_room(state, stream.solver_kernel, MERGE, 2)
            if slot < 0:
                continue
            (gone,) = set(before) - set(live_of(state).tolist())
            (a_i, x_i), (a_j, x_j) = before[gone], before[slot]
            assert a_i * a_j >= 0.0
            # What the projection on z does not take over went to others; the sum stays.
            spare = abs(a_i + a_j) - abs(state.alpha[slot])
            given = sum(state.alpha[s] - a for s, (a, _) in before.items() if s not in (gone, slot))
            assert spare >= -1e-12 and abs(given) == pytest.approx(spare, abs=1e-9)
            assert abs(state.alpha.sum()) < 1e-9
            z = rows_of(state.store, slot + 1, 2)[slot]
            ends = (x_i - x_j).astype(float)
            h = (z - x_j).astype(float) @ ends / (ends @ ends)
            assert -1e-5 <= h <= 1 + 1e-5
            np.testing.assert_allclose(z, h * x_i + (1 - h) * x_j, atol=1e-5)
            done += 1
    assert done > 10


@pytest.mark.parametrize("policy", POLICIES)
def test_further_epochs_and_finishing(policy):
    x, y = problem(2, 100, 2)
    stream = Stream(x, y, np.full(100, 2.0), RBF, within(limit=15, policy=policy))
    for _ in range(3):
        stream.all()
        stream.check()
        assert len(live_of(stream.state)) <= 15
    stream.finish()
    stream.check()
    assert lasvm.delta(stream.state) <= 1e-3
    stream.all()
    stream.check()


@pytest.mark.parametrize("schedule", WAYS)
def test_all_is_right_after_many_rows(schedule):
    x, y = problem(3, 4000, 3)
    stream = Stream(x, y, np.full(4000, 2.0), RBF, schedule).all()
    stream.check()
    assert stream.info.dual == pytest.approx(stream.fresh_dual(), rel=1e-6)


def test_rows_that_come_again_leave_the_window_with_their_merged_vector():
    x, y = problem(8, 80, 2)
    stream = Stream(x, y, np.full(80, 2.0), RBF, within(window=20, limit=6)).learn(0, 30)
    for _ in range(3):
        stream.learn(25, 30)
    for k in range(30, 60):
        stream.learn(k, k + 1)
        entered = stream.state.store.entered[live_of(stream.state)]
        assert (np.abs(entered) > k + 1 - 20).all()


def flipped(n=1600):
    """Return a stream whose labels turn round in the middle, C 1 and a budget of 20 that merges."""
    x, y = problem(3, n, 2, noise=0.0)
    y[n // 2 :] *= -1.0
    return Stream(x, y, np.ones(n), RBF, within(limit=20), capacity=64)


@pytest.mark.parametrize("rho", [0.5, 0.95])
def test_fading_scales_coefficients_and_boxes_alike(rho):
    stream = flipped().learn(0, 300)
    state, info = stream.state, stream.info
    alpha, upper, lost = state.alpha.copy(), state.upper.copy(), float(info.lost)
    before = stream.fresh_dual()
    lasvm_bounds.fade(state, rho)
    np.testing.assert_array_equal(state.alpha, rho * alpha)
    np.testing.assert_array_equal(state.upper, rho * upper)
    stream.check()
    assert info.lost - lost == pytest.approx(before - stream.fresh_dual())
    for _ in range(3000):
        lasvm_bounds.fade(state, rho)
    # Neither box nor slot is gone, even where coefficients are too small for a double.
    stream.check()
    assert len(live_of(state)) == 20


def test_what_was_learnt_fades_when_errors_have_become_more_and_newcomers_count_less():
    """Newcomers count less the more vectors made room."""
    stream = flipped()
    e, n_watched, n_wrong, faded, shares = 0.0, 0, 0, [], []
    for k in range(len(stream.y)):
        was = weights_of(stream)
        n_live, n_over = stream.info.n - stream.info.n_dead, int(stream.info.n_over)
        stream.learn(k, k + 1)
        wrong = stream.margins[k] * stream.y[k] <= 0.0
        e, n_wrong, n_watched = 0.997 * e + 0.003 * wrong, n_wrong + wrong, n_watched + 1
        mean = (n_wrong + 1) / (n_watched + 2)
        rises = e > mean + 4.0 * np.sqrt(mean * (1.0 - mean) * 0.003 / 1.997)
        now, info = weights_of(stream), stream.info
        # Of examples that were not merged: merged vectors have negative numbers.
        factors = {round(now[i] / was[i], 9) for i in now if i > 0 and i in was}
        assert factors <= {0.1 if rises else 1.0} and (info.n_watched == 0) == rises
        if rises:
            # The example itself enters afterwards, with weight 1.
            assert sum(now.values()) < 0.1 * sum(was.values()) + 1.01
            stream.check()
            e, n_watched, n_wrong = 0.0, 0, 0
            faded.append(k)
        made_room = info.n_over - (0 if rises else n_over)
        assert made_room == 0 or (made_room == 1 and n_live == 20)
        if k + 1 in now:
            share = np.sqrt(20 / (20 + n_over)) * (0.1 if rises else 1.0)
            (slot,) = np.flatnonzero(stream.state.store.entered == k + 1)
            assert stream.state.upper[slot] - stream.state.lower[slot] == pytest.approx(share)
            assert now[k + 1] == pytest.approx(share)
            shares.append(share)
    assert faded and min(faded) > 800
    assert len(shares) > 100 and min(shares) < 0.3 and shares[0] == 1.0


def weights_of(stream):
    """Return the weights of the vectors that are kept, by their numbers."""
    store = stream.state.store
    return {int(store.entered[s]): store.weight[s] for s in live_of(stream.state)}
