"""The fast path of events against the long one: the same models to the last bit."""

import pickle
from unittest import mock

import numpy as np
import pytest
from river import datasets

from streamsvm import LASVMClassifier, TrackingMonitor, TrackingSVMClassifier, kernels
from streamsvm.errors import FeatureError, LabelError
from streamsvm.learners.bases import event_handle as events
from streamsvm.learners.bases.binary_learner import BinaryLearner

MODELS = {
    "auto": lambda: LASVMClassifier(),
    "rbf": lambda: LASVMClassifier(kernels.RBF(gamma=1.0), C=5.0),
    "polynomial": lambda: LASVMClassifier(kernels.Polynomial(degree=2), C=0.1),
    "budget": lambda: LASVMClassifier(kernels.RBF(gamma=1.0), max_support_vectors=60),
    "window": lambda: LASVMClassifier(kernels.RBF(gamma=1.0), window=100),
    "weights": lambda: LASVMClassifier(kernels.RBF(gamma=1.0), class_weight={True: 3.0}),
    "balanced": lambda: LASVMClassifier(kernels.RBF(gamma=1.0), class_weight="balanced"),
    "tracking": lambda: TrackingSVMClassifier(kernels.RBF(gamma=1.0), K=3, seed=0),
    "tracking linear": lambda: TrackingSVMClassifier(kernels.Linear(), K=3, seed=0),
    "tracking window": lambda: TrackingSVMClassifier(
        kernels.RBF(gamma=1.0), K=3, window=80, gradients="support", seed=0
    ),
}
STREAM = list(datasets.Bananas().take(1300))


def run(model, stream=STREAM, predict=lambda i: True):
    found = []
    for i, (x, y) in enumerate(stream):
        if predict(i):
            found.append(model.decision_function_one(x))
        model.learn_one(x, y)
    return found


def check_same(a, b):
    np.testing.assert_array_equal(a._state.alpha, b._state.alpha)
    np.testing.assert_array_equal(a._calibration, b._calibration)
    assert a.n_examples == b.n_examples
    left, right = a._state.info[0], b._state.info[0]
    for name in left.dtype.names:
        assert name == "ready" or left[name] == right[name]


@pytest.mark.parametrize("name", MODELS)
def test_short_is_long(name):
    short, long = MODELS[name](), MODELS[name]()
    calls = []
    learn = events.Handle.learn
    with mock.patch.object(events.Handle, "learn", lambda *a: calls.append(1) or learn(*a)):
        found = run(short)
    with mock.patch.object(BinaryLearner, "_current_handle", lambda self: None):
        assert run(long) == found
    check_same(short, long)
    # The width follows the data for 1,024 events; class weights do to the end.
    assert len(calls) > {"balanced": -1, "auto": 200}.get(name, 1200)


@pytest.mark.parametrize("name", ["rbf", "tracking"])
def test_other_things_between_predicting_and_learning(name):
    """A row counts as predicted only if nothing used the scratch since, and only that row."""
    plain, disturbed = MODELS[name](), MODELS[name]()
    run(plain, predict=lambda i: False)
    x_of = [x for x, _ in STREAM]
    for i, (x, y) in enumerate(STREAM):
        disturbed.predict_one(x)
        if i % 7 == 0:
            disturbed.predict_one(x_of[(i * 31) % 1300])
        if i % 11 == 0:
            disturbed._margins(np.array([list(x_of[(i * 17) % 1300].values())], np.float32))
        if i % 13 == 0:
            with pytest.raises(FeatureError):
                disturbed.predict_one(x | {"1": float("nan")})
        if i % 17 == 0:
            disturbed = pickle.loads(pickle.dumps(disturbed))
        disturbed.learn_one(x, y)
    n = min(plain._state.alpha.size, disturbed._state.alpha.size)
    np.testing.assert_array_equal(plain._state.alpha[:n], disturbed._state.alpha[:n])


def test_a_learnt_event_does_not_stand_for_another():
    model, other = MODELS["rbf"](), MODELS["rbf"]()
    run(model, STREAM[:200], predict=lambda i: False)
    run(other, STREAM[:200], predict=lambda i: False)
    first, second = STREAM[300][0], STREAM[301][0]
    model.predict_one(first)
    # The general path, with a row of its own, after a prediction by the short one.
    model.learn_one(second, True, w=2.0)
    other.learn_one(second, True, w=2.0)
    check_same(model, other)


def test_bad_events_after_good_ones():
    model, plain = MODELS["rbf"](), MODELS["rbf"]()
    run(model, STREAM[:300])
    run(plain, STREAM[:300])
    x, y = STREAM[300]
    for bad in (float("nan"), float("inf"), 1e300, "1.0", None):
        with pytest.raises(FeatureError):
            model.learn_one(x | {"1": bad}, y)
        with pytest.raises(FeatureError):
            model.predict_one(x | {"1": bad})
    for label in ("third", None, float("nan"), [1]):
        with pytest.raises(LabelError):
            model.learn_one(x, label)
    run(model, STREAM[300:400])
    run(plain, STREAM[300:400])
    check_same(model, plain)


def test_features_and_labels_in_other_forms():
    model, plain = MODELS["rbf"](), MODELS["rbf"]()
    run(plain, STREAM[:400])
    for i, (x, y) in enumerate(STREAM[:400]):
        if i % 3 == 1:
            x = {name: np.float64(x[name]) for name in reversed(x)}
        model.learn_one(x, np.bool_(y) if i % 2 else int(y))
        missing = {name: value for name, value in x.items() if name != "1"}
        assert model.decision_function_one(missing) == model.decision_function_one(
            missing | {"1": 0.0, "unseen": 3.0}
        )
    check_same(model, plain)


def test_a_new_feature_on_the_way():
    model, plain = MODELS["rbf"](), MODELS["rbf"]()
    stream = [
        (x | ({"late": 1.0 * (i % 3)} if i > 150 else {}), y)
        for i, (x, y) in enumerate(STREAM[:400])
    ]
    run(model, stream)
    with mock.patch.object(BinaryLearner, "_current_handle", lambda self: None):
        run(plain, stream)
    check_same(model, plain)


def test_a_monitor_sees_every_event():
    model = MODELS["rbf"]()
    run(model, STREAM[:100])
    monitor = TrackingMonitor(model)
    run(model, STREAM[100:200])
    assert monitor.get()["n_examples"] == 100


def test_the_classifier_given_out_may_change():
    model = MODELS["tracking"]()
    run(model, STREAM[:300])
    x = STREAM[300][0]
    averaged = model.decision_function_one(x)
    model.averaged = False
    plain = model.decision_function_one(x)
    assert plain != averaged
    with mock.patch.object(BinaryLearner, "_current_handle", lambda self: None):
        assert model.decision_function_one(x) == plain
    model.averaged = True
    assert model.decision_function_one(x) == averaged
