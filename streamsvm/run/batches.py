"""Progressive validation of batches, for a learner or a pipeline of our transformers and one."""

from __future__ import annotations

from typing import Any

from streamsvm.errors import ParameterError
from streamsvm.run.parts import parts_of


def predict_then_learn_many(model: Any, X: Any, y: Any, w: Any = 1.0) -> list[Any]:
    """Learn the rows of a batch in order; return what was predicted for each before its label.

    As in a `Run`, each row is first learnt by the transformers (without its label) and transformed,
    then predicted, then learnt. River's pipelines, which are not changed, have no such method.

    Parameters
    ----------
    model
        A learner, or a pipeline of `StandardScaler`, one of `RandomFourierFeatures` and `Nystroem`,
        or both, and one.
    X
        NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table, pandas or polars frame.
    y
        n labels.
    w
        Weights above 0, one or n.

    Returns
    -------
    list[Any]
        n labels; None before the first label.

    Raises
    ------
    ParameterError
        The model is of another kind.
    FeatureError, LabelError
        The batch cannot be used; the learner has not changed.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVMClassifier, StandardScaler, predict_then_learn_many
    >>> x = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    >>> predict_then_learn_many(StandardScaler() | LASVMClassifier(), x, x[:, 0] > 0)
    [None, True, True, False]

    """
    scaler, learner = parts_of(model)
    if learner is None:
        raise ParameterError(
            f"{type(model).__name__}: use a learner of streamsvm, or a pipeline of StandardScaler, "
            "one of RandomFourierFeatures and Nystroem, or both, and one; with any other, call "
            "predict_one and learn_one for each event"
        )
    if scaler is None:
        return learner.predict_then_learn_many(X, y, w)
    return learner.predict_then_learn_many(scaler.learn_transform_many(learner.matrix_of(X)), y, w)
