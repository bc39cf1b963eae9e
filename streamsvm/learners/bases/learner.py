"""The base class of all learners: events and batches, learnt and predicted."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from river import base

from streamsvm.features import frames
from streamsvm.features.event_reader import EventReader
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases import events, label_runs, selecting, words
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.training_observer import TrainingObserver
from streamsvm.model_files import container
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.selection.candidates import Candidates
from streamsvm.selection.strategies import Selection
from streamsvm.support.locked import Locked
from streamsvm.support.rows import Rows


class Learner(Locked, base.MiniBatchClassifier):
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
    summary, save, __repr__ = words.summary, container.save, words.short

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
    def cost_of(self, label: Any, sign: float) -> float:
        """Return the C_i of the next example, if it has this label, for an example weight of 1."""

    @abc.abstractmethod
    def add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Add a class; return the function that converts earlier signs, None if they stay.

        What changes is set in one step, so that all matches after an interruption.
        """

    def takes_every_row(self) -> bool:
        """Tell whether the learner accepts every row of finite values."""
        return True

    def after_event(self, path: EventPath, sign: float, cost: float) -> None:
        """Update gamma, rate and class weights after an event was learnt by `EventPath`."""

    def event_model(self) -> Learner:
        """Return the learner whose arrays an `EventPath` uses, of which `event_parts` tells.

        With such arrays it has `bound_kernel` and `room_for_features`: see `KernelLearner`.
        """
        return self

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
        with self.lock:
            label_index, _ = events.predict(self, x)
            if label_index >= 0:
                return self.targets.labels.ordered[label_index]
            return self.targets.label_of(events.general_margin(self, x))

    def decision_function_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event, given as to `predict_one`.

        Returns
        -------
        A float: above 0 the larger of the two labels is predicted. From LaRank, and from others
        with more than two labels, {label: score}: the label with the highest score is predicted.
        Before the first label 0.0, from LaRank {}.

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

    margins_of_arrivals = selecting.margins_of_arrivals
    choose_by, margins_of_waiting = selecting.choose_by, selecting.margins_of_waiting
    learn_batch, margins_many = label_runs.learn_batch, label_runs.margins_many
    read, margin_one = label_runs.read, events.margin
    last_number = property(label_runs.last_number)

    def _contents(self) -> dict[str, Any]:
        # A copied monitor attaches itself to the copied learner.
        return {**super()._contents(), "observer": None, "event_path": None, "event_reader": None}

    def predicted_before_class(self, x: Rows) -> LabelColumn | None:
        """Return what is predicted for a row before its class is added, if that changes models."""

    def know_labels(self, seen: list[Any]) -> None:
        """Set the labels of a learner that has learnt nothing, as a file has them."""
        self.targets = self.new_targets(self.targets.labels.having(seen))

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
        return tuple(self.targets.labels.ordered)

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

    def losses_of(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each example, given its sign or the number of its class."""
        return self.targets.losses(signs, margins)

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

    def _ignored(self) -> dict[str, int]:
        """Return the counter of features that were ignored, if there are any."""
        n = self.schema.n_ignored
        return {"features_ignored": n} if n else {}
