"""LaRank against its slow twin, against the batch optimum, and its invariants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.golden.larank import theorem
from streamsvm import kernels
from streamsvm.solvers.bounds import Budget, bounds_of
from streamsvm.solvers.larank import finish as larank_finish
from streamsvm.solvers.larank import state as larank_state
from streamsvm.solvers.larank import step as larank
from streamsvm.solvers.larank.finish import larank_gap
from streamsvm.solvers.larank.state import coefficients
from streamsvm.solvers.larank.uniform import block_step, shift_onto
from streamsvm.support import states
from streamsvm.support.draws import new_draws
from streamsvm.support.kernel_rows.bound_kernels import bound
from tests.reference.slow_larank import SlowLaRank, batch_optimum, dual_of

RBF, CACHE = kernels.RBF(gamma=0.5), 10**6
ADAPTIVE = larank.Schedule(tau=1e-3, reprocess=-1.0, most=100.0, candidates=4.0)


def problem(seed, n, k, d=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    centres = rng.normal(size=(k, d))
    return (centres[y] + rng.normal(scale=0.7, size=(n, d))).astype(np.float32), y


def gram_of(x):
    x = x.astype(np.float64)
    return np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=2))


class Stream:
    """A state, fed and grown as a learner would."""

    def __init__(self, x, y, cost, schedule, seed=0):
        self.x, self.y, self.cost, self.schedule = x, y, cost, schedule
        self.state = states.new_state(
            larank_state.LaRankState, x.shape[1], CACHE, seed, classes=2, slots=64
        )
        self.scores = []

    @property
    def solver_kernel(self):
        return bound(RBF, self.state.store)

    def learn(self, start, stop):
        """Learn rows, in runs between new classes."""
        while start < stop:
            state, k = self.state, int(self.state.info[0].n_classes)
            end = start + 1
            known = max(k, int(self.y[start]) + 1)
            while end < stop and self.y[end] < known:
                end += 1
            if known > state.n_vectors.size:
                state = self.grow(state.cost.size, 2 * known)
            state.info[0].n_classes = known
            margins = np.zeros((end - start, known))
            rows = slice(start, end)
            n = end - start
            done = larank.learn_rows(
                state, self.solver_kernel, self.x[rows], self.y[rows].astype(float),
                self.cost[rows], np.ones(n), np.arange(start + 1, end + 1), np.ones(n, np.float32),
                self.schedule, margins,
            )  # fmt: skip
            self.scores += [row.copy() for row in margins[:done]]
            if done < n:
                self.grow(2 * state.cost.size, state.n_vectors.size)
            start += done
        return self

    def grow(self, capacity, n_classes):
        d = self.x.shape[1]
        self.state = states.grown(self.state, capacity, d, CACHE, n_classes)
        return self.state

    def beta(self):
        """Return beta by example."""
        found = np.zeros((len(self.y), int(self.y.max()) + 1))
        entered = self.state.store.entered
        for s, row in enumerate(coefficients(self.state)):
            if entered[s]:
                # The state has room for more classes than came, or fewer than are still to come.
                k = min(row.size, found.shape[1])
                found[entered[s] - 1, :k] = row[:k]
        return found

    def patterns(self):
        """Return the examples that are patterns, in the order in which they are drawn from."""
        alive = self.state.alive[: self.state.info[0].n_alive]
        return (self.state.store.entered[alive] - 1).tolist()


def check(stream):
    """Check everything that must hold after any row."""
    state, info = stream.state, stream.state.info[0]
    n, k = int(info.n), int(info.n_classes)
    beta, y = stream.beta(), stream.y
    np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-9)
    # Who took over from others has their boxes, too.
    cost, kept = stream.cost.copy(), np.flatnonzero(state.cost[:n] > 0.0)
    cost[state.store.entered[kept] - 1] = state.cost[kept]
    assert (beta <= np.eye(beta.shape[1])[y] * cost[:, None] + 1e-12).all()
    gram = gram_of(stream.x)
    assert dual_of(gram, y, beta) == pytest.approx(info.dual, rel=1e-5, abs=1e-5)
    entered = state.store.entered[:n]
    alive = np.flatnonzero(state.cost[:n] > 0.0)
    assert sorted(state.alive[: info.n_alive].tolist()) == alive.tolist()
    assert (entered[alive] > 0).all()
    np.testing.assert_array_equal(state.where[state.alive[: info.n_alive]], range(info.n_alive))
    for s in alive.tolist():
        i = entered[s] - 1
        fresh = (np.arange(k) == y[i]) - gram[i] @ beta[:, :k]
        # Kernel values are of single precision.
        rounding = 2e-5 + 3e-7 * np.abs(beta).sum()
        np.testing.assert_allclose(state.gradient[:k, s], fresh, rtol=0.0, atol=rounding)
        own = sorted(state.own[s, : state.n_own[s]].tolist())
        assert own == np.flatnonzero(beta[i]).tolist()
    assert (state.n_own[alive] == 0).sum() <= info.n_spares <= larank.SPARES
    assert state.n_vectors[:k].sum() == np.count_nonzero(beta)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 6),
    st.sampled_from([0.1, 1.0, 30.0]),
    st.sampled_from(
        [ADAPTIVE, ADAPTIVE._replace(reprocess=2.0), ADAPTIVE._replace(bounds=Budget(9.0))]
    ),
)
def test_invariants_hold_and_the_dual_never_falls(seed, k, C, schedule):
    x, y = problem(seed, 90, k)
    cost = np.random.default_rng(seed).uniform(0.5, 1.5, 90) * C
    stream, dual = Stream(x, y, cost, schedule, seed), 0.0
    for start in range(0, 90, 15):
        stream.learn(start, start + 15)
        check(stream)
        info = stream.state.info[0]
        # What removals took is not a step's doing.
        assert info.dual + info.lost >= dual - 1e-9
        dual = info.dual + info.lost


@pytest.mark.parametrize("points", [None, 3], ids=["", "equal rows"])
@pytest.mark.parametrize("bounds", [{}, {"window": 30}, {"window": 9}, {"limit": 12}], ids=str)
def test_process_new_and_bounds_do_what_the_slow_twin_does(bounds, points):
    x, y = problem(3, 120, 4)
    if points is not None:
        x = x[np.arange(120) % points]
        y = np.where(np.random.default_rng(3).random(120) < 0.8, 0, y)
    cost = np.random.default_rng(3).uniform(0.5, 3.0, 120)
    schedule = larank.Schedule(7e-4, 0.0, 0.0)
    schedule = schedule._replace(bounds=bounds_of(bounds.get("window"), bounds.get("limit")))
    stream = Stream(x, y, cost, schedule, seed=5)
    twin = SlowLaRank(gram_of(x), y, cost.copy(), new_draws(5)[0], tau=7e-4, **bounds)
    for i in range(120):
        scores = twin.learn(i)
        stream.learn(i, i + 1)
        info = stream.state.info[0]
        np.testing.assert_allclose(stream.scores[-1], scores, atol=1e-4)
        np.testing.assert_allclose(stream.beta(), twin.beta, atol=1e-4)
        assert info.dual == pytest.approx(twin.dual, rel=1e-4)
        twin.at(stream.beta(), stream.patterns(), stream.state.draws[0])


@pytest.mark.parametrize(
    ("operation", "candidates"), [("old", 1), ("optimize", 1), ("optimize", 3)]
)
def test_each_operation_is_that_of_the_slow_twin(operation, candidates):
    """But for equal gradients, as a step makes them: last bits say which of the two is meant."""
    x, y = problem(3, 120, 4)
    cost = np.random.default_rng(3).uniform(0.5, 3.0, 120)
    schedule = larank.Schedule(7e-4, 0.0, 0.0, candidates=float(candidates))
    stream = Stream(x, y, cost, schedule, seed=5)
    twin = SlowLaRank(gram_of(x), y, cost, 0, candidates, 7e-4)
    twin.n_classes = 4
    for i in range(0, 120, 20):
        state, moved = stream.learn(i, i + 20).state, 0
        for _ in range(50):
            before = stream.beta()
            twin.at(before.copy(), stream.patterns(), state.draws[0])
            if operation == "old":
                slot = larank._random_pattern(state)
                larank.process_old(state, stream.solver_kernel, slot, 7e-4, 3)
                tried = twin.process_old()
            else:
                larank.optimize(state, stream.solver_kernel, schedule, 3)
                tried = twin.optimize()
            assert twin.draws.word == state.draws[0]
            found = stream.beta()
            moved += (found != before).any()
            if not np.allclose(found, twin.beta, atol=1e-5):
                j, *wanted = tried
                assert (np.flatnonzero((found != before).any(axis=1)) == [j]).all()
                made = [np.argmax(found[j] - before[j]), np.argmin(found[j] - before[j])]
                twin.beta = before
                np.testing.assert_allclose(
                    twin.gradient(j)[made], twin.gradient(j)[wanted], atol=1e-5
                )
                twin.step(j, *made)
                np.testing.assert_allclose(found, twin.beta, atol=1e-5)
        assert moved > 10


def test_the_fixed_schedule_is_one_process_old_and_ten_optimize():
    x, y = problem(3, 120, 4)
    schedule = larank.Schedule(7e-4, 2.0, 0.0)
    info = Stream(x, y, np.full(120, 2.0), schedule, seed=5).learn(0, 120).state.info[0]
    assert (info.n_new, info.n_old, info.n_optimize) == (120, 240, 2400)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.1, 1.0, 10.0]))
def test_some_epochs_and_finishing_reach_the_batch_optimum(seed, k, C):
    x, y = problem(seed, 40, k)
    y[:k] = np.arange(k)
    cost = np.full(40, C)
    stream = Stream(x, y, cost, ADAPTIVE._replace(tau=1e-5), seed)
    # Examples that were no patterns in one epoch may be in the next.
    for _ in range(8):
        stream.learn(0, 40)
        kernel = stream.solver_kernel
        while larank_finish.finish_some(stream.state, kernel, stream.schedule, 3) > 1e-5:
            pass
        check(stream)
    best = batch_optimum(gram_of(x), y, cost, k)
    assert stream.state.info[0].dual == pytest.approx(dual_of(gram_of(x), y, best), rel=1e-4)
    gap = larank_gap(stream.state)
    assert gap.total <= 1e-3 * gap.cost


def test_the_gap_is_primal_minus_dual():
    x, y = problem(2, 80, 4)
    stream = Stream(x, y, np.full(80, 3.0), ADAPTIVE, 0).learn(0, 80)
    beta, gram = stream.beta(), gram_of(x)
    kept = np.flatnonzero(beta.any(axis=1))
    f = gram @ beta
    losses = [max(0.0, max(1.0 - f[i, y[i]] + np.delete(f[i], y[i]))) for i in kept.tolist()]
    primal = 0.5 * np.einsum("ic,ij,jc->", beta, gram, beta) + 3.0 * sum(losses)
    assert larank_gap(stream.state).total == pytest.approx(
        primal - dual_of(gram, y, beta), rel=1e-4
    )


# The mode with a certificate


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8), st.integers(0, 7), st.floats(0.01, 10.0))
def test_a_block_is_projected_onto_its_constraints(values, own, cost):
    v, own = np.array(values), own % len(values)
    theta = shift_onto(v, own, cost)
    bounds = np.where(np.arange(len(v)) == own, cost, 0.0)
    b = np.minimum(v - theta, bounds)
    assert b.sum() == pytest.approx(0.0, abs=1e-9)
    # No other point of the set is nearer: tried on points towards each corner.
    for c in range(len(v)):
        corner = np.zeros(len(v))
        corner[own], corner[c] = cost, corner[c] - cost
        for share in (1e-3, 0.1, 1.0):
            other = (1 - share) * b + share * (corner if c != own else np.zeros(len(v)))
            assert ((other - v) ** 2).sum() >= ((b - v) ** 2).sum() - 1e-9


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.3, 3.0]))
def test_block_steps_gain_what_frank_wolfe_steps_would(seed, k, C):
    """The lemma behind the certificate: Delta >= min(gap_i^2 / (2 C^2 rho2), gap_i / 2)."""
    x, y = problem(seed, 50, k)
    schedule = ADAPTIVE._replace(uniform=2.0, tau=1e-9)
    stream = Stream(x, y, np.full(50, C), schedule, seed).learn(0, 50)
    state = stream.state
    for i in range(int(state.info[0].n)):
        g, beta = state.gradient[:k, i], coefficients(state)[i, :k]
        h = g[state.y[i]] - g
        gap = C * max(0.0, h.max()) + (np.delete(beta, state.y[i]) * np.delete(h, state.y[i])).sum()
        before = state.info[0].dual
        gain = block_step(state, stream.solver_kernel, i, 1e-12, 3)
        assert gain >= min(gap**2 / (2 * C**2 * 2.0), gap / 2) - 1e-7
        assert state.info[0].dual - before == pytest.approx(gain, abs=1e-12)
    check_kept(stream)


def check_kept(stream):
    """All examples are kept; sums, bounds and the dual hold."""
    beta, gram = stream.beta(), gram_of(stream.x)
    assert stream.state.info[0].n_alive == len(stream.y)
    np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-9)
    assert dual_of(gram, stream.y, beta) == pytest.approx(
        stream.state.info[0].dual, rel=1e-5, abs=1e-5
    )


@pytest.mark.parametrize("K", [2, 10])
@pytest.mark.parametrize("C", [0.5, 5.0])
def test_the_mean_gap_is_below_the_certificate(K, C):
    """Over stream and seeds, of the gaps after each example."""
    x, y = problem(3, 200, 4)
    gap, bound = theorem(x, y.tolist(), K, C, 10)
    assert 0.0 < gap < bound
