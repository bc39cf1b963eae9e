"""SGD, averaged SGD and SGD-QN against their slow twin, and what holds after any row."""

import numpy as np
import pytest

from streamsvm import losses
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import BIAS, SCALE, Schedule
from streamsvm.solvers.linear.step import SGD, SGDQN, learn_rows
from streamsvm.support.rows import sparse
from tests.reference import slow_linear
from tests.reference.slow_linear import SlowLinear

NAMES = sorted(losses.LOSSES)


def problem(seed, n=200, d=7, share=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * (rng.random((n, d)) < share)
    y = np.where(x[:, 0] + 0.5 * x[:, 1] + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return x.astype(np.float32), y, rng.choice([0.0, 0.5, 1.0, 3.0], n)


def schedule(name="hinge", lam=1e-2, t0=30.0, power=1.0, skip=1.0, averaged=0.0, choose=0.0, b=0.1):
    return Schedule(losses.LOSSES[name], lam, t0, power, skip, averaged, choose, b)


def learn(state, x, y, weight, own, solver=SGD):
    margins = np.zeros((len(y), state.info.shape[0]))
    learn_rows(state, solver, x, y, weight, own, margins)
    return margins


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_losses(name):
    number, step = losses.LOSSES[name], 1e-6
    for s in (-35.0, -2.0, 0.3, 0.6, 1.2, 1.6, 40.0):
        assert losses.value(number, s) == pytest.approx(slow_linear.loss(name, s), rel=1e-12)
        assert losses.derivative(number, s) == pytest.approx(slow_linear.slope(name, s), rel=1e-12)
        up, down = losses.value(number, s + step), losses.value(number, s - step)
        assert losses.derivative(number, s) == pytest.approx((up - down) / (2 * step), abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("power", "skip"), [(1.0, 1), (0.75, 1), (0.0, 5), (1.0, 5)])
@pytest.mark.parametrize("rows", [np.asarray, sparse], ids=["dense", "sparse"])
def test_sgd_does_what_the_slow_twin_does(name, power, skip, rows):
    x, y, weight = problem(1, share=0.5)
    twin = SlowLinear(7, name, 1e-2, 30.0, power, skip, 0.1)
    state = linear_state.new_state(1, 7, 0.0)
    own = schedule(name, power=power, skip=float(skip), averaged=1e-15)
    last = linear_state.new_state(1, 7)
    margins = learn(state, rows(x), y, weight, own)
    last_margins = learn(last, rows(x), y, weight, own._replace(averaged=0.0))
    for i in range(200):
        average = twin.average @ x[i] + twin.average_b
        f = twin.sgd(x[i].astype(float), y[i], weight[i])
        assert last_margins[i, 0] == pytest.approx(f, abs=1e-9)
        if i:
            assert margins[i, 0] == pytest.approx(average, abs=1e-9)
    for s in (state, last):
        np.testing.assert_allclose(s.info[0, SCALE] * s.weights[0, 0], twin.w, atol=1e-9)
        assert s.info[0, BIAS] == pytest.approx(twin.b, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("t0", [1.0, 1e5])
@pytest.mark.parametrize("solver", ["sgd", "sgdqn"])
def test_a_step_on_an_outlier_is_the_slow_twins(name, t0, solver):
    x, y, weight = problem(7)
    x[100:104] *= np.array([1e2, 1e4, 1e8, 1e15], np.float32)[:, None]
    y[100:104] *= -1.0
    weight[100:104] = 1.0
    twin, own = SlowLinear(7, name, 1e-2, t0, bias_rate=0.1), schedule(name, t0=t0)
    state = linear_state.new_state(1, 7, 100.0 if solver == "sgdqn" else None)
    learn(state, x, y, weight, own, {"sgd": SGD, "sgdqn": SGDQN}[solver])
    for i in range(200):
        getattr(twin, solver)(x[i].astype(float), y[i], weight[i])
    np.testing.assert_allclose(state.info[0, SCALE] * state.weights[0, 0], twin.w, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [np.asarray, sparse], ids=["dense", "sparse"])
def test_sgdqn_does_what_the_slow_twin_does(name, rows):
    x, y, weight = problem(2, share=0.5)
    twin = SlowLinear(7, name, 1e-2, 30.0, skip=3, bias_rate=0.1)
    state = linear_state.new_state(1, 7, 100.0)
    margins = learn(state, rows(x), y, weight, schedule(name, skip=3.0), SGDQN)
    for i in range(200):
        f = twin.sgdqn(x[i].astype(float), y[i], weight[i])
        assert margins[i, 0] == pytest.approx(f, abs=1e-7)
    np.testing.assert_allclose(state.weights[0, 0], twin.w, atol=1e-7)
    np.testing.assert_allclose(state.weights[0, 1], twin.B, rtol=1e-6)
    assert not np.allclose(twin.B, 100.0), "B moved"
    assert (twin.B <= 100.0).all() and (twin.B >= 1.0).all()


def test_several_outputs_are_so_many_single_ones():
    x, _, weight = problem(3)
    y = np.random.default_rng(3).integers(0, 3, 200).astype(float)
    for solver, second in ((SGD, 0.0), (SGDQN, 100.0)):
        own = schedule(averaged=1e-15 if solver is SGD else 0.0)
        together = linear_state.new_state(3, 7, second)
        margins = learn(together, x, y, weight, own, solver)
        for o in range(3):
            alone = linear_state.new_state(1, 7, second)
            sides = np.where(y == o, 1.0, -1.0)
            np.testing.assert_array_equal(
                learn(alone, x, sides, weight, own, solver)[:, 0], margins[:, o]
            )


@pytest.mark.parametrize("size", [1e8, 1e30, 3e38])
@pytest.mark.parametrize("name", NAMES)
def test_no_outlier_makes_weights_that_are_not_finite(name, size):
    x, y, weight = problem(4)
    x[::10] *= np.float32(size) / 10
    for solver, second in ((SGD, 0.0), (SGDQN, 1e4)):
        state = linear_state.new_state(1, 7, second)
        own = schedule(name, 1e-4, 1.0, averaged=1e-15 if solver is SGD else 0.0)
        for _ in range(20):
            margins = learn(state, x, y, weight, own, solver)
            assert np.isfinite(margins).all()
            assert np.isfinite(state.weights).all()


def test_shrinking_for_long_folds_the_scale():
    """Rates near 1 / lambda: scale and p pass through the smallest, again and again."""
    x, y, weight = problem(5)
    twin, state = SlowLinear(7, "hinge", 1.0, 2.0, 0.0), linear_state.new_state(1, 7, 0.0)
    own = schedule("hinge", 1.0, 2.0, 0.0, averaged=1e-15, b=0.01)
    for _ in range(20):
        learn(state, x, y, weight, own)
        for i in range(200):
            twin.sgd(x[i].astype(float), y[i], weight[i])
    info, (v, u) = state.info[0], state.weights[0]
    np.testing.assert_allclose(info[SCALE] * v, twin.w, rtol=1e-9)
    average = info[linear_state.P] * u + info[linear_state.Q] * v
    np.testing.assert_allclose(average, twin.average, rtol=1e-7)
    assert 1e-7 < info[SCALE] <= 1.0


def test_the_average_predicts_while_its_losses_are_lower():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 5)).astype(np.float32)
    still = np.where(x[:, 0] + rng.normal(size=20_000) > 0.0, 1.0, -1.0)
    turning = np.arange(20_000) // 500 % 2
    drifting = np.where(x[:, 0] * (1.0 - 2.0 * turning) > 0.0, 1.0, -1.0)
    own = schedule(lam=1e-4, t0=1e5, averaged=1e-15, choose=1.0)
    for y, averages in ((still, True), (drifting, False)):
        state = linear_state.new_state(1, 5, 0.0)
        learn(state, x, y, np.ones(20_000), own)
        assert linear_state.predicts_average(own, state.info[0]) == averages


def test_growing_keeps_the_content():
    x, y, weight = problem(7)
    state = linear_state.new_state(1, 7, 100.0)
    learn(state, x, y, weight, schedule(skip=3.0), SGDQN)
    grown = linear_state.grown(state, 2, 9, 100.0)
    np.testing.assert_array_equal(grown.weights[:1, :, :7], state.weights)
    np.testing.assert_array_equal(grown.info[:1], state.info)
    # New features and outputs are as at the start.
    assert (grown.weights[:, 0, 7:] == 0.0).all() and (grown.weights[:, 1, 7:] == 100.0).all()
    np.testing.assert_array_equal(grown.info[1:], linear_state.new_state(1, 1).info)
