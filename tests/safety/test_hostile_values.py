"""Huge and tiny values and weights: decisions stay finite, and a saved model goes on as the same.

What a learner cannot hold it refuses, with the model unchanged. ``STREAMSVM_HOSTILE`` says how many
streams each learner gets (2 by default).
"""

import _thread
import inspect
import os
import threading
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamsvm
from streamsvm import kernels
from streamsvm.errors import FeatureError, StreamSVMError
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.linear.linear_learner import LinearLearner
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.models.kernel import finishing
from tests.interruptions import needs_ctrl_c

LARGE = 3.4e38
VALUES = np.array([0.0, 1.0, -1.0, 1e-38, 1e-45, 1e8, 1e15, -1e15, 1e19, 1e25, LARGE, -LARGE])
WEIGHTS = np.array([1e-300, 1e-12, 1.0, 1e3, 1e12, 1e13, 1e300, 1e308])
LEARNERS = [
    learner.cls
    for learner in registered_learners("rows")
    if issubclass(learner.cls, KernelLearner | LinearLearner)
    or learner.cls is streamsvm.AdaptiveSVMClassifier
]
DUAL = [streamsvm.LASVMClassifier, streamsvm.LaRankClassifier, streamsvm.TrackingSVMClassifier]
EXAMPLES = int(os.environ.get("STREAMSVM_HOSTILE", "2"))


def settings_of(cls, draw):
    """Return settings that the learner knows, hostile ones among them."""
    kernel = [None, kernels.RBF(gamma=0.5), kernels.Linear(), kernels.Polynomial(degree=9)]
    wanted = {
        "C": float(draw.choice([1e-12, 1.0, 1e12])),
        "tau": float(draw.choice([1e-12, 1e-3])),
        "class_weight": {1: float(draw.choice([1.0, 1e-12, 1e12]))},
        "kernel": kernel[draw.integers(4)],
        "l2": float(draw.choice([1e-12, 1e-4, 1e6])),
    }
    if issubclass(cls, LinearLearner):
        del wanted["C"]
    known = inspect.signature(cls).parameters
    seed = {"seed": 1} if "seed" in known else {}
    return seed | {k: v for k, v in wanted.items() if k in known and draw.random() < 0.5}


def stream(draw, n=40):
    """Return rows with huge, tiny and equal values, labels and weights."""
    x = draw.normal(size=(n, 2)).astype(np.float32)
    with np.errstate(over="ignore"):
        x *= draw.choice([1.0, 1e-30, 1e8, 1e14, 1e18])
    odd = draw.random(x.shape) < draw.choice([0.0, 0.1])
    x[odd] = draw.choice(VALUES, odd.sum())
    x[draw.integers(n, size=n // 3)] = x[0]
    w = np.where(draw.random(n) < draw.choice([0.0, 0.3]), draw.choice(WEIGHTS, n), 1.0)
    return x, draw.integers(2, size=n), w


def learn(model, x, y, w):
    """Learn rows one by one and together; what is refused leaves the model as it was."""
    for i in range(10):
        with suppress(StreamSVMError):
            model.learn_one(dict(enumerate(x[i].tolist())), int(y[i]), float(w[i]))
    with suppress(StreamSVMError):
        model.learn_many(x[10:25], y[10:25], w[10:25])
    fit = w <= 1e12
    with suppress(StreamSVMError):
        model.learn_many(x[fit][25:], y[fit][25:], w[fit][25:])


def decisions(model, x):
    """Return the decisions about rows that are usual, and about one that is not."""
    found = np.asarray(model.decision_function_many(x), float)
    assert np.isfinite(found).all()
    return found


@pytest.mark.parametrize("cls", LEARNERS)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**9))
def test_decisions_are_finite_and_files_go_on(tmp_path_factory, cls, seed):
    draw = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("models") / "model"
    model = cls(**settings_of(cls, draw))
    learn(model, *stream(draw))
    usual = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    before = decisions(model, usual)
    model.save(path)
    read = streamsvm.load(path)
    assert np.array_equal(decisions(read, usual), before)
    more = stream(draw)
    for each in (model, read):
        learn(each, *more)
    assert np.array_equal(decisions(read, usual), decisions(model, usual))


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.Polynomial(degree=9)])
@pytest.mark.parametrize("cls", [streamsvm.LASVMClassifier, streamsvm.LaRankClassifier])
def test_rows_beyond_single_precision_are_not_predicted(cls, kernel):
    model = cls(kernel)
    model.learn_many(4.0 * np.eye(2), [0, 1])
    row = {0: LARGE, 1: -LARGE}
    for method in (model.predict_one, model.decision_function_one, model.predict_proba_one):
        with pytest.raises(FeatureError, match="too large for single precision"):
            method(row)
    with pytest.raises(FeatureError, match="row 1: .* too large"):
        model.predict_many(np.array([[1.0, 0.0], [LARGE, -LARGE]], np.float32))
    decisions(model, np.eye(2))


def of_huge_costs(cls):
    """Return a model of equal rows with both labels, whose steps are far smaller than the boxes."""
    model = cls(kernels.RBF(gamma=0.5), C=1e12)
    model.learn_many(np.full((9, 2), 1.5), np.arange(9) % 2, np.full(9, 1e6))
    return model


@pytest.mark.parametrize("cls", DUAL)
def test_finish_ends_after_a_bound_on_steps(cls, monkeypatch, caplog):
    monkeypatch.setattr(finishing, "FINISHING_STEPS", 40_000)
    model = of_huge_costs(cls)
    model.finish()
    assert "finish ended before the optimum" in caplog.text or cls is streamsvm.LASVMClassifier
    decisions(model, np.ones((2, 2)))


@needs_ctrl_c
def test_finish_can_be_interrupted():
    model = of_huge_costs(streamsvm.LaRankClassifier)
    ended = threading.Event()

    def interrupt():
        # Again if need be: Python drops what is raised within a callback of the garbage collector.
        while not ended.wait(0.5):
            _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.finish(seconds=60.0)
    finally:
        ended.set()
        thread.join()
    decisions(model, np.ones((2, 2)))
    model.learn_one({0: 1.0}, 1)
