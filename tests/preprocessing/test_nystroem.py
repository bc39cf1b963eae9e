"""The Nystroem method: a twin in plain NumPy, events and batches, copies and files."""

import numpy as np
import pytest

from streamsvm import Nystroem, kernels
from streamsvm.errors import FeatureError
from streamsvm.support.draws import new_draws, uniform
from tests.preprocessing.test_feature_maps import components

RBF, LINEAR = kernels.RBF(gamma=0.5), kernels.Linear()
POLYNOMIAL = kernels.Polynomial(degree=2, gamma=0.3, coef0=1.0)


def rbf(a, b):
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(2))


def twin(x, n, rate, tolerance, seed):
    """Return the centres of a stream, and the components of its rows after it."""
    draws, chosen = new_draws(seed), []
    for r, row in enumerate(x):
        if len(chosen) == n or uniform(draws) >= rate:
            continue
        k = rbf(x[chosen], row[None])[:, 0]
        rest = 1.0 - k @ np.linalg.solve(rbf(x[chosen], x[chosen]), k) if chosen else 1.0
        if rest > tolerance:
            chosen.append(r)
    root = np.linalg.cholesky(rbf(x[chosen], x[chosen]))
    return chosen, np.linalg.solve(root, rbf(x[chosen], x)).T


@pytest.mark.parametrize(("n", "rate", "tolerance"), [(20, 1.0, 1e-3), (99, 0.4, 0.1)])
def test_events_are_those_of_the_twin(n, rate, tolerance):
    x = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32).astype(float)
    transformer = Nystroem(RBF, n, rate, tolerance, seed=7)
    for row in x.tolist():
        transformer.learn_one(dict(enumerate(row)))
    chosen, expected = twin(x, n, rate, tolerance, 7)
    # Either all, of which the last rows would have been some, or as many as are new.
    assert transformer.n_centres == len(chosen) and (len(chosen) == n) == (n == 20)
    found = np.array([components(transformer, dict(enumerate(row))) for row in x.tolist()])
    np.testing.assert_allclose(found[:, : len(chosen)], expected, rtol=0, atol=2e-5)
    assert not found[:, len(chosen) :].any()


@pytest.mark.parametrize("kernel", [RBF, LINEAR, POLYNOMIAL])
def test_products_are_kernel_values_and_a_centre_changes_no_component(kernel):
    x = np.random.default_rng(1).normal(size=(40, 2))
    transformer = Nystroem(kernel, 60, tolerance=1e-4)
    before = []
    for row in x.tolist():
        transformer.learn_one(dict(enumerate(row)))
        before.append(components(transformer, {0: 0.3, 1: -0.7}))
    n, z = transformer.n_centres, transformer.transform_many(x).astype(float)
    # The linear kernel spans 2 dimensions, the polynomial one 6.
    assert n == {LINEAR: 2, POLYNOMIAL: 6}.get(kernel, n)
    k = [[kernels.evaluate(kernel, a, b) for a in x] for b in x]
    np.testing.assert_allclose(z @ z.T, k, atol=2e-3)
    for z_before in before:
        size = np.count_nonzero(z_before)
        np.testing.assert_array_equal(z_before[:size], before[-1][:size])


@pytest.mark.parametrize("n_centres", [3, 8, 21])
@pytest.mark.parametrize("most", [21, 40])
def test_rows_that_are_mapped_together_are_as_alone(n_centres, most):
    """Rows go in eights and pairs, centres in fours; with fewer than `most` rows may be centres."""
    x = np.random.default_rng(3).normal(size=(60, 4))
    model = Nystroem(kernels.RBF(gamma=1.0), most)
    model.learn_many(x[:n_centres])
    assert model.n_centres == n_centres
    alone = np.array([model.transform_many(row[None])[0] for row in x])
    for size in (2, 7, 8, 9, 60):
        np.testing.assert_array_equal(model.transform_many(x[:size]), alone[:size])


def test_the_table_of_centres_is_bounded(monkeypatch):
    monkeypatch.setattr("streamsvm.preprocessing.nystroem._MOST_NUMBERS", 40)
    transformer = Nystroem(RBF, 8)
    for i in range(50):
        transformer.learn_one({str(i): 1.0, "all": float(i)})
    assert transformer.n_centres == 4 and len(transformer.schema) == 5
    # A row of the features that there are still becomes a centre.
    transformer.learn_one({"all": 99.0})
    assert transformer.n_centres == 5


def test_names_and_values_of_the_kernel_that_are_refused():
    with pytest.raises(FeatureError, match=r"frozenset.*use a string, a number, or a tuple"):
        Nystroem(RBF, 8).learn_one({frozenset("ab"): 1.0})
    with pytest.raises(
        FeatureError, match="row 1100: Polynomial.*no moderate number; scale the features"
    ):
        Nystroem(POLYNOMIAL, 8).learn_many(np.array([[0.0]] * 1100 + [[1e30]]))
