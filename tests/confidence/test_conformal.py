"""The threshold with a bound on misses: on any stream, also of an adversary; and a slow twin."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.confidence.conformal import RECENT, TOO_FEW, TOO_MANY, Threshold
from tests.reference.slow_conformal import threshold


def within(n_missed, n, rate):
    return rate * n - TOO_FEW < n_missed < rate * n + TOO_MANY


def follow(moves, rate, wanted):
    """Let an adversary choose the next scores; check the bound after each event."""
    one, missed = Threshold(rate), 0
    for n, (move, score) in enumerate(moves, 1):
        # Where it can, it misses or hits as it likes, by as little as possible.
        if wanted(move) and math.isfinite(one.value):
            score = math.nextafter(one.value, math.inf)
        elif wanted(move) is False and math.isfinite(one.value):
            score = one.value
        is_missed = score > one.value
        one.learn(score, is_missed)
        missed += is_missed
        assert within(missed, n, rate), (n, missed)


@settings(deadline=None, max_examples=60)
@given(
    moves=st.lists(
        st.tuples(st.sampled_from("mhs"), st.floats(-1e6, 1e6)), min_size=1, max_size=300
    ),
    repeats=st.integers(1, 5),
    rate=st.sampled_from([0.01, 0.05, 0.1, 0.2, 1 / 3, 0.5, 0.9]),
)
def test_misses_are_within_the_bound_at_all_moments_on_any_stream(moves, repeats, rate):
    follow(moves * repeats, rate, {"m": True, "h": False, "s": None}.get)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("kind", ["always", "never", "blocks", "rising", "falling", "units"])
def test_long_runs_of_one_kind(rate, kind):
    draw = np.random.default_rng(1).random(6000).tolist()
    moves = {
        "always": [("m", 0.0)] * 6000,
        "never": [("h", 0.0)] * 6000,
        "blocks": [("mh"[i // 700 % 2], 0.5) for i in range(6000)],
        "rising": [("s", i + one) for i, one in enumerate(draw)],
        "falling": [("s", one - i) for i, one in enumerate(draw)],
        "units": [("s", one * (1e9 if i > 3000 else 1.0)) for i, one in enumerate(draw)],
    }
    follow(moves[kind], rate, {"m": True, "h": False, "s": None}.get)


def test_the_twin_has_the_same_thresholds():
    draw = np.random.default_rng(2)
    scores, missed, one = [], [], Threshold(0.1)
    for i in range(RECENT + 200):
        assert one.value == threshold(np.array(scores), missed, 0.1)
        scores.append(float(np.round(draw.random(), 2)) + (i > 300))
        missed.append(scores[-1] > one.value)
        one.learn(scores[-1], missed[-1])


@settings(deadline=None, max_examples=40)
@given(
    moves=st.lists(st.sampled_from("mhw"), min_size=1, max_size=200),
    repeats=st.integers(1, 6),
    delay=st.sampled_from([1, 4, 20, 100]),
    rate=st.sampled_from([0.05, 0.1, 1 / 3]),
)
def test_late_labels_widen_the_bound_by_what_is_said(moves, repeats, delay, rate):
    one, missed, held = Threshold(rate), 0, []
    one.damp(1.1 * delay)
    for n, move in enumerate(moves * repeats, 1):
        is_missed = move != "h" and one.value < math.inf
        if one.value == -math.inf:
            is_missed = True
        held.append(is_missed)
        if n > delay:
            is_missed = held[n - delay - 1]
            missed += is_missed
            one.learn(float(n) if move == "w" else 0.5, is_missed)
            said = rate * (n - delay) + one.too_many
            assert missed <= said + 1e-9
            assert said < rate * (n - delay) + TOO_MANY + delay * (1 + 4 * rate)
