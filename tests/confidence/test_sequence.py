"""Confidence sequences: how often they are wrong, how wide they are, and an independent twin."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.confidence import sequence
from streamsvm.errors import ParameterError

BLOCK = 200


def ever_refuted(hits, means, error):
    """Tell of each stream whether its running mean was ever outside, looking after each value."""
    n_streams, n = hits.shape
    refuted = np.zeros(n_streams, bool)
    limit = math.log(2.0 / error)
    seen, due = np.cumsum(hits, axis=1), np.cumsum(means, axis=1)
    for start in range(0, n, BLOCK):
        part = slice(start, start + BLOCK)
        total = np.broadcast_to(np.arange(1, n + 1)[part], seen[:, part].shape)
        mean, ones = due[:, part] / total, seen[:, part]
        counts = np.stack([ones, total - ones], axis=-1)
        for values, about in (([1.0, 0.0], mean), ([0.0, 1.0], 1.0 - mean)):
            capital = sequence.log_capital(sequence.log_gains(counts, values), total, about)
            refuted |= (capital >= limit).any(axis=1)
    return refuted


def test_few_streams_are_ever_outside_even_if_the_mean_changes():
    draw = np.random.default_rng(1)
    n_streams, n = 400, 1000
    steady = np.repeat(draw.uniform(0.5, 0.98, n_streams)[:, None], n, axis=1)
    # A mean that depends on the past: as a model that gets worse after each error.
    hits = draw.random((n_streams, n)) < steady
    share = ever_refuted(hits, steady, 0.05).mean()
    assert 0.002 <= share <= 0.05
    waves = 0.7 + 0.25 * np.sin(np.arange(n) / 50.0 + draw.uniform(0, 6, n_streams)[:, None])
    hits = draw.random((n_streams, n)) < waves
    assert ever_refuted(hits, waves, 0.05).mean() <= 0.05


def test_an_interval_holds_what_its_capital_does_not_refute():
    low, high = sequence.share_interval(940, 1000)
    for end, values, about in ((low, [1.0, 0.0], low), (high, [0.0, 1.0], 1.0 - high)):
        gains = sequence.log_gains([940, 60], values)
        assert sequence.log_capital(gains, 1000, about) == pytest.approx(math.log(40), abs=1e-6)
        assert 0.90 < end < 0.97


@settings(deadline=None, max_examples=50)
@given(values=st.lists(st.booleans(), min_size=1, max_size=60), mean=st.floats(0.01, 0.99))
def test_the_capital_is_that_of_betting_one_value_after_the_other(values, mean):
    capital = np.exp(sequence.LOG_SHARES)
    for value in values:
        capital *= (1.0 + sequence.BETS * value) / (1.0 + sequence.BETS * mean)
    n, ones = len(values), sum(values)
    gains = sequence.log_gains([ones, n - ones], [1.0, 0.0])
    assert sequence.log_capital(gains, n, mean) == pytest.approx(math.log(capital.sum()), abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(n=st.integers(1, 10**9), share=st.floats(0.0, 1.0), level=st.floats(0.01, 0.999))
def test_intervals_are_within_bounds_hold_the_share_and_grow_with_the_level(n, share, level):
    hits = round(share * n)
    low, high = sequence.share_interval(hits, n, level)
    assert 0.0 <= low <= hits / n <= high <= 1.0
    wider = sequence.share_interval(hits, n, 0.5 + 0.5 * level)
    assert wider[0] <= low and high <= wider[1]
    mirrored = sequence.share_interval(n - hits, n, level)
    assert mirrored == pytest.approx((1.0 - high, 1.0 - low), abs=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9, 0.95])
@pytest.mark.parametrize("n", [1000, 10000, 100000])
def test_they_are_at_most_so_much_wider_than_an_interval_of_one_moment(share, n):
    low, high = sequence.share_interval(share * n, n)
    assert high - low <= 1.70 * 2 * 1.96 * math.sqrt(share * (1 - share) / n)


def test_arrays_are_as_numbers():
    hits, n = np.array([[0, 3], [50, 9]]), np.array([[0, 4], [50, 100]])
    low, high = sequence.share_interval(hits, n)
    for at in np.ndindex(2, 2):
        alone = sequence.share_interval(int(hits[at]), int(n[at]))
        assert (low[at], high[at]) == pytest.approx(alone, abs=1e-9)
    assert (low[0, 0], high[0, 0]) == (0.0, 1.0)


def test_differences_of_pairs():
    low, high = sequence.difference_interval(60, 20, 1000)
    assert 0.0 < low < 0.04 < high < 0.1
    assert sequence.difference_interval(20, 60, 1000) == pytest.approx((-high, -low))
    assert sequence.difference_interval(0, 0, 0) == (-1.0, 1.0)
    assert sequence.log_evidence(60, 20, 1000) > math.log(40)
    assert sequence.log_evidence(20, 60, 1000) < 0.0
    assert sequence.log_evidence(0, 0, 1000) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, math.nan])
def test_levels_out_of_range_are_refused(level):
    with pytest.raises(ParameterError, match="level"):
        sequence.share_interval(1, 2, level)


@pytest.mark.parametrize(("n_hits", "n"), [(11, 10), (-1, 10), (math.nan, 10), (5, math.inf)])
def test_counts_that_cannot_be_are_refused(n_hits, n):
    with pytest.raises(ParameterError, match="at most n hits"):
        sequence.share_interval(n_hits, n)
