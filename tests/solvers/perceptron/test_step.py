"""The perceptron family against its slow twin, and its invariants."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.solvers.bounds import MERGE, UNBOUNDED, Budget
from streamsvm.solvers.one_event import margins_of
from streamsvm.solvers.perceptron import state as perceptron_state
from streamsvm.solvers.perceptron import step
from streamsvm.solvers.perceptron.budget import PROJECT, REMOVE
from streamsvm.solvers.perceptron.state import PerceptronState
from streamsvm.support.draws import new_draws
from tests.reference.row_stream import RowStream
from tests.reference.slow_perceptron import SlowPerceptron
from tests.slow import compiles, slow_but

GAMMA, N, LIMIT = 0.7, 160, 12
RULES = {
    "perceptron": step.PERCEPTRON,
    "PA": step.PA,
    "PA-I": step.PA_I,
    "PA-II": step.PA_II,
    "pegasos": step.PEGASOS,
}
POLICIES = {"remove": REMOVE, "project": PROJECT, "merge": MERGE}
CASES = [(rule, name) for rule in RULES for name in (None, *POLICIES)]


def problem(seed=0, n=N):
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 3)).astype(np.float32)
    x[draws.random((n, 3)) < 0.2] = 0.0
    y = np.where((x**2).sum(axis=1) + 0.8 * draws.normal(size=n) < 2.0, 1.0, -1.0)
    # Unequal, so that no two vectors are as good as each other.
    return x, y, draws.uniform(0.2, 1.0, n) * (draws.random(n) < 0.8)


def schedule_of(rule, name=None, averaged=True, limit=LIMIT):
    margin = 0.0 if rule == "perceptron" else 1.0
    bounds = UNBOUNDED if name is None else Budget(float(limit), POLICIES[name])
    l2 = 0.05 if rule == "pegasos" else 0.0
    return step.Schedule(RULES[rule], margin, l2, float(averaged), bounds)


class Stream(RowStream):
    step = step
    kind = PerceptronState

    def __init__(self, schedule, x, y, cost, is_sparse=False, cache_bytes=10**6):
        is_projected = schedule.bounds != UNBOUNDED and schedule.bounds.policy == PROJECT
        basis = int(schedule.bounds.limit) if is_projected else 0
        kernel = kernels.RBF(GAMMA)
        super().__init__(x, y, cost, kernel, schedule, is_sparse, cache_bytes, basis=basis)

    def check_what_depends_on_the_kernel(self, atol):
        """A budget that removes keeps f, one that projects the inverse of the Gram matrix."""
        state, gram = self.state, self.kernel_of(np.arange(self.n))
        if self.schedule.bounds == UNBOUNDED:
            return
        if self.schedule.bounds.policy == REMOVE:
            f = gram @ state.alpha[: self.n]
            np.testing.assert_allclose(state.f[: self.n], f, atol=1e-4)
        if self.schedule.bounds.policy == PROJECT:
            inverse = state.inverse[: self.n, : self.n]
            np.testing.assert_allclose(inverse @ gram, np.eye(self.n), atol=atol)

    @property
    def n(self):
        return int(self.info.n)


def slow(schedule, rule, name):
    limit = np.inf if name is None else LIMIT
    word = new_draws(5)[0]
    return SlowPerceptron(
        rule, GAMMA, schedule.margin, schedule.l2, schedule.averaged == step.MEAN, limit, name,
        word, schedule.averaged == step.VOTED,
    )  # fmt: skip


def learnt_by(twin, x, y, cost):
    """Let the slow twin learn rows; return their margins."""
    numbers = range(1, len(y) + 1)
    return np.array(
        [twin.learn(*row) for row in zip(x.astype(float), y, cost, numbers, strict=True)]
    )


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize(("rule", "name"), CASES)
def test_it_is_its_slow_twin(rule, name, averaged):
    x, y, cost = problem()
    schedule = schedule_of(rule, name, averaged)
    twin, fast = slow(schedule, rule, name), Stream(schedule, x, y, cost)
    expected = learnt_by(twin, x, y, cost)
    margins = fast.learn(0, N)
    assert twin.closest > 1e-5
    size = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(margins, expected, rtol=0, atol=3e-4 * size)
    rows, coefficients = twin.expansion()
    assert fast.n == len(rows) and fast.info.n_steps == twin.mistakes
    np.testing.assert_allclose(fast.rows_of_slots(fast.n), rows, rtol=0, atol=1e-3)
    out = np.zeros(20)
    margins_of(fast.state, fast.solver_kernel, schedule, x[:20], out)
    k = np.exp(-GAMMA * ((x[:20, None] - rows[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(out, k @ coefficients, rtol=0, atol=3e-4 * size)


@pytest.mark.parametrize("rule", slow_but(["perceptron", "PA-I", "pegasos"], "PA-I"))
def test_where_vectors_are_merged_older_models_fade_as_in_the_twin(rule):
    n = 900
    x, y, cost = problem(7, n)
    schedule = schedule_of(rule, "merge", limit=60)
    twin, fast = slow(schedule, rule, "merge"), Stream(schedule, x, y, cost)
    twin.limit = 60
    expected = learnt_by(twin, x, y, cost)
    margins = fast.learn(0, n)
    # Merging magnifies rounding: the first models that count half are compared.
    same = np.isclose(margins, expected, rtol=0.0, atol=3e-3 * np.abs(expected).max())
    assert same[:600].all() and fast.info.n_faded > 200
    assert fast.info.n_seen - fast.info.n_faded <= 400 + 1


def test_votes_are_those_of_all_models():
    """An example that comes again counts as a new one; any batches give the same votes."""
    x, y, cost = problem(4)
    schedule = schedule_of("perceptron", averaged=step.VOTED)
    twin, fast = slow(schedule, "perceptron", None), Stream(schedule, x, y, cost)
    parts = Stream(schedule, x, y, cost)
    for _ in range(2):
        expected = learnt_by(twin, x, y, cost)
        margins = fast.learn(0, N)
        np.testing.assert_allclose(margins, expected, rtol=0, atol=1e-9)
        found = np.concatenate([parts.learn(*edge) for edge in pairwise((0, 1, 30, 31, 100, N))])
        assert margins.tobytes() == found.tobytes()
    assert twin.closest > 1e-5
    assert fast.n == len(twin.rows) == twin.mistakes > len(set(twin.entered))
    out, fresh = np.zeros(N), problem(5)[0]
    margins_of(fast.state, fast.solver_kernel, schedule, fresh, out)
    votes = [twin.vote(twin.row(row)) for row in fresh.astype(float)]
    np.testing.assert_allclose(out, votes, rtol=0, atol=1e-9)
    assert len(np.unique(out)) > 20 and np.abs(out).max() <= 1.0


@pytest.mark.parametrize(("rule", "name"), [("PA-I", None), ("pegasos", "merge")])
def test_a_second_epoch_adds_to_what_is_there(rule, name):
    x, y, cost = problem(1)
    schedule = schedule_of(rule, name)
    twin, fast = slow(schedule, rule, name), Stream(schedule, x, y, cost)
    for _ in range(2):
        learnt_by(twin, x[:60], y[:60], cost[:60])
        fast.learn(0, 60)
    assert fast.n == len(twin.rows)
    scale = step.scale_of(schedule, fast.info.n_seen)
    np.testing.assert_allclose(scale * fast.state.alpha[: fast.n], twin.a, atol=1e-3)


@settings(max_examples=20)
@given(
    case=st.sampled_from(CASES),
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, N), max_size=4),
    limit=st.integers(2, 40),
)
def test_invariants_and_any_batches(case, seed, cuts, limit):
    x, y, cost = problem(seed)
    schedule = schedule_of(*case, limit=limit)
    once, parts = Stream(schedule, x, y, cost), Stream(schedule, x, y, cost, cache_bytes=0)
    margins = once.learn(0, N)
    edges = [0, *sorted(cuts), N]
    found = [parts.learn(*edge) for edge in pairwise(edges)]
    assert margins.tobytes() == np.concatenate(found).tobytes()
    for name in ("alpha", "late"):
        found, other = (getattr(one.state, name)[: once.n] for one in (once, parts))
        assert found.tobytes() == other.tobytes()
    info = once.state.info[0]
    assert info.n_seen == np.count_nonzero(cost) == info.n_steps + info.n_null
    assert once.n <= (limit if case[1] else N)
    once.check_what_depends_on_the_kernel(2e-2)
    numbers = once.state.store.entered[: once.n]
    assert len(set(numbers.tolist())) == once.n and (np.abs(numbers) <= N).all()


@compiles("kernel perceptrons sparse")
@pytest.mark.parametrize("name", [None, "merge"])
def test_sparse_rows_are_as_dense_ones(name):
    x, y, cost = problem(2)
    schedule = schedule_of("PA-I", name)
    dense, thin = Stream(schedule, x, y, cost), Stream(schedule, x, y, cost, is_sparse=True)
    np.testing.assert_allclose(dense.learn(0, N), thin.learn(0, N), rtol=0, atol=2e-4)
    np.testing.assert_allclose(dense.rows_of_slots(dense.n), thin.rows_of_slots(thin.n), atol=1e-5)


@pytest.mark.parametrize("name", ["remove", "project"])
def test_a_change_of_the_kernel_recomputes_what_depends_on_it(name):
    stream = Stream(schedule_of("perceptron", name), *problem(3))
    stream.learn(0, N)
    stream.kernel = kernels.RBF(2.0 * GAMMA)
    perceptron_state.rebuild(stream.state, stream.solver_kernel, 3)
    stream.check_what_depends_on_the_kernel(1e-3)
