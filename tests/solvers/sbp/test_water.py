"""The water levels against sorting."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamsvm.solvers.sbp.water import find_levels
from tests.reference.slow_sbp import slow_water


def problem(seed, n, decimals, most):
    """Return responses, with ties where they are rounded, classes (of both some) and copies."""
    draws = np.random.default_rng(seed)
    y = np.where(draws.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.round(draws.normal(size=n), decimals), y, draws.integers(1, most + 1, n)


@settings(max_examples=60)
@example(seed=149, n=14, decimals=1, most=3, nu=0.1, bias=True, shift=0.0)
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
    s = copies.astype(float)
    expected, expected_tops = slow_water(c, y, copies, volume, bias)
    by_sorting = shares(c, s, y, expected_tops)
    # Where the water just reaches a row, its share is not determined.
    beyond = [slow_water(c, y, copies, volume * f, bias)[1] for f in (1 - 1e-9, 1 + 1e-9)]
    is_unique = all(np.allclose(shares(c, s, y, tops), by_sorting) for tops in beyond)
    # From the first levels, from a band that is too narrow, or at another place.
    starts = [(expected[0] + shift, expected[1] - shift, band) for band in (1e-6, 0.01, 1.0)]
    for start in [(0.0, 0.0, 0.0), *starts]:
        levels, tops = np.array(start), np.zeros((2, 2))
        find_levels(c, s, y, bias, volume, levels, tops, np.int64(n))
        np.testing.assert_allclose(levels[:2], expected, rtol=0, atol=1e-9)
        covered = covered_weights(c, s, y, tops)
        if bias:
            # Water covers the same width in both classes.
            assert covered[y > 0].sum() == pytest.approx(covered[y < 0].sum(), rel=1e-9)
        if is_unique:
            np.testing.assert_allclose(shares(c, s, y, tops), by_sorting, rtol=0, atol=1e-9)


def covered_weights(c, s, y, tops):
    """Return the covered weight of each row, given the tops of both classes."""
    top, part = tops[np.where(y > 0, 0, 1)].T
    return s * np.where(c < top, 1.0, np.where(c == top, part, 0.0))


def shares(c, s, y, tops):
    """Return the covered weight of each row as a share of all."""
    covered = covered_weights(c, s, y, np.array(tops))
    return covered / covered.sum()


@pytest.mark.parametrize("weight", [1 / 3, 1e3, 1e18])
def test_without_slack_the_lowest_of_each_class_are_covered_evenly(weight):
    n = 40
    c, y, _ = problem(0, n, 9, 1)
    s, tops = np.where(y > 0, 0.7, weight), np.zeros((2, 2))
    lowest = [np.flatnonzero(y == sign)[c[y == sign].argmin()] for sign in (1.0, -1.0)]
    find_levels(c, s, y, True, 0.0, np.zeros(3), tops, np.int64(n))
    covered = covered_weights(c, s, y, tops)
    assert np.flatnonzero(covered).tolist() == sorted(lowest)
    assert covered[lowest[0]] == pytest.approx(covered[lowest[1]])


@pytest.mark.parametrize("seed", range(20))
def test_without_slack_and_bias_the_lowest_is_covered_whatever_is_rounded(seed):
    n = 30
    c, y, _ = problem(seed, n, 16, 1)
    s = np.random.default_rng(seed).uniform(0.1, 10.0, n)
    levels, tops = np.array([seed - 10.0, 0.0, 0.0]), np.zeros((2, 2))
    find_levels(c, s, y, False, 0.0, levels, tops, np.int64(n))
    assert levels[0] == pytest.approx(c.min(), abs=1e-12)
    assert np.flatnonzero(c <= tops[0, 0]).tolist() == [c.argmin()]
