"""The event path against the general path, with odd events and others in between.

That events by one path and batches by the other make one model is asked by `test_one_model`.
"""

import collections
import contextlib
import pickle
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from river import datasets

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import FeatureError
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import registered_learners
from tests.slow import slow_but

MODELS = {
    "rbf": lambda: LASVMClassifier(kernels.RBF(gamma=1.0), C=5.0),
    "tracking": lambda: TrackingSVMClassifier(kernels.RBF(gamma=1.0), K=3, seed=0),
}
STREAM = list(datasets.Bananas().take(1300))


@contextlib.contextmanager
def general():
    """Have all events take the general path."""
    with (
        mock.patch.object(Learner, "_predict_event", lambda *a: (-1, None)),
        mock.patch.object(Learner, "_learn_event", lambda *a: False),
    ):
        yield


def run(model, stream):
    for x, y in stream:
        model.decision_function_one(x)
        model.learn_one(x, y)


def check_same(a, b):
    for left, right in zip(a.support_vectors()[1:3], b.support_vectors()[1:3], strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(a.targets.calibration, b.targets.calibration)
    assert a.n_examples == b.n_examples
    left, right = a.state.info[0], b.state.info[0]
    for name in left.dtype.names:
        assert name == "ready" or left[name] == right[name]


@pytest.mark.parametrize("name", ["rbf", "tracking"])
def test_other_things_between_predicting_and_learning(name):
    """A row counts as predicted only if nothing used the scratch since, and only that row."""
    plain, disturbed = MODELS[name](), MODELS[name]()
    # Of another weight an event takes the general path, with a row of its own.
    weights = [2.0 if i % 14 == 0 else 1.0 for i in range(len(STREAM))]
    for (x, y), w in zip(STREAM, weights, strict=True):
        plain.learn_one(x, y, w=w)
    x_of = [x for x, _ in STREAM]
    for i, (x, y) in enumerate(STREAM):
        disturbed.predict_one(x)
        if i % 7 == 0:
            disturbed.predict_one(x_of[(i * 31) % 1300])
        if i % 11 == 0:
            disturbed.margins_of(np.array([list(x_of[(i * 17) % 1300].values())], np.float32))
        if i % 13 == 0:
            with pytest.raises(FeatureError):
                disturbed.predict_one(x | {"1": float("inf")})
        if i % 17 == 0:
            disturbed = pickle.loads(pickle.dumps(disturbed))
        disturbed.learn_one(x, y, w=weights[i])
    n = min(plain.state.alpha.size, disturbed.state.alpha.size)
    np.testing.assert_array_equal(plain.state.alpha[:n], disturbed.state.alpha[:n])


def test_features_and_labels_in_other_forms():
    model, plain = MODELS["rbf"](), MODELS["rbf"]()
    run(plain, STREAM[:400])
    for i, (x, y) in enumerate(STREAM[:400]):
        if i % 3 == 1:
            x = {name: np.float64(x[name]) for name in reversed(x)}
        model.learn_one(x, np.bool_(y) if i % 2 else int(y))
        missing = {name: value for name, value in x.items() if name != "1"}
        assert model.decision_function_one(missing) == model.decision_function_one(
            missing | {"1": None, "unseen": 3.0}
        )
    check_same(model, plain)


def test_the_classifier_given_out_may_change():
    model = MODELS["tracking"]()
    run(model, STREAM[:300])
    x = STREAM[300][0]
    averaged = model.decision_function_one(x)
    model.averaged = False
    plain = model.decision_function_one(x)
    assert plain != averaged
    with general():
        assert model.decision_function_one(x) == plain
    model.averaged = True
    assert model.decision_function_one(x) == averaged


SEVERAL = {
    "larank": lambda: LaRankClassifier(kernels.RBF(gamma=0.5), seed=3),
    "larank auto": lambda: LaRankClassifier(seed=3, class_weight={"sky": 2.0}),
    "larank uniform": lambda: LaRankClassifier(kernels.RBF(gamma=0.5), K=2, window=60, seed=3),
    "sgd": lambda: SVMSGDClassifier(),
    "sgd sparse": lambda: SVMSGDClassifier(sparse=True, class_weight={"sky": 2.0}),
    "sgdqn": lambda: SGDQNClassifier(t0=10.0),
    "hashed": lambda: SGDQNClassifier(hashing=64),
    "lasvm sparse": lambda: LASVMClassifier(kernels.RBF(gamma=0.5), sparse=True),
    "lasvm hashed": lambda: LASVMClassifier(kernels.Linear(), hashing=16),
    "tracking sparse": lambda: TrackingSVMClassifier(kernels.RBF(gamma=0.5), sparse=True, seed=1),
}
# What they compile, the tests of all learners or of sparse rows compile once more.
RARE = ("larank uniform", "tracking sparse")
IMAGES = [
    ({name: value / 100.0 for name, value in x.items()}, y)
    for x, y in datasets.ImageSegments().take(400)
]


@pytest.mark.parametrize("name", slow_but(SEVERAL, *(n for n in SEVERAL if n not in RARE)))
def test_weights_new_features_classes_and_odd_events(name):
    """Whatever comes, the event path makes the model that the general path makes."""
    monitored, plain = SEVERAL[name](), SEVERAL[name]()
    is_binary = not name.startswith(("larank", "sgd", "hashed"))
    monitor = TrackingMonitor(monitored, every=1000)

    def learn(model):
        found = []
        for i, (x, y) in enumerate(IMAGES):
            x = {k: v for j, (k, v) in enumerate(x.items()) if (i + j) % 9}
            if i % 50 > 40:
                x[f"new {i // 50}"] = float(i % 3)
            if i % 29 == 0:
                x = collections.UserDict(x)
            label = y == "sky" if is_binary else y
            found.append(model.predict_one(x))
            model.learn_one(x, label, w=1 + i % 3 if i % 2 else 0.5 * (i % 4))
            with pytest.raises(FeatureError):
                model.learn_one({"a": "b"}, label)
            found.append(model.decision_function_one(x))
            found.append(model.predict_proba_one(x))
        return found

    seen = learn(monitored)
    with general():
        assert learn(plain) == seen
    np.testing.assert_array_equal(monitored.targets.calibration, plain.targets.calibration)
    assert monitored.feature_names == plain.feature_names
    assert monitor.get()["n_examples"] == len(IMAGES) == plain.n_examples


@pytest.mark.parametrize("learner", registered_learners("rows"), ids=lambda learner: learner.name)
def test_events_of_weight_0_and_weights_of_numpy_take_the_event_path(learner, monkeypatch):
    stream = [(x, y) for x, y in datasets.Bananas().take(60)]
    model, twin = (learner.cls(**next(learner.cls._unit_test_params())) for _ in range(2))
    for one in (model, twin):
        for x, y in stream[:40]:
            one.learn_one(x, y)
    if model.model.event_parts()[0] is None:
        pytest.skip("it has no compiled path for events")
    weights = [0.0, 0, False, True, np.float64(0.0), np.float32(2.0), np.int64(3), np.bool_(True)]
    for (x, y), w in zip(stream[40:], weights, strict=False):
        twin.learn_many(pd.DataFrame([x]), [y], float(w))
    monkeypatch.setattr(Learner, "_learn_generally", None)
    for (x, y), w in zip(stream[40:], weights, strict=False):
        model.learn_one(x, y, w)
    for x, _ in stream:
        assert model.decision_function_one(x) == twin.decision_function_one(x)
    assert model.n_examples == twin.n_examples == 48
