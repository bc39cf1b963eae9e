"""Events of which a model knows no feature: counted, and said once."""

import logging

import numpy as np
import pandas as pd
import pytest

from streamsvm import IncrementalSVMRegressor, StandardScaler, SVMSGDClassifier
from streamsvm.run.serving import Serving

NAME = "streamsvm.features.schema"


def said(caplog):
    return [record.getMessage() for record in caplog.records if record.name == NAME]


def learnt(model):
    for i in range(20):
        model.learn_one({"a": float(i % 5), "b": float(i)}, i % 2)
    return model


@pytest.mark.parametrize(
    "model",
    [SVMSGDClassifier(), StandardScaler() | SVMSGDClassifier(), IncrementalSVMRegressor()],
    ids=lambda model: type(model).__name__,
)
def test_they_are_counted_and_said_once(model, caplog):
    caplog.set_level(logging.WARNING, NAME)
    learnt(model)
    learner = list(model.steps.values())[-1] if hasattr(model, "steps") else model
    for x in ({"a": 1.0}, {"a": 1.0, "new": 2.0}, {"new": 1.0, "b": 2.0}, {}):
        model.predict_one(x)
    assert learner.n_unknown_events == 0 and not said(caplog)
    for _ in range(3):
        model.predict_one({"x": 1.0, "y": 2.0})
    assert learner.n_unknown_events == 3
    model.predict_many(pd.DataFrame({"x": [1.0, 2.0]}))
    assert learner.n_unknown_events == 5
    (message,) = said(caplog)
    assert "none of the features that the model knows ('a', 'b'), but 'x', 'y'" in message


def test_new_words_of_texts_are_no_such_events(caplog):
    model = SVMSGDClassifier()
    assert model.predict_one({"x": 1.0}) is None
    for i in range(60):
        model.predict_one({f"new {i}": 1.0})
        model.learn_one({f"word {i % 20}": 1.0, f"word {i * 7 % 20}": 1.0}, i % 2)
    assert model.n_unknown_events == 0 and not said(caplog)


def test_named_features_after_those_of_arrays(caplog):
    model = SVMSGDClassifier()
    model.learn_many(np.arange(20.0).reshape(10, 2), [0, 1] * 5)
    model.predict_one({0: 1.0})
    assert not said(caplog)
    model.predict_one({"a": 1.0})
    model.learn_many(pd.DataFrame({"a": [1.0]}), [1])
    predicted, learnt = said(caplog)
    assert "knows (0, 1), but 'a'" in predicted and "named 0, 1, ..., others by" in predicted
    assert learnt.startswith("new features ('a') of a model that knows 0, 1: features of arrays")
    assert model.n_unknown_events == 1


def test_a_serving_counts_over_its_copies(caplog):
    model = learnt(SVMSGDClassifier())
    serving = Serving(model, seconds=0.0)
    for n in range(1, 4):
        serving.predict_one({"x": 1.0})
        assert serving.n_unknown_events == n and len(said(caplog)) == 1
        assert serving.refresh()
    assert model.n_unknown_events == 0
