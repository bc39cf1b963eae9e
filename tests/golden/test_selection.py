"""Choosing examples on Adult (thesis, figures 4.11 and 4.12)."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.golden import problems
from streamsvm import LASVMClassifier
from streamsvm.selection import Active, AutoActive, Gradient, Selection

LIBSVM = 14.87
"""LIBSVM's test error in % on this split, with 11,330 support vectors (`test_lasvm`)."""


@pytest.mark.parametrize("rule", [Active(), AutoActive(), Gradient()], ids=lambda rule: rule.name)
def test_a_fifth_of_the_support_vectors(rule: Selection) -> None:
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
        assert error > LIBSVM + 3.0
        return
    assert error < LIBSVM + 2.0
    assert model.n_support_vectors < 2300
