"""The water levels against sorting, and against a linear programme."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from streamsvm.solvers.sbp.water import bias_of, find_levels, level_of
from tests.reference.slow_sbp import slow_levels


def problem(seed, n, decimals, most):
    """Return responses, with ties where they are rounded, classes (of both some) and copies."""
    draws = np.random.default_rng(seed)
    y = np.where(draws.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.round(draws.normal(size=n), decimals), y, draws.integers(1, most + 1, n)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    decimals=st.sampled_from([1, 9]),
    most=st.sampled_from([1, 3]),
    nu=st.sampled_from([0.0, 1e-3, 0.1, 3.0]),
    bias=st.booleans(),
    shift=st.sampled_from([0.0, 1e-9, 0.1, 5.0]),
)
def test_levels_are_those_by_sorting_from_any_earlier_ones(
    seed, n, decimals, most, nu, bias, shift
):
    c, y, copies = problem(seed, n, decimals, most)
    volume = nu * copies.sum()
    expected = slow_levels(c, y, copies, volume, bias)
    levels = np.zeros(3)
    find_levels(c, copies.astype(float), y, bias, volume, levels, np.int64(n))
    np.testing.assert_allclose(levels[:2], expected, rtol=0, atol=1e-9)
    # From a band that is too narrow, or at another place.
    for band in (1e-6, 0.01, 1.0):
        levels[:] = expected[0] + shift, expected[1] - shift, band
        find_levels(c, copies.astype(float), y, bias, volume, levels, np.int64(n))
        np.testing.assert_allclose(levels[:2], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("nu", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_level_is_the_optimum_of_the_linear_programme(seed, bias, nu):
    n = 30
    c, y, copies = problem(seed, n, 9, 3)
    s, levels = copies.astype(float), np.zeros(3)
    find_levels(c, s, y, bias, nu * s.sum(), levels, np.int64(n))
    # Variables: the level g, b, and xi_i: maximise g with g <= c_i + y_i b + xi_i.
    above = np.column_stack([np.ones(n), -y * bias, -np.eye(n)])
    best = linprog(
        np.r_[-1.0, np.zeros(n + 1)],
        A_ub=np.vstack([above, np.r_[0.0, 0.0, s]]),
        b_ub=np.r_[c, nu * s.sum()],
        bounds=[(None, None)] * 2 + [(0.0, None)] * n,
    )
    g, b = level_of(levels), bias_of(levels)
    assert g == pytest.approx(-best.fun, abs=1e-7)
    assert np.maximum(0.0, g - c - y * b) @ s <= nu * s.sum() + 1e-9
