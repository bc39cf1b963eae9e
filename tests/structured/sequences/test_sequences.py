"""LaRank for sequences against its slow twins and an independent optimum, and its invariants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from streamsvm.structured.sequences.inference import Exact, Greedy
from streamsvm.structured.sequences.model import PASSIVE_AGGRESSIVE, PERCEPTRON
from streamsvm.support.draws import new_draws
from tests.reference.slow_sequences import SlowExact, SlowGreedy
from tests.structured.sequences.problems import Stream, sentences

COST = np.array([1.0, 2.5, 0.5])


def twin_of(solver, order, C, n_r, n_o, cost=None):
    slow = SlowGreedy if solver is Greedy else SlowExact
    return slow(3, order, C, n_r, n_o, new_draws(1), cost)


# Two labels may be violated equally, and then rounding decides: labels that no token had yet, or
# those of a step that stopped within the bounds. So reprocessing begins when all labels were seen,
# and C is small.
@pytest.mark.parametrize(("C", "n_r"), [(0.001, 2), (0.5, 0)])
@pytest.mark.parametrize("cost", [None, COST], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    ("solver", "order"), [(Greedy, 0), (Greedy, 1), (Greedy, 3), (Exact, 0), (Exact, 1)]
)
def test_the_same_steps_as_the_twin(solver, order, cost, C, n_r):
    pairs = sentences(order + 1, n=16)
    assert {c for _, y in pairs[:6] for c in y} == {0, 1, 2}
    more = {} if cost is None else {"cost": cost}
    stream = Stream(solver, order, C=C, n_r=n_r, n_o=3, **more)
    twin = twin_of(solver, order, C, n_r, 3, cost)
    for i, (x, y) in enumerate(pairs):
        twin.reprocess = n_r if i >= 6 else 0
        stream.change(n_reprocess=twin.reprocess)
        stream.learn([(x, y)])
        twin.learn(x.astype(float), y)
        assert stream.dual() == pytest.approx(twin.dual(), rel=1e-5, abs=1e-6), i
    expected = {
        i + 1: (dict(enumerate(beta)) if solver is Greedy else beta)
        for i, beta in enumerate(twin.beta)
    }
    found = stream.betas()
    assert found.keys() == {i for i, beta in expected.items() if any(beta.values())}
    for i, beta in found.items():
        wanted = {c: b for c, b in expected[i].items() if b != 0.0}
        assert beta == pytest.approx(wanted, rel=1e-3, abs=1e-5)
    assert min(twin.steps) >= -1e-9
    fresh = sentences(99)
    assert stream.predict(fresh) == [c for x, _ in fresh for c in twin.predict(x)]


def optimum(solver, order, pairs, C):
    """Return the optimum of the dual by SciPy: variables a = -beta of all wrong labels."""
    twin = twin_of(solver, order, C, 0, 0)
    rows, losses, owner = [], [], []
    n = 0
    for x, y in pairs:
        if solver is Greedy:
            for t in range(len(y)):
                past = [y[t - 1 - s] + 1 if t - 1 - s >= 0 else 0 for s in range(order)]
                for c in set(range(3)) - {y[t]}:
                    rows.append(twin.phi(x[t], past, y[t]) - twin.phi(x[t], past, c))
                    losses.append(1.0)
                    owner.append(n)
                n += 1
        else:
            for labels in twin.all_labels(len(y)):
                if labels != tuple(y):
                    rows.append(twin.phi(x, y) - twin.phi(x, labels))
                    losses.append(twin.loss(y, labels))
                    owner.append(n)
            n += 1
    gram, losses = np.array(rows) @ np.array(rows).T, np.array(losses)
    sums = np.equal.outer(np.arange(n), owner).astype(float)
    found = minimize(
        lambda a: 0.5 * a @ gram @ a - losses @ a,
        np.zeros(len(losses)),
        jac=lambda a: gram @ a - losses,
        bounds=[(0.0, C)] * len(losses),
        constraints={"type": "ineq", "fun": lambda a: C - sums @ a, "jac": lambda a: -sums},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    return -found.fun


@pytest.mark.parametrize("C", [0.1, 2.0])
@pytest.mark.parametrize(("solver", "order"), [(Greedy, 0), (Greedy, 2), (Exact, 1)])
def test_finished_it_is_the_optimum_of_another_solver(solver, order, C):
    pairs = sentences(5, n=6, longest=3)
    stream = Stream(solver, order, C=C)
    stream.learn(pairs)
    gap = stream.finish(pairs, 1e-5 * C)
    best = optimum(solver, order, pairs, C)
    assert stream.dual() == pytest.approx(best, rel=1e-4)
    # The gap bounds what is left, and is small itself.
    assert best - stream.dual() <= gap + 1e-6 * best
    assert gap <= 1e-3 * C


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    exact=st.booleans(),
    order=st.integers(0, 1),
    C=st.sampled_from([0.01, 0.3, 10.0]),
    n_r=st.integers(0, 3),
)
def test_the_dual_never_falls_and_the_constraints_hold(seed, exact, order, C, n_r):
    stream = Stream(Exact if exact else Greedy, order, C=C, n_r=n_r, cost=COST)
    pairs, before = sentences(seed), 0.0
    truth = {}
    for x, y in pairs:
        stream.learn([(x, y)])
        for label in [tuple(y)] if exact else y:
            truth[len(truth) + 1] = label
        dual = stream.dual()
        assert dual >= before - 1e-5 * max(1.0, C)
        before = dual
        for number, beta in stream.betas().items():
            assert abs(sum(beta.values())) <= 1e-9 * C
            most = C * (1.0 if exact else COST[truth[number]])
            for label, b in beta.items():
                assert b <= (most if label == truth[number] else 0.0) + 1e-9 * C


def norm_of(stream):
    m = stream.model
    return (m.weights.astype(float) ** 2).sum() + (m.moves.astype(float) ** 2).sum()


@pytest.mark.parametrize(("solver", "order"), [(Greedy, 1), (Exact, 1)])
def test_bounds_hold_and_the_window_forgets(solver, order):
    pairs = sentences(6, n=40)
    stream = Stream(solver, order, window=7)
    limited = Stream(solver, order, limit=5)
    n = 0
    for x, y in pairs:
        stream.learn([(x, y)])
        limited.learn([(x, y)])
        n += 1 if solver is Exact else len(y)
        assert all(number > n - 7 for number in stream.betas())
        assert len(limited.betas()) <= 5
    for one in (stream, limited):
        info = one.model.info[0]
        assert info.n_forgotten > 0
        assert info.square_norm == pytest.approx(norm_of(one), rel=1e-4)


@pytest.mark.parametrize(("solver", "order"), [(Greedy, 2), (Exact, 1)])
def test_without_reprocessing_it_is_passive_aggressive(solver, order):
    pairs = sentences(9, n=20)
    larank = Stream(solver, order, n_r=0)
    passive = Stream(solver, order, n_r=5, method=PASSIVE_AGGRESSIVE)
    passive.change(n_reprocess=0)
    larank.learn(pairs)
    passive.learn(pairs)
    assert (larank.model.weights == passive.model.weights).all()
    assert passive.betas() == {} and larank.betas() != {}


@pytest.mark.parametrize(("solver", "order"), [(Greedy, 1), (Exact, 1)])
def test_the_perceptron_moves_by_one_where_it_is_wrong(solver, order):
    pairs = sentences(10, n=15)
    stream = Stream(solver, order, n_r=0, method=PERCEPTRON, C=1.0)
    twin, w = twin_of(solver, order, 1.0, 0, 0), 0.0
    for x, y in pairs:
        stream.learn([(x, y)])
        steps = 0.0
        if solver is Exact:
            best = max(twin.all_labels(len(y)), key=lambda c: np.dot(w, twin.phi(x, c)).sum())
            if best != tuple(y):
                steps = twin.phi(x, y) - twin.phi(x, best)
        else:
            for t in range(len(y)):
                past = [y[t - 1] + 1 if t else 0]
                phis = [twin.phi(x[t], past, c) for c in range(3)]
                best = int(np.argmax([np.dot(w + steps, phi).sum() for phi in phis]))
                if best != y[t]:
                    steps = steps + phis[y[t]] - phis[best]
        w = w + steps
    m = stream.model
    found = np.concatenate([m.weights[:, :3].T.ravel(), m.moves[0, :4, :3].T.ravel()])
    assert found == pytest.approx(w, abs=1e-4)


def test_a_step_never_moves_without_a_gain():
    # A token without features and order 0: no direction changes the weights.
    x = np.zeros((1, 4), np.float32)
    stream = Stream(Greedy, 0)
    stream.learn([(x, [0]), (x, [1])])
    assert stream.dual() == 0.0 and stream.betas() == {}
    exact = Stream(Exact, 0)
    exact.learn([(x, [0]), (x, [1])])
    assert exact.dual() == 0.0 and exact.betas() == {}


def test_there_is_room_for_a_long_sentence_after_short_ones():
    for solver, order in ((Greedy, 2), (Exact, 1)):
        stream = Stream(solver, order)
        pairs = sentences(11, n=5)
        x = np.random.default_rng(0).normal(size=(10_000, 4)).astype(np.float32)
        y = np.random.default_rng(1).integers(0, 3, 10_000).tolist()
        stream.learn([*pairs, (x, y), *pairs])
        assert stream.model.info[0].n_tokens == 10_000 + 2 * sum(len(y) for _, y in pairs)
