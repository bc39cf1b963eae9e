"""The stochastic batch perceptron against its slow twin, and the SVM that it converges to."""

import numpy as np
import pytest
from sklearn.svm import SVC

from streamsvm import kernels
from streamsvm.solvers.bounds import UNBOUNDED, Reservoir, Window
from streamsvm.solvers.one_event import margins_of
from streamsvm.solvers.sbp import finish, step
from streamsvm.solvers.sbp import state as sbp_state
from streamsvm.solvers.sbp.state import SBPState
from streamsvm.support.draws import new_draws
from tests.reference.row_stream import RowStream
from tests.reference.slow_sbp import SlowSBP
from tests.slow import slow_but

RBF, N = kernels.RBF(0.5), 120


def problem(seed=0, n=N, most=1):
    """Return rows of two classes that overlap, and how often each counts."""
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 3)).astype(np.float32)
    x[draws.random((n, 3)) < 0.1] = 0.0
    y = np.where(x[:, 0] + 0.3 * x[:, 1] + 0.4 * draws.normal(size=n) > 0.2, 1.0, -1.0)
    return x, y, draws.integers(1, most + 1, n)


def gram_of(kernel, x):
    return np.array([[kernels.evaluate(kernel, a, b) for b in x] for a in x])


class Stream(RowStream):
    step = step
    kind = SBPState

    def __init__(self, x, y, copies, is_sparse=False, cache_bytes=10**6, **parameters):
        given = {"nu": 0.1, "bias": True, "steps": 1, "averaged": True, "window": 0, "reservoir": 0}
        given |= parameters
        kept = given["window"] or given["reservoir"]
        horizon = given["steps"] * kept if kept else 2.0**62
        first = [float(given[name]) for name in ("steps", "nu", "bias", "averaged")]
        bounds = UNBOUNDED
        if kept:
            bounds = Window(float(kept)) if given["window"] else Reservoir(float(kept))
        schedule = step.Schedule(step.Numbers(*first, float(horizon)), bounds)
        window = given["window"]
        super().__init__(x, y, copies, RBF, schedule, is_sparse, cache_bytes, window=window)

    def finish(self, n):
        finish.finish_some(self.state, self.solver_kernel, self.schedule.numbers, 3, n)

    def margins_at(self, x):
        out = np.zeros(len(x))
        margins_of(self.state, self.solver_kernel, self.schedule, x, out)
        return out

    def coefficients(self, n, averaged=True):
        """Return those of the mean, or of the last iterate, by the example's index."""
        state, info, found = self.state, self.state.info[0], np.zeros(n)
        w = info.scale * state.alpha
        if averaged:
            w = (info.sum_scale * state.alpha - state.late) / info.sum_weight
        found[state.store.entered[self.members] - 1] = w[self.members]
        return found


CASES = {
    "all": {},
    "without bias": {"bias": False, "nu": 0.02},
    "no slack": {"nu": 0.0, "steps": 3},
    "last iterate": {"averaged": False, "steps": 2},
    "window": {"window": 40, "steps": 2},
    "reservoir": {"reservoir": 40, "bias": False},
}
NAMES = slow_but(CASES, *set(CASES) - {"reservoir"}, compiling="sbp-3")


@pytest.mark.parametrize("heavy", [0, 2000])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_its_slow_twin(name, most, heavy):
    x, y, copies = problem(3, most=most)
    copies[20] += heavy
    fast = Stream(x, y, copies, **CASES[name])
    word = new_draws(5)[0]
    twin = SlowSBP(gram_of(RBF, x), y, copies, word, **CASES[name])
    expected = [twin.learn(k) for k in range(N)]
    np.testing.assert_allclose(fast.learn(0, N), expected, rtol=1e-3, atol=1e-3)
    twin.iterate(50)
    fast.finish(50)
    np.testing.assert_allclose(fast.coefficients(N), twin.mean, rtol=0, atol=1e-5)
    np.testing.assert_allclose(fast.coefficients(N, False), twin.w, rtol=0, atol=1e-5)
    found = fast.margins_at(x)
    np.testing.assert_allclose(found, [twin.margin(k) for k in range(N)], rtol=2e-3, atol=2e-3)


@pytest.mark.slow
def test_sparse_rows_are_as_dense_ones():
    x, y, copies = problem(2)
    dense, thin = Stream(x, y, copies), Stream(x, y, copies, is_sparse=True)
    np.testing.assert_allclose(dense.learn(0, N), thin.learn(0, N), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("how", ["once", "repeated", "weights"])
@pytest.mark.parametrize("bias", [True, False])
def test_iterations_converge_to_the_svm_of_the_same_slack(bias, how):
    """The SVM of cost C solves the problem for nu = mean loss / |w| (paper, section 5)."""
    x, y, copies = problem(4)
    if how != "once":
        copies = np.where(y > 0, 1, np.where(x[:, 0] > -0.5, 7, 4))
    gram = gram_of(RBF, x)
    if bias:
        svc = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(gram, y, sample_weight=copies)
        expected, a = svc.decision_function(gram), np.zeros(N)
        a[svc.support_] = svc.dual_coef_[0]
    else:
        a = svm_without_bias(gram, y, 2.0 * copies)
        expected = gram @ a
    norm = np.sqrt(a @ gram @ a)
    nu = float(np.average(np.maximum(0.0, 1.0 - y * expected), weights=copies) / norm)
    rows = np.repeat(np.arange(N), copies if how == "repeated" else 1)
    weights = copies if how == "weights" else np.ones(len(rows))
    stream = Stream(x[rows], y[rows], weights, bias=bias, nu=nu, steps=0)
    stream.learn(0, len(rows))
    stream.finish(200_000)
    assert sum(stream.state.levels[sbp_state.MEAN, :2]) / 2 == pytest.approx(1 / norm, rel=1e-2)
    np.testing.assert_allclose(stream.margins_at(x), expected, rtol=0, atol=0.1)


@pytest.mark.parametrize("how", ["once", "repeated", "weights", "heavy"])
def test_without_slack_it_converges_to_the_largest_margin(how):
    x, _, _ = problem(6)
    keep = np.abs(x[:, 0] * x[:, 1]) > 0.1
    x = x[keep]
    y, n = np.where(x[:, 0] * x[:, 1] > 0, 1.0, -1.0), len(x)
    gram = gram_of(RBF, x)
    svc = SVC(C=1e8, kernel="precomputed", tol=1e-8).fit(gram, y)
    a = svc.dual_coef_[0]
    best = 1 / np.sqrt(a @ gram[np.ix_(svc.support_, svc.support_)] @ a)
    rows = np.repeat(np.arange(n), np.where(y < 0, 20, 1) if how == "repeated" else 1)
    weights = np.where(y < 0, 100.0, 1.0) if how == "weights" else np.ones(len(rows))
    weights[0] = 1e5 if how == "heavy" else weights[0]
    stream = Stream(x[rows], y[rows], weights, nu=0.0, steps=0)
    stream.learn(0, len(rows))
    stream.finish(30_000)
    assert 0.85 * best < sum(stream.state.levels[sbp_state.MEAN, :2]) / 2 <= best * (1 + 1e-6)
    # Each draw took a few passes over the rows at most.
    assert stream.state.info[0].n_null <= 30_000 * 4 * len(rows)


def svm_without_bias(gram, y, C):
    """Return the signed coefficients of an SVM of costs C, by dual coordinate ascent."""
    a = np.zeros(len(y))
    for _ in range(2000):
        for i in range(len(y)):
            free = y[i] * a[i] + (1.0 - y[i] * (gram[i] @ a)) / gram[i, i]
            a[i] = y[i] * min(C[i], max(0.0, free))
    return a
