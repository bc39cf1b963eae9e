"""The base class of all learners: events and batches, learnt and predicted."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from river import base

from streamsvm._compiling import clock, working_time
from streamsvm._parameter_checks import LARGEST_FACTOR, numbers_of, weights_of
from streamsvm.errors import BadEventError, ParameterError
from streamsvm.features import batches, frames
from streamsvm.features.event_reader import Event, EventReader, are_usable
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases import late_rows, rehearsal, selecting, words
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.learners.bases.training_observer import TrainingObserver
from streamsvm.model_files import container
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.monitor.learnt import Learnt, learnt_one
from streamsvm.selection.candidates import Candidates
from streamsvm.selection.strategies import NAMES, Selection
from streamsvm.support.locked import Locked, learning, refuse_to_learn
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape

_NUMBERS = (float, int, bool)
"""The usual types of weights; NumPy's are found out more slowly."""

_ATTEMPTS = 8
"""How often an event is read again because reading it changed the model."""

_PART = 1024
"""Number of sparse rows that are made dense at a time, to be predicted by a dense model."""


class Learner(Locked, container.Saved, base.MiniBatchClassifier):
    """A River classifier for dicts and batches; subclasses add the solver.

    Attributes
    ----------
    schema, targets
        The features, and the labels, that the learner knows.
    is_sparse
        Whether rows are stored as their nonzero features.
    state
        The arrays of the solver; None before the first example, so that clones are cheap.

    """

    chunk = 1000
    """Number of rows that a run learns before it checks the time and for Ctrl-C."""

    has_dual = True
    """Whether it has dual coefficients, from which a duality gap can be measured."""

    compiles_classes_apart = False
    """Whether three or more classes run other compiled code than two."""

    new_targets: ClassVar[type[Targets]] = Targets
    """How margins become labels."""
    new_event_path: type[EventPath] = EventPath

    selection: Selection | None = None
    waiting: Candidates | None = None
    """The rule by which examples are chosen, and those that wait; None: all are learnt."""

    repeats: tuple[np.ndarray, ...] | None = None
    """What `solvers.adaptive.last_label` needs; None: it is not used."""

    is_rehearsal_copy: bool  # if there is one
    state: Any

    def __init__(self, max_features: int, buckets: int | None, missing: str = "mean") -> None:
        super().__init__()
        # The monitor that is told of each example learnt.
        self.observer: TrainingObserver | None = None
        self.schema = Schema(limit=max_features, buckets=buckets, missing=missing)
        self.missing = missing
        self.is_sparse = buckets is not None
        self.targets = self.new_targets()
        # An array, because compiled code increases it.
        self.n_learnt = np.zeros(1, np.int64)
        self.event_reader: EventReader | None = None
        self.event_path: EventPath | None = None

    def __repr__(self) -> str:
        return words.short(self)

    # To be defined by a subclass

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """The parameters in use that matter most, in a few words."""

    @abc.abstractmethod
    def empty_state(self) -> Any:
        """Return an empty state with room for the features and labels seen."""

    @abc.abstractmethod
    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows; raise `FeatureError` if the kernel cannot take one."""

    @abc.abstractmethod
    def learn_rows(self, rows: LabelledRows) -> np.ndarray:
        """Learn rows, of number 0 only predict (their labels come later); return margins before."""

    @abc.abstractmethod
    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, float64 (n,) or (n, classes)."""

    @abc.abstractmethod
    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on."""

    @abc.abstractmethod
    def event_parts(self) -> Bound:
        """Return the objects that compiled code uses for an event, if `state` is not None."""

    @abc.abstractmethod
    def cost_of(self, label: Any, number: float) -> float:
        """Return the C_i of the next example, if it has this label, for an example weight of 1."""

    @abc.abstractmethod
    def add_class(self, label: Any) -> None:
        """Add a class, in one step, so that all matches after an interruption."""

    def takes_every_row(self) -> bool:
        """Tell whether the learner accepts every row of finite values."""
        return True

    def after_event(self, path: EventPath, number: float, cost: float) -> None:
        """Update gamma, rate and class weights after an event was learnt by `EventPath`."""

    def event_model(self) -> Learner:
        """Return the learner whose arrays an `EventPath` uses, of which `event_parts` tells.

        With such arrays it has `bound_kernel` and `room_for_features`: see `KernelLearner`.
        """
        return self

    def predicted_before_class(self, x: Rows) -> LabelColumn | None:
        """Return what is predicted for a row before its class is added, if that changes models."""

    def know_labels(self, seen: list[Any]) -> None:
        """Set the labels of a learner that has learnt nothing, as a file has them."""
        self.targets = self.new_targets(self.targets.labels.having(seen))

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
        with self.lock:
            if not self._learn_event(x, y, w):
                self._learn_generally(x, y, w)

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
        with self.lock:
            label_index, _ = self._predict_event(x)
            if label_index >= 0:
                return self.targets.labels.seen[label_index]
            return self.targets.label_of(self._general_margin(x))

    def decision_function_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event, given as to `predict_one`.

        Returns
        -------
        A float: above 0 the larger of the two labels is predicted, at exactly 0 the one that came
        first. From LaRank, and from others with more than two labels, {label: score}: the label
        with the highest score is predicted. Before the first label 0.0, from LaRank {}.

        """
        with self.lock:
            return self.targets.decision(self.margin_one(x))

    def predict_proba_one(self, x: Mapping[Name, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each label, calibrated on margins from before learning.

        Returns
        -------
        {label: probability}. Before the first label {}; from learners of two classes one half each
        for False and True, which River asks of them, though neither may be a label.

        """
        with self.lock:
            return self.probabilities_of(self.margin_one(x))

    # The compiled call for an event; what it does not take (its label is new, a value is no number,
    # there is no room for a feature) is learnt as a batch of one row. Callers hold the lock.

    def _predict_event(self, x: Mapping[Name, Any]) -> tuple[int, EventPath | None]:
        """Return the index of an event's label, -1 to fall back, and the path with the margin."""
        if self.is_learning:
            # The path still has the event that is being learnt.
            return -1, None
        path: EventPath | None = self.event_path
        if path is not None and x.__class__ is dict:
            label_index = path.predict_plain(self, x)
            if label_index >= 0:
                return label_index, path
        event = self._read_event(x, False)
        path = None if event is None else self._path_for(event)
        if event is None or path is None:
            return -1, path
        label_index = path.predict(event)
        if label_index >= 0 and isinstance(x, dict):
            self.schema.note_predicted(x)
        return label_index, path

    def _learn_event(self, x: Mapping[Name, Any], y: Any, w: Any) -> bool:
        """Learn an event, and tell the monitor; return False to fall back, when nothing was learnt.

        Label and weight are as the user gave them: not checked yet. Raises ModelBusyError if this
        thread is in the middle of learning on this learner.
        """
        if self.is_learning:
            refuse_to_learn()
        if self.waiting is not None:
            return False
        # What is no number, or out of range, is refused by the general path.
        if w.__class__ not in _NUMBERS and not (
            isinstance(w, np.floating | np.integer | np.bool_) and not isinstance(w, np.timedelta64)
        ):
            return False
        if not 0.0 <= w <= LARGEST_FACTOR:
            return False
        w = float(w)
        numbers = self.targets.labels.numbers
        try:
            number = numbers.get(y)
        except TypeError:
            # A label that is not hashable: the general path raises the error.
            return False
        if number is None:
            return False
        cost = self.cost_of(y, number) * w
        observer = self.observer
        if observer is not None and observer.asks_probabilities:
            return False
        began = working_time() if observer is not None else 0.0
        path: EventPath | None = self.event_path
        label_index = -1
        try:
            if path is not None and x.__class__ is dict:
                label_index = path.learn_plain(self, x, numbers, number, cost, w)
            if label_index < 0:
                label_index, path = self._read_and_learn(x, numbers, (number, cost, w))
            if label_index < 0 or path is None:
                return False
            self.after_event(path, number, cost)
            if observer is not None:
                self._tell(observer, path, number, label_index, w, working_time() - began)
        finally:
            # `learn_plain` or `read_and_learn` has set it.
            self.is_learning = False
        return True

    def _tell(
        self,
        observer: Any,
        path: EventPath,
        number: float,
        label_index: int,
        w: float,
        seconds: float,
    ) -> None:
        """Tell the monitor of the event that a path has learnt; `label_index` was predicted."""
        seen = self.targets.labels.seen
        label, predicted = seen[int(number)], seen[label_index]
        if not observer.note(label, predicted, seconds):
            row, margin, n = path.row(), path.margin, self.n_examples
            observer.learnt(learnt_one(row, number, label, predicted, margin, w, n, seconds))

    def _read_and_learn(
        self,
        x: Mapping[Name, Any],
        numbers: dict[Any, float],
        target: tuple[Any, float, float],
        learn_by: Callable[..., int] = EventPath.learn,
    ) -> tuple[int, EventPath | None]:
        """Learn an event that is not plain; return what `_predict_event` does.

        `numbers` are those of the learner's labels, `target` the number, C_i and weight of the
        event, as `learn_by`, a method of the path, takes them.
        """
        self.is_learning = False
        event = self._read_event(x, True)
        # Before it is compared: from here on, nothing else may learn on the model.
        self.is_learning = True
        path = None if event is None else self._path_for(event)
        if path is None or event is None or self.targets.labels.numbers is not numbers:
            return -1, None
        if event[4]:
            takes_all = self.takes_every_row() and self.schema.missing.policy != "reject"
            if not (takes_all and are_usable(event)):
                return -1, None
            # Before learning, so that after an interruption every column in use has a name.
            self.schema.extend(event[4])
            if len(self.schema) != event[1]:
                # Names that compare otherwise each time: the general path refuses them.
                return -1, None
        return learn_by(path, event, *target), path

    def _read_event(self, x: Mapping[Name, Any], learning: bool) -> Event | None:
        """Return an event as packed numbers, or None; methods of the mapping may run here."""
        reader: EventReader | None = self.event_reader
        if reader is None or reader.schema is not self.schema:
            reader = self.event_reader = EventReader(self.schema)
        return reader.sparse(x, learning) if self.is_sparse else reader.dense(x, learning)

    def _path_for(self, event: Event) -> EventPath | None:
        """Return the path bound to the learner's current state; None if the event must fall back.

        Code of the user that ran while the event was read may have changed the learner. So
        everything is checked here, after reading, and no code of the user runs from here to the
        compiled call.
        """
        _, d, _, columns, new = event
        if d - len(new) != len(self.schema) or bool(columns) != self.is_sparse:
            return None
        path: EventPath | None = self.event_path
        bound = self.event_parts()
        statistics = self.schema.missing.statistics
        if path is None or not path.is_bound_to(bound) or path.statistics is not statistics:
            state, model = bound[0], self.event_model()
            if (
                state is None
                or len(self.targets.labels.seen) < 2
                or model.is_sparse != self.is_sparse
            ):
                return None
            path = self.event_path = self.new_event_path(self, model, bound)
        return path if d <= path.room else None

    def margin_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event as a float, or its scores as a list; the lock is held."""
        label_index, path = self._predict_event(x)
        return path.margin if path is not None and label_index >= 0 else self._general_margin(x)

    def _general_margin(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event by the general path, which takes every event."""
        row = self.schema.known_row(x) if self.is_sparse else self.schema.row(x)
        if not self.targets.labels.seen:
            return self.targets.zeros(1)[0].tolist()
        if isinstance(x, dict):
            self.schema.note_predicted(x)
        return self.margins_of(row)[0].tolist()

    def _learn_generally(self, x: Mapping[Name, Any], y: Any, w: Any) -> None:
        """Learn an event by the general path; the learner's lock is held."""
        try:
            row, labels, weights, new = self._checked_event(x, y, w)
            missing = self.schema.missing
            row, statistics = missing.filled(row, [*self.schema.names, *new], True)
            diagonal = self.diagonal_of(row)
            self.schema.extend(new)
            if shape(row)[1] > len(self.schema):
                raise BadEventError("names of features must compare in the same way each time")
            missing.keep(statistics)
            compiled = clock.functions
            self.learn_checked(row, labels, weights, None, diagonal)
            if clock.functions > compiled:
                rehearsal.compile_ahead(self)
            rehearsal.look(self)
        finally:
            self.is_learning = False

    def _checked_event(self, x: Mapping[Name, Any], y: Any, w: Any) -> tuple[Any, ...]:
        """Return an event as a batch of one row for the general path, and names of new features.

        Missing values of the row are NaN; beside it are a label and a weight. Raises BadEventError
        if the event cannot be used; the model is unchanged. The caller sets `is_learning` back.
        """
        # Methods of the event's values may use this model and change it. So they are converted to
        # floats once, here.
        event = self.schema.checked(x)
        for left in reversed(range(_ATTEMPTS)):
            # Methods of names and labels (hash, comparison) may change the model, too: then again.
            # In the last attempt they are refused to: signal handlers may come, and learn, in each
            # one.
            self.is_learning = left == 0
            schema, n, k = self.schema, self.n_examples, len(self.schema)
            row, new = schema.sparse_row(event) if self.is_sparse else schema.wider_row(event)
            weights = weights_of(w, 1)
            labels = self.targets.labels.check(LabelColumn.of([y]))
            # Before it is compared: from here on, nothing else may learn on the model.
            self.is_learning = True
            if self.schema is schema and (self.n_examples, len(schema)) == (n, k):
                return row, labels, weights, new
            self.is_learning = False
        raise BadEventError(
            "the model was changed each time this event was read: its values, names or label must "
            "not learn on the model that reads them"
        )

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
            again, and keeps its features and label. Use ids in all batches or in none.

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

        Returns
        -------
        n labels; None before the first label.

        """
        self._check_ids(ids)
        return self.learn_batch(X, y, w, ids).tolist()

    def _check_ids(self, ids: Any) -> None:
        """Raise `ParameterError` if the learner cannot be used with ids."""

    def predict_many(self, X: Any) -> Any:
        """Return the predicted label of each row of a batch, given as to `learn_many`.

        Returns
        -------
        n labels, in a container of the kind of `X`; None before the first label.

        """
        with self.lock:
            margins = self.margins_many(X)
            return frames.like(X, self.targets.labels_of(margins).tolist())

    def decision_function_many(self, X: Any) -> np.ndarray:
        """Return the margins of the rows of a batch, given as to `learn_many`.

        Returns
        -------
        float64 (n,); with several classes (n, classes).

        """
        with self.lock:
            return self.targets.decisions(self.margins_many(X))

    def predict_proba_many(self, X: Any) -> Any:
        """Return the calibrated probabilities of rows, a column for each label: see `predict_many`.

        Returns
        -------
        A dict of arrays if `X` is from NumPy, an Arrow Table for Arrow, otherwise a frame like `X`.

        """
        with self.lock:
            columns = self.targets.probability_columns(self.margins_many(X), self.n_examples)
        return frames.columns_like(X, columns)

    def read(self, X: Any) -> tuple[Rows, Sequence[Name]]:
        """Return a batch to learn as rows, NaN where a value is missing, and the new features."""
        matrix = batches.matrix_of(X, self.schema)
        if isinstance(matrix, SparseMatrix):
            self.become_sparse()
        return batches.rows_of(self.schema, matrix, self.is_sparse)

    def margins_many(self, X: Any) -> np.ndarray:
        """Return the margins of the rows of a batch, as `Targets` takes them.

        Those of two classes are above 0 for class 1; several classes may have further columns.
        """
        with self.lock:
            x = batches.known_rows(self.schema, X, self.is_sparse)
            n = shape(x)[0]
            if not self.targets.labels.seen:
                return self.targets.zeros(n)
            if self.is_sparse or not isinstance(x, SparseRows):
                return self.margins_of(x)
            # In parts: all rows, made dense, may not fit into memory.
            starts = range(0, n, _PART)
            parts = [self.margins_of(dense(cut(x, i, min(i + _PART, n)))) for i in starts]
            return np.concatenate([self.targets.zeros(0), *parts])

    @property
    def last_number(self) -> int:
        """The number from which examples that come without ids are counted on."""
        return self.n_examples

    @learning
    def learn_batch(
        self, X: Any, y: Any, w: Any = 1.0, ids: Any = None, late: LateRows | None = None
    ) -> LabelColumn:
        """Do what `predict_then_learn_many` does, with a column of labels as the result.

        The ids are not checked. If `late`, which tells what rows are only predicted, is given, `X`
        is a matrix of names.
        """
        if late is not None:
            if not self.schema.buckets:
                X = late_rows.as_learnt(X, late.is_learnt, self.schema.index)
            y = late.filled(LabelColumn.of(y), self.targets.labels.seen)
        x, new = self.read(X)
        labels: LabelColumn = self.targets.labels.check(frames.labels_of(y, shape(x)[0]))
        weights, numbers = weights_of(w, len(labels)), numbers_of(ids, len(labels))
        if late is not None:
            weights = weights * late.is_learnt
            if self.waiting is None:
                so_far = self.last_number + np.cumsum(late.is_learnt)
                numbers = np.where(late.is_learnt, so_far, 0)
        if not len(labels):
            # An empty batch must not add its features to the schema.
            return labels
        schema = self.schema
        is_learnt = True if late is None else late.is_learnt
        x, statistics = schema.missing.filled(x, [*schema.names, *new], is_learnt)
        diagonal = self.diagonal_of(x)
        schema.extend(new)
        schema.missing.keep(statistics)
        return self.learn_checked(x, labels, weights, numbers, diagonal, late)

    def learn_checked(
        self,
        x: Rows,
        labels: LabelColumn,
        w: np.ndarray,
        numbers: np.ndarray | None,
        diagonal: np.ndarray,
        late: LateRows | None = None,
    ) -> LabelColumn:
        """Learn n checked rows; return the label predicted for each row before it was learnt.

        The caller holds the learner's lock, and keeps other code from learning. `w`, `numbers` and
        `diagonal`, float64, int64 and float32 (n,), are example weights, example numbers, and k(x,
        x). Without numbers the examples are counted from the start of the stream. Rows that `late`
        says are only predicted have the number 0 and the weight 0.
        """
        if self.event_path is not None:
            # This may be a signal handler, while an event is read.
            self.event_path.invalidate()
        # Numbered when their classes are known.
        whole = LabelledRows(x, np.zeros(len(labels)), labels, w, np.zeros(0, np.int64), diagonal)
        if self.waiting is not None:
            ids = np.zeros(len(labels), np.int64) if numbers is None else numbers
            chosen_of = whole._replace(numbers=ids)
            return selecting.learn(self, self.waiting, chosen_of, late, self._learn_all)
        if numbers is None:
            numbers = self.last_number + np.arange(1, len(labels) + 1)
        return self._learn_all(whole._replace(numbers=numbers), late)

    def _learn_all(self, whole: LabelledRows, late: LateRows | None = None) -> LabelColumn:
        """Learn all of some checked rows: see `learn`."""
        labels, numbers = whole.labels, whole.numbers
        runs, observer = self.targets.runs(labels), self.observer
        is_one = observer is None or observer.wanted() >= len(labels)
        if len(runs) == 1 and is_one and self.targets.knows(labels[0]):
            return self._learn_run(whole, late=late)
        predicted: list[LabelColumn] = []
        for start, stop in self._parts(runs, numbers):
            # The first example of a new class is predicted with the classes before it.
            n_known, first = len(self.targets.labels.seen), None
            if not self.targets.knows(labels[start]):
                first = self.predicted_before_class(cut(whole.x, start, start + 1))
            self.add_class(labels[start])
            known = n_known if n_known < len(self.targets.labels.seen) else None
            column = self._learn_run(whole.part(start, stop), known, late, start, first)
            predicted.append(column)
        return LabelColumn.joined(predicted)

    def _parts(self, runs: list[tuple[int, int]], numbers: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield the runs, cut where the learner's monitor wants to be told of the examples."""
        for start, stop in runs:
            while self.observer is not None and stop - start > self.observer.wanted():
                cut_at = late_rows.row_after(numbers[:stop], start, self.observer.wanted())
                if cut_at == stop:
                    break
                yield start, cut_at
                start = cut_at
            yield start, stop

    def _learn_run(
        self,
        rows: LabelledRows,
        n_known: int | None = None,
        late: LateRows | None = None,
        start: int = 0,
        first: LabelColumn | None = None,
    ) -> LabelColumn:
        """Learn rows whose classes have been added; return the labels predicted before learning.

        The first row is predicted from the first `n_known` classes only; None: from all. It is row
        `start` of those that `late` is about. `first` is what was predicted for it already, if it
        was.
        """
        began = working_time()
        n, observer = self.n_examples, self.observer
        rows = rows.numbered_by(self.targets)
        margins = self.learn_rows(rows)
        predicted: LabelColumn = self.targets.labels_of(margins, n_known)
        if first is not None:
            predicted = LabelColumn.joined([first, predicted[1:]])
        everything = predicted
        x, classes, labels, w, numbers, _ = rows
        if late is not None:
            earlier = late.note(start, predicted)
            is_learnt = numbers > 0
            x, kept = late_rows.rows_where(x, is_learnt), np.flatnonzero(is_learnt)
            classes, margins, w, numbers = classes[kept], margins[kept], w[kept], numbers[kept]
            labels, predicted = labels.take(kept), predicted.take(kept)
            if observer is not None and earlier:
                observer.expect(earlier)
        self.n_learnt[0] = n + len(labels)
        if observer is not None and len(labels):
            guesses = predicted.tolist()
            of_labels = (self.targets.judged(labels, guesses).tolist(), guesses)
            seconds = working_time() - began
            observer.learnt(Learnt(x, classes, *of_labels, margins, w, numbers, seconds))
        # After the observer, which computes probabilities with the calibration from before
        # learning.
        if len(self.targets.labels.seen) > 1:
            self.targets.calibrate(margins, classes, labels)
        return everything

    # Learning with a selection: see `selecting`

    def choose_by(self, selection: Selection | None) -> None:
        """Set the parameter `selection` of a learner that has learnt nothing."""
        if selection is not None and type(selection) not in NAMES.values():
            names = ", ".join(f"{cls.__name__}()" for cls in NAMES.values())
            raise ParameterError(
                f"selection={selection!r}: use None or one of streamsvm.selection: {names}"
            )
        self.selection = selection
        self.waiting = None if selection is None else Candidates(selection)

    def margins_of_arrivals(self, candidates: Candidates, x: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of rows that come, and their kernel values: none, for this learner."""
        margins = self.margins_of(x)
        return margins, np.zeros((len(margins), 0), np.float32)

    def margins_of_waiting(self, candidates: Candidates) -> np.ndarray:
        """Return the margins of all candidates."""
        return self.margins_of(candidates.rows(len(self.schema)))

    # What can be asked without learning

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap; none by default."""
        return Looks()

    @property
    def papers_certificate(self) -> Certificate | None:
        """The bound of the mean gap in the papers' form; None: it is not for this learner."""
        return None

    @property
    def n_drifts(self) -> int | None:
        """How often a drift was noticed; None: the learner does not look for drifts."""
        return None

    @property
    def most_features(self) -> float:
        """How many features an event may have at most; infinity if their names are hashed."""
        return math.inf if self.schema.buckets is not None else self.schema.limit

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of each part of the model; a learner that has one part only names none."""
        return {}

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays, including cached kernel rows and scratch, and of the names."""
        waiting = 0 if self.waiting is None else self.waiting.nbytes
        return sum(self.memory_parts.values()) + waiting

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""
        return int(self.n_learnt[0])

    @property
    def feature_names(self) -> list[Name]:
        """The features seen, in the order of the columns of `support_vectors().rows`."""
        with self.lock:
            return list(self.schema.names)

    @property
    def classes(self) -> list[Any]:
        """The labels seen, in the order of first appearance."""
        return list(self.targets.labels.seen)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels in the order of scores; of two, that of margins below 0 first; or None."""
        return tuple(self.targets.ordered)

    @property
    def most_classes(self) -> int | None:
        """The largest number of classes that the learner takes; None: any number."""
        return self.targets.labels.most

    @property
    def _multiclass(self) -> bool:
        # River asks this.
        return self.most_classes != 2

    def probabilities_of(self, margin: Any) -> dict[Any, float]:
        """Return {label: calibrated probability} at a margin, or at a list of scores."""
        return self.targets.probabilities(margin, self.n_examples)

    def losses_of(self, classes: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each example, given the number of its class."""
        return self.targets.losses(classes, margins)

    def matrix_of(self, X: Any) -> Matrix | SparseMatrix:
        """Return a batch as a matrix that names its columns, to be learnt or predicted."""
        return frames.matrix_of(X, self.schema)

    @property
    def missing_values(self) -> dict[Name, int]:
        """How often features were missing in examples learnt, since their first values.

        Not of sparse rows, nor of features that are always 1: there 0 is what is missing.
        """
        with self.lock:
            return self.schema.missing.counts(self.schema.names)

    @property
    def n_unknown_events(self) -> int:
        """How many events were predicted that had none of the features that the model knows.

        Of text, and where no feature comes with half of the events, they are not counted.
        """
        return self.schema.n_unknown

    def summary(self) -> str:
        """Return what the learner has learnt as a table to print.

        Returns
        -------
        Lines of name and value: parameters in use, examples, features, classes, and what there is
        of support vectors, bias, duality gap, certificate, largest weights and memory.

        """
        with self.lock:
            return words.table(self)

    def _ignored(self) -> dict[str, int]:
        """Return the counter of features that were ignored, if there are any."""
        n = self.schema.n_ignored
        return {"features_ignored": n} if n else {}

    # Copies

    def _contents(self) -> dict[str, Any]:
        # A copied monitor attaches itself to the copied learner.
        return {**super()._contents(), "observer": None, "event_path": None, "event_reader": None}
