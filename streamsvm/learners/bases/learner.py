"""What all learners share: events, batches, the numbering of examples."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from river import base

from streamsvm.features import batches, frames
from streamsvm.features.event_reader import Event, EventReader
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT, Schema
from streamsvm.labels import outputs
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.outputs import Output
from streamsvm.learners.bases import events, label_runs, parameter_checks
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.training_observer import TrainingObserver
from streamsvm.model_files import container as model_file
from streamsvm.support.locked import Locked
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape

_PART = 1024
"""Sparse rows that a learner with dense rows predicts at a time."""


class Learner(Locked, base.MiniBatchClassifier, abc.ABC):
    """A classifier over rows of floats; subclasses add the labels and the solver."""

    chunk = 1000
    """Rows that a run learns between two looks at the clock and the keyboard."""

    has_dual = True
    """Whether it has dual coefficients, and so a gap to measure: see `monitor.watched`."""

    _is_reentrant = False
    """Whether a signal handler in the middle of the general path may learn on the model."""

    _is_learning = False
    """True in the general path, if it is not reentrant."""

    _output: ClassVar[Output] = outputs.BINARY
    """What its margins mean: `outputs.BINARY`, `MULTICLASS` or `GROWING`."""

    def __init__(self, max_features: int = LIMIT, buckets: int | None = None) -> None:
        # One thread may learn while others predict: whatever uses scratch holds the lock.
        super().__init__()
        self._schema = Schema(limit=max_features, buckets=buckets)
        # Whether rows are `SparseRows`.
        self._sparse = buckets is not None
        self._labels = self._output.new_labels()
        self._calibration = self._output.new_calibration(self._labels)
        # int64 (1,): compiled code counts, too.
        self._n_learnt = np.zeros(1, np.int64)
        # A monitor that is told of each example learnt.
        self.observer: TrainingObserver | None = None
        self._state: Any = None
        self._reader: EventReader | None = None
        self._event_path: EventPath | None = None

    @property
    def _n_examples(self) -> int:
        return int(self._n_learnt[0])

    @_n_examples.setter
    def _n_examples(self, n: int) -> None:
        self._n_learnt[0] = n

    # What a subclass gives

    @abc.abstractmethod
    def _margins(self, x: Rows) -> np.ndarray:
        """Return the margins of rows."""

    @abc.abstractmethod
    def _diagonal(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of finite rows; refuse those that the kernel cannot take."""

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
        """Learn rows with signs `y`; return the margins from before each was learnt."""

    def _with_signs_exchanged(self) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
        """Return attributes with +1 and -1 exchanged, and what becomes of signs elsewhere.

        The learner is left as it is. Of learners whose labels have signs.
        """
        raise AssertionError("classes have no signs")

    @abc.abstractmethod
    def _become_sparse(self) -> None:
        """Keep rows by their nonzero features from now on."""

    @abc.abstractmethod
    def _bound(self) -> Bound:
        """Return what compiled code uses for an event; there is a state."""

    @abc.abstractmethod
    def _bound_kernel(self, state: Any) -> Any:
        """Return the kernel for the functions of the solver, or what stands in its place."""

    @abc.abstractmethod
    def _room_for_features(self) -> int:
        """Return for how many features there is room in the state."""

    @abc.abstractmethod
    def _box_of(self, label: Any, sign: float) -> float:
        """Return the C_i of the next example if it has this label, without its example weight."""

    def _takes_every_row(self) -> bool:
        """Tell whether no row of finite values is refused."""
        return True

    def _after_event(self, path: EventPath, event: Event, sign: float, box: float) -> None:
        """Do what is due after an event was learnt by the event path."""

    # Events

    def learn_one(self, x: Mapping[Name, Any], y: base.typing.ClfTarget, w: float = 1.0) -> None:
        """Learn one event.

        Parameters
        ----------
        x
            Features by name; a missing one counts 0.
        y
            The label: any hashable.
        w
            Weight of the example, at least 0: it multiplies C. At 0 only its label is noted.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            The event cannot be used; the model has not changed.

        """
        with self._lock:
            if not events.learn(self, x, y, w):
                events.learn_generally(self, x, y, w)

    def predict_one(self, x: Mapping[Name, Any], **kwargs: Any) -> Any:
        """Return the label predicted for an event."""
        with self._lock:
            path = events.predict(self, x)
            if path is not None:
                return self._labels.ordered[path.best]
            return self._labels.label(self._general_margin(x))

    def decision_function_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the signed margin; of several classes {label: score}, the highest is predicted.

        A margin above 0 is that of the larger of two labels; 0.0, or {}, before any label.
        """
        with self._lock:
            return self._output.decision(self._labels, self._margin_one(x))

    def predict_proba_one(self, x: Mapping[Name, Any], **kwargs: Any) -> dict[Any, float]:
        """Return {label: probability}, calibrated on margins from before each was learnt.

        Before any label a binary learner returns one half for False and for True, one of several
        classes {}.
        """
        with self._lock:
            return self.probabilities_of(self._margin_one(x))

    def _margin_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event: a row of what `_margins` returns, as plain values."""
        path = events.predict(self, x)
        return self._general_margin(x) if path is None else path.margin

    def _general_margin(self, x: Mapping[Name, Any]) -> Any:
        row = self._schema.known_row(x) if self._sparse else self._schema.row(x)
        if not self._labels.seen:
            return self._output.zeros(self._labels, 1)[0].tolist()
        return self._margins(row)[0].tolist()

    # Batches

    def learn_many(self, X: Any, y: Any, w: Any = 1.0, ids: Any = None) -> None:
        """Learn the rows of a batch in their order: the same model as by `learn_one`, faster.

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
            Optional n positive whole numbers that tell the rows apart. Showing the same rows with
            the same ids again is a further epoch: a row that is a support vector already is passed
            over, as the algorithm wants. Use ids in all batches or in none.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            A row cannot be used; the model has not changed.

        """
        self._check_ids(ids)
        self.learn_batch(X, y, w, ids)

    def predict_then_learn_many(self, X: Any, y: Any, w: Any = 1.0, ids: Any = None) -> list[Any]:
        """Learn like `learn_many`; return the labels predicted for each row before it was learnt.

        Progressive validation at the price of learning alone: the margin is a by-product. The label
        is None before any was learnt, if there are several classes.
        """
        self._check_ids(ids)
        return self.learn_batch(X, y, w, ids).tolist()

    def _check_ids(self, ids: Any) -> None:
        """Refuse `ids` that a user gave to a learner which cannot have any."""

    def learn_batch(self, X: Any, y: Any, w: Any = 1.0, ids: Any = None) -> LabelColumn:
        """Do what `predict_then_learn_many` does; return the labels as a column, for runs."""
        with self._lock:
            x, new = self._read(X)
            labels = self._labels.check(frames.labels_of(y, shape(x)[0]))
            weights = parameter_checks.weights_of(w, len(labels))
            numbers = parameter_checks.numbers_of(ids, len(labels))
            if not len(labels):
                # No example has its features.
                return labels
            diagonal = self._diagonal(x)
            self._schema.extend(new)
            return self._learn_checked(x, labels, weights, numbers, diagonal)

    def predict_many(self, X: Any) -> Any:
        """Return the predicted label of each row, in the kind of container that `X` is."""
        with self._lock:
            margins = self._margins_many(X)
            return frames.like(X, self._labels.predicted(margins).tolist())

    def decision_function_many(self, X: Any) -> np.ndarray:
        """Return the margins of the rows, float64 (n,), or (n, classes) of several classes."""
        with self._lock:
            return self._margins_many(X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with a column a label and a row of probabilities a row.

        A dict of arrays for NumPy, an Arrow Table for Arrow, else a frame like `X`.
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
        # A part at a time: the whole may not fit into memory.
        parts = [self._margins(dense(cut(x, i, min(i + _PART, n)))) for i in range(0, n, _PART)]
        return np.concatenate([self._output.zeros(self._labels, 0), *parts])

    def matrix_of(self, X: Any) -> Matrix | SparseMatrix:
        """Return a batch as a matrix with the names of its columns, to be learnt or predicted."""
        return frames.matrix_of(X, self._schema)

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows over the features known."""
        return self._margins(x)

    def losses_of(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin, or of each row of scores."""
        return self._output.losses(signs, margins)

    def _read_known(self, X: Any) -> Rows:
        """Return a batch as rows over the features known."""
        return batches.known_rows(self._schema, X, self._sparse)

    def _read(self, X: Any) -> tuple[Rows, Sequence[Name]]:
        """Return a batch to learn as rows over the features, and the names of the new ones."""
        matrix = batches.matrix_of(X, self._schema)
        if isinstance(matrix, SparseMatrix):
            self._become_sparse()
        return batches.rows_of(self._schema, matrix, self._sparse)

    def save(self, path: str | Path) -> None:
        """Write the model to a file of data (no code): see `streamsvm.load`.

        The file is written beside `path` and put in its place when it is complete: a failure leaves
        an older file untouched.

        Raises
        ------
        UnwritableModelFileError
            The file cannot be written.
        ModelFileError
            A label or feature name is of a type that a file cannot hold.

        """
        model_file.save(self, path)

    def _contents(self) -> dict[str, Any]:
        # A monitor attaches itself again when it is copied.
        own = {"observer": None, "_event_path": None, "_reader": None, "_is_learning": False}
        return {**super()._contents(), **own}

    # Locked parts

    def _ignored(self) -> dict[str, int]:
        """Return the counter of features that were left out, if there are any."""
        n = self._schema.n_ignored
        return {"features_ignored": n} if n else {}

    @property
    @abc.abstractmethod
    def summary(self) -> str:
        """What it is, in a few words."""

    @property
    def n_examples(self) -> int:
        """How many examples were learnt."""
        return self._n_examples

    @property
    def feature_names(self) -> list[Name]:
        """The features seen, in the order of `support_vectors().rows`."""
        with self._lock:
            return list(self._schema.names)

    @property
    def classes(self) -> list[Any]:
        """The labels seen, in the order of their coming."""
        return list(self._labels.seen)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels in the order of the outputs; of two that of margins below 0 first.

        Of two labels those not seen yet are None.
        """
        return tuple(self._labels.ordered)

    @property
    def most_classes(self) -> int | None:
        """How many classes there can be; None: any number."""
        return self._labels.most

    def probabilities_of(self, margin: Any) -> dict[Any, float]:
        """Return {label: calibrated probability} at a margin, or at a list of scores."""
        return self._output.probabilities(self._calibration, self._labels, margin, self._n_examples)

    def label_of(self, margin: Any) -> Any:
        """Return the label that a margin, or a row of them, predicts."""
        return self._labels.label(margin)

    def labels_of(self, margins: np.ndarray) -> list[Any]:
        """Return the label that each of some margins predicts."""
        return self._labels.predicted(margins).tolist()

    def _learn_checked(
        self,
        x: Rows,
        labels: LabelColumn,
        w: np.ndarray,
        numbers: np.ndarray | None,
        diagonal: np.ndarray,
    ) -> LabelColumn:
        """Learn rows that cannot be refused any more; return what was predicted for each before."""
        return label_runs.learn(self, x, labels, w, numbers, diagonal)

    def _sign_of(self, label: Any) -> float:
        """Return the sign of a label; of one that no row has, any."""
        sign: float = self._labels.sign(label) if label in self._labels.seen else 0.0
        return sign

    def _add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Take note of a class; return what becomes of the signs known so far, None: nothing."""
        labels = type(self._labels)(self._labels.seen)
        changed, change = self._with_signs_exchanged() if labels.add(label) else ({}, None)
        # In one step: an interruption before or after it leaves labels and signs that match.
        self.__dict__.update(changed, _labels=labels)
        return change
