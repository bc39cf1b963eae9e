"""What is said about values and names that are refused."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from streamsvm import (
    KernelPerceptronClassifier,
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingSVMClassifier,
)
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.features.event_reader import refuse_complex
from streamsvm.features.events import check_number_feature
from streamsvm.features.schema import Schema
from tests.slow import slow_but


@pytest.mark.parametrize("value", [1e100, -3.5e38, np.float64(1e300), 10**100])
def test_finite_numbers_beyond_single_precision_are_not_called_infinite(value):
    with pytest.raises(FeatureError, match="'a' is .*: beyond single precision") as caught:
        check_number_feature("a", value)
    assert "finite" not in str(caught.value) and len(str(caught.value)) < 250


@pytest.mark.parametrize("value", [float("inf"), "1", 1j, np.complex64(1), np.clongdouble(1)])
def test_other_values_are_told_what_is_accepted(value):
    with pytest.raises(FeatureError, match="only finite numbers are accepted"):
        check_number_feature("a", value)


def test_integers_too_long_to_write_are_described():
    # Python refuses to convert integers of more than 4,300 digits to text.
    with pytest.raises(FeatureError, match="an integer of 16610 bits: beyond single precision"):
        check_number_feature("a", 10**5000)


@pytest.mark.parametrize("make", [SVMSGDClassifier, KernelPerceptronClassifier, StandardScaler])
def test_complex_numbers_are_refused(make):
    """With Python's own filters NumPy drops the imaginary part, and warns once."""
    model = make()
    predict = getattr(model, "predict_one", model.transform_one if make is StandardScaler else None)
    for i in range(40):
        model.learn_one({"a": float(i % 5), "b": 1.0}, *([] if make is StandardScaler else [i % 2]))
    before = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        refuse_complex()
        for value in (np.complex64(1 + 2j), np.complex128(1.0), 1j):
            for event in ({"a": value, "b": 1.0}, {"a": 1.0, "c": value}):
                with pytest.raises(FeatureError, match="only finite numbers are accepted"):
                    model.learn_one(event, *([] if make is StandardScaler else [1]))
                with pytest.raises(FeatureError, match="only finite numbers are accepted"):
                    predict(event)
            if make is not StandardScaler:
                with pytest.raises(ParameterError, match="use one number"):
                    model.learn_one({"a": 1.0, "b": 1.0}, 1, w=value)
    # A copy of it, too: what parts share is pickled once.
    assert pickle.dumps(copy.deepcopy(model)) == pickle.dumps(before)


def test_wide_batches_are_called_so():
    wide = sparse.csr_matrix((1, 1_400_000))
    with pytest.raises(FeatureError, match="^a batch of 1,400,000 columns: at most 1,048,576 are"):
        SVMSGDClassifier().learn_many(wide, [True])


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
