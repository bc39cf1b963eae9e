"""Parameters, weights and ids: what is taken, and what is said of all else."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamsvm import ConformalSets, SVMSGDClassifier, kernels
from streamsvm._parameter_checks import (
    check_cost,
    check_number,
    check_whole,
    numbers_of,
    weights_of,
)
from streamsvm.errors import ParameterError

X, Y = np.array([[1.0], [2.0], [0.0]]), [True, False, True]


@pytest.mark.parametrize(
    "w",
    [
        [1, 2, 3], pd.DataFrame({"w": [1.0, 2.0, 3.0]}), pa.table({"w": [1, 2, 3]}), range(1, 4),
        pd.Series([1, 2, 3], dtype="Int64"), pl.Series([1, 2, 3]), [Decimal(1), Decimal(2), 3],
        np.ma.array([1.0, 2.0, 3.0], mask=False), (i for i in (1, 2, 3)),
    ],
    ids=lambda w: type(w).__name__,
)  # fmt: skip
def test_weights_and_ids_in_any_column(w):
    values = list(w) if hasattr(w, "gi_frame") else w
    assert weights_of(values, 3).tolist() == [1.0, 2.0, 3.0]
    if not isinstance(values, list) or not isinstance(values[0], Decimal):
        whole = values.astype({"w": int}) if isinstance(values, pd.DataFrame) else values
        whole = whole.astype(int) if isinstance(whole, np.ma.MaskedArray) else whole
        found = numbers_of(whole, 3)
        assert found is not None and found.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "w",
    [
        "2", b"2", ["1", "2", "3"], np.array(["1", "2", "3"]), {0: 1.0, 1: 2.0, 2: 3.0}, {1.0, 2.0},
        None, 1j, 10**400, 10**5000, np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), [2.0],
        np.array([1, 2, 3], "datetime64[s]"), np.timedelta64(1, "s"), np.ones((3, 1)),
        pd.DataFrame({"a": [1, 2, 3], "b": 1}), [[1], [2, 3], [3]], -1, float("nan"),
    ],
    ids=lambda w: type(w).__name__,
)  # fmt: skip
def test_other_weights_are_refused_in_one_line(w):
    with pytest.raises(ParameterError, match="^w=[^\n]*$"):
        weights_of(w, 3)
    if w is not None:
        with pytest.raises(ParameterError, match="^ids[^\n]*$"):
            numbers_of(w, 3)


def test_learners_and_wrappers_check_them_alike():
    model = SVMSGDClassifier()
    for wrong in ("2", {0: 1.0, 1: 1.0, 2: 1.0}):
        with pytest.raises(ParameterError, match="^w="):
            model.learn_one({"a": 1.0}, True, w=wrong)
        for learner in (model, ConformalSets(SVMSGDClassifier())):
            with pytest.raises(ParameterError, match="^w="):
                learner.learn_many(X, Y, w=wrong)
    assert model.n_examples == 0


@pytest.mark.parametrize(
    "value",
    [10**400, 10**5000, "1", True, 1j, np.complex128(1), None, [1.0]],
    ids=lambda value: type(value).__name__,
)
def test_parameters_that_are_no_number_are_refused(value):
    for check in (check_cost, lambda value: check_number("C", value, 0.0)):
        with pytest.raises(ParameterError, match="^C=.*: use a"):
            check(value)
    with pytest.raises(ParameterError, match="^gamma=.*: use a"):
        kernels.RBF(gamma=value)
    with pytest.raises(ParameterError, match="^n=.*: use a whole number"):
        check_whole("n", value, 1)
