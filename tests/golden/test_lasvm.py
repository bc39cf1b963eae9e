"""LASVM against LIBSVM and the papers: one epoch; the optimum after some; examples by choice.

``python -m benchmarks.golden.figures`` prints the figures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.golden import problems
from benchmarks.golden.figures import one_epoch
from streamsvm import LASVMClassifier
from streamsvm.selection import Active, AutoActive, Gradient, Selection
from tests.slow import slow, slow_but


class Golden(NamedTuple):
    """What LIBSVM reaches, and how many of its support vectors LASVM keeps."""

    error: float  # LIBSVM's test error in % on the same split (scikit-learn's SVC)
    n_support_vectors: int  # LIBSVM's
    ratio: float  # of LASVM's support vectors to LIBSVM's


# Ratios: Bordes, thesis, table 4.3 (banana, waveform, adult_100); where the papers' split is not at
# hand or not in the table (usps, adult, mnist_8), of the original LASVM program on these files.
GOLDEN = {
    "banana": Golden(11.31, 847, 869 / 873),
    "waveform": Golden(11.3, 1463, 948 / 1006),
    "usps": Golden(0.45, 463, 418 / 463),
    "adult": Golden(15.11, 12165, 12021 / 12162),
    "adult_100": Golden(14.87, 11330, 11268 / 11327),
    "mnist_8": Golden(0.47, 2766, 2393 / 2766),
}


@pytest.mark.parametrize("name", slow_but(GOLDEN, "banana", "waveform", "usps", "adult"))
def test_one_epoch_and_finishing(name: str) -> None:
    golden = GOLDEN[name]
    problem = getattr(problems, name)()
    figures = one_epoch(problem)
    # Which way rounding goes differs from processor to processor: five examples are chance.
    assert abs(figures.error - golden.error) <= max(0.3, 100 * 5.5 / len(problem.y_test))
    ratio = figures.n_support_vectors / golden.n_support_vectors
    assert abs(ratio / golden.ratio - 1.0) <= 0.05


@pytest.mark.parametrize(
    ("problem", "epochs"),
    [
        (problems.banana, 6),
        (problems.waveform, 4),
        pytest.param(lambda: problems.adult(n=5000), 4, marks=slow),
    ],
    ids=["banana", "waveform", "adult_5000"],
)
def test_optimum_is_libsvms(problem, epochs: int) -> None:
    x, y, x_test, _, kernel, C = problem()
    model = LASVMClassifier(kernel=kernel, C=C)
    ids = np.arange(1, len(y) + 1)
    for _ in range(epochs):
        model.learn_many(x, y, ids=ids)
        model.finish()
    svc = SVC(C=C, gamma=kernel.gamma, tol=1e-4, cache_size=500).fit(x.astype(float), y)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = svc.dual_coef_[0]
    f = svc.decision_function(x.astype(float)) - svc.intercept_[0]
    dual = alpha @ np.where(y, 1.0, -1.0) - 0.5 * alpha @ f
    assert model.dual == pytest.approx(dual, rel=1e-4)
    agree = np.mean(model.predict_many(x_test) == svc.predict(x_test.astype(float)))
    assert agree >= 0.999


@pytest.mark.parametrize("rule", [Active(), AutoActive(), Gradient()], ids=lambda rule: rule.name)
def test_a_fifth_of_the_support_vectors(rule: Selection) -> None:
    """Choosing examples on Adult (thesis, figures 4.11 and 4.12)."""
    libsvm = GOLDEN["adult_100"].error
    problem = problems.adult_100()
    model = LASVMClassifier(problem.kernel, C=problem.C, reserve=0, selection=rule)
    at = 0
    while model.n_examples < 2500:
        rows = (at + np.arange(250)) % len(problem.y)
        at += 250
        model.learn_many(problem.x[rows], problem.y[rows], ids=rows + 1)
    model.finish()
    error = 100 * np.mean(np.array(model.predict_many(problem.x_test)) != problem.y_test)
    # Rounding decides which examples are learnt. With gamma changed by some parts in a million the
    # errors were 19.6 to 30.3 (gradient; 19.2 on a Xeon), 15.4 to 16.3 (active), 15.1 to 15.7.
    if rule.name == "gradient":
        # It learns the wrong labels, as published.
        assert error > libsvm + 3.0
        return
    assert error < libsvm + 2.0
    assert model.n_support_vectors < 2300
