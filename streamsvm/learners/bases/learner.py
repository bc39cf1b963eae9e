"""The base class of all learners: events and batches, learnt and predicted."""

from __future__ import annotations

import abc
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from river import base

from streamsvm._compiling import clock, working_time
from streamsvm._parameter_checks import (
    LARGEST_FACTOR,
    check_class_weight,
    check_size,
    numbers_of,
    weights_of,
)
from streamsvm.errors import BadEventError, ParameterError
from streamsvm.features import absent, batches, frames
from streamsvm.features.event_reader import are_usable
from streamsvm.features.events import Event
from streamsvm.features.frames import Batch
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.class_labels import ClassWeight, Probabilities, factor_in
from streamsvm.labels.label_column import Label, LabelColumn, Labels
from streamsvm.labels.labelled_rows import Ids, LabelledRows, Weights
from streamsvm.labels.targets import Margin, Targets
from streamsvm.learners.bases import late_rows, rehearsal, selecting, words
from streamsvm.learners.bases.event_path import EventPath
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.learners.bases.row_learner import RowLearner
from streamsvm.models.kernel import threads
from streamsvm.models.model import Model
from streamsvm.models.rows import NumberedRows, row_after, rows_where
from streamsvm.monitor.learnt import Learnt, TrainingObserver, learnt_one
from streamsvm.selection.candidates import Candidates
from streamsvm.selection.strategies import NAMES, Selection
from streamsvm.support.interruptions import change_together
from streamsvm.support.locked import guarded, refuse, together
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape

Result = TypeVar("Result")

LOOKS = (rehearsal.LOOK, absent.NOTICED_AT)
"""After so many events the learner looks whether something is to be compiled, or said."""

_PART = 1024
"""Number of sparse rows that are made dense at a time, to be predicted by a dense model."""


class Learner(RowLearner, base.MiniBatchClassifier):
    """A River classifier for dicts and batches; subclasses hand over the model.

    Attributes
    ----------
    schema, targets
        The features, and the labels, that the learner knows.
    model
        What it learns with: rows of numbers in, margins out.

    """

    takes_balanced: ClassVar[bool] = False
    """Whether `class_weight` may be "balanced"."""

    _class_weight: ClassWeight | str | None = None

    compiles_classes_apart = False
    """Whether three or more classes run other compiled code than two."""

    new_targets: ClassVar[type[Targets]] = Targets
    """How margins become labels."""
    new_event_path: type[EventPath] = EventPath

    selection: Selection | None = None
    """The rule by which examples are chosen; None: all are learnt."""

    model: Model

    refuses_ids: str | None = None
    """Why it cannot be used with ids; None: it can."""

    is_rehearsal_copy = False
    """Whether it only compiles: see `rehearsal`."""

    def __init__(
        self, model: Model, max_features: int, buckets: int | None, missing: str = "mean"
    ) -> None:
        super().__init__()
        self.model = model
        self.schema = Schema(limit=max_features, buckets=buckets, missing=missing)
        self.missing = missing
        self.targets = self.new_targets()
        self.event_path: EventPath | None = None

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """The parameters in use that matter most, in a few words."""

    # What it learns with

    @property
    def state(self) -> Any:
        """The arrays of the model; None before the first example."""
        return self.model.state

    @property
    def is_sparse(self) -> bool:
        """Whether rows are stored as their nonzero features."""
        return self.model.is_sparse

    @property
    def n_learnt(self) -> np.ndarray:
        """The number of examples learnt, int64 (1,)."""
        return self.model.n_learnt

    @property
    def class_weight(self) -> Any:
        """What C, or the loss, is multiplied by; changed, it holds for the events that follow."""
        given = self._class_weight
        # A copy: what is changed in it would hold for later classes only, and unchecked.
        return dict(given) if isinstance(given, dict) else given

    @class_weight.setter
    @guarded
    def class_weight(self, class_weight: ClassWeight | str | None) -> None:
        parameters = inspect.signature(type(self)).parameters
        if class_weight is not None and "class_weight" not in parameters:
            raise ParameterError(f"class_weight: {type(self).__name__} has no weights of classes")
        self._weigh(class_weight)

    def _weigh(self, class_weight: ClassWeight | str | None) -> None:
        """Check the parameter `class_weight`, and set it."""
        check_class_weight(class_weight, self.takes_balanced)
        if isinstance(class_weight, dict):
            class_weight = dict(class_weight)
        factors = [factor_in(class_weight, label) for label in self.targets.labels.seen]
        changes = self.model.weighted(factors, class_weight == "balanced")
        change_together([(self.__dict__, {"_class_weight": class_weight}), *changes])

    @property
    def _weights_in_words(self) -> str:
        """The class weights, as `description` has them."""
        return "" if self.class_weight is None else f", class_weight={self.class_weight!r}"

    def factor_of(self, label: Label) -> float:
        """Return what C, or the loss, is multiplied by for examples with this label."""
        return factor_in(self._class_weight, label)

    def add_class(self, label: Label) -> None:
        """Add a class, if it is new: a batch may also be cut before an example of a known one."""
        for one in self.targets.new_in(label):
            changes = self.model.with_class(self.factor_of(one))
            # In one step: an interruption comes before or after it.
            targets = {"targets": self.targets.with_label(one)}
            change_together([(self.__dict__, targets), *changes])
            self.model.after_class()

    def limit_classes(self, max_classes: int | None) -> None:
        """Set the parameter `max_classes` of a learner that has learnt nothing."""
        self.targets.labels.most = check_size("max_classes", max_classes, 2)
        self.max_classes = max_classes

    def know_labels(self, seen: list[Label]) -> None:
        """Set the labels of a learner that has learnt nothing, as a file has them."""
        for label in seen:
            self.add_class(label)

    def alone(self, function: Callable[[], Result]) -> Result:
        """Return what a function returns, for which the learner is guarded."""
        return together([self], function)

    # Events

    def learn_one(self, x: Event, y: base.typing.ClfTarget, w: float = 1.0) -> None:
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
            The caller is inside another call of this model: a signal handler, or a method of a
            name, value or label. The same holds for all methods that learn, predict or copy.

        """
        # As `guarded` does, without the call.
        with self.lock:
            if self.is_busy:
                refuse()
            try:
                self.is_busy = True
                if not self._learn_event(x, y, w):
                    self._learn_generally(x, y, w)
            finally:
                self.is_busy = False

    def predict_one(self, x: Event, **kwargs: object) -> Any:
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
            if self.is_busy:
                refuse()
            try:
                self.is_busy = True
                label_index, _ = self._predict_event(x)
                if label_index >= 0:
                    return self.targets.labels.seen[label_index]
                return self.targets.label_of(self._general_margin(x))
            finally:
                self.is_busy = False

    @guarded
    def decision_function_one(self, x: Event) -> float | dict[Label, float]:
        """Return the margin of an event, given as to `predict_one`.

        Returns
        -------
        A float: above 0 the larger of the two labels is predicted, at exactly 0 the one that came
        first. From LaRank, and from others with more than two labels, {label: score}: the label
        with the highest score is predicted. Before the first label 0.0, from LaRank {}.

        """
        return self.targets.decision(self._margin_one(x))

    @guarded
    def predict_proba_one(self, x: Event, **kwargs: object) -> Probabilities:
        """Return the probability of each label, calibrated on margins from before learning.

        The most probable label can differ from that of `predict_one`, which takes the largest
        score, for the few events near a border.

        Returns
        -------
        {label: probability}. Before the first label {}; from learners of two classes one half each
        for False and True, which River asks of them, though neither may be a label.

        """
        return self.probabilities_of(self._margin_one(x))

    # The compiled call for an event; what it does not take (its label is new, a value is no number,
    # there is no room for a feature) is learnt as a batch of one row. Callers are guarded.

    def _predict_event(self, x: Event) -> tuple[int, EventPath | None]:
        """Return the index of an event's label, -1 to fall back, and the path with the margin."""
        path: EventPath | None = self.event_path
        if path is not None and x.__class__ is dict:
            label_index = path.predict_plain(self, x)
            if label_index >= 0:
                return label_index, path
        path = self._bound_path()
        event = None if path is None else path.read(x, False)
        if event is None or path is None:
            return -1, None
        label_index = path.predict(event)
        if label_index >= 0 and isinstance(x, dict):
            self.schema.note_predicted(x)
        return label_index, path

    def _learn_event(self, x: Event, y: Label, w: float) -> bool:
        """Learn an event, and tell the monitor; return False to fall back, when nothing was learnt.

        Label and weight are as the user gave them: not checked yet.
        """
        if self.waiting is not None:
            return False
        # What is no number, or out of range, is refused by the general path.
        if w.__class__ is not float and not _is_number(w):
            return False
        if not 0.0 <= w <= LARGEST_FACTOR:
            return False
        if w.__class__ is not float:
            w = float(w)
        try:
            number = self.targets.labels.numbers.get(y)
        except TypeError:
            # A label that is not hashable: the general path raises the error.
            return False
        if number is None:
            return False
        cost = self.model.cost_of(number) * w
        observer = self.observer
        if observer is not None and observer.asks_probabilities:
            return False
        began = working_time() if observer is not None else 0.0
        path: EventPath | None = self.event_path
        label_index = -1
        if path is not None and x.__class__ is dict:
            label_index = path.learn_plain(self, x, number, cost, w)
        if label_index < 0:
            label_index, path = self._read_and_learn(x, (number, cost, w))
        if label_index < 0 or path is None:
            return False
        if self.model.n_features < path.n_features:
            # The event that brought a feature was interrupted.
            self.model.n_features = path.n_features
        self.model.after_event(path, number, cost)
        if self.model.n_learnt.item() in LOOKS:
            self._look_ahead()
        if observer is not None:
            self._tell(observer, path, number, label_index, w, working_time() - began)
        return True

    def _tell(
        self,
        observer: TrainingObserver,
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
        x: Event,
        target: tuple[float | set[int], float, float],
        learn_by: Callable[..., int] = EventPath.learn,
    ) -> tuple[int, EventPath | None]:
        """Learn an event that is not plain; return what `_predict_event` does.

        `target` is the number, C_i and weight of the event, as `learn_by`, a method of the path,
        takes them.
        """
        path = self._bound_path()
        event = None if path is None else path.read(x, True)
        if path is None or event is None:
            return -1, None
        if event[4]:
            takes_all = self.model.takes_every_row() and self.schema.missing.policy != "reject"
            if not (takes_all and are_usable(event[2])):
                return -1, None
            # Before learning, so that after an interruption every column in use has a name.
            self.schema.extend(event[4])
            if len(self.schema) != event[1]:
                # Names that compare otherwise each time: the general path refuses them.
                return -1, None
            self.model.n_features = event[1]
        return learn_by(path, event, *target), path

    def _bound_path(self) -> EventPath | None:
        """Return the path bound to the current state; None if events must fall back."""
        path: EventPath | None = self.event_path
        parts = self.model.event_parts()
        if (
            path is None
            or path.targets is not self.targets
            or path.combination is not self.model.combination
            or path.statistics is not self.schema.missing.statistics
            or not path.is_bound_to(parts)
        ):
            if parts[0] is None or len(self.targets.labels.seen) < 2 or self.model.lacks_class():
                return None
            if self.is_sparse and self.schema.missing.requires_some:
                # The general path looks what is missing.
                return None
            path = self.event_path = self.new_event_path(self, parts)
        return path

    def _margin_one(self, x: Event) -> Margin:
        """Return the margin of an event as a float, or its scores as a list."""
        label_index, path = self._predict_event(x)
        return path.margin if path is not None and label_index >= 0 else self._general_margin(x)

    def _general_margin(self, x: Event) -> Margin:
        """Return the margin of an event by the general path, which takes every event."""
        row = self.schema.known_row(x) if self.is_sparse else self.schema.row(x)
        if not self.targets.labels.seen:
            return self.targets.outputs.zeros(1)[0].tolist()
        if isinstance(x, dict):
            self.schema.note_predicted(x)
        return self.model.margins_of(row)[0].tolist()

    def _learn_generally(self, x: Event, y: Label, w: float) -> None:
        """Learn an event by the general path, as a batch of one row."""
        schema, missing = self.schema, self.schema.missing
        # As floats first, so that methods of values run once.
        event = schema.checked(x)
        row, new = schema.sparse_row(event) if self.is_sparse else schema.wider_row(event)
        weights = weights_of(w, 1)
        labels = self.targets.labels.check(LabelColumn.of([y]))
        row, statistics = missing.filled(row, [*schema.names, *new], True)
        diagonal = self.model.diagonal_of(row)
        schema.extend(new)
        if shape(row)[1] > len(schema):
            raise BadEventError("names of features must compare in the same way each time")
        missing.keep(statistics)
        compiled = clock.functions
        self.learn_checked(row, labels, weights, None, diagonal)
        if clock.functions > compiled:
            rehearsal.compile_ahead(self)
        rehearsal.look(self)

    def _look_ahead(self) -> None:
        """Look whether something is to be compiled, or said, after one of `LOOKS` events."""
        rehearsal.look(self)
        if self.n_examples == absent.NOTICED_AT:
            absent.notice(self)

    # Batches

    def learn_many(self, X: Batch, y: Labels, w: Weights = 1.0, ids: Ids | None = None) -> None:
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

    def predict_then_learn_many(
        self, X: Batch, y: Labels, w: Weights = 1.0, ids: Ids | None = None
    ) -> list[Label]:
        """Learn like `learn_many`; return the label predicted for each row before it was learnt.

        This is progressive validation at no extra cost: learning computes the margins anyway.

        Returns
        -------
        n labels; None before the first label.

        """
        self._check_ids(ids)
        return self.learn_batch(X, y, w, ids).tolist()

    def _check_ids(self, ids: Ids | None) -> None:
        """Raise `ParameterError` if there are ids, and the learner cannot be used with them."""
        if ids is not None and self.refuses_ids is not None:
            raise ParameterError(f"ids: {self.refuses_ids}")

    @guarded
    def predict_many(self, X: Batch) -> Any:
        """Return the predicted label of each row of a batch, given as to `learn_many`.

        Returns
        -------
        n labels, in a container of the kind of `X`; None before the first label.

        """
        return frames.like(X, self.targets.labels_of(self._margins_many(X)).tolist())

    @guarded
    def decision_function_many(self, X: Batch) -> np.ndarray:
        """Return the margins of the rows of a batch, given as to `learn_many`.

        Returns
        -------
        float64 (n,); with several classes (n, classes).

        """
        return self.targets.decisions(self._margins_many(X))

    @guarded
    def predict_proba_many(self, X: Batch) -> Any:
        """Return the calibrated probabilities of rows, a column for each label: see `predict_many`.

        Returns
        -------
        A dict of arrays if `X` is from NumPy, an Arrow Table for Arrow, otherwise a frame like `X`.

        """
        columns = self.targets.probability_columns(self._margins_many(X), self.n_examples)
        return frames.columns_like(X, columns)

    def read(self, X: Batch) -> tuple[Rows, Sequence[Name]]:
        """Return a batch to learn as rows, NaN where a value is missing, and the new features.

        Rows of a sparse batch are sparse, whatever the model is.
        """
        matrix = batches.matrix_of(X, self.schema)
        is_sparse = self.is_sparse or isinstance(matrix, SparseMatrix)
        return batches.rows_of(self.schema, matrix, is_sparse)

    @guarded
    def margins_many(self, X: Batch) -> np.ndarray:
        """Return the margins of the rows of a batch, as `Targets` takes them.

        Those of two classes are above 0 for class 1; several classes may have further columns.
        """
        return self._margins_many(X)

    def _margins_many(self, X: Batch) -> np.ndarray:
        x = batches.known_rows(self.schema, X, self.is_sparse)
        n = shape(x)[0]
        if not self.targets.labels.seen:
            return self.targets.outputs.zeros(n)
        if self.is_sparse or not isinstance(x, SparseRows):
            return self.model.margins_of(x)
        # In parts: all rows, made dense, may not fit into memory.
        starts = range(0, n, _PART)
        parts = [self.model.margins_of(dense(cut(x, i, min(i + _PART, n)))) for i in starts]
        return np.concatenate([self.targets.outputs.zeros(0), *parts])

    @property
    def last_number(self) -> int:
        """The number from which examples that come without ids are counted on."""
        return self.n_examples

    @guarded
    def learn_batch(
        self,
        X: Batch,
        y: Labels,
        w: Weights = 1.0,
        ids: Ids | None = None,
        late: LateRows | None = None,
    ) -> LabelColumn:
        """Do what `predict_then_learn_many` does, with a column of labels as the result.

        The ids are not checked. If `late`, which tells what rows are only predicted, is given, `X`
        is a matrix of names.
        """
        return self._learn_batch(X, y, w, ids, late)

    def _learn_batch(
        self, X: Batch, y: Labels, w: Weights, ids: Ids | None, late: LateRows | None
    ) -> LabelColumn:
        if late is not None:
            if not self.schema.buckets:
                X = late_rows.as_learnt(
                    batches.matrix_of(X, self.schema), late.is_learnt, self.schema.index
                )
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
        diagonal = self.model.diagonal_of(x)
        if isinstance(x, SparseRows) and not self.is_sparse:
            # Only now: a batch that is refused changes nothing.
            self.model.become_sparse()
            x = x if self.is_sparse else dense(x)
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

        `w`, `numbers` and `diagonal`, float64, int64 and float32 (n,), are example weights, example
        numbers, and k(x, x). Without numbers the examples are counted from the start of the stream.
        Rows that `late` says are only predicted have the number 0 and the weight 0.
        """
        if self.waiting is not None:
            ids = np.zeros(len(labels), np.int64) if numbers is None else numbers
            chosen_of = LabelledRows(x, labels, w, ids, diagonal)
            return selecting.learn(self, self.waiting, chosen_of, late, self._learn_all)
        if numbers is None:
            numbers = self.last_number + np.arange(1, len(labels) + 1)
        return self._learn_all(LabelledRows(x, labels, w, numbers, diagonal), late)

    def _learn_all(self, whole: LabelledRows, late: LateRows | None = None) -> LabelColumn:
        """Learn all of some checked rows: see `learn_checked`."""
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
                first = self._predicted_before_class(cut(whole.x, start, start + 1))
            self.add_class(labels[start])
            known = n_known if n_known < len(self.targets.labels.seen) else None
            column = self._learn_run(whole.part(start, stop), known, late, start, first)
            predicted.append(column)
        return LabelColumn.joined(predicted)

    def _predicted_before_class(self, x: Rows) -> LabelColumn | None:
        """Return what is predicted for a row before its class is added, if that changes models."""
        margins = self.model.margins_before_class(x) if self.targets.n_classes > 1 else None
        return None if margins is None else self.targets.labels_of(margins)

    def _parts(self, runs: list[tuple[int, int]], numbers: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield the runs, cut where the learner's monitor wants to be told of the examples."""
        for start, stop in runs:
            while self.observer is not None and stop - start > self.observer.wanted():
                cut_at = row_after(numbers[:stop], start, self.observer.wanted())
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
        numbered = rows.numbered_by(self.targets)
        margins = self._learn_rows(numbered)
        predicted: LabelColumn = self.targets.labels_of(margins, n_known)
        if first is not None:
            predicted = LabelColumn.joined([first, predicted[1:]])
        everything = predicted
        (x, labels, w, numbers, _), classes = rows, numbered.y
        if late is not None:
            earlier = late.note(start, predicted)
            is_learnt = numbers > 0
            x, kept = rows_where(x, is_learnt), np.flatnonzero(is_learnt)
            classes, margins, w, numbers = classes[kept], margins[kept], w[kept], numbers[kept]
            labels, predicted = labels.take(kept), predicted.take(kept)
            if observer is not None and earlier:
                observer.expect(earlier)
        if n < absent.NOTICED_AT <= n + len(labels):
            absent.notice(self)
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

    def _learn_rows(self, rows: NumberedRows) -> np.ndarray:
        """Let the model learn rows; return the margins from before each."""
        return self.model.learn(rows)

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

    # What can be asked without learning

    @property
    def most_features(self) -> float:
        """How many features an event may have at most; infinity if their names are hashed."""
        return math.inf if self.schema.buckets is not None else self.schema.limit

    @property
    def classes(self) -> list[Label]:
        """The labels seen, in the order of first appearance."""
        return list(self.targets.labels.seen)

    @property
    def labels(self) -> tuple[Label, ...]:
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

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, as `targets.outputs` says."""
        return self.model.margins_of(x)

    def probabilities_of(self, margin: Margin) -> Probabilities:
        """Return {label: calibrated probability} at a margin, or at a list of scores."""
        return self.targets.probabilities(margin, self.n_examples)

    def losses_of(self, classes: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each example, given the number of its class."""
        return self.targets.outputs.losses(classes, margins)

    def matrix_of(self, X: Batch) -> Matrix | SparseMatrix:
        """Return a batch as a matrix that names its columns, to be learnt or predicted."""
        return frames.matrix_of(X, self.schema)

    @property
    def missing_values(self) -> dict[Name, int]:
        """How often features were missing in examples learnt, since their first values.

        Not of sparse rows, nor of features that are always 1: there 0 is what is missing.
        """
        with self.lock:
            return self.schema.missing.counts(self.schema.names)

    def summary(self) -> str:
        """Return what the learner has learnt as a table to print.

        Returns
        -------
        Lines of name and value: parameters in use, examples, features, classes, and what there is
        of support vectors, bias, duality gap, certificate, largest weights and memory.

        """
        with self.lock:
            return words.table(self, self._facts())

    def _facts(self) -> dict[str, object]:
        """Return what `words.table` wants to know."""
        return {"features": self.feature_names, "advice": absent.zeros_in_words(self)}

    # Copies

    def _contents(self) -> dict[str, object]:
        # A copied monitor attaches itself to the copied learner.
        return {
            **super()._contents(),
            "observer": None,
            "event_path": None,
            "model": self.model.for_copy(),
        }

    def __setstate__(self, contents: dict[str, object]) -> None:
        super().__setstate__(contents)
        # The process may have other cores.
        self.model.after_copy(threads.check_n_jobs(self.n_jobs))


def _is_number(w: object) -> bool:
    """Tell whether a weight is of a usual type, whose methods run no code of a user."""
    is_numpys = isinstance(w, np.floating | np.integer | np.bool_)
    return w.__class__ in (int, bool) or (is_numpys and not isinstance(w, np.timedelta64))
