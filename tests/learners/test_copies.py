"""A copy answers and learns as the model does, whatever was asked and learnt before."""

import inspect

import numpy as np
import pytest

from streamsvm import AdaptiveSVMClassifier, TrackingMonitor
from streamsvm.errors import ParameterError
from streamsvm.solvers.adaptive import combination
from tests.learners.test_all_learners import COPIES, all_learners, content, labels_of

N = 120


def stream(n_classes, seed=0, n=N):
    """Return events and labels that repeat, more than the features tell, and weights."""
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.random(n) < 0.12) % n_classes
    x = rng.normal(size=(n, 3)) + 0.3 * y[:, None]
    events = [dict(enumerate(row)) for row in x.astype(np.float32).tolist()]
    return events, y.tolist(), (0.1 + rng.random(n)).tolist()


def answers(model, events):
    """Return what a model answers to events, one after the other, without what its cache takes."""
    methods = (model.decision_function_one, model.predict_proba_one, model.predict_one)
    found = [method(event) for event in events for method in methods]
    if getattr(model, "has_dual", False):
        names = ("duality_gap", "kept_numbers", "at_bound")
        asked = [getattr(model, name)() for name in names if hasattr(model, name)]
        found += [np.asarray(answer).tolist() for answer in asked]
    lines = [line for line in model.summary().splitlines() if "memory" not in line]
    return [*found, *lines, repr(model)]


def content_of(model):
    """Return the content of a model without how many kernel values were computed.

    A file has no cached rows: `finish` of a loaded model computes some again.
    """
    found = content(model)
    found[0].get("info", {}).pop("n_values", None)
    return found


def weighted(cls, parameters):
    """Return a model with class weights that are no sums of powers of two, if it takes any."""
    if "class_weight" not in inspect.signature(cls).parameters or "class_weight" in parameters:
        return cls(**parameters)
    try:
        return cls(**parameters, class_weight={0: 1.0 / 3.0, 1: 1.7})
    except ParameterError:
        return cls(**parameters)


@all_learners
def test_copies_batches_and_a_model_that_is_watched_are_as_the_model(cls, parameters, tmp_path):
    make = COPIES.items()
    model, many, watched = (weighted(cls, parameters) for _ in range(3))
    monitor, others, predicted = TrackingMonitor(watched, every=40), {}, []
    events, labels, weights = stream(labels_of(model))
    # A feature that comes later, and at first no weights.
    events[:40] = [{0: event[0], 1: event[1]} for event in events[:40]]
    weights[:7] = [1.0] * 7
    for i, (event, label, w) in enumerate(zip(events, labels, weights, strict=True)):
        predicted.append(model.predict_one(event))
        for one in (monitor, *others.values()):
            one.predict_one(event)
        if i in (70, 95):  # between a question and its label
            others |= {(i, how): copied(model, tmp_path / "m.svm") for how, copied in make}
        for one in (model, monitor, *others.values()):
            one.learn_one(event, label, w=w)
    found = []
    for part in (slice(0, 7), slice(7, 40), slice(40, 90), slice(90, N)):
        x = np.array([list(event.values()) for event in events[part]], np.float32)
        own = {} if part.stop == 7 else {"w": weights[part]}
        found += many.predict_then_learn_many(x, labels[part], **own)
    assert found == predicted and many.feature_names == model.feature_names == [0, 1, 2]
    assert content(many)[1] == content(watched)[1] == content(model)[1]
    assert monitor.get()["n_examples"] == N and len(monitor.history) == N // 40
    wanted = answers(model, events[-5:])
    assert {key: answers(other, events[-5:]) for key, other in others.items()} == dict.fromkeys(
        others, wanted
    )
    if hasattr(model, "finish"):
        for one in (model, *others.values()):
            one.finish()
        wanted = answers(model, events[-5:])
        for key, other in others.items():
            assert answers(other, events[-5:]) == wanted, key
    after = content_of(model)
    # None learns what another one learns, nor knows its names.
    model.learn_one({0: 5.0, "new": 1.0}, 1)
    for key, other in others.items():
        assert type(other) is cls and content_of(other) == after, key
        other.learn_one({0: -5.0, "newer": 1.0}, 0)
        assert other.feature_names == [0, 1, 2, "newer"], key
    assert model.feature_names == [0, 1, 2, "new"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("delay", [0, 4])
def test_a_copy_knows_what_was_asked_where_labels_repeat(sparse, delay, tmp_path):
    # The first question after a label counts, unless others were asked, or labels come late.
    model = AdaptiveSVMClassifier(seed=1, sparse=sparse)
    events, labels, _ = stream(2, n=700)
    for i, event in enumerate(events):
        model.predict_one(event)
        if i >= delay:
            model.learn_one(events[i - delay], labels[i - delay])
    assert np.abs(model.model.combination.weights[combination.LAST]) > 0.1
    for n_asked in range(3):
        others = {how: copied(model, tmp_path / "m.svm") for how, copied in COPIES.items()}
        wanted = model.decision_function_one(events[n_asked])
        for how, other in others.items():
            assert other.decision_function_one(events[n_asked]) == wanted, (n_asked, how)
