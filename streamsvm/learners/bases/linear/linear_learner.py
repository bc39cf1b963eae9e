"""The base class of linear learners by stochastic gradients: all but parameters and step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_class_weight, check_size
from streamsvm.features import density
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.growing_labels import spread_to
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.late_rows import LateRows, row_after, rows_where
from streamsvm.learners.bases.linear import linear_classes, linear_native, rate_search
from streamsvm.learners.bases.linear.linear_model import FEWEST_SPARSE, LinearModel
from streamsvm.learners.bases.linear.linear_native import BindingPace
from streamsvm.learners.bases.linear.rate_search import RateSearchRows
from streamsvm.native_events import availability
from streamsvm.native_events.fast_path import Generation
from streamsvm.native_events.linear_path import NoFastPath
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.events import Step
from streamsvm.solvers.linear.state import LinearState, Schedule
from streamsvm.support.interruptions import append_result
from streamsvm.support.locked import refuse_to_learn
from streamsvm.support.rows import Rows, cut, dense, shape, sparse


class LinearLearner(LinearModel):
    """Base class of linear classifiers; a subclass adds the constructor's signature and the solver.

    Two classes have one output; of more classes each has an output against the rest.

    Parameters
    ----------
    schedule
        The schedule of the steps: see `schedule_of`.
    t0, class_weight, sparse, hashing, max_features, missing
        As in `SVMSGDClassifier`.

    Raises
    ------
    ParameterError
        A parameter is out of range.

    """

    chunk = 65_536

    # The fast path and its methods, all set by `set_fast_path`.
    fast_path: NoFastPath
    _event_label: Callable[[Any], Any]
    _event_learn: Callable[..., bool | None]

    def __init__(
        self,
        schedule: Schedule,
        t0: float | None,
        class_weight: Any,
        sparse: bool | None,
        hashing: int | None,
        max_features: int,
        missing: str,
    ) -> None:
        limit = check_size("max_features", max_features) or LIMIT
        super().__init__(limit, check_size("hashing", hashing), missing)
        self.t0, self.class_weight = t0, class_weight
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features
        self.is_sparse = density.check_sparse(sparse, hashing)
        check_class_weight(class_weight)
        self.schedule = schedule
        # Kept until the rate is chosen and it is known whether rows are sparse.
        is_decided = t0 is not None and (sparse is not None or hashing is not None)
        self.rate_search_rows = None if is_decided else RateSearchRows()
        self.state: LinearState | None = None
        self.generation = Generation()
        self.pace = BindingPace()
        self.set_fast_path(NoFastPath())

    _solver: Any
    """The module of the solver, with `learn_rows`."""

    _is_sgdqn: float = 0.0
    """Which step the solver makes, as compiled code takes it: 0.0 SGD, 1.0 SGD-QN."""

    # Two classes, then more

    def add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Add a class; return the function that converts the signs known so far, or None."""
        labels = self.targets.labels.having(self.targets.labels.seen)
        change: Callable[[np.ndarray], np.ndarray] | None = None
        if labels.add(label):
            change = np.negative if labels.is_binary else spread_to(labels)
        new: dict[str, Any] = {"targets": self.targets.having(labels)}
        if change is not None and self.rate_search_rows is not None:
            rows = copy.copy(self.rate_search_rows)
            rows.turn_signs(change)
            new["rate_search_rows"] = rows
        if self.state is not None:
            # Of the parts of the weights u has the sign of v, but B of SGD-QN has none.
            signed, second = slice(1 if self._is_sgdqn else 2), self._initial_second_part()
            is_turned = change is np.negative
            new["state"] = linear_classes.state_of(self.state, labels, is_turned, signed, second)
        self.generation.advance()
        self.__dict__.update(new)
        self.fast_path.release()
        return change

    def learn_batch(
        self, X: Any, y: Any, w: Any = 1.0, ids: Any = None, late: LateRows | None = None
    ) -> LabelColumn:
        """See `Learner.learn_batch`."""
        with self.lock:
            self.search_rate_if_due()
            return super().learn_batch(X, y, w, ids, late)

    def n_outputs(self) -> int:
        """Return the number of outputs: 1 for two classes, otherwise the number of classes."""
        return 1 if self.targets.labels.is_binary else len(self.targets.labels.seen)

    def empty_state(self) -> LinearState:
        """Return an empty state with room for the features and labels seen."""
        return self.new_state(len(self.schema))

    def new_state(self, n_features: int) -> LinearState:
        """Return an empty state with room for so many features."""
        outputs, second = self.n_outputs(), self._initial_second_part()
        return linear_state.new_state(outputs, n_features, second)

    def learn_rows(
        self,
        x: Rows,
        y: np.ndarray,
        labels: LabelColumn,
        w: np.ndarray,
        numbers: np.ndarray,
        diagonal: np.ndarray,
    ) -> np.ndarray:
        """Learn rows, of number 0 only predict; return margins before."""
        if self.class_weight is not None:
            weight = self.class_weight
            w = w * labels.numbers(lambda label: float(weight.get(label, 1.0)))
        # Code that ran while the rows were read may have opened it.
        self.close_fast_path()
        margins = np.zeros((len(y), self.n_outputs()))
        start, seen, is_example = 0, self.n_examples, numbers > 0
        while start < len(y):
            kept, stop = self.rate_search_rows, len(y)
            if kept is not None:
                stop = row_after(numbers, start, rate_search.next_search(seen) - seen)
            part = slice(start, stop)
            # They may have become sparse since the batch was read.
            fresh = sparse(cut(x, start, stop)) if self.is_sparse else cut(x, start, stop)
            state = self.state_for(shape(fresh)[1])
            learnt = np.flatnonzero(is_example[part])
            done: list[Any] = []
            call = (state, fresh, y[part], w[part], self.schedule, margins[part])
            try:
                append_result(done, self._solver.learn_rows, call)
            finally:
                # After an interruption, too, all that were learnt are counted.
                n = self.n_learnt[0] = seen + len(done) * len(learnt)
                if kept is not None and n > seen:
                    kept.add(rows_where(fresh, is_example[part]), y[part][learnt], w[part][learnt])
                    if n == rate_search.next_search(seen):
                        self._search_rate(kept, n)
            start, seen = stop, n
        return margins[:, 0] if self.targets.labels.is_binary else margins

    def _search_rate(self, kept: RateSearchRows, n: int) -> None:
        """Choose the rate by the first n examples, and decide whether rows are sparse."""
        x, y, weight = kept.all(len(self.schema))
        if self.sparse is None and not self.is_sparse and density.are_sparse(dense(x)):
            self.is_sparse, x = True, sparse(x)
            kept.become_sparse(x)
            self.state_for(min(FEWEST_SPARSE, self.schema.limit))
        if self.t0 is None:
            # The state is changed in place, since a fast path is bound to it.
            state, second = self.state_for(0), self._initial_second_part()
            self.schedule = rate_search.learn_best(
                x, y, weight, self.schedule, state, second, self._is_sgdqn
            )
        if n >= rate_search.LAST:
            self.rate_search_rows = None

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows, float64 (n,) or (n, classes)."""
        n, d = shape(x)
        margins = np.zeros((n, self.n_outputs()))
        if self.state is not None:
            linear_state.margins_of(self.state_for(d), x, self.schedule, margins)
        return margins[:, 0] if self.targets.labels.is_binary else margins

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows, which is not used."""
        # Not used: no row of finite values is refused.
        return np.zeros(shape(x)[0])

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.sparse is not False:
            # First: the fast path must not use what changes from here on.
            self.close_fast_path()
            self.is_sparse = True
            if self.t0 is not None:
                # The first examples have nothing left to decide.
                self.rate_search_rows = None

    # Events take a fast path

    def bind_fast_path(self) -> None:
        """Let events take the fast path, if that is possible; the lock is held."""
        # A signal handler may predict in the middle of the general path.
        if not self.is_learning:
            linear_native.bind(self)

    def predict_one(self, x: Mapping[Name, Any], **kwargs: Any) -> Any:
        """Return the label predicted for an event.

        Parameters
        ----------
        x
            Features by name: see `Learner.learn_one`.

        Returns
        -------
        One of the labels seen; None before the first label.

        """
        # In two steps: for a call of an attribute the interpreter would look for a method first.
        predict = self._event_label
        label = predict(x)
        # Compared with None, as names of this module are None while the interpreter shuts down.
        if label is not None:
            return label
        with self.lock:
            return self.targets.label_of(self.margin_one(x))

    def margin_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the margin of an event as a float, or its scores as a list; the lock is held."""
        if not self.fast_path.is_open and self._may_use_fast_path():
            self.search_rate_if_due()
            self.bind_fast_path()
        margin = self.fast_path.margin_locked(x)
        return super().margin_one(x) if margin is None else margin

    def learn_one(self, x: Mapping[Name, Any], y: Any, w: float = 1.0) -> None:
        """Learn one event.

        Parameters
        ----------
        x
            Features by name: see `Learner.learn_one`.
        y
            The label: any hashable.
        w
            Weight of the example, at least 0: it multiplies its loss. At 0 only its label is noted.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            The event cannot be used; the model has not changed.
        ModelBusyError
            The caller is a signal handler, or the like, in the middle of this model's learning.

        """
        if self.observer is None:
            event_learn = self._event_learn
            learnt = event_learn(x, y, w)
            if learnt:
                return
            if learnt is not None:
                with self.lock:
                    self.search_rate_if_due()
                return
        with self.lock:
            if self.is_learning:
                refuse_to_learn()
            observer, learn = self.observer, self.fast_path.learn_locked
            if observer is None or not linear_native.learn_watched(self, observer, learn, x, y, w):
                self._learn_locked(x, y, w)

    def _learn_locked(self, x: Mapping[Name, Any], y: Any, w: float) -> None:
        """Learn an event that fell back; the lock is held."""
        if not availability.is_on():
            self.search_rate_if_due()
            linear_native.drop(self)
            super().learn_one(x, y, w)
            return
        self.search_rate_if_due()
        linear_native.make_room(self, x)
        observer, learn = self.observer, self.fast_path.learn_locked_any
        if observer is not None:
            if linear_native.learn_watched(self, observer, learn, x, y, w):
                return
        elif learn(x, y, w) is not None:
            self.search_rate_if_due()
            return
        if self.fast_path.is_open:
            self.pace.note_fallback(self.n_examples)
        # First: the fast path must not use what changes from here on.
        self.close_fast_path()
        super().learn_one(x, y, w)
        if self._may_use_fast_path():
            self.bind_fast_path()

    def _may_use_fast_path(self) -> bool:
        if not availability.is_on() or len(self.targets.labels.seen) < 2:
            return False
        if self.n_examples < self.pace.bind_at:
            return False
        return self.observer is None or not self.observer.asks_probabilities

    def search_rate_if_due(self) -> None:
        """Search the rate if the fast path has learnt the last example before the next search."""
        kept = self.rate_search_rows
        if kept is None or not kept.is_full or self.is_learning:
            return
        self.is_learning = True
        try:
            # First: the arrays that the fast path is bound to change.
            self.generation.advance()
            # A signal handler may have searched meanwhile.
            kept = self.rate_search_rows
            if kept is not None and kept.is_full:
                self._search_rate(kept, self.n_examples)
                kept.close_block()
        finally:
            self.is_learning = False
        self.bind_fast_path()

    def close_fast_path(self) -> None:
        """Let all events take the general path; the lock is held."""
        self.generation.advance()
        self.fast_path.release()
        if self.rate_search_rows is not None:
            self.rate_search_rows.close_block()

    def set_fast_path(self, path: NoFastPath) -> None:
        """Use a fast path from now on."""
        predict, learn = linear_native.methods_of(self, path)
        # In one step; the methods are attributes of their own, as that is faster.
        self.__dict__.update(fast_path=path, _event_label=predict, _event_learn=learn)

    def _after_fork(self) -> None:
        # The path uses the address of the former lock.
        self.generation.advance()
        self.set_fast_path(NoFastPath())

    def event_parts(self) -> Bound:
        """Return the objects that compiled code uses for an event."""
        return self.state, None, self.schedule, self.targets

    def bound_kernel(self, state: Any) -> Step:
        """Return what compiled code takes as the kernel."""
        return Step(self._is_sgdqn)

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return 0 if self.state is None else int(self.state.weights.shape[2])

    def cost_of(self, label: Any, sign: float) -> float:
        """Return the cost of the next example, if it has this label."""
        return 1.0 if not self.class_weight else float(self.class_weight.get(label, 1.0))

    def after_event(self, path: EventPath, sign: float, box: float) -> None:
        """Update the learner after an event was learnt by `EventPath`."""
        n, kept = self.n_examples, self.rate_search_rows
        if kept is None:
            return
        # Code that ran while the event was read may have opened it: compiled code would add rows.
        self.close_fast_path()
        kept.add(path.row(), np.array([sign]), np.array([box]))
        if n == rate_search.next_search(n - 1):
            self._search_rate(kept, n)

    def _contents(self) -> dict[str, Any]:
        self.search_rate_if_due()
        contents = super()._contents()
        if self.state is not None:
            # Without the unused room.
            weights, info = self.state
            known = weights[:, :, : max(1, len(self.schema))]
            contents["state"] = LinearState(known, info)
        for name in _OF_THE_FAST_PATH:
            del contents[name]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self.generation, self.pace = Generation(), BindingPace()
        self.set_fast_path(NoFastPath())


_OF_THE_FAST_PATH = ("generation", "pace", "fast_path", "_event_label", "_event_learn")
