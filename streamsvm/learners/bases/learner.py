"""The base class of all learners: events and batches, learnt and predicted."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from river import base

from streamsvm.features import batches, frames
from streamsvm.features.event_reader import EventReader
from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels import outputs
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.outputs import Output
from streamsvm.learners.bases import events, label_runs
from streamsvm.learners.bases.base_learner import BaseLearner
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.inspection import Inspection
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.support.locked import refuse_to_learn
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape

_PART = 1024
"""Number of sparse rows that are made dense at a time, to be predicted by a dense model."""


class Learner(Inspection, BaseLearner, base.MiniBatchClassifier):
    """A River classifier for dicts and batches; subclasses add the solver."""

    chunk = 1000
    """Number of rows that a run learns before it checks the time and for Ctrl-C."""

    has_dual = True
    """Whether it has dual coefficients, from which a duality gap can be measured."""

    _output: ClassVar[Output] = outputs.BINARY
    """How margins become labels: `outputs.BINARY`, `MULTICLASS`, `GROWING` or `PROBLEMS`."""

    def __init__(self, max_features: int, buckets: int | None, missing: str = "mean") -> None:
        super().__init__()
        self._schema = Schema(limit=max_features, buckets=buckets, missing=missing)
        self.missing = missing
        # Whether rows are stored as their nonzero features.
        self._sparse = buckets is not None
        self._labels = self._output.new_labels()
        self._calibration = self._output.new_calibration(self._labels)
        # An array of one int64, because compiled code increases it.
        self._n_learnt = np.zeros(1, np.int64)
        self._state: Any = None
        self._reader: EventReader | None = None
        self._event_path: EventPath | None = None

    @abc.abstractmethod
    def _new_state(self, n_features: int) -> Any:
        """Return an empty state with room for so many features."""

    @abc.abstractmethod
    def _diagonal(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows; raise `FeatureError` if the kernel cannot take one."""

    @abc.abstractmethod
    def _learn_rows(
        self,
        x: Rows,
        y: np.ndarray,
        labels: LabelColumn,
        w: np.ndarray,
        numbers: np.ndarray,
        diagonal: np.ndarray,
    ) -> np.ndarray:
        """Learn rows, of number 0 only predict (their labels come later); return margins before."""

    def _with_signs_exchanged(self) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
        """Return the attributes that change when +1 and -1 are exchanged, with their new values.

        The second result converts signs that are stored elsewhere. The learner is not changed.
        """
        raise AssertionError("classes have no signs")

    @abc.abstractmethod
    def _become_sparse(self) -> None:
        """Store rows as their nonzero features from now on."""

    @abc.abstractmethod
    def _bound(self) -> Bound:
        """Return the objects that compiled code uses for an event; `_state` is not None."""

    @abc.abstractmethod
    def _bound_kernel(self, state: Any) -> Any:
        """Return the kernel, or what linear solvers take instead, in the form that solvers use."""

    @abc.abstractmethod
    def _room_for_features(self) -> int:
        """Return the number of features that the state has room for."""

    @abc.abstractmethod
    def _box_of(self, label: Any, sign: float) -> float:
        """Return the C_i of the next example, if it has this label, for an example weight of 1."""

    def _takes_every_row(self) -> bool:
        """Tell whether the learner accepts every row of finite values."""
        return True

    def _after_event(self, path: EventPath, sign: float, box: float) -> None:
        """Update gamma, rate and class weights after an event was learnt by `EventPath`."""

    # Events

    def learn_one(self, x: Mapping[Name, Any], y: base.typing.ClfTarget, w: float = 1.0) -> None:
        """Learn one event.

        Parameters
        ----------
        x
            Features by name; the parameter `missing` says what those that are missing count as.
        y
            The label: any hashable.
        w
            Weight of the example, at least 0: it multiplies C. At 0 only its label is recorded.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            The event cannot be used; the model has not changed.
        ModelBusyError
            The caller is a signal handler, or the like, in the middle of this model's learning.

        """
        with self._lock:
            if not events.learn(self, x, y, w):
                events.learn_generally(self, x, y, w)

    def predict_one(self, x: Mapping[Name, Any], **kwargs: Any) -> Any:
        """Return the label predicted for an event.

        Parameters
        ----------
        x
            Features by name, as in `learn_one`; one that was never learnt counts as 0.
        **kwargs
            Ignored; taken because River's interface has them.

        Returns
        -------
        One of the labels seen; None before the first label.

        Raises
        ------
        FeatureError
            A value is no finite number, or missing and refused.

        """
        with self._lock:
            label_index, _ = events.predict(self, x)
            if label_index >= 0:
                return self._labels.ordered[label_index]
            return self._labels.label(self._general_margin(x))

    def decision_function_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event.

        Parameters
        ----------
        x
            Features by name, as in `predict_one`.

        Returns
        -------
        A float: above 0 the larger of the two labels is predicted. From LaRank, and from others
        with more than two labels, {label: score}: the label with the highest score is predicted.
        Before the first label 0.0, from LaRank {}.

        """
        with self._lock:
            return self._output.decision(self._labels, self._margin_one(x))

    def predict_proba_one(self, x: Mapping[Name, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each label, calibrated on margins from before learning.

        Parameters
        ----------
        x, **kwargs
            As in `predict_one`.

        Returns
        -------
        {label: probability}. Before the first label one half each for False and True, which River's
        checks and samplers ask for, though neither may be a label; from LaRank {}.

        """
        with self._lock:
            return self.probabilities_of(self._margin_one(x))

    def _margin_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event as a float, or the scores as a list."""
        label_index, path = events.predict(self, x)
        return path.margin if path is not None and label_index >= 0 else self._general_margin(x)

    def _general_margin(self, x: Mapping[Name, Any]) -> Any:
        """Return the same by the general path, which takes every event."""
        row = self._schema.known_row(x) if self._sparse else self._schema.row(x)
        if not self._labels.seen:
            return self._output.zeros(self._labels, 1)[0].tolist()
        return self._margins(row)[0].tolist()

    # Batches

    def learn_many(self, X: Any, y: Any, w: Any = 1.0, ids: Any = None) -> None:
        """Learn the rows of a batch in order: the same model as by `learn_one`, but faster.

        Parameters
        ----------
        X
            NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table, pandas or polars
            frame.
        y
            n labels.
        w
            One weight for all, or n weights.
        ids
            None, or n positive whole numbers that identify the rows. With ids, learning the same
            rows again is a further epoch: a row that is already a support vector is not added
            again. Use ids in all batches or in none.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            A row cannot be used; the model has not changed.
        ModelBusyError
            As for `learn_one`.

        """
        self._check_ids(ids)
        self.learn_batch(X, y, w, ids)

    def predict_then_learn_many(self, X: Any, y: Any, w: Any = 1.0, ids: Any = None) -> list[Any]:
        """Learn like `learn_many`; return the label predicted for each row before it was learnt.

        This is progressive validation at no extra cost: learning computes the margins anyway.

        Parameters
        ----------
        X, y, w, ids
            As in `learn_many`.

        Returns
        -------
        n labels; None before the first label.

        """
        self._check_ids(ids)
        return self.learn_batch(X, y, w, ids).tolist()

    def _check_ids(self, ids: Any) -> None:
        """Raise `ParameterError` if the learner cannot be used with ids."""

    def learn_batch(
        self, X: Any, y: Any, w: Any = 1.0, ids: Any = None, late: LateRows | None = None
    ) -> LabelColumn:
        """Do what `predict_then_learn_many` does, with a column of labels as the result.

        Parameters
        ----------
        X, y, w, ids
            As in `learn_many`; ids are not checked.
        late
            Which rows are only predicted; `X` is then a matrix of names. None: all are learnt.

        Returns
        -------
        The label predicted for each row before it was learnt.

        """
        with self._lock:
            if self._is_learning:
                refuse_to_learn()
            self._is_learning = True
            try:
                return label_runs.learn_batch(self, X, y, w, ids, late)
            finally:
                self._is_learning = False

    def predict_many(self, X: Any) -> Any:
        """Return the predicted label of each row.

        Parameters
        ----------
        X
            A batch as in `learn_many`.

        Returns
        -------
        n labels, in a container of the kind of `X`; None before the first label.

        """
        with self._lock:
            margins = self._margins_many(X)
            return frames.like(X, self._labels.predicted(margins).tolist())

    def decision_function_many(self, X: Any) -> np.ndarray:
        """Return the margins of the rows of a batch.

        Parameters
        ----------
        X
            A batch as in `learn_many`.

        Returns
        -------
        float64 (n,); with several classes (n, classes).

        """
        with self._lock:
            return self._output.decisions(self._labels, self._margins_many(X))

    def predict_proba_many(self, X: Any) -> Any:
        """Return the calibrated probabilities of the rows of a batch, one column per label.

        Parameters
        ----------
        X
            A batch as in `learn_many`.

        Returns
        -------
        A dict of arrays if `X` is from NumPy, an Arrow Table for Arrow, otherwise a frame like `X`.

        """
        with self._lock:
            columns = self._output.probability_columns(
                self._calibration, self._labels, self._margins_many(X), self._n_examples
            )
        return frames.columns_like(X, columns)

    def _margins_many(self, X: Any) -> np.ndarray:
        x = self._read_known(X)
        n = shape(x)[0]
        if not self._labels.seen:
            return self._output.zeros(self._labels, n)
        if self._sparse or not isinstance(x, SparseRows):
            return self._margins(x)
        # In parts: all rows, made dense, may not fit into memory.
        parts = [self._margins(dense(cut(x, i, min(i + _PART, n)))) for i in range(0, n, _PART)]
        return np.concatenate([self._output.zeros(self._labels, 0), *parts])

    def _read_known(self, X: Any) -> Rows:
        """Return a batch as rows over the features of the schema."""
        return batches.known_rows(self._schema, X, self._sparse)

    def _read(self, X: Any) -> tuple[Rows, Sequence[Name]]:
        """Return a batch to learn as rows, NaN where a value is missing, and the new features."""
        matrix = batches.matrix_of(X, self._schema)
        if isinstance(matrix, SparseMatrix):
            self._become_sparse()
        return batches.rows_of(self._schema, matrix, self._sparse)

    def _contents(self) -> dict[str, Any]:
        # A copied monitor attaches itself to the copied learner.
        return {**super()._contents(), "observer": None, "_event_path": None, "_reader": None}

    def _predicted_before_class(self, x: Rows) -> LabelColumn | None:
        """Return what is predicted for a row before its class is added, if that changes models."""

    def _add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Add a class; return the function that converts earlier signs, None if they stay."""
        labels = self._labels.having(self._labels.seen)
        changed, change = self._with_signs_exchanged() if labels.add(label) else ({}, None)
        # Set in one step, so that labels and signs match after an interruption.
        self.__dict__.update(changed, _labels=labels)
        return change
