"""When to answer: the bound on any stream, and evidence that is what the intervals say."""

import math
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.confidence import selective
from streamsvm.confidence.selective import DOUBTS, SLACK
from streamsvm.confidence.sequence import log_gains, lower_end
from streamsvm.selection.answering import Answering, answers_in_words

HOW = ("right", "wrong", "wrong if answered", "each third wrong", "each third wrong if answered")
PIECES = st.lists(
    st.tuples(st.integers(1, 500), st.sampled_from([0.6, 0.93, 0.9999]), st.sampled_from(HOW)),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(
    PIECES,
    st.sampled_from([0.05, 0.2, 0.5]),
    st.sampled_from([1, 1, 7]),
    st.sampled_from([0.0, 0.0, 0.5]),
)
def test_errors_stay_below_their_bound_on_any_stream(pieces, error, waiting, audit):
    answering = Answering(error, audit=audit, seed=1)
    guard, held, n = answering.guard, deque(), 0
    # Good enough to be answered at first, so that there is something to spoil.
    for length, confidence, how in [(int(12 / error) + 30, 0.9999, "right"), *pieces]:
        for i in range(length):
            answer = answering.next({True: confidence, False: 1.0 - confidence})
            is_wrong = how == "wrong" or (i % 3 == 0 and how == "each third wrong")
            if how.endswith("if answered"):
                # The worst that may happen: the adversary sees the answer, if it is none to check.
                would = answer.is_sure and not answer.is_held
                is_wrong = would and (i % 3 == 0 or "third" not in how)
            held.append((not is_wrong, answer))
            if len(held) < waiting:
                continue
            answering.learn(*held.popleft())
            n += 1
            assert guard.n_wrong <= guard.most_wrong + 1e-6
            assert guard.n_late < waiting
            assert guard.n_openings <= math.log2(1.0 + error * n) + 1e-9
    at_once = error * guard.n + SLACK * (1 + guard.n_openings)
    assert guard.most_wrong == at_once + (1.0 - error) * guard.n_late
    again = Answering.from_json(answering.as_json())
    assert again.as_json() == answering.as_json()


def test_the_bound_is_met_and_the_guard_opens_again():
    """Who makes each answer wrong gets as many errors as are allowed, and no more."""
    answering = Answering(0.1)
    guard = answering.guard
    for i in range(20_000):
        answer = answering.next({True: 1.0, False: 0.0})
        answering.learn(answer.label is None or i < 200, answer)
    assert guard.n_openings >= 3
    assert guard.n_wrong > guard.most_wrong - 2


@pytest.mark.parametrize(("error", "level"), [(0.02, 0.95), (0.1, 0.5)])
def test_limits_are_those_of_the_intervals(error, level):
    least, most = selective._limits(error, level)
    share = (1.0 - level) / (len(DOUBTS) * 3)

    def low(hits, n, share):
        return float(lower_end(log_gains([hits], [1.0]), n, hits / n, share))

    for wrong in (0, 1, 7, 100):
        n = int(least[wrong])
        assert 1.0 - low(n - wrong, n, share) <= error + 1e-9
        assert 1.0 - low(n - 1 - wrong, n - 1, share) > error - 1e-9
    for wrong in (7, 100):
        n = int(most[wrong])
        assert low(wrong, n, 0.05) >= error - 1e-9
        assert low(wrong, n + 1, 0.05) < error + 1e-9
    assert np.all(np.diff(least) >= 0)
    assert np.all(np.diff(most) >= 0)


def test_answers_begin_where_the_model_is_good_enough_and_the_report_says_why_they_do_not():
    draw, answering = np.random.default_rng(1), Answering(0.05)
    for i, is_wrong in enumerate(draw.random(6000) < 0.03):
        answering.learn(not is_wrong, answering.next({True: 0.999}))
        if i == 199:
            said = answers_in_words(answering.figures())
    assert answering.n_answered > 2000
    assert answering.guard.n_wrong <= 0.05 * answering.guard.n
    assert answering.figures()["unanswered_error"] == pytest.approx(0.03, abs=0.005)
    assert "some 260 labelled events" in said
    assert "would have been right of late: a larger error" in said
