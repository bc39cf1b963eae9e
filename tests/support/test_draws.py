import numpy as np
import pytest

from streamsvm.support.draws import below, new_draws, uniform


def test_draws_are_seeded_uniform_and_in_range():
    a, b = new_draws(7), new_draws(7)
    first = np.array([uniform(a) for _ in range(20_000)])
    assert first.min() >= 0.0 and first.max() < 1.0
    np.testing.assert_array_equal(first, [uniform(b) for _ in range(20_000)])
    counts = np.histogram(first, bins=10)[0]
    assert np.abs(counts - 2000).max() < 200
    assert uniform(new_draws(8)) != first[0]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_below_reaches_every_number(n):
    draws = new_draws(0)
    assert {int(below(draws, n)) for _ in range(200)} == set(range(n))


def test_no_seed_is_another_each_time():
    assert new_draws(None)[0] != new_draws(None)[0]
