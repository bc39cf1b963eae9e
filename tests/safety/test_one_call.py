"""A model is used by one call at a time: in the middle of one, its own thread is refused another.

Other threads wait.
"""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import streamsvm
from streamsvm import (
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
)
from streamsvm.errors import ModelBusyError
from streamsvm.learners.bases import learner as learners
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.run.onnx_export import to_onnx
from streamsvm.solvers.linear import state as linear_state
from tests.learners.test_all_learners import content, learnt, stream
from tests.wrappers import WRAPPERS

acting = []
"""A function that runs at the next use of an object below, if there is one."""


def act():
    if acting:
        acting.pop()()


class Name(str):
    """A name or label that acts when it is hashed; it is equal to its text."""

    def __hash__(self):
        act()
        return str.__hash__(self)

    def __eq__(self, other):
        return str.__eq__(self, other)


class ComparedName(Name):
    """The same that acts when it is compared."""

    def __hash__(self):
        return str.__hash__(self)

    def __eq__(self, other):
        act()
        return str.__eq__(self, other)


class Value:
    """A value that acts when it is converted."""

    def __float__(self):
        act()
        return 0.25


NEW = {"a": 1.0, "new": 2.0}, "1"
CALLS = {
    "learn": lambda model: model.learn_one(*NEW),
    "learn a class": lambda model: model.learn_one({"a": 1.0}, "third"),
    "learn a batch": lambda model: model.learn_many(np.ones((3, 1)), ["0", "1", "0"]),
    "predict": lambda model: model.predict_one({"a": 1.0, "b": 0.0}),
    "probabilities": lambda model: model.predict_proba_one({"a": 1.0}),
    "margin": lambda model: model.decision_function_one({"a": 1.0}),
    "predict a batch": lambda model: model.predict_many(np.ones((3, 2))),
    "finish": lambda model: model.finish(),
    "copy": copy.deepcopy,
    "pickle": pickle.dumps,
    "save": lambda model: model.save("nowhere"),
    "unlearn": lambda model: model.unlearn([1]),
    "export": to_onnx,
    "class weights": lambda model: setattr(model, "class_weight", {"1": 2.0}),
}
PLACES = {
    "hash of a name": ({Name("a"): 0.5, "b": 0.1}, "1"),
    "comparison of a name": ({ComparedName("a"): 0.5, "b": -0.1}, "1"),
    "a new name": ({Name("new"): 0.5, "b": 0.1}, "0"),
    "value": ({"a": Value(), "b": 0.2}, "0"),
    "hash of a label": ({"a": 0.3, "b": -0.2}, Name("1")),
    "comparison of a label": ({"a": -0.3, "b": 0.2}, ComparedName("0")),
}


def refused(model, calls=CALLS):
    """Return a function that tries all calls of a model, and the names of those that it tried."""
    tried = []

    def try_all():
        for name, call in calls.items():
            if name in ("finish", "unlearn") and not (hasattr(model, name) and model.has_dual):
                continue
            with pytest.raises(ModelBusyError, match="in the middle of another call"):
                call(model)
            tried.append(name)

    return try_all, tried


def in_texts(events):
    return [(x, str(y)) for x, y in events]


LEARNERS = [one.name for one in registered_learners("rows")]


@pytest.mark.parametrize("name", LEARNERS)
def test_all_calls_are_refused_in_the_middle_of_learning_and_predicting(name):
    learner = next(one for one in registered_learners("rows") if one.name == name)
    models = [learner.cls(**next(learner.cls._unit_test_params())) for _ in range(2)]
    for model in models:
        learnt(model, in_texts(stream(40)))
    model, twin = models
    before = content(model)
    for place, (x, y) in PLACES.items():
        for call in (
            lambda m, x=x, y=y: m.learn_one(x, y),
            lambda m, x=x, y=y: m.learn_one(x, y, np.float32(0.5)),
            lambda m, x=x: m.predict_one(x),
            lambda m, y=y: m.learn_many(pd.DataFrame({"a": [0.1, 0.2], "b": 0.3}), [y, "0"]),
        ):
            try_all, tried = refused(model)
            acting[:] = [try_all]
            call(model)
            was_used = not acting
            acting.clear()
            call(twin)
            assert len(tried) >= len(CALLS) - 2 or not was_used, place
        assert not model.is_busy and content(model) == content(twin) != before, place
    for x, _ in stream(9):
        assert model.decision_function_one(x) == twin.decision_function_one(x)


OF_SCALER = {
    "learn": lambda scaler: scaler.learn_one({"a": 1.0}),
    "transform": lambda scaler: scaler.transform_one({"a": 1.0}),
    "learn a batch": lambda scaler: scaler.learn_many(pd.DataFrame({"a": [1.0, 2.0]})),
    "copy": copy.deepcopy,
    "save": lambda scaler: streamsvm.save(scaler, "nowhere"),
}


@pytest.mark.parametrize("what", ["learn_one", "transform_one"])
def test_a_scaler(what):
    scaler, twin = StandardScaler(), StandardScaler()
    for i in range(6):
        for one in (scaler, twin):
            one.learn_one({"a": float(i), "b": 1.0})
        for x in ({"a": Value(), "b": 0.0}, {Name("b"): 2.0, "c": 1.0}):
            acting[:] = [refused(scaler, OF_SCALER)[0]]
            getattr(scaler, what)(x)
            assert not acting
            getattr(twin, what)(x)
    assert scaler.statistics == twin.statistics


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers(name):
    model, twin = (WRAPPERS[name].around(SVMSGDClassifier(t0=1.0)) for _ in range(2))
    for i, (x, y) in enumerate(stream(30)):
        for one in (model, twin):
            one.predict_one(x)
            one.learn_one(x, y)
        odd = {"a": Value(), "b": float(i % 3)}
        acting[:] = [refused(model, {"learn": lambda m, x=x: m.learn_one(x, 1)})[0]]
        model.learn_one(odd, 1)
        assert not acting
        twin.learn_one(odd, 1)
    assert model.predict_proba_one(x) == twin.predict_proba_one(x)


@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
@pytest.mark.parametrize("t0", [None, 10.0])
@pytest.mark.parametrize(
    ("module", "place"), [(linear_state, "new_state"), (learners, "change_together")]
)
def test_an_interruption_while_a_third_class_comes(monkeypatch, cls, t0, module, place):
    """Labels, outputs and first rows are the old ones or the new ones."""
    events = [({"a": float(i % 7) - 3.0, "b": 1.0}, "pq"[i % 7 > 3]) for i in range(40)]
    models = [cls(t0=t0) for _ in range(2)]
    for x, y in events:
        for model in models:
            model.learn_one(x, y)
    x = {"a": 1.0, "b": 2.0}

    def interrupted(*arguments):
        raise KeyboardInterrupt

    before = models[0].decision_function_one(x), models[0].weights, models[0].intercept
    with monkeypatch.context() as patch:
        patch.setattr(module, place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            models[0].learn_one(x, "third")
    assert (models[0].decision_function_one(x), models[0].weights, models[0].intercept) == before
    assert models[0].classes == ["p", "q"]
    for model in models:
        model.learn_one(x, "third")
        for event, y in events:
            model.learn_one(event, y)
    assert models[0].weights == models[1].weights
    assert models[0].predict_proba_one(x) == models[1].predict_proba_one(x)


@pytest.mark.parametrize(
    "cls", [*(known.cls for known in registered_learners("rows")), StandardScaler]
)
def test_a_call_waits_for_that_of_another_thread(cls):
    """On the fast paths of single events, too, which take the lock by themselves."""
    model = cls()
    is_scaler = cls is StandardScaler
    predict = model.transform_one if is_scaler else model.predict_one

    def learn(x):
        model.learn_one(*([x] if is_scaler else [x, x["a"] > 0.0]))

    events = [x for x, _ in stream(12)]
    for x in events:
        learn(x)
        predict(x)
    with ThreadPoolExecutor(1) as other:
        for call in (learn, predict):
            with model.lock:
                waits = other.submit(call, events[0])
                with pytest.raises(TimeoutError):
                    waits.result(0.1)
            waits.result()
