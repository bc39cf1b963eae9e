"""`finish` ends, however slowly the dual grows, and says what is left."""

from itertools import count

import numpy as np
import pytest

from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier, kernels
from streamsvm.errors import ParameterError
from streamsvm.models.kernel import finishing

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
