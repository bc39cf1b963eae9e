"""The Huller against its slow twin, its invariants, and the hard-margin SVM."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from streamsvm import kernels
from streamsvm.solvers.huller import step
from streamsvm.solvers.huller.step import HullerState
from streamsvm.solvers.one_event import margins_of
from streamsvm.support.draws import new_draws
from tests.reference.row_stream import RowStream
from tests.reference.slow_huller import SlowHuller

LINEAR, N = kernels.Linear(), 150


def problem(seed=0, n=N, noise=0.0):
    """Return rows of two classes with a gap between them, but for `noise`."""
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 3))
    x[draws.random((n, 3)) < 0.1] = 0.0
    y = np.where(x[:, 0] + 0.3 * x[:, 1] > 0.2, 1.0, -1.0)
    x[:, 0] += 0.5 * y
    return x.astype(np.float32), y * np.where(draws.random(n) < noise, -1.0, 1.0)


class Stream(RowStream):
    step = step
    kind = HullerState

    def __init__(self, x, y, kernel=LINEAR, reprocess=1, is_sparse=False, cache_bytes=10**6):
        schedule = step.Schedule(float(reprocess))
        super().__init__(x, y, 1.0, kernel, schedule, is_sparse, cache_bytes, window=0)

    def check(self):
        """The scalars that are kept, against fresh ones; sums of coefficients; members."""
        info, members = self.info, self.members
        alpha, gram = self.state.alpha[members], self.kernel_of(members)
        p, n = np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)
        fresh = [p @ gram @ p, p @ gram @ n, n @ gram @ n]
        np.testing.assert_allclose([info.pp, info.pn, info.nn], fresh, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose([p.sum(), n.sum()], 1.0, rtol=1e-9)
        assert (alpha != 0.0).all() and np.count_nonzero(self.state.alpha) == len(members)
        assert (np.sign(alpha) == self.y[self.state.store.entered[members] - 1]).all()


@pytest.mark.parametrize("reprocess", [0, 1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_its_slow_twin(seed, reprocess):
    x, y = problem(seed)
    twin = SlowHuller(x.astype(float), y, new_draws(5)[0], reprocess)
    fast = Stream(x, y, reprocess=reprocess)
    for _ in range(2):
        expected = [twin.learn(k) for k in range(N)]
        np.testing.assert_allclose(fast.learn(0, N), expected, rtol=2e-3, atol=2e-3)
        assert (fast.state.store.entered[fast.members] - 1).tolist() == twin.members
        alpha = fast.state.alpha[fast.members]
        np.testing.assert_allclose(np.abs(alpha), twin.a[twin.members], rtol=0, atol=1e-4)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, N), max_size=4),
    gamma=st.sampled_from([None, 0.5]),
    noise=st.sampled_from([0.0, 0.2]),
    reprocess=st.integers(0, 4),
)
def test_invariants_and_any_batches(seed, cuts, gamma, noise, reprocess):
    x, y = problem(seed, noise=noise)
    kernel = LINEAR if gamma is None else kernels.RBF(gamma)
    once = Stream(x, y, kernel, reprocess)
    parts = Stream(x, y, kernel, reprocess, cache_bytes=0)
    margins = once.learn(0, N)
    edges = [0, *sorted(cuts), N]
    found = [parts.learn(*edge) for edge in pairwise(edges)]
    assert margins.tobytes() == np.concatenate(found).tobytes()
    assert np.array_equal(once.state.alpha[once.members], parts.state.alpha[parts.members])
    once.check()


@pytest.mark.parametrize("kernel", [LINEAR, kernels.RBF(0.5)])
def test_epochs_converge_to_the_hard_margin_svm(kernel):
    x, y = problem(3, n=80)
    stream = Stream(x, y, kernel, reprocess=20)
    for _ in range(400):
        stream.learn(0, len(y))
    gram, margins = stream.gram, np.zeros(len(y))
    svc = SVC(C=1e8, kernel="precomputed", tol=1e-8).fit(gram, y)
    margins_of(stream.state, stream.solver_kernel, stream.schedule, x, margins)
    np.testing.assert_allclose(margins, svc.decision_function(gram), rtol=0, atol=1e-3)
    # The width of the margin: 2 / |w|.
    coefficients = svc.dual_coef_[0]
    w = np.sqrt(coefficients @ gram[np.ix_(svc.support_, svc.support_)] @ coefficients)
    distance = np.sqrt(step.squared_distance(stream.state))
    assert distance == pytest.approx(2.0 / w, rel=1e-3)


@pytest.mark.slow
def test_sparse_rows_are_as_dense_ones():
    x, y = problem(2)
    dense, thin = Stream(x, y), Stream(x, y, is_sparse=True)
    np.testing.assert_allclose(dense.learn(0, N), thin.learn(0, N), rtol=1e-3, atol=1e-3)
    assert dense.members.tolist() == thin.members.tolist()


def test_a_change_of_the_kernel_recomputes_the_scalars():
    x, y = problem(4)
    stream = Stream(x, y, kernels.RBF(0.5))
    stream.learn(0, N)
    stream.kernel = kernels.RBF(1.0)
    step.rebuild(stream.state, stream.solver_kernel, 3)
    stream.check()
