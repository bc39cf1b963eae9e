"""Averaged tracking with w itself, against the slow twin and the version with kernel values."""

from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.solvers.bounds import Reservoir
from streamsvm.solvers.tracking import linear as tracking_linear
from tests.reference.tracking_stream import (
    PLAIN,
    TrackingStream,
    assert_twins,
    check_active_set,
    check_after_every_row,
    learnt_by,
    problem,
    twin_of,
    unequal,
)

KERNEL = kernels.Linear(scale=0.7)
SAMPLE = PLAIN._replace(bounds=Reservoir(20.0))
SUPPORT = PLAIN._replace(keep_zeros=0.0)
# (schedule, window)
WAYS = [
    (PLAIN, 0),
    (PLAIN._replace(process=0.0, tau=0.03), 25),
    (SUPPORT, 25),
    (SUPPORT._replace(process=0.0), 0),
    (SAMPLE, 0),
    (SAMPLE._replace(process=0.0), 0),
    (PLAIN._replace(steps=20.0, averaged=0.0), 25),
    (PLAIN._replace(steps=1.0), 0),
]


class LinearStream(TrackingStream):
    """The same rows for a state with explicit w."""

    step = tracking_linear
    kind = tracking_linear.LinearTrackingState

    def __init__(self, x, y, cost, kernel=KERNEL, schedule=PLAIN, seed=0, window=0):
        super().__init__(x, y, cost, kernel, schedule, seed, window, 0)

    @cached_property
    def gram(self):
        x = self.x.astype(float)
        return self.kernel.scale * x @ x.T

    @property
    def solver_kernel(self):
        return self.kernel

    def fresh_dual(self, coefficients=None):
        alpha, y = self.state.alpha[self.members], self.state.y[self.members]
        w = alpha @ self.rows_of_members()
        return alpha @ y - 0.5 * self.kernel.scale * w @ w

    def rows_of_members(self):
        return self.state.store.rows[self.members].astype(float)

    def check(self, rel=1e-9):
        """Boxes, both w, the dual and the active set, against fresh values."""
        state = self.state
        members = check_active_set(state.active, state.store.entered)
        alpha, y, cost = state.alpha[members], state.y[members], state.cost[members]
        assert (y * alpha >= 0.0).all() and (y * alpha <= cost).all()
        x, scale = self.rows_of_members(), 1.0 + np.abs(alpha).sum()
        np.testing.assert_allclose(state.w, alpha @ x, rtol=0, atol=rel * scale)
        w_average = state.average[members] @ x
        np.testing.assert_allclose(state.w_average, w_average, rtol=0, atol=rel * scale)
        assert self.info.dual == pytest.approx(self.fresh_dual(), rel=rel, abs=rel * scale)
        diagonal = self.kernel.scale * (x**2).sum(axis=1)
        np.testing.assert_allclose(state.diagonal[members], diagonal, rtol=1e-12)
        assert self.info.cost_sum == pytest.approx(cost.sum(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_each_row_does_what_the_slow_twin_does(way):
    schedule, window = WAYS[way]
    x, y = problem(way, 120, 3)
    stream = LinearStream(x, y, unequal(1, 120, C=2.0), KERNEL, schedule, window=window)
    slow = twin_of(stream, window)
    expected = []
    for k in range(120):
        expected.append(learnt_by(slow, k, schedule))
        stream.learn([k])
        stream.check()
    assert_twins(stream, slow)
    np.testing.assert_allclose(stream.margins, expected, rtol=1e-9, atol=1e-9)
    out = np.empty(120)
    tracking_linear.margins_of(KERNEL, stream.state.w_average, x, out)
    np.testing.assert_allclose(out, slow.gram @ (y * slow.average), rtol=1e-9, atol=1e-9)
    if schedule.tau:
        assert stream.info.n_null == slow.n_null


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(1, 60),
    st.integers(1, 5),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.sampled_from(WAYS),
)
def test_invariants_after_every_row(seed, n, d, C, way):
    schedule, window = way
    x, y = problem(seed, n, d)
    stream = LinearStream(x, y, unequal(seed, n, C), KERNEL, schedule, seed, window)
    check_after_every_row(stream, window)


@pytest.mark.parametrize("window", [0, 300])
def test_the_dual_and_w_are_right_after_a_million_steps(window):
    x, y = problem(0, 10_000, 6, noise=1.0)
    x[5000:] += 0.5
    schedule = PLAIN._replace(steps=100.0)
    stream = LinearStream(x, y, unequal(0, 10_000), schedule=schedule, window=window).all()
    assert stream.info.n_steps == 1_000_000
    assert stream.info.dual == pytest.approx(stream.fresh_dual(), rel=1e-9)
    x = stream.rows_of_members()
    for w, coefficients in (("w", "alpha"), ("w_average", "average")):
        fresh = getattr(stream.state, coefficients)[stream.members] @ x
        np.testing.assert_allclose(getattr(stream.state, w), fresh, rtol=1e-8, atol=1e-9)


def test_more_features_are_zero_so_far():
    x, y = problem(6, 100, 5)
    x[:50, 3:] = 0.0
    narrow = LinearStream(np.ascontiguousarray(x[:, :3]), y, 1.0).learn(np.arange(50))
    narrow.x = x
    narrow.grow(256)
    narrow.learn(np.arange(50, 100)).check()
    wide = LinearStream(x, y, 1.0).all()
    np.testing.assert_allclose(narrow.state.w, wide.state.w, rtol=1e-9)


def test_examples_that_come_again_and_rows_without_weight():
    x, y = problem(7, 60, 3)
    cost = unequal(7, 60)
    cost[::4] = 0.0
    stream = LinearStream(x, y, cost, schedule=SUPPORT)
    slow = twin_of(stream, 0)
    for _ in range(3):
        stream.all().check()
        for k in range(60):
            slow.learn(k)
        np.testing.assert_allclose(stream.of_rows(stream.state.alpha), y * slow.a, atol=1e-9)
    assert stream.info.n_seen == 3 * 45 and not stream.of_rows(stream.state.alpha)[::4].any()
