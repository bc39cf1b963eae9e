"""What all binary learners share: events, batches, labels, probabilities, numbering of examples."""

from __future__ import annotations

import abc
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from river import base

from streamsvm.learners import checks, events, frames, model_file
from streamsvm.learners.calibration import new_calibration, probability, update_calibration
from streamsvm.learners.labels import BinaryLabels
from streamsvm.learners.matrices import Matrix, SparseMatrix
from streamsvm.learners.observer import Observer
from streamsvm.learners.schema import LIMIT, Name, Schema
from streamsvm.learners.shared import Shared
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape, sparse

_PART = 1024
"""Sparse rows that a learner with dense rows predicts at a time."""


class BinaryLearner(Shared, base.MiniBatchClassifier, abc.ABC):
    """A binary classifier over rows of floats; a subclass adds the solver.

    A subclass gives `_margins`, `_learn_rows` and `_turn_signs`, and calls ``super().__init__()``.
    """

    def __init__(self, max_features: int = LIMIT, buckets: int | None = None) -> None:
        # One thread may learn while others predict: whatever uses scratch holds the lock.
        super().__init__()
        self._schema = Schema(limit=max_features, buckets=buckets)
        # Whether rows are `SparseRows`.
        self._sparse = buckets is not None
        self._labels = BinaryLabels()
        self._calibration = new_calibration()
        self._n_examples = 0
        # A monitor that is told of each example learnt.
        self._observer: Observer | None = None
        self._handle: events.Handle | None = None

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
        labels: list[Any],
        w: np.ndarray,
        numbers: np.ndarray,
        diagonal: np.ndarray,
    ) -> np.ndarray:
        """Learn rows with signs `y`; return the margins from before each was learnt."""

    @abc.abstractmethod
    def _turn_signs(self) -> None:
        """Exchange +1 and -1 in what was learnt with one class only."""

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

    # Events

    def _current_handle(self) -> events.Handle | None:
        """Return the short way to the state, None if events must go the long one."""
        key = self._handle_key()
        if key is None or len(self._labels.seen) < 2:
            return None
        state, kernel, schedule = key
        d, handle = len(self._schema), self._handle
        # By identity: a state or a kernel is replaced, never changed.
        if handle is None or not handle.serves(state, kernel, schedule, d):
            handle = events.Handle(state, kernel, schedule, self._calibration, d)
            self._handle = handle
        return handle

    def _learn_shortly(self, x: Mapping[Name, Any], y: Any) -> bool:
        """Learn an event of known features and labels; return False if nothing was done."""
        try:
            known = y in self._labels.seen
        except (TypeError, ValueError):
            return False
        box = self._box_of(y) if known and self._observer is None else None
        handle = None if box is None else self._current_handle()
        if handle is None or box is None:
            return False
        event: Any
        new: list[Name] = []
        if self._sparse:
            event, new = self._schema.sparse_row(x)
            if event.d > self._room_for_features():
                return False
        else:
            event = self._schema.packed(x)
            if event is None:
                return False
        number = self._n_examples + 1
        if not handle.learn(event, self._labels.sign(y), box, number):
            return False
        if self._sparse:
            self._schema.extend(new)
        self._n_examples = number
        return True

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
            if isinstance(w, float) and w == 1.0 and self._learn_shortly(x, y):
                return
            labels = self._labels.check([y])
            weights = checks.weights_of(w, 1)
            schema = self._schema
            row, new = schema.sparse_row(x) if self._sparse else schema.wider_row(x)
            diagonal = self._diagonal(row)
            self._schema.extend(new)
            self._learn_checked(row, labels, weights, None, diagonal)

    def predict_one(self, x: Mapping[Name, Any], **kwargs: Any) -> Any:
        """Return the label on whose side of the margin an event lies; False before any label."""
        with self._lock:
            return self._labels.label(self._margin_one(x))

    def decision_function_one(self, x: Mapping[Name, Any]) -> float:
        """Return the signed margin f(x) + b; above 0 is the larger label, 0.0 before any label."""
        with self._lock:
            return self._margin_one(x)

    def _margin_one(self, x: Mapping[Name, Any]) -> float:
        schema = self._schema
        handle = self._current_handle()
        event: Any = None
        if handle is not None:
            event = schema.known_row(x) if self._sparse else schema.packed(x)
        if handle is not None and event is not None:
            margin: float = handle.margin_of(event)
            if margin == margin:
                return margin
        row = schema.known_row(x) if self._sparse else schema.row(x)
        return float(self._margins(row)[0]) if self._labels.seen else 0.0

    def predict_proba_one(self, x: Mapping[Name, Any], **kwargs: Any) -> dict[Any, float]:
        """Return {label: probability}, calibrated on margins from before each was learnt.

        Before any label the keys are False and True, at one half each.
        """
        with self._lock:
            return self.probabilities_of(self._margin_one(x))

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
        self.predict_then_learn_many(X, y, w=w, ids=ids)

    def predict_then_learn_many(self, X: Any, y: Any, w: Any = 1.0, ids: Any = None) -> list[Any]:
        """Learn like `learn_many`; return the labels predicted for each row before it was learnt.

        Progressive validation at the price of learning alone: the margin is a by-product.
        """
        with self._lock:
            x, new = self._read(X, learning=True)
            labels = self._labels.check(frames.labels_of(y, shape(x)[0]))
            weights = checks.weights_of(w, len(labels))
            numbers = checks.numbers_of(ids, len(labels))
            diagonal = self._diagonal(x)
            self._schema.extend(new)
            return self._learn_checked(x, labels, weights, numbers, diagonal)

    def predict_many(self, X: Any) -> Any:
        """Return the predicted label of each row, in the kind of container that `X` is."""
        with self._lock:
            margins = self._margins_many(X)
            return frames.like(X, [self._labels.label(m) for m in margins.tolist()])

    def decision_function_many(self, X: Any) -> np.ndarray:
        """Return the signed margins of the rows, float64 (n,)."""
        with self._lock:
            return self._margins_many(X)

    def _margins_many(self, X: Any) -> np.ndarray:
        x, _ = self._read(X, learning=False)
        d = len(self._schema)
        if isinstance(x, SparseRows):
            x = self._schema.known(x)
        elif x.shape[1] > d:
            x = np.ascontiguousarray(x[:, :d])
        n = shape(x)[0]
        if not self._labels.seen:
            return np.zeros(n)
        if self._sparse or not isinstance(x, SparseRows):
            return self._margins(x)
        # A part at a time: the whole may not fit into memory.
        parts = [self._margins(dense(cut(x, i, min(i + _PART, n)))) for i in range(0, n, _PART)]
        return np.concatenate([np.zeros(0), *parts])

    def _read(self, X: Any, learning: bool) -> tuple[Any, list[Name]]:
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
        x, new = self._schema.wider_rows(matrix.names, matrix.values, matrix.order)
        return (sparse(x) if self._sparse else x), new

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with a column a label and a row of probabilities a row.

        A dict of arrays for NumPy, an Arrow Table for Arrow, else a frame like `X`.
        """
        with self._lock:
            margins = self._margins_many(X)
            p = np.array([probability(self._calibration, m) for m in margins])
            rows = [self._labels.probabilities(value, self._n_examples) for value in p.tolist()]
            keys = list(self._labels.probabilities(0.5, 0))
        return frames.columns_like(X, {key: np.array([row[key] for row in rows]) for key in keys})

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
        return {**super().__getstate__(), "_observer": None, "_handle": None}

    # Shared parts

    @property
    def n_examples(self) -> int:
        """How many examples were learnt."""
        return self._n_examples

    @property
    def feature_names(self) -> list[Name]:
        """The features seen, in the order of `support_vectors().rows`."""
        return list(self._schema.names)

    @property
    def labels(self) -> tuple[Any, Any]:
        """The labels of margins below and above 0; None where not seen yet."""
        return self._labels.negative, self._labels.positive

    def label_of(self, margin: float) -> Any:
        """Return the label that a margin predicts."""
        return self._labels.label(margin)

    def probability_of(self, margin: float) -> float:
        """Return the calibrated probability of the positive label at a margin."""
        return float(probability(self._calibration, margin))

    def probabilities_of(self, margin: float) -> dict[Any, float]:
        """Return {label: calibrated probability} at a margin."""
        return self._labels.probabilities(self.probability_of(margin), self._n_examples)

    def _learn_checked(
        self,
        x: Rows,
        labels: list[Any],
        w: np.ndarray,
        numbers: np.ndarray | None,
        diagonal: np.ndarray,
    ) -> list[Any]:
        """Learn rows that cannot be refused any more, in runs between new classes."""
        if len(self._labels.seen) == 2:
            return self._learn_run(x, labels, w, numbers, diagonal) if labels else []
        predicted: list[Any] = []
        for start, stop in _runs(labels, self._labels.seen):
            # A new class begins a run, and is not known yet when its first example is predicted.
            before = self._labels.label(0.0) if len(self._labels.seen) < 2 else None
            if self._labels.add(labels[start]):
                self._turn_signs()
                if self._observer is not None:
                    self._observer.turn_signs()
            part = slice(start, stop)
            given = None if numbers is None else numbers[part]
            predicted += self._learn_run(
                cut(x, start, stop), labels[part], w[part], given, diagonal[part], before
            )
        return predicted

    def _learn_run(
        self,
        x: Rows,
        labels: list[Any],
        w: np.ndarray,
        numbers: np.ndarray | None,
        diagonal: np.ndarray,
        first: Any = None,
    ) -> list[Any]:
        """Learn rows of known classes; return the predictions, the first one `first` if given."""
        began = time.perf_counter()
        label, n = self._labels.label, self._n_examples
        signs = np.array([self._labels.sign(y) for y in labels])
        if numbers is None:
            numbers = np.arange(n + 1, n + 1 + len(labels))
        margins = self._learn_rows(x, signs, labels, w, numbers, diagonal)
        self._n_examples = n + len(labels)
        predicted = [label(margin) for margin in margins.tolist()]
        if first is not None:
            predicted[0] = first
        if self._observer is not None:
            seconds = time.perf_counter() - began
            self._observer.learnt(x, signs, labels, predicted, margins, w, numbers, seconds)
        # Last: what the observer makes of the margins is what was known before.
        if len(self._labels.seen) == 2:
            update_calibration(self._calibration, margins, signs)
        return predicted


def _runs(labels: list[Any], seen: list[Any]) -> Iterator[tuple[int, int]]:
    """Cut a batch where a class appears for the first time."""
    known = set(seen)
    starts = [0] if labels else []
    for i, label in enumerate(labels):
        if label not in known:
            known.add(label)
            if i:
                starts.append(i)
        if len(known) == 2:
            break
    yield from zip(starts, [*starts[1:], len(labels)], strict=True)
