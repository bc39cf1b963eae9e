"""The two loops over all gradients against NumPy, on states with dead slots and full boxes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.solvers.lasvm import state as lasvm_state
from streamsvm.solvers.lasvm.extremes import best_partner, update_gradient
from streamsvm.support import states


def random_state(seed, n, C=2.0, grid=None):
    """Return a state of n slots: free, at a bound, at zero and dead ones; `grid` makes ties."""
    rng = np.random.default_rng(seed)
    state = states.new_state(lasvm_state.LASVMState, 1, slots=max(32, n))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    cost = C * rng.uniform(0.1, 1.0, n)
    kind = rng.choice(["free", "full", "zero", "dead"], size=n, p=rng.dirichlet(np.ones(4)))
    cost[kind == "dead"] = 0.0
    state.y[:n] = y
    state.lower[:n], state.upper[:n] = np.minimum(0, cost * y), np.maximum(0, cost * y)
    share = np.select([kind == "free", kind == "full"], [rng.uniform(0.1, 0.9, n), 1.0], 0.0)
    state.alpha[:n] = share * cost * y
    g = rng.normal(size=n)
    state.gradient[:n] = np.round(g / grid) * grid if grid else g
    state.diagonal[:n] = rng.uniform(0.5, 2.0, n)
    state.info[0].n = n
    row = np.zeros(state.alpha.size, np.float32)
    row[:n] = rng.uniform(-0.5, 0.5, n)
    return state, row, rng


def check_extremes(state, n):
    g = state.gradient[:n]
    info = state.info[0]
    rising = state.alpha[:n] < state.upper[:n]
    falling = state.alpha[:n] > state.lower[:n]
    assert info.g_max == max(g[rising], default=-np.inf)
    assert info.g_min == min(g[falling], default=np.inf)
    assert (info.i == -1) == (not rising.any()) and (info.j == -1) == (not falling.any())
    if rising.any():
        assert 0 <= info.i < n and rising[info.i] and g[info.i] == info.g_max
    if falling.any():
        assert 0 <= info.j < n and falling[info.j] and g[info.j] == info.g_min


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 70),
    st.sampled_from([None, 0.5]),
    st.floats(-10.0, 10.0),
)
def test_update_gradient(seed, n, grid, step):
    state, row_i, rng = random_state(seed, n, grid=grid)
    row_j = rng.permutation(row_i)
    before = state.gradient[:n].copy()
    kept = [state.alpha.copy(), state.lower.copy(), state.upper.copy()]
    update_gradient(state, row_i, row_j, step, n)
    wanted = before - step * (row_i[:n].astype(float) - row_j[:n].astype(float))
    # One rounding less where multiply and add are fused.
    np.testing.assert_allclose(state.gradient[:n], wanted, rtol=1e-15, atol=1e-14)
    check_extremes(state, n)
    for old, now in zip(kept, (state.alpha, state.lower, state.upper), strict=True):
        np.testing.assert_array_equal(old, now)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 70), st.sampled_from([None, 0.5]))
def test_refresh_extremes_changes_no_gradient(seed, n, grid):
    state, _, _ = random_state(seed, n, grid=grid)
    before = state.gradient.copy()
    lasvm_state.refresh_extremes(state)
    np.testing.assert_array_equal(state.gradient, before)
    check_extremes(state, n)


@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 70),
    st.sampled_from([None, 0.5]),
    st.booleans(),
    st.floats(-2.0, 2.0),
)
def test_best_partner(seed, n, grid, rising, g_fixed):
    state, row, _ = random_state(seed, n, grid=grid)
    k_fixed = np.float32(1.0)
    found = best_partner(state, row, g_fixed, k_fixed, rising, n)
    g = state.gradient[:n]
    gap = (g_fixed - g if rising else g - g_fixed).astype(np.float32).astype(float)
    if rising:
        possible = state.alpha[:n] > state.lower[:n]
    else:
        possible = state.alpha[:n] < state.upper[:n]
    # Below 1e-20 the gain underflows in single precision: no pair worth a step.
    possible &= gap > 1e-20
    if not possible.any():
        assert found == -1
        return
    assert 0 <= found < n and possible[found]
    eta = np.maximum(1.0 + state.diagonal[:n].astype(float) - 2.0 * row[:n].astype(float), 1e-12)
    gain = np.where(possible, gap**2 / eta, 0.0)
    # eta is a difference of floats: its last bits are lost in single precision.
    assert gain[found] >= gain.max() * (1.0 - 1e-5)


def test_an_example_equal_to_the_fixed_one_gains_most():
    state, row, _ = random_state(1, 40)
    state.lower[:40], state.upper[:40], state.alpha[:40] = -1.0, 0.0, -1.0
    state.gradient[:40] = -1.0
    state.diagonal[:40], row[:40] = 1.0, 0.0
    row[23] = 1.0
    assert best_partner(state, row, 1.0, np.float32(1.0), True, 40) == -1
    state.lower[:40], state.upper[:40], state.alpha[:40] = 0.0, 1.0, 0.5
    assert best_partner(state, row, 1.0, np.float32(1.0), True, 40) == 23
