"""Measured gaps against P - D from their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.monitor import gap
from streamsvm.solvers.bounds import MERGE_MEAN, Budget, bounds_of
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.solvers.lasvm.gap import lasvm_gap
from streamsvm.solvers.tracking import linear as tracking_linear
from streamsvm.solvers.tracking.finish import linear_gap, tracking_gap
from streamsvm.support import states
from tests.reference.tracking_stream import PLAIN, TrackingStream, problem, unequal
from tests.slow import of_tracking_bounds
from tests.solvers.lasvm.test_step import Stream, live_of
from tests.solvers.tracking.test_linear import KERNEL, LinearStream

RBF = kernels.RBF(gamma=0.5)
ALL = (kernels.Linear(scale=0.7), kernels.Polynomial(degree=2, gamma=0.3), RBF)


def from_scratch(K, y, cost, alpha):
    """Return P - D without bias."""
    f = K @ alpha
    primal = 0.5 * alpha @ f + cost @ np.maximum(0.0, 1.0 - y * f)
    return primal - (y @ alpha - 0.5 * alpha @ f)


@pytest.mark.parametrize(
    "changes",
    [
        *({}, {"keep_zeros": 0.0}, {"process": 0.0}),
        pytest.param({"bounds": Budget(15.0, MERGE_MEAN)}, marks=of_tracking_bounds),
    ],
)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 60),
    kernel=st.sampled_from(ALL),
    C=st.sampled_from([0.05, 2.0, 50.0]),
    window=st.sampled_from([0, 20]),
)
def test_the_gap_of_kernels_averaged_and_not(changes, seed, n, kernel, C, window):
    x, y = problem(seed, n, 3)
    stream = TrackingStream(
        x, y, unequal(seed, n, C), kernel, PLAIN._replace(**changes), seed, window, 0
    ).all()
    state, members = stream.state, stream.members
    K, cost = stream.kernel_of_members(), state.cost[members]
    for averaged, coefficients in ((True, state.average), (False, state.alpha)):
        truth = from_scratch(K, state.y[members], cost, coefficients[members])
        scale = 1.0 + cost.sum() * (1.0 + np.abs(K).max() * cost.sum())
        kept = tracking_gap(state, stream.solver_kernel, 3, averaged=averaged)
        assert kept.total == pytest.approx(truth, rel=1e-9, abs=1e-12 * scale)
        assert kept.cost == pytest.approx(cost.sum())
        assert kept.total >= -1e-12 * scale
    averaged = tracking_gap(state, stream.solver_kernel, 3, averaged=True)
    assert tracking_gap(state, stream.solver_kernel, 3) == averaged
    # Looking changes nothing.
    stream.check()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(1, 60),
    st.sampled_from([0.05, 2.0]),
    st.sampled_from([0, 20]),
)
def test_the_gap_of_explicit_w(seed, n, C, window):
    x, y = problem(seed, n, 3)
    stream = LinearStream(x, y, unequal(seed, n, C), seed=seed, window=window).all()
    state, members = stream.state, stream.members
    rows = stream.rows_of_members()
    K, cost = KERNEL.scale * rows @ rows.T, state.cost[members]
    for averaged, coefficients in ((True, state.average), (False, state.alpha)):
        truth = from_scratch(K, state.y[members], cost, coefficients[members])
        kept = linear_gap(state, KERNEL, 3, averaged=averaged)
        assert kept.total == pytest.approx(truth, rel=1e-9, abs=1e-9 * (1.0 + cost.sum() ** 2))
        assert kept.cost == pytest.approx(cost.sum())


def test_the_gap_of_very_many_rows_is_an_unbiased_estimate():
    x, y = problem(0, 6000, 3, noise=1.0)
    stream = LinearStream.__new__(LinearStream)
    TrackingStream.__init__(stream, x, y, unequal(0, 6000, 0.1), KERNEL, PLAIN)
    stream.state = states.new_state(tracking_linear.LinearTrackingState, 3, seed=0, window=0)
    stream.all()
    members, rows = stream.members, stream.rows_of_members()
    average, state = stream.state.average[members], stream.state
    f = KERNEL.scale * rows @ (average @ rows)
    g = 1.0 - state.y[members] * f
    truth = 0.5 * average @ f + state.cost[members] @ np.maximum(0.0, g)
    truth -= state.y[members] @ average - 0.5 * average @ f
    draws = np.random.default_rng(0)
    estimates = [linear_gap(state, KERNEL, 3, draws=draws) for _ in range(40)]
    totals = np.array([kept.total for kept in estimates])
    assert totals.std() > 0.0
    assert abs(totals.mean() - truth) <= 5 * totals.std() / math.sqrt(40)
    assert np.mean([k.cost for k in estimates]) == pytest.approx(
        state.cost[members].sum(), rel=0.01
    )
    assert linear_gap(state, KERNEL, 3) == linear_gap(state, KERNEL, 3)


def gap_at(state, b):
    """Return P - D of the kept examples with bias b, from the definitions."""
    live = live_of(state)
    alpha, y, cost = state.alpha[live], state.y[live], (state.upper - state.lower)[live]
    f = y - state.gradient[live]
    primal = 0.5 * alpha @ f + cost @ np.maximum(0.0, 1.0 - y * (f + b))
    return primal - (alpha @ y - 0.5 * alpha @ f)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(2, 60),
    st.sampled_from(ALL),
    st.sampled_from([0.05, 2.0, 50.0]),
    st.sampled_from([None, 8]),
    st.booleans(),
)
def test_the_gap_of_lasvm_is_that_at_its_bias(seed, n, kernel, C, limit, finished):
    x, y = problem(seed, n, 2)
    y[:2] = [1.0, -1.0]
    bounds = bounds_of(None, limit, MERGE_MEAN)
    schedule = lasvm.Schedule(1e-3, 1.0, np.inf, 0.0, 1.0, bounds=bounds)
    stream = Stream(x, y, unequal(seed, n, C), kernel, schedule).all()
    if finished:
        stream.finish()
    stream.check()
    state = stream.state
    live = live_of(state)
    bias = float(lasvm.bias(state))
    kept = lasvm_gap(state, bias)
    cost = (state.upper - state.lower)[live]
    K = stream.kernel_of_slots()
    scale = 1.0 + cost.sum() * (1.0 + np.abs(K).max() * np.abs(state.alpha).sum())
    assert kept.total == pytest.approx(gap_at(state, bias), rel=1e-9, abs=1e-10 * scale)
    # At the optimum no other bias has a smaller gap.
    others = np.r_[state.gradient[live], np.linspace(-3, 3, 25)]
    least = min(gap_at(state, b) for b in others)
    assert not finished or kept.total <= least + 1e-3 * cost.sum() + 1e-9 * scale
    assert kept.total >= -1e-9 * scale and kept.cost == pytest.approx(cost.sum())


@pytest.mark.parametrize("y", [1.0, -1.0])
def test_one_class_alone_has_no_gap(y):
    x, _ = problem(3, 20, 2)
    stream = Stream(x, np.full(20, y), np.ones(20), RBF, lasvm.Schedule(1e-3, 1.0, np.inf, 0, 0))
    bias = float(lasvm.bias(stream.all().state))
    assert bias == y
    assert lasvm_gap(stream.state, bias).total == 0.0


def test_an_empty_state_has_no_gap():
    x, y = problem(4, 1, 2)
    stream = Stream(x, y, np.ones(1), RBF, lasvm.Schedule(1e-3, 1.0, np.inf, 0.0, 0.0))
    assert lasvm_gap(stream.state, 0.0) == KeptGap(0.0, 0.0)
    empty = TrackingStream(x, y, 1.0, RBF)
    assert tracking_gap(empty.state, empty.solver_kernel, 2) == KeptGap(0.0, 0.0)


def test_no_example_left_out_and_none_sampled():
    assert gap.discarded(np.zeros(0), np.zeros(0), 0) == gap.NONE_DISCARDED
    unknown = gap.discarded(np.zeros(0), np.zeros(0), 7)
    assert math.isnan(unknown.total) and unknown.low == 0.0 and unknown.high == math.inf


def test_a_sample_without_loss_claims_no_certainty():
    none = gap.discarded(np.zeros(30), np.full(30, 2.0), 600)
    assert none.total == none.low == 0.0 and none.cost == 1200.0
    assert 600 * 2.0 / 31 <= none.high <= 600 * 2.0 * 0.2


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("m", [50, 400])
def test_the_interval_covers_the_truth_in_about_95_of_100_draws(share, m):
    rng = np.random.default_rng(0)
    cost = rng.uniform(0.5, 1.5, 5000)
    losses = cost * rng.uniform(0, 2, 5000) * (rng.uniform(size=5000) < share)
    covered, estimates = 0, []
    for _ in range(1000):
        sample = rng.integers(0, 5000, m)
        found = gap.discarded(losses[sample], cost[sample], 5000)
        assert found.low <= found.total <= found.high
        covered += found.low <= losses.sum() <= found.high
        estimates.append(found.total)
        assert found.cost == pytest.approx(5000 * cost[sample].mean())
    # 2 % is three standard deviations; few losses in a small sample are skew.
    assert (0.90 if share * m < 10 else 0.93) <= covered / 1000 <= 0.99
    assert np.mean(estimates) == pytest.approx(losses.sum(), rel=5 / math.sqrt(1000 * m * share))
