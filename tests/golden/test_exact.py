"""The exact SVM on real data: equal to LIBSVM, and without what was taken back.

``python -m benchmarks.exact --equal`` compares on the way, too.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.golden import problems
from benchmarks.golden.exact import COSTS, PROBLEMS, Exact
from tests.slow import slow_but

CASES = [(name, C) for name in PROBLEMS for C in COSTS]
QUICK = [(name, C) for name, C in CASES if name != "adult" or C <= 1.0]


@pytest.mark.parametrize("case", slow_but(CASES, *QUICK), ids=str)
def test_it_is_libsvms(case: tuple[str, float]) -> None:
    name, C = case
    exact = Exact(getattr(problems, name)(), PROBLEMS[name], C)
    model = exact.model()
    model.learn_many(exact.x, exact.y)
    found = exact.compare(model)
    assert found.violation <= 1e-10 * max(1.0, C)
    assert found.dual <= 1e-10
    assert found.decision <= 1e-8
    if C <= 1.0:  # otherwise LIBSVM is farther from its optimum
        assert found.svc_dual <= 1e-8
        assert found.svc_decision <= 1e-5


@pytest.mark.parametrize(("name", "n", "C"), [("banana", 1000, 100.0), ("adult", 600, 10.0)])
def test_what_is_taken_back_in_any_order_was_never_learnt(name: str, n: int, C: float) -> None:
    exact = Exact(getattr(problems, name)(), n, C)
    order = np.random.default_rng(0).permutation(n)
    model, once = exact.model(), exact.model()
    model.learn_many(exact.x[order], exact.y[order], ids=order + 1)
    for number in np.random.default_rng(1).permutation(order[: n // 3] + 1).tolist():
        model.unlearn_one(number)
    kept = np.sort(order[n // 3 :])
    once.learn_many(exact.x[kept], exact.y[kept])
    assert model.dual == pytest.approx(once.dual, rel=1e-10)
    sign = 1.0 if model.labels == once.labels else -1.0
    found = sign * model.decision_function_many(exact.x_test)
    np.testing.assert_allclose(found, once.decision_function_many(exact.x_test), atol=1e-6)
