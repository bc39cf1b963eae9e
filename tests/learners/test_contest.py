"""What all candidates share: the comparison of errors, and the work that a budget allows."""

import numpy as np
import pytest

from streamsvm import LASVMClassifier
from streamsvm.models.kept_examples import Examples
from streamsvm.models.kernel.relearning import Work, are_fewer, learn_examples


def test_errors_are_fewer_by_deviations_of_the_sign_test():
    wrong, others = np.zeros(100, bool), np.zeros(100, bool)
    # Of 25 examples that one of the two got wrong, 20 are of the others: 15 = 3 * sqrt(25).
    wrong[:5], others[5:25] = True, True
    wrong[90:] = others[90:] = True
    assert are_fewer(wrong, others, 2.9) and not are_fewer(wrong, others, 3.0)
    assert not are_fewer(others, wrong, 0.0) and not are_fewer(wrong, wrong, 0.0)
    # Five errors weigh more than twenty.
    costs = np.where(wrong, 5.0, 1.0)
    assert are_fewer(others, wrong, 0.0, costs) and not are_fewer(wrong, others, 0.0, costs)
    assert are_fewer(wrong, others, 2.9, 2.0 * np.ones(100))


@pytest.mark.parametrize("budget", [1e5, 3e6, np.inf])
def test_as_many_rows_are_affordable_as_the_budget_is_expected_to_last_for(budget):
    model, x = LASVMClassifier().model, np.zeros((1000, 3), np.float32)
    work = Work(model)
    # Before anything is known.
    assert work.affordable(budget, 1000, 2) == 8 and work.affordable(budget, 5, 2) == 5
    work.expect(x)
    n = work.affordable(budget, 1000, 0)
    assert work.of_next(n) <= budget and (n == 1000 or work.of_next(n + 1) > budget)
    assert work.affordable(budget, 1000, 1000) == 1000 and work.affordable(0.0, 1000, 0) == 0


def test_kept_examples_are_learnt_in_parts_as_at_once_and_the_work_is_counted():
    draws = np.random.default_rng(0)
    x = draws.normal(size=(60, 2)).astype(np.float32)
    classes = (x[:, 0] > 0.0).astype(np.int64)
    examples = Examples(x, classes, np.ones(60), np.arange(1, 61))
    found, works = [], []
    for parts in ([60], [7, 20, 33]):
        model, start = LASVMClassifier(scale=False).model, 0
        work, errors = Work(model), []
        for n in parts:
            part = examples.part(start, start + n)
            errors += learn_examples(model, part, part.marks, [1.0, 1.0]).wrong.tolist()
            works.append(work.of_last())
            start += n
        found.append((errors, model.margins_of(x).tolist(), model.n_examples))
    # Classes that come first are wrong.
    assert found[0] == found[1] and found[0][0][0] and 0 < sum(found[0][0]) < 30
    assert works[0] == pytest.approx(sum(works[1:])) and min(works) > 0.0
