"""The schema: which names are refused."""

import numpy as np
import pandas as pd
import pytest

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingSVMClassifier,
)
from streamsvm.errors import FeatureError
from streamsvm.features.schema import Schema
from tests.slow import slow_but

NAN, OTHER = float("nan"), float("nan")
LEARNERS = [LASVMClassifier, TrackingSVMClassifier, LaRankClassifier, SVMSGDClassifier]
ODD = [{NAN: 1.0, OTHER: 2.0}, {"a": 1.0, NAN: 1.0}, {pd.NaT: 1.0, "a": 1.0}, {pd.NA: 1.0}]


@pytest.mark.parametrize("x", ODD, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "cls",
    slow_but(
        LEARNERS, LASVMClassifier, SVMSGDClassifier, compiling=lambda cls: f"{cls.__name__} sparse"
    ),
)
def test_names_that_are_not_equal_to_themselves_are_refused(cls, sparse, x):
    fresh, model = cls(sparse=sparse), cls(sparse=sparse)
    for i in range(6):
        model.learn_one({"a": float(i), "b": 1.0}, i % 2)
    # By the general path, and by that of events.
    for learner, w in ((fresh, 1.0), (model, 0.0), (model, 1.0)):
        n, names = learner.n_examples, learner.feature_names
        with pytest.raises(FeatureError, match="is not equal to itself"):
            learner.learn_one(x, True, w)
        assert learner.n_examples == n and learner.feature_names == names
    model.learn_one({"a": 2.0, "c": 1.0}, 1)
    assert model.feature_names == ["a", "b", "c"] and model.n_examples == 7


@pytest.mark.parametrize("x", ODD, ids=str)
def test_a_scaler_refuses_them_too(x):
    scaler = StandardScaler()
    for _ in range(2):
        with pytest.raises(FeatureError, match="is not equal to itself"):
            scaler.learn_one(x)
        scaler.learn_one({"a": 1.0})
    assert list(scaler.statistics) == ["a"] and scaler.statistics["a"][0] == 2


def test_a_refused_row_leaves_nothing_to_count():
    schema = Schema(["a"], limit=2)
    row, new = schema.wider_row({NAN: 1.0, "c": 1.0})
    assert row.shape == (1, 2) and len(new) == 1
    with pytest.raises(FeatureError):
        schema.extend([NAN])
    assert schema.n_ignored == 0 and schema.names == ["a"]
    schema.extend(["b"])
    assert schema.n_ignored == 0 and np.array_equal(schema.row({"b": 2.0}), [[0.0, 2.0]])
