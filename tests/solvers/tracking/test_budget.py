"""Budgets of averaged tracking: what leaves, what takes over, and what that costs the dual."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.solvers import merging
from streamsvm.solvers.bounds import MERGE, MERGE_MEAN, Budget
from streamsvm.solvers.tracking import budget
from streamsvm.solvers.tracking.state import settle, shift
from streamsvm.support.dense_store import rows_of
from tests.kernels.test_values import expected, values
from tests.reference.tracking_stream import (
    PLAIN,
    TrackingStream,
    check_after_every_row,
    problem,
    unequal,
)
from tests.slow import of_tracking_bounds

pytestmark = of_tracking_bounds
RBF = kernels.RBF(gamma=0.5)
ALL = (kernels.Linear(scale=0.7), kernels.Polynomial(degree=2, gamma=0.3), RBF)
POLICIES = (MERGE, MERGE_MEAN)


def learnt(seed=0, n=40, kernel=RBF, C=2.0, d=3, **schedule):
    """Return a stream after n rows, with nothing touched, as budgets find it."""
    x, y = problem(seed, n + 1, d)
    stream = TrackingStream(
        x, y, unequal(seed, n + 1, C), kernel, PLAIN._replace(**schedule), seed
    ).learn(np.arange(n))
    settle(stream.state, True)
    return stream


def needed(*args, **kwargs):
    """Return a learnt stream without those that are not missed."""
    stream = learnt(*args, **kwargs)
    while budget.least_harmful(stream.state)[1] <= 0.0:
        slot = budget.least_harmful(stream.state)[0]
        budget.remove(stream.state, stream.solver_kernel, slot, stream.x.shape[1])
    assert len(stream.members) > 3
    return stream


def slot_of(stream, row):
    return int(np.flatnonzero(stream.state.store.entered == row + 1)[0])


def row_of(stream, slot):
    return rows_of(stream.state.store, slot + 1, stream.x.shape[1])[slot]


def pair(stream):
    """Return the pair that making room would choose, without the draws having been made."""
    draws = stream.state.draws.copy()
    first = budget.least_harmful(stream.state)[0]
    chosen = budget.cheapest_pair(stream.state, stream.solver_kernel, first, stream.x.shape[1])
    stream.state.draws[:] = draws
    return chosen


def sums(stream):
    """Return the sum of the boxes and of the weights of the members."""
    members = stream.members
    return stream.state.cost[members].sum(), stream.state.store.weight[members].sum()


def make_room(stream, policy, wanted=True):
    """Make room; check that what the dual lost is what was booked, and return it."""
    before, lost = stream.fresh_dual(), float(stream.info.lost)
    made = budget.make_room(stream.state, stream.solver_kernel, wanted, policy, stream.x.shape[1])
    stream.check()
    change = before - stream.fresh_dual()
    scale = 1.0 + abs(before)
    assert stream.info.lost - lost == pytest.approx(change, rel=1e-6, abs=1e-9 * scale)
    return made, change


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 50), st.sampled_from(ALL), st.booleans())
def test_the_loss_of_a_removal_is_the_duals(seed, n, kernel, zeros):
    stream = learnt(seed, n, kernel)
    rng = np.random.default_rng(seed)
    for row in rng.permutation(n)[: n - 1]:
        slot = slot_of(stream, row)
        if not zeros and stream.state.alpha[slot] == 0.0:
            continue
        before, lost = stream.fresh_dual(), float(stream.info.lost)
        loss = budget.removal_loss(stream.state, slot)
        budget.remove(stream.state, stream.solver_kernel, slot, stream.x.shape[1])
        stream.check()
        change = before - stream.fresh_dual()
        scale = 1.0 + abs(before)
        assert loss == pytest.approx(change, rel=1e-6, abs=1e-9 * scale)
        assert stream.info.lost - lost == pytest.approx(change, rel=1e-6, abs=1e-9 * scale)
        assert row + 1 not in stream.state.store.entered


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_the_least_harmful_is_the_one_that_costs_least(kernel):
    for seed in range(8):
        stream = learnt(seed, 25, kernel, steps=20.0)
        # Only those that are used: a zero always costs nothing.
        for slot in [s for s in stream.members if stream.state.alpha[s] == 0.0]:
            budget.remove(stream.state, stream.solver_kernel, slot, 3)
        rows = stream.state.store.entered[stream.members] - 1
        losses = []
        for row in rows:
            other = np.where(np.arange(stream.state.alpha.size) == slot_of(stream, row), 0.0, 1.0)
            without = stream.fresh_dual(stream.state.alpha * other)
            losses.append(stream.fresh_dual() - without)
        found, least = budget.least_harmful(stream.state)
        assert stream.state.store.entered[found] - 1 == rows[np.argmin(losses)]
        assert least == pytest.approx(min(losses), rel=1e-6, abs=1e-9)


def test_among_useless_ones_the_least_needed_leaves():
    done = 0
    for seed in range(40):
        stream = learnt(seed, 30, C=1.0, steps=60.0)
        zeros = [s for s in stream.members if stream.state.alpha[s] == 0.0]
        if len(zeros) < 2 or min(budget.removal_loss(stream.state, s) for s in stream.members) < 0:
            continue
        found, least = budget.least_harmful(stream.state)
        need = 1.0 - stream.state.y * stream.state.f
        assert least == 0.0 and found == min(zeros, key=lambda s: need[s])
        done += 1
    assert done > 5


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(3, 50),
    st.integers(1, 4),
    st.sampled_from(ALL),
    st.sampled_from(POLICIES),
    st.sampled_from([0.05, 2.0, 50.0]),
)
def test_making_room_again_and_again(seed, n, d, kernel, policy, C):
    if policy == MERGE:
        kernel = RBF
    stream = learnt(seed, n, kernel, C, d)
    while len(stream.members) > 2:
        m, (costs, weights) = len(stream.members), sums(stream)
        found, loss = budget.least_harmful(stream.state)
        gone = float(stream.state.cost[found])
        has_neighbour = pair(stream)[1] >= 0
        made, _ = make_room(stream, policy)
        assert made and len(stream.members) == m - 1
        if loss > 0.0 and has_neighbour:
            # Somebody stands for one more.
            assert sums(stream) == pytest.approx((costs, weights), rel=1e-12)
        else:
            assert sums(stream) == pytest.approx((costs - gone, weights - gone), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_fresh_example_that_is_not_wanted_displaces_none_that_is_needed(policy):
    stream = needed(4, 30, C=50.0)
    before = {name: getattr(stream.state, name).copy() for name in ("alpha", "f", "cost")}
    members = stream.members.copy()
    made, change = make_room(stream, policy, wanted=False)
    assert not made and change == 0.0
    np.testing.assert_array_equal(stream.members, members)
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(stream.state, name), array)
    # In the place of one that is not missed it may enter.
    slot, before = int(stream.members[0]), stream.fresh_dual()
    number = stream.state.store.entered[slot]
    amount = -stream.state.alpha[slot]
    shift(stream.state, stream.solver_kernel, slot, amount, 3)
    stream.state.info[0].dual = stream.fresh_dual()
    assert stream.state.alpha[slot] == 0.0 and stream.fresh_dual() < before
    if budget.least_harmful(stream.state)[1] == 0.0:
        made, change = make_room(stream, policy, wanted=False)
        assert made and change == 0.0 and number not in stream.state.store.entered


@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_with_a_large_margin_is_not_entered(policy):
    stream = needed(5, 40, C=50.0, steps=30.0)
    margins = (stream.state.y * stream.state.f)[stream.members]
    slot = stream.members[np.argmax(margins)]
    assert margins.max() > 1.0
    stream.x[40], stream.y[40] = row_of(stream, slot), stream.state.y[slot]
    stream.schedule = stream.schedule._replace(bounds=Budget(float(len(stream.members)), policy))
    numbers = set(stream.state.store.entered[stream.members].tolist())
    seen = int(stream.info.n_seen)
    stream.learn([40])
    assert set(stream.state.store.entered[stream.members].tolist()) == numbers
    assert stream.info.n_seen == seen + 1
    # With the other label it is wanted.
    stream.y[40] = -stream.y[40]
    settle(stream.state, True)
    stream.learn([40]).check()
    assert 41 in stream.state.store.entered and len(stream.members) == len(numbers)


@pytest.mark.parametrize("kernel", ALL)
def test_the_pair_is_of_nearest_neighbours_and_no_dearer_than_that_of_the_least_harmful(kernel):
    better = 0
    for seed in range(30):
        stream = needed(seed, 20, kernel, (1.0, 50.0)[seed % 2], d=2)
        state, members = stream.state, stream.members.tolist()
        K, first = stream.kernel_of_members(), members.index(budget.least_harmful(state)[0])

        def nearest(i, K=K, state=state, members=members):
            alike = (state.y[members] == state.y[members[i]]) & (K[i] > 0.0)
            worth = np.where(alike, K[i] ** 2 / np.diag(K), -1.0)
            worth[i] = -1.0
            return int(np.argmax(worth)) if worth.max() > 0.0 else -1

        def cost(i, j, K=K, state=state, members=members):
            a = np.abs(state.alpha[[members[i], members[j]]])
            return max(0.0, min(
                a[0] ** 2 * (K[i, i] - K[i, j] ** 2 / K[j, j]),
                a[1] ** 2 * (K[j, j] - K[i, j] ** 2 / K[i, i]),
            ))  # fmt: skip

        i, j = pair(stream)
        if nearest(first) < 0 or j < 0:
            continue
        i, j = members.index(i), members.index(j)
        assert cost(i, j) == pytest.approx(cost(i, nearest(i)), rel=1e-3, abs=1e-6)
        assert cost(i, j) <= cost(first, nearest(first)) * (1 + 1e-3) + 1e-6
        better += i != first
    assert better > 5


@pytest.mark.parametrize(
    ("policy", "kernel"), [(MERGE, RBF), *((MERGE_MEAN, kernel) for kernel in ALL)]
)
def test_a_merged_vector_lies_between_two_and_takes_their_part_over(policy, kernel):
    done = 0
    for seed in range(30):
        stream = needed(seed, 20, kernel, (1.0, 50.0)[seed % 2], d=2)
        state = stream.state
        i, j = pair(stream)
        if j < 0:
            continue
        members = stream.members.copy()
        ends = np.array([row_of(stream, i), row_of(stream, j)])
        a, costs = np.abs(state.alpha[[i, j]]), state.cost[[i, j]]
        numbers = state.store.entered[[i, j]]
        rest = {int(s): state.alpha[s] for s in members if s not in (i, j)}
        make_room(stream, policy)
        (slot,) = set(stream.members.tolist()) - set(rest)
        z = row_of(stream, slot)
        along = (z - ends[1]).astype(float) @ (ends[0] - ends[1])
        h = along / ((ends[0] - ends[1]).astype(float) ** 2).sum()
        assert -1e-6 <= h <= 1 + 1e-6
        np.testing.assert_allclose(z, h * ends[0] + (1 - h) * ends[1], atol=1e-5)
        to_ends = values(kernel, z[None], ends)[0].astype(float)
        own = expected(kernel, z[None], z[None])[0, 0]
        assert state.diagonal[slot] == pytest.approx(own, rel=1e-5)
        a_z = max(0.0, min(costs.sum(), a @ to_ends / state.diagonal[slot]))
        assert abs(state.alpha[slot]) == pytest.approx(a_z, rel=1e-6)
        assert state.cost[slot] == pytest.approx(costs.sum())
        assert state.store.entered[slot] == -numbers.max()
        for s, alpha in rest.items():
            assert state.alpha[s] == alpha
        done += 1
        if policy == MERGE_MEAN:
            assert h == pytest.approx(a[0] / a.sum(), abs=1e-5)
            continue
        # No other point of the line takes more of their part of w over.
        grid = np.linspace(0, 1, 401)[:, None]
        line = (grid * ends[0] + (1 - grid) * ends[1]).astype(np.float32)
        assert a @ to_ends >= (expected(RBF, line, ends) @ a).max() - 1e-5 * a.sum()
    assert done > 5


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-30, 1.0), st.floats(1e-3, 10.0), st.floats(1e-3, 10.0))
def test_the_best_point_is_the_best_of_a_fine_grid(kappa, a_i, a_j):
    worth = lambda h: a_i * kappa ** ((1 - h) ** 2) + a_j * kappa ** (h**2)  # noqa: E731
    h = merging.best_point(kappa, a_i, a_j)
    assert 0.0 <= h <= 1.0
    assert worth(h) >= worth(np.linspace(0, 1, 2001)).max() - 1e-6 * (a_i + a_j)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from(POLICIES),
    st.integers(2, 12),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 1.0]),
)
def test_the_limit_holds_and_all_is_booked(seed, policy, limit, process, keep_zeros):
    x, y = problem(seed, 80, 2)
    schedule = PLAIN._replace(
        bounds=Budget(float(limit), policy), process=process, keep_zeros=keep_zeros
    )
    stream = TrackingStream(x, y, unequal(seed, 80, 5.0), RBF, schedule, seed)
    check_after_every_row(stream, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_all_is_right_after_many_rows(policy):
    x, y = problem(0, 20_000, 3)
    schedule = PLAIN._replace(bounds=Budget(60.0, policy))
    stream = TrackingStream(x, y, 5.0, RBF, schedule).all()
    assert len(stream.members) == 60
    # The more rows a vector stands for, the larger its box and the rounding of large terms.
    stream.check(rel=1e-8)
    assert stream.info.dual == pytest.approx(stream.fresh_dual(), rel=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_merged_row_may_come_again(policy):
    x, y = problem(0, 100, 3)
    schedule = PLAIN._replace(bounds=Budget(20.0, policy))
    stream = TrackingStream(x, y, 1.0, RBF, schedule)
    for _ in range(3):
        stream.all().check()


def test_algorithm_1_goes_on_learning_within_a_budget():
    x, y = problem(0, 400, 2)
    schedule = PLAIN._replace(process=0.0, bounds=Budget(10.0), steps=20.0)
    stream = TrackingStream(x, y, 1.0, RBF, schedule).all()
    assert np.abs(stream.state.store.entered[stream.members]).max() > 50
