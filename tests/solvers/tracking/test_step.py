"""Averaged tracking against its slow twin, the batch optimum, and what must always hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.solvers.bounds import MERGE, MERGE_MEAN, Budget, Reservoir
from streamsvm.solvers.one_event import margins_of
from streamsvm.solvers.tracking import finish as tracking_finish
from streamsvm.solvers.tracking import state as tracking_state
from streamsvm.solvers.tracking import step as tracking
from streamsvm.solvers.tracking.step import exact_step
from tests.reference.slow_looks import SlowLooks
from tests.reference.tracking_stream import (
    PLAIN,
    TrackingStream,
    assert_twins,
    check_after_every_row,
    learnt_by,
    problem,
    twin_of,
    unequal,
)
from tests.slow import of_tracking_bounds

RBF = kernels.RBF(gamma=0.5)
ALL = (kernels.Linear(scale=0.7), kernels.Polynomial(degree=2, gamma=0.3), RBF)
SAMPLE = PLAIN._replace(bounds=Reservoir(20.0))
SUPPORT = PLAIN._replace(keep_zeros=0.0)


def limited(policy, limit=15.0):
    return PLAIN._replace(bounds=Budget(limit, policy))


# (schedule, window)
WAYS = [
    (PLAIN, 0),
    (PLAIN._replace(process=0.0), 25),
    (SUPPORT, 0),
    (SUPPORT._replace(process=0.0, tau=0.05), 25),
]
BOUNDED = [(SAMPLE, 0), (limited(MERGE), 0), (limited(MERGE), 25), (limited(MERGE_MEAN), 25)]
SOME_SAMPLE = pytest.param(SAMPLE, marks=of_tracking_bounds)


def twin_with_looks(stream, window=0):
    slow = twin_of(stream, window)
    slow.looks = SlowLooks(stream.state.look_draws[0])
    return slow


@pytest.mark.parametrize("kernel", ALL, ids=repr)
@pytest.mark.parametrize("window", [0, 30])
@pytest.mark.parametrize(
    "schedule", [PLAIN, SUPPORT, SOME_SAMPLE], ids=["all", "support", "sample"]
)
@pytest.mark.parametrize("process", [0.0, 1.0])
@pytest.mark.parametrize("K", [1, 5, 20])
def test_each_row_does_what_the_slow_twin_does(kernel, window, schedule, process, K):
    if window and schedule is SAMPLE:
        return
    x, y = problem(K, 90, 3)
    tau = 0.03 if K == 5 else 0.0
    # Of the last classifier, looks are others.
    averaged = float(K != 5 or process > 0.0)
    schedule = schedule._replace(steps=float(K), process=process, tau=tau, averaged=averaged)
    # With equal C_i the draws of the steps are looks.
    cost = np.full(90, 2.0) if K == 20 else unequal(1, 90, C=2.0)
    stream = TrackingStream(x, y, cost, kernel, schedule, seed=K, window=window)
    slow = twin_with_looks(stream, window) if averaged else twin_of(stream, window)
    margins = []
    for k in range(90):
        margins.append(learnt_by(slow, k, schedule))
        stream.learn([k])
        if k % 10 == 9:
            assert_twins(stream, slow)
    np.testing.assert_allclose(stream.margins, margins, rtol=1e-9, atol=1e-9)
    out = np.empty(90)
    for averaged, a in ((1.0, slow.average), (0.0, slow.a)):
        plan = schedule._replace(averaged=averaged)
        margins_of(stream.state, stream.solver_kernel, plan, x, out)
        scale = 1.0 + np.abs(stream.gram).max()
        np.testing.assert_allclose(out, slow.gram @ (y * a), rtol=1e-9, atol=1e-9 * scale)
    if tau:
        # Without tau, whether a margin is exactly 1 hangs on rounding.
        assert stream.info.n_null == slow.n_null


@pytest.mark.parametrize(
    ("schedule", "window"),
    [
        *((PLAIN, 0), (SUPPORT, 0), (PLAIN, 55), (SUPPORT, 20)),
        pytest.param(SAMPLE, 0, marks=of_tracking_bounds),
    ],
)
def test_examples_that_come_again_are_stepped_on_not_entered(schedule, window):
    x, y = problem(2, 60, 3)
    stream = TrackingStream(x, y, unequal(2, 60), RBF, schedule, window=window)
    slow = twin_with_looks(stream, window)
    rng = np.random.default_rng(0)
    for epoch in range(3):
        rows = rng.permutation(60) if epoch else np.arange(60)
        for k in rows:
            slow.learn(k)
        stream.learn(rows)
        stream.check()
        assert_twins(stream, slow)
    if schedule is PLAIN and not window:
        assert len(stream.members) == 60 and stream.info.n_seen == 180


def test_zeros_that_finishing_leaves_are_dropped_too():
    x, y = problem(0, 101, 3)
    stream = TrackingStream(x, y, 10.0, RBF, SUPPORT).learn(np.arange(100))
    tracking_finish.finish_some(tracking, stream.state, stream.solver_kernel, SUPPORT, 3)
    stream.learn([100])
    # Those of the last example's steps may wait for the next one.
    waits = stream.state.is_touched[stream.members] > 0
    assert (stream.state.alpha[stream.members] != 0.0)[~waits].all()


@pytest.mark.parametrize("ways", [WAYS, pytest.param(BOUNDED, marks=of_tracking_bounds)])
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 60),
    d=st.integers(1, 5),
    kernel=st.sampled_from(ALL[1:]),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    way=st.integers(0, 99),
    weighted=st.booleans(),
)
def test_invariants_after_every_row(ways, seed, n, d, kernel, C, way, weighted):
    x, y = problem(seed, n, d)
    schedule, window = ways[way % len(ways)]
    if getattr(schedule.bounds, "policy", None) == MERGE:
        kernel = RBF
    cost = unequal(seed, n, C) if weighted else C
    stream = TrackingStream(x, y, cost, kernel, schedule, seed, window)
    check_after_every_row(stream, window)


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.0, 1.0),
    st.floats(1e-3, 1e3),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, 1e-3, 1.0, 50.0]),
)
def test_a_step_is_the_best_within_the_box(share, cost, g, diagonal):
    a = share * cost
    step = exact_step(a, g, cost, diagonal)
    assert -a <= step <= cost - a
    worth = lambda s: s * (g - 0.5 * s * diagonal)  # noqa: E731
    others = np.linspace(-a, cost - a, 41)
    assert worth(step) >= worth(others).max() - 1e-9 * (1.0 + abs(worth(step)))
    assert worth(step) >= 0.0


def test_the_dual_is_right_after_a_million_steps():
    x, y = problem(0, 10_000, 4, noise=1.0)
    x[5000:] += 1.0
    stream = TrackingStream(
        x, y, unequal(0, 10_000, C=5.0), RBF, PLAIN._replace(steps=100.0), window=200
    ).all()
    assert stream.info.n_steps == 1_000_000 and len(stream.members) == 200
    assert stream.info.dual == pytest.approx(stream.fresh_dual(), rel=1e-9)
    stream.check()


def test_K_follows_the_largest_kernel_value():
    x, y = problem(8, 40, 2)
    kernel = kernels.Polynomial(degree=2, gamma=0.5)
    schedule = PLAIN._replace(steps=3.0, steps_per_r2=1.7)
    stream = TrackingStream(x, y, 1.0, kernel, schedule)
    steps = 0
    for k in range(40):
        stream.learn([k])
        steps += max(3, int(np.ceil(1.7 * float(stream.diagonal[: k + 1].max()))))
        assert stream.info.n_steps == steps


def test_another_kernel_is_another_dual_and_the_change_is_booked():
    x, y = problem(10, 70, 3)
    stream = TrackingStream(x, y, 2.0, RBF, window=30).all()
    gained = stream.info.dual + stream.info.lost
    stream.kernel = kernels.RBF(gamma=2.0)
    tracking_state.rebuild(stream.state, stream.solver_kernel, 3)
    stream.check()
    assert stream.info.dual + stream.info.lost == pytest.approx(gained, rel=1e-12)
    stream.all().check()
