import numpy as np

from streamsvm.support.draws import below, new_draws, uniform
from tests.reference.slow_tracking import SlowDraws


def test_draws_are_seeded_uniform_and_in_range():
    a, b = new_draws(7), new_draws(7)
    first = np.array([uniform(a) for _ in range(20_000)])
    assert first.min() >= 0.0 and first.max() < 1.0
    np.testing.assert_array_equal(first, [uniform(b) for _ in range(20_000)])
    counts = np.histogram(first, bins=10)[0]
    assert np.abs(counts - 2000).max() < 200
    assert uniform(new_draws(8)) != first[0]


def test_no_seed_is_another_each_time():
    assert new_draws(None)[0] != new_draws(None)[0]


def test_compiled_draws_are_those_of_the_slow_twin():
    draws = np.array([2**64 - 5], np.uint64)
    slow = SlowDraws(draws[0])
    for n in (*range(1, 500), 2**31):
        assert uniform(draws) == slow.uniform()
        assert below(draws, n) == slow.below(n)
        assert draws[0] == slow.word


def test_below_is_roughly_uniform_and_in_range():
    draws = new_draws(5)
    drawn = np.array([below(draws, 6) for _ in range(12_000)])
    assert drawn.min() == 0 and drawn.max() == 5
    # Six standard deviations of a count.
    assert np.abs(np.bincount(drawn) - 2000).max() < 6 * np.sqrt(2000 * 5 / 6)


def test_successive_draws_are_not_related():
    draws = new_draws(9)
    u = np.array([uniform(draws) for _ in range(20_000)])
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 6 / np.sqrt(20_000)
