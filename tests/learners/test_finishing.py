"""What kernel learners share: `finish`, contests of candidates, and the examples that are kept."""

import pickle
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier, kernels
from streamsvm.errors import ParameterError
from streamsvm.models.kept_examples import NUMBER, Examples, KeptExamples
from streamsvm.models.kernel import finishing
from streamsvm.models.kernel.relearning import Work, are_fewer, learn_examples
from streamsvm.support.rows import SparseRows, cut, dense, sparse

RBF = kernels.RBF(gamma=0.5)


class Growing:
    """A model of 50 examples whose dual grows by a share of itself with each round."""

    state, n_classes = object(), 3

    def __init__(self, growth, steps=50):
        self.dual, self.rounds = 100.0, 0
        self.growth, self.steps = growth, steps

    def kept_numbers(self):
        return np.arange(50)

    def duality_gap(self):
        return 0.25

    def expansion(self):
        raise AssertionError

    def some(self):
        self.rounds += 1
        self.dual *= 1.0 + self.growth
        return False, 0.5, self.steps


def ends_after(monkeypatch, model, asked=None, seconds=0.0):
    """Return after how many rounds it ends, each of which takes so many seconds."""
    ticks = count()
    monkeypatch.setattr(finishing, "_clocks", lambda: (seconds * next(ticks),) * 2)
    asked = asked or finishing.Asked(None)
    goes_on = finishing.improve(model, model.some, asked)
    # Only where the dual hardly grows, as rows of the reserve may let it grow again.
    assert goes_on is (model.growth * 50 / model.steps < 1e-9 and asked.calls > 0)
    return model.rounds


def test_it_ends_when_the_dual_hardly_grows(monkeypatch, caplog):
    assert ends_after(monkeypatch, Growing(0.9e-9)) == 1
    assert "an error of 0.5 and a gap of 0.25" in caplog.text
    assert "the dual grew by less than 1e-09 of itself" in caplog.text
    # A round is a step for each example kept.
    assert ends_after(monkeypatch, Growing(0.9e-9 / 5, steps=10)) == 5
    assert (
        ends_after(monkeypatch, Growing(1.1e-9 / 5, steps=10), finishing.Asked(None, calls=50))
        == 50
    )


def test_it_ends_after_some_seconds_unless_more_are_asked_for(monkeypatch, caplog):
    assert ends_after(monkeypatch, Growing(1e-3), seconds=0.3) == 4
    assert "1 s have passed; finish(seconds=4) goes further" in caplog.text
    monkeypatch.setattr(finishing, "ROWS_A_SECOND", 50)  # of 50 rows and 3 classes 3 s
    assert ends_after(monkeypatch, Growing(1e-3), seconds=0.4) == 8
    ticks = count()
    monkeypatch.setattr(finishing, "_clocks", lambda: (0.4 * next(ticks),) * 2)
    assert ends_after(monkeypatch, Growing(1e-3), finishing.Asked(10.0), seconds=0.4) == 27
    for model in (LASVMClassifier(), LaRankClassifier(), AdaptiveSVMClassifier()):
        with pytest.raises(ParameterError, match="seconds"):
            model.finish(seconds=-1.0)


def test_unequal_weights_do_not_need_many_rounds(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(150, 4)).astype(np.float32), rng.integers(0, 3, 150)
    # So that nothing depends on the processor.
    monkeypatch.setattr(finishing, "_clocks", lambda: (0.0, 0.0))
    model, rounds = LaRankClassifier(RBF, seed=1), []
    model.learn_many(x, y, np.where(np.arange(150) % 2, 1.0, 1e6))
    model.finish(lambda error, n: rounds.append(error))
    # Steps on one pattern at a time need 785.
    assert len(rounds) < 500
    own = model.support_vectors().coefficients
    np.testing.assert_allclose(own.sum(axis=1), 0.0, atol=1e-9 * own.max())
    assert model.duality_gap() < 1e-3


# Contests: the comparison of errors, and the work that a budget allows


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


# Kept examples


D = 9


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 999),
    st.lists(st.tuples(st.integers(1, 20), st.sampled_from("ds!p")), max_size=8),
)
def test_rows_are_those_that_were_added(seed, parts):
    """Dense and sparse ones, and as many features as were known."""
    rng = np.random.default_rng(seed)
    first, x = KeptExamples("first_", NUMBER), np.zeros((0, D), np.float32)
    y, weight = np.zeros(0, np.int64), np.zeros(0)
    is_sparse, known = False, 1
    for n, kind in parts:
        known = int(rng.integers(known, D + 1))
        if kind == "!" and len(y):
            first.map_in_place(sparse)
            is_sparse = True
        elif kind == "p":
            first = pickle.loads(pickle.dumps(first))
        elif kind in "ds":
            rows = np.round(rng.normal(size=(n + 2, known)).astype(np.float32))
            is_sparse = is_sparse or kind == "s"
            added = cut(sparse(rows) if kind == "s" else rows, 1, n + 1)
            own_y, own_weight = rng.integers(9, size=n), rng.random(n)
            first.add(added, own_y, own_weight, np.arange(n))
            rows = np.pad(rows[1 : n + 1], ((0, 0), (0, D - known)))
            x, y = np.concatenate([x, rows]), np.concatenate([y, own_y])
            weight = np.concatenate([weight, own_weight])
    assert first.n_rows == len(y)
    rows, own_y, own_weight, _ = first.last(len(y), D)
    assert isinstance(rows, SparseRows) == is_sparse
    np.testing.assert_array_equal(dense(rows), x)
    np.testing.assert_array_equal(own_y, y)
    np.testing.assert_array_equal(own_weight, weight)
    values = rows.nbytes if not is_sparse else sum(part.nbytes for part in rows[:3])
    # Blocks are as wide as they came.
    assert 24 * len(y) <= first.nbytes <= values + 24 * len(y)
