"""Exact support vector regression after every example, which can take examples back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from river import base

from streamsvm import kernels
from streamsvm._parameter_checks import check_number, column_of
from streamsvm.errors import LabelError
from streamsvm.features import frames
from streamsvm.features.events import Event
from streamsvm.features.frames import Batch
from streamsvm.features.schema import LIMIT
from streamsvm.labels.labelled_rows import Ids, Weights
from streamsvm.learners.bases.exact import stream_file
from streamsvm.learners.bases.exact.cost_changes import CostedLearner, checked_C
from streamsvm.learners.bases.exact.exact_stream import ExactStream
from streamsvm.learners.bases.exact.results import LeftOut
from streamsvm.model_files.codec import register
from streamsvm.models.model import Kernel
from streamsvm.solvers.incremental import whole
from streamsvm.solvers.incremental.exact import ExactProblem

_LARGEST_Y = 1e15


class IncrementalSVMRegressor(CostedLearner, ExactStream, base.MiniBatchRegressor):
    """Exact support vector regression: the optimum after each example, and after taking any back.

    Errors up to epsilon cost nothing, larger ones C for each unit beyond it. All examples are kept;
    see `IncrementalSVMClassifier` for what it costs.

    Parameters
    ----------
    kernel
        As in `IncrementalSVMClassifier`.
    C
        Cost of errors beyond epsilon, above 0 and at most 1e8; 1.0 by default, as in scikit-learn.
        It is also the largest coefficient: with C far below the spread of the targets, predictions
        stay near their middle.
    epsilon
        Errors up to this, at least 0, cost nothing; 0.1 by default, as in scikit-learn. In units of
        the target.
    window, max_features, cache_mb, missing
        As in `IncrementalSVMClassifier`.

    Attributes
    ----------
    n_kept, dual, bias, delta, n_support_vectors, feature_names, memory_usage
        As in `IncrementalSVMClassifier`.

    References
    ----------
    Laskov, Gehl, Krueger, Mueller, Incremental Support Vector Learning, JMLR 7 (2006); Ma, Theiler,
    Perkins, Accurate On-line Support Vector Regression, Neural Computation 15 (2003).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import IncrementalSVMRegressor, StandardScaler
    >>> model = StandardScaler() | IncrementalSVMRegressor(C=10.0)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0...

    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        C: float = 1.0,
        epsilon: float = 0.1,
        window: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        missing: str = "mean",
    ) -> None:
        self.C, self.epsilon = (
            checked_C(C),
            check_number("epsilon", epsilon, 0.0, _LARGEST_Y),
        )
        super().__init__(kernel, window, max_features, cache_mb, missing, 2.0 * self.epsilon)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"kernel": kernels.RBF(gamma=1e-3), "C": 30.0, "epsilon": 0.0, "window": 40}

    def learn_one(self, x: Event, y: float, w: float = 1.0) -> None:
        """Learn one event.

        Parameters
        ----------
        x
            Features by name.
        y
            The number to be predicted.
        w
            Weight of the example, at least 0: it multiplies C.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            The event cannot be used; the model has not changed.

        """
        self._learn_event(x, _number_of(y), w)

    def learn_many(
        self, X: Batch, y: Iterable[float], w: Weights = 1.0, ids: Ids | None = None
    ) -> None:
        """Learn the rows of a batch in order: the same model as by `learn_one`.

        Parameters
        ----------
        X
            NumPy array (n, d), Arrow RecordBatch or Table, pandas or polars frame.
        y
            n numbers.
        w
            One weight for all, or n weights.
        ids
            None, or n whole numbers from 1 by which rows are taken back; one that is kept is not
            learnt again.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            A row cannot be used; the model has not changed.

        """
        self._learn_rows(X, _numbers_of(y), w, ids)

    def learn_example(self, x: np.ndarray, y: float, weight: float, number: int) -> None:
        """Learn a row, float64 (features,)."""
        self.model.add_example(x, y - self.epsilon, self.C * weight, number, weight, y)

    def predict_one(self, x: Event) -> float:
        """Return the number predicted for an event; 0.0 before the first example."""
        return self.decision_of(x)

    def predict_many(self, X: Batch) -> Any:
        """Return the numbers predicted for the rows of a batch, in a container of its kind."""
        return frames.like(X, self.decisions_of(X).tolist())

    def costs_of_kept(self, problem: ExactProblem, C: float) -> np.ndarray:
        """Return the C_i that all examples of a problem would have now, for a weight of 1."""
        return np.full(problem.n, C)

    def left_out(self, problem: ExactProblem, estimate: bool) -> LeftOut:
        """Return the result of `leave_one_out` of a problem that may change."""
        problem.settle()
        n = problem.n
        y, numbers = problem.facts["y"][:n].copy(), problem.facts["number"][:n].copy()
        found = whole.decisions_without(problem, exact=not estimate)
        return LeftOut(float(np.abs(y - found).mean()) if n else math.nan, numbers, found)


def _numbers_of(y: Iterable[float]) -> np.ndarray:
    """Return n numbers to be predicted, in any container, as float64 (n,)."""
    y = column_of(y, "numbers", LabelError)
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(y, method):
            y = getattr(y, method)()
            break
    return np.array([_number_of(value) for value in y], np.float64)


def _number_of(y: Any) -> float:
    """Return what is to be predicted as a number."""
    try:
        number = float(y) if not isinstance(y, (str, bytes)) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= _LARGEST_Y:
        raise LabelError(f"y={y!r:.80}: use a finite number of at most {_LARGEST_Y:g}")
    return number


register(IncrementalSVMRegressor, more=stream_file.as_file, read_more=stream_file.read)
