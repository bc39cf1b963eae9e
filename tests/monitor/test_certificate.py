"""The certificate: its lemma on random problems, its form, and that the measured gap obeys it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.errors import ParameterError
from streamsvm.monitor.certificate import Looks, papers_bound, steps_for
from streamsvm.solvers.tracking.state import INFO
from streamsvm.solvers.tracking.step import exact_step
from tests.kernels.test_values import expected
from tests.reference.tracking_stream import PLAIN, TrackingStream, problem, unequal

RBF = kernels.RBF(gamma=0.5)
ALL = (kernels.Linear(scale=3.0), kernels.Polynomial(degree=2, gamma=0.5), RBF)


def a_record(**values):
    info = np.zeros(1, INFO).view(np.recarray)
    for name, value in values.items():
        info[name] = value
    return info[0]


def mu(x, r2, C):
    """Return the mean gap that a mean dual increase of x allows (Lemma 1)."""
    return math.sqrt(2.0 * r2 * x) + x / C


@pytest.mark.parametrize(
    ("epsilon", "C", "r2", "K"),
    [
        (0.1, 1.0, 1.0, 800),
        (0.1, 0.5, 4.0, 1600),
        (1.0, 3.0, 1.0, 24),
        # Beyond 4 C R2 the other term rules: ceil(max(32, 20)) and ceil(max(.32, 2)).
        (0.1, 0.04, 1.0, 32),
        (0.1, 0.01, 1.0, 20),
        (5.0, 1.0, 1.0, 1),
    ],
)
def test_steps_for(epsilon, C, r2, K):
    assert steps_for(epsilon, C, r2) == K


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 10.0), st.floats(1e-3, 100.0), st.floats(0.1, 20.0))
def test_so_many_steps_are_enough_in_the_worst_case(epsilon, C, r2):
    # Each example adds at most C to the dual.
    K = steps_for(epsilon, C, r2)
    assert isinstance(K, int) and mu(C / K, r2, C) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_an_accuracy_that_is_none_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        steps_for(epsilon, 1.0, 1.0)


def test_there_is_no_bound_before_the_first_example():
    assert papers_bound(a_record()) is None
    assert Looks().mean is None and Looks().bound() is None


def test_rounding_below_zero_is_zero():
    info = a_record(n_seen=3, mean_gain=-1e-17, scaled_gain=0.0, width=3.0)
    assert papers_bound(info) == 0.0


@pytest.mark.parametrize("C", [0.3, 4.0])
@pytest.mark.parametrize("window", [0, 30])
def test_with_equal_boxes_it_is_mu(C, window):
    x, y = problem(0, 100, 3)
    stream = TrackingStream(x, y, C, RBF, window=window).all()
    info = stream.info
    gain = info.dual - info.process_gain + info.lost
    bound = mu(gain / (5 * 100), 1.0, C)
    assert papers_bound(info) == pytest.approx(bound, rel=1e-9)
    # Of block steps the second term is twice as large.
    blocks = bound + gain / (5 * 100) / C
    assert papers_bound(info, blocks=True) == pytest.approx(blocks, rel=1e-9)


def test_with_unequal_boxes_there_is_no_papers_bound():
    x, y = problem(0, 100, 3)
    assert papers_bound(TrackingStream(x, y, unequal(0, 100), RBF).all().info) is None


def test_steps_that_were_left_out_count_as_made():
    x, y = problem(1, 100, 3)
    info = TrackingStream(x, y, 2.0, RBF, PLAIN._replace(tau=0.2)).all().info
    assert info.skipped > 0.0
    gain = info.dual - info.process_gain + info.skipped
    assert papers_bound(info) == pytest.approx(mu(gain / 500, 1.0, 2.0), rel=1e-9)


def lemma(gram, y, cost, a):
    """Return gap / sum C and its bound, at any a within the boxes, from their definitions."""
    f = gram @ (y * a)
    g = 1.0 - y * f
    norm = (y * a) @ f
    gap = 0.5 * norm + cost @ np.maximum(g, 0.0) - (a.sum() - 0.5 * norm)
    rise = []
    for i in range(len(y)):
        step = exact_step(a[i], g[i], cost[i], gram[i, i])
        rise.append(step * (g[i] - 0.5 * step * gram[i, i]))
    width = gram.diagonal().max() * np.mean(cost**2) / cost.mean() ** 2
    rise = np.mean(rise)
    return gap / cost.sum(), math.sqrt(2.0 * width * rise) + rise / cost.mean()


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(1, 30),
    st.integers(1, 4),
    st.sampled_from(ALL),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    st.sampled_from([0.0, 0.5, 3.0]),
)
def test_the_lemma_holds_anywhere(seed, n, d, kernel, C, spread):
    x, y = problem(seed, n, d)
    rng = np.random.default_rng(seed)
    cost = C * np.exp(spread * rng.normal(size=n))
    gram = expected(kernel, x, x) + 1e-12 * np.eye(n)
    for a in (np.zeros(n), cost, cost * rng.uniform(size=n), cost * (rng.uniform(size=n) < 0.3)):
        gap, bound = lemma(gram, y, cost, a)
        assert -1e-9 * (1.0 + bound) <= gap <= bound * (1 + 1e-9) + 1e-12
