"""What all learners share: events, batches, the numbering of examples."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from river import base

from streamsvm.features import frames
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT, Schema
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import event_handle as events
from streamsvm.learners.bases import parameter_checks as checks
from streamsvm.learners.bases.training_observer import TrainingObserver
from streamsvm.model_files import container as model_file
from streamsvm.support.locked import Locked
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape, sparse

_PART = 1024
"""Sparse rows that a learner with dense rows predicts at a time."""


class Learner(Locked, base.MiniBatchClassifier, abc.ABC):
    """A classifier over rows of floats; subclasses add the labels and the solver."""

    chunk = 1000
    """Rows that a run learns between two looks at the clock and the keyboard."""

    has_dual = True
    """Whether it has dual coefficients, and so a gap to measure: see `monitor.watched`."""

    def __init__(self, max_features: int = LIMIT, buckets: int | None = None) -> None:
        # One thread may learn while others predict: whatever uses scratch holds the lock.
        super().__init__()
        self._schema = Schema(limit=max_features, buckets=buckets)
        # Whether rows are `SparseRows`.
        self._sparse = buckets is not None
        self._labels = self._new_labels()
        self._calibration = self._new_calibration()
        self._n_examples = 0
        # A monitor that is told of each example learnt.
        self.observer: TrainingObserver | None = None
        self._handle: events.Handle | None = None

    # What a subclass gives

    @abc.abstractmethod
    def _new_labels(self) -> Any:
        """Return what knows the labels, none so far."""

    @abc.abstractmethod
    def _new_calibration(self) -> np.ndarray:
        """Return how margins become probabilities, before any."""

    @abc.abstractmethod
    def _calibrate(self, margins: np.ndarray, signs: np.ndarray) -> None:
        """Learn how margins, from before each example was learnt, become probabilities."""

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

    @abc.abstractmethod
    def _turn_signs(self) -> Callable[[np.ndarray], np.ndarray]:
        """Exchange +1 and -1 in what was learnt; return what becomes of signs elsewhere."""

    @abc.abstractmethod
    def _become_sparse(self) -> None:
        """Keep rows by their nonzero features from now on."""

    @abc.abstractmethod
    def _handle_key(self) -> tuple[Any, Any, Any] | None:
        """Return state, kernel and schedule as they are used now; None before any state."""

    @abc.abstractmethod
    def _room_for_features(self) -> int:
        """Return for how many features there is room in the state."""

    @abc.abstractmethod
    def _box_of(self, label: Any) -> float | None:
        """Return the C_i of the next example if it has this label; None if not easily known."""

    def _learn_fast(self, x: Mapping[Name, Any], y: Any) -> bool:
        """Learn an event by a fast path, if there is one; return False if nothing was done."""
        return False

    def _margin_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event: a row of what `_margins` returns, as plain values."""
        row = self._schema.known_row(x) if self._sparse else self._schema.row(x)
        return self._margins(row)[0].tolist() if self._labels.seen else self._no_margins(1)[0]

    @abc.abstractmethod
    def _no_margins(self, n: int) -> np.ndarray:
        """Return the margins of n rows before any label."""

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
            if isinstance(w, float) and w == 1.0 and self._learn_fast(x, y):
                return
            labels = self._labels.check(LabelColumn.of([y]))
            weights = checks.weights_of(w, 1)
            schema = self._schema
            row, new = schema.sparse_row(x) if self._sparse else schema.wider_row(x)
            diagonal = self._diagonal(row)
            self._schema.extend(new)
            self._learn_checked(row, labels, weights, None, diagonal)

    def predict_one(self, x: Mapping[Name, Any], **kwargs: Any) -> Any:
        """Return the label predicted for an event."""
        with self._lock:
            return self._labels.label(self._margin_one(x))

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
            x, new = self._read(X, learning=True)
            labels = self._labels.check(frames.labels_of(y, shape(x)[0]))
            weights = checks.weights_of(w, len(labels))
            numbers = checks.numbers_of(ids, len(labels))
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

    def _margins_many(self, X: Any) -> np.ndarray:
        x = self._read_known(X)
        n = shape(x)[0]
        if not self._labels.seen:
            return self._no_margins(n)
        if self._sparse or not isinstance(x, SparseRows):
            return self._margins(x)
        # A part at a time: the whole may not fit into memory.
        parts = [self._margins(dense(cut(x, i, min(i + _PART, n)))) for i in range(0, n, _PART)]
        return np.concatenate([self._no_margins(0), *parts])

    def matrix_of(self, X: Any) -> Matrix | SparseMatrix:
        """Return a batch as a matrix with the names of its columns, to be learnt or predicted."""
        return frames.matrix_of(X, self._schema)

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows over the features known."""
        return self._margins(x)

    def _read_known(self, X: Any) -> Rows:
        """Return a batch as rows over the features known."""
        x, _ = self._read(X, learning=False)
        d = len(self._schema)
        if isinstance(x, SparseRows):
            return self._schema.known(x)
        return np.ascontiguousarray(x[:, :d]) if x.shape[1] > d else x

    def _read(self, X: Any, learning: bool) -> tuple[Any, Sequence[Name]]:
        """Return a batch as rows over the features known and new, and the names of the new ones."""
        is_read = isinstance(X, (Matrix, SparseMatrix))
        matrix = X if is_read else frames.matrix_of(X, self._schema)
        if isinstance(matrix, SparseMatrix):
            if learning:
                self._become_sparse()
            rows, new = self._schema.sparse_rows(matrix.names, matrix.rows)
            return (rows if self._sparse or not learning else dense(rows)), new
        if self._schema.buckets is not None:
            rows = sparse(np.asarray(matrix.values, np.float32))
            return self._schema.sparse_rows(matrix.names, rows)
        names, values, order, _, is_finite = matrix
        x, new = self._schema.wider_rows(names, values, order, is_finite)
        return (sparse(x) if self._sparse else x), new

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

    def __getstate__(self) -> dict[str, Any]:
        # A monitor attaches itself again when it is copied.
        return {**super().__getstate__(), "observer": None, "_handle": None}

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
    def most_classes(self) -> int | None:
        """How many classes there can be; None: any number."""
        return self._labels.most

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
        """Learn rows that cannot be refused any more, in runs between new classes."""
        runs = _runs(labels, self._labels.seen)
        if len(runs) == 1 and labels[0] in self._labels.seen:
            return self._learn_run(x, labels, w, numbers, diagonal)
        predicted: list[LabelColumn] = []
        for start, stop in runs:
            # A new class begins a run, and is not known yet when its first example is predicted.
            n_known = len(self._labels.seen)
            if self._labels.add(labels[start]):
                change = self._turn_signs()
                if self.observer is not None:
                    self.observer.turn_signs(change)
            part = slice(start, stop)
            given = None if numbers is None else numbers[part]
            column = self._learn_run(
                cut(x, start, stop),
                labels[part],
                w[part],
                given,
                diagonal[part],
                n_known if n_known < len(self._labels.seen) else None,
            )
            predicted.append(column)
        return LabelColumn.joined(predicted)

    def _learn_run(
        self,
        x: Rows,
        labels: LabelColumn,
        w: np.ndarray,
        numbers: np.ndarray | None,
        diagonal: np.ndarray,
        n_known: int | None = None,
    ) -> LabelColumn:
        """Learn rows of known classes; return the predictions, the first one with n_known of them.

        All classes were known to the first prediction if that is None.
        """
        began = time.perf_counter()
        n = self._n_examples
        signs = labels.numbers(self._sign_of)
        if numbers is None:
            numbers = np.arange(n + 1, n + 1 + len(labels))
        margins = self._learn_rows(x, signs, labels, w, numbers, diagonal)
        self._n_examples = n + len(labels)
        predicted: LabelColumn = self._labels.predicted(margins, n_known)
        if self.observer is not None:
            seconds = time.perf_counter() - began
            self.observer.learnt(
                x, signs, labels.tolist(), predicted.tolist(), margins, w, numbers, seconds
            )
        # Last: what the observer makes of the margins is what was known before.
        if len(self._labels.seen) > 1:
            self._calibrate(margins, signs)
        return predicted

    def _sign_of(self, label: Any) -> float:
        """Return the sign of a label; of one that no row has, any."""
        sign: float = self._labels.sign(label) if label in self._labels.seen else 0.0
        return sign


def _runs(labels: LabelColumn, seen: list[Any]) -> list[tuple[int, int]]:
    """Cut a batch where a class appears for the first time."""
    if not len(labels):
        return []
    firsts = [first for label, first in labels.present() if label not in seen]
    starts = sorted({0, *firsts})
    return list(zip(starts, [*starts[1:], len(labels)], strict=True))
