"""What linear learners by stochastic gradients share: everything but the step itself."""

from __future__ import annotations

import abc
import copy
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.features import density
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.calibration import new_temperature
from streamsvm.labels.growing_labels import GrowingLabels
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import rate_search
from streamsvm.learners.bases.linear_model import LinearModel
from streamsvm.learners.bases.linear_schedule import schedule_of
from streamsvm.learners.bases.parameter_checks import check_class_weight, check_size
from streamsvm.learners.bases.rate_search import RateSearchRows
from streamsvm.learners.bases.training_observer import TrainingObserver, tell
from streamsvm.native_events.event_reader import LONGEST
from streamsvm.native_events.linear_path import BUFFER_FULL, LinearFastPath, NoFastPath, Target
from streamsvm.native_events.path_table import FALL_BACK, POSSIBLE
from streamsvm.native_events.python_objects import PLAIN
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import BIAS, LinearState
from streamsvm.support.rows import Rows, cut, dense, shape, sparse

_FEWEST, _FEWEST_SPARSE = 1024, 4096
"""Features there is room for at first, of dense rows and of sparse ones: growing takes longer."""


class LinearLearner(LinearModel):
    """A linear classifier: two classes are one output, more one output each against the rest."""

    chunk = 65_536

    def __init__(
        self,
        loss: str,
        l2: float,
        C: float | None,
        n_expected: int | None,
        t0: float | None,
        power: float,
        skip: float,
        averaged: Any,
        bias_rate: float,
        class_weight: Any,
        sparse: bool | None,
        hashing: int | None,
        max_features: int,
    ) -> None:
        limit = check_size("max_features", max_features) or LIMIT
        # int64 (1,): compiled code counts, too.
        self._n_learnt = np.zeros(1, np.int64)
        super().__init__(limit, check_size("hashing", hashing))
        self.loss, self.l2, self.C, self.n_expected = loss, l2, C, n_expected
        self.t0, self.bias_rate, self.class_weight = t0, bias_rate, class_weight
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features
        self._sparse = density.check_sparse(sparse, hashing)
        if class_weight == "balanced":
            raise ParameterError("class_weight='balanced': use a dict {label: factor}")
        check_class_weight(class_weight)
        self._schedule = schedule_of(loss, l2, C, n_expected, t0, power, skip, averaged, bias_rate)
        # Until the rate is chosen and it is known whether rows are sparse.
        is_decided = t0 is not None and (sparse is not None or hashing is not None)
        self._first: RateSearchRows | None = None if is_decided else RateSearchRows()
        self._state: LinearState | None = None
        self._set_fast_path(NoFastPath())

    @property
    def _n_examples(self) -> int:  # type: ignore[override]
        return int(self._n_learnt[0])

    @_n_examples.setter
    def _n_examples(self, n: int) -> None:
        self._n_learnt[0] = n

    @abc.abstractmethod
    def _second(self) -> float | None:
        """Return where the second part of the weights begins; None: there is none."""

    _solver: Any
    """The module of the solver: `learn_rows`."""

    _kind: float = 0.0
    """What the step is to compiled code: 0 SGD, 1 SGD-QN."""

    # Two classes, then more

    def _turn_signs(self) -> Callable[[np.ndarray], np.ndarray]:
        change = np.negative if self._labels.is_binary else self._spread()
        if self._first is not None:
            self._first.turn_signs(change)
        if change is np.negative and self._state is not None:
            weights, info = self._state
            # B of SGD-QN has no sign, u has that of v.
            weights[:, : 1 if self._kind else 2] *= -1.0
            info[:, (BIAS, linear_state.AVERAGE_BIAS)] *= -1.0
        return change

    def _spread(self) -> Callable[[np.ndarray], np.ndarray]:
        """Make an output of each class, now that a third came; return what becomes of signs."""
        self._calibration = new_temperature()
        labels = self._labels
        positive, negative = labels.seen.index(labels.positive), labels.seen.index(labels.negative)
        if self._state is not None:
            weights, info = self._state
            state = linear_state.new_state(3, weights.shape[2], self._second())
            for output, sign in ((positive, 1.0), (negative, -1.0)):
                state.weights[output], state.info[output] = weights[0], info[0]
                state.weights[output, : 1 if self._kind else 2] *= sign
                state.info[output, [BIAS, linear_state.AVERAGE_BIAS]] *= sign
            self._state = state
        return lambda signs: np.where(signs > 0.0, float(positive), float(negative))

    def learn_batch(self, X: Any, y: Any, w: Any = 1.0, ids: Any = None) -> LabelColumn:
        """See `Learner.learn_batch`."""
        with self._lock:
            self._search_rate_if_due()
            # First: what is changed from here on, the fast path would not know.
            self._close_fast_path()
            return super().learn_batch(X, y, w, ids)

    def _n_outputs(self) -> int:
        return 1 if self._labels.is_binary else len(self._labels.seen)

    def _state_for(self, d: int) -> LinearState:
        """Return the state, made or widened to hold so many features and all classes."""
        outputs = self._n_outputs()
        if self._state is None:
            fewest = _FEWEST_SPARSE if self._sparse else _FEWEST
            room = d if self._schema.buckets else max(d, min(fewest, self._schema.limit))
            self._state = linear_state.new_state(outputs, room, self._second())
        k, _, room = self._state.weights.shape
        if d > room or outputs > k:
            room = room if d <= room else max(d, min(2 * room, self._schema.limit))
            # First: it leads to the old state.
            self._fast_path.close()
            self._state = linear_state.grown(self._state, outputs, room, self._second())
        return self._state

    def _learn_rows(
        self,
        x: Rows,
        y: np.ndarray,
        labels: LabelColumn,
        w: np.ndarray,
        numbers: np.ndarray,
        diagonal: np.ndarray,
    ) -> np.ndarray:
        if self.class_weight is not None:
            weight = self.class_weight
            w = w * labels.numbers(lambda label: float(weight.get(label, 1.0)))
        margins = np.zeros((len(y), self._n_outputs()))
        start = 0
        while start < len(y):
            first, stop, seen = self._first, len(y), self._n_examples + start
            if first is not None:
                stop = min(stop, start + rate_search.next_search(seen) - seen)
            part = slice(start, stop)
            # They may have become sparse since the batch was read.
            fresh = sparse(cut(x, start, stop)) if self._sparse else cut(x, start, stop)
            state = self._state_for(shape(fresh)[1])
            self._solver.learn_rows(state, fresh, y[part], w[part], self._schedule, margins[part])
            if first is not None:
                first.add(fresh, y[part], w[part])
                if self._n_examples + stop == rate_search.next_search(seen):
                    self._search_rate(first, self._n_examples + stop)
            start = stop
        return margins[:, 0] if self._labels.is_binary else margins

    def _search_rate(self, first: RateSearchRows, n: int) -> None:
        """Decide by the first examples whether rows are sparse, and the rate anew."""
        x, y, weight = first.all(len(self._schema))
        if self.sparse is None and not self._sparse and density.are_sparse(dense(x)):
            self._sparse, x = True, sparse(x)
            first.become_sparse(x)
            self._state_for(min(_FEWEST_SPARSE, self._schema.limit))
        if self.t0 is None:
            # In place: a fast path leads here.
            state, second = self._state_for(0), self._second()
            self._schedule = rate_search.learn_best(
                x, y, weight, self._schedule, state, second, self._kind
            )
        if n >= rate_search.LAST:
            self._first = None

    def _margins(self, x: Rows) -> np.ndarray:
        n, d = shape(x)
        margins = np.zeros((n, self._n_outputs()))
        if self._state is not None:
            linear_state.margins_of(self._state_for(d), x, self._schedule, margins)
        return margins[:, 0] if self._labels.is_binary else margins

    def _diagonal(self, x: Rows) -> np.ndarray:
        # Nothing depends on it: no step goes further than a finite margin.
        return np.zeros(shape(x)[0])

    def _become_sparse(self) -> None:
        if self.sparse is not False:
            self._sparse = True
            if self.t0 is not None:
                # Nothing is left that the first examples could decide.
                self._first = None

    # Events go a fast path

    def _bind_fast_path(self) -> None:
        """Let events go the fast path, if that is possible; the lock is held."""
        # First: an interruption leaves it closed.
        self._fast_path.close()
        schema, d = self._schema, len(self._schema)
        if d < 2 or len(self._labels.seen) < 2 or not (POSSIBLE and schema.are_plain):
            self._drop_fast_path()
            return
        state, way = self._state_for(d), self._fast_path
        room = state.weights.shape[2]
        if not isinstance(way, LinearFastPath) or not way.is_for(schema, room, self._sparse):
            way = LinearFastPath(schema, room, self._sparse, self._lock, self._n_learnt)
        way.bind(self._target(state))
        if way is not self._fast_path:
            self._set_fast_path(way)

    def _drop_fast_path(self) -> None:
        """Free what a fast path had: there is none any more."""
        if isinstance(self._fast_path, LinearFastPath):
            self._set_fast_path(NoFastPath())
            if self._first is not None:
                self._first.drop_room()

    def _target(self, state: LinearState) -> Target:
        """Return what the fast path leads to."""
        block, first, n = None, self._first, self._n_examples
        if first is not None:
            room = rate_search.next_search(n) - n
            width = LONGEST if self._sparse else state.weights.shape[2]
            # Of wide rows no more than are needed next.
            most = rate_search.LAST - n if width <= LONGEST else room
            block = first.block(room, most, width, self._sparse)
        weight = self.class_weight or {}
        labels = list(self.labels if self._labels.is_binary else self._labels.seen)
        factors = [float(weight.get(label, 1.0)) for label in labels]
        return Target(state, self._schedule, self._kind, self._calibration, labels, factors, block)

    def predict_one(self, x: Mapping[Name, Any], **kwargs: Any) -> Any:
        """Return the label predicted for an event."""
        # Of an attribute that is called at once the interpreter thinks first that it is a method.
        predicted = self._event_label
        label = predicted(x)
        if label is not FALL_BACK:
            return label
        return super().predict_one(x)

    def _margin_one(self, x: Mapping[Name, Any]) -> Any:
        if not self._fast_path.is_open and len(self._labels.seen) > 1 and self._may_use_fast_path():
            self._search_rate_if_due()
            self._bind_fast_path()
        margin = self._fast_path.margin_locked(x)
        return super()._margin_one(x) if margin is FALL_BACK else margin

    def learn_one(self, x: Mapping[Name, Any], y: Any, w: float = 1.0) -> None:
        """Learn one event: see `LASVMClassifier.learn_one`."""
        if self.observer is None:
            learnt = self._event_learn
            told = learnt(x, y, w)
            if told is None:
                return
            if told is BUFFER_FULL:
                with self._lock:
                    self._search_rate_if_due()
                return
        with self._lock:
            observer, learn = self.observer, self._fast_path.learn_locked
            if observer is None or not self._learn_watched(observer, learn, x, y, w):
                self._learn_locked(x, y, w)

    def _learn_locked(self, x: Mapping[Name, Any], y: Any, w: float) -> None:
        """Learn an event that was given up; the lock is held."""
        if self._event_learn is not self._fast_path.learn:
            # Somebody was interrupted.
            self._set_fast_path(self._fast_path)
        self._search_rate_if_due()
        self._make_room(x)
        observer, learn = self.observer, self._fast_path.learn_locked_any
        if observer is not None:
            if self._learn_watched(observer, learn, x, y, w):
                return
        else:
            told = learn(x, y, w)
            if told is not FALL_BACK:
                self._search_rate_if_due()
                return
        # First: what is changed from here on, it would not know.
        self._close_fast_path()
        super().learn_one(x, y, w)
        if self._may_use_fast_path():
            self._bind_fast_path()

    def _may_use_fast_path(self) -> bool:
        return self.observer is None or not self.observer.asks_probabilities

    def _learn_watched(
        self,
        observer: TrainingObserver,
        learn: Callable[..., Any],
        x: Mapping[Name, Any],
        y: Any,
        w: float,
    ) -> bool:
        """Learn an event the fast path, and tell the monitor; return False if it gives up."""
        if observer.asks_probabilities:
            return False
        began = time.perf_counter()
        told = learn(x, y, w)
        if told is FALL_BACK:
            return False
        # Nobody else has used it since.
        label, predicted, margin = self._fast_path.last_example()
        if told is BUFFER_FULL:
            self._search_rate_if_due()
        seconds = time.perf_counter() - began
        if not observer.note(label, predicted, seconds):
            row = self._schema.known_row(x) if self._sparse else self._schema.row(x)
            sign, number = self._labels.sign(label), self._n_examples
            tell(observer, row, sign, label, predicted, margin, w, number, seconds)
        return True

    def _make_room(self, x: Mapping[Name, Any]) -> None:
        """Widen the weights if an open fast path may lack room for new features of an event."""
        if (
            not self._fast_path.is_open
            or self._schema.buckets is not None
            or x.__class__ not in PLAIN
        ):
            return
        d = min(len(self._schema) + len(x), self._schema.limit)
        if len(x) <= LONGEST and self._state is not None and d > self._state.weights.shape[2]:
            self._state_for(d)
            self._bind_fast_path()

    def _search_rate_if_due(self) -> None:
        """Look back if the fast path learnt the last of the first examples that it had room for."""
        first, n = self._first, self._n_examples
        if first is None or not first.is_full:
            return
        # First: what it leads to changes.
        self._fast_path.close()
        self._search_rate(first, n)
        self._bind_fast_path()

    def _close_fast_path(self) -> None:
        """Let all events go the general path; the lock is held."""
        self._fast_path.close()
        if self._first is not None:
            self._first.close_block()

    def _set_fast_path(self, way: NoFastPath) -> None:
        # One by one, as attributes of attributes cost time.
        self._fast_path = way
        self._event_label, self._event_learn = way.predict, way.learn

    def _handle_key(self) -> None:
        return None

    def _room_for_features(self) -> int:
        return 0

    def _box_of(self, label: Any) -> None:
        return None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self._search_rate_if_due()
            contents = super().__getstate__()
            # The original goes on with its own.
            contents["_first"] = copy.deepcopy(self._first)
            contents["_n_learnt"] = self._n_learnt.copy()
            contents["_calibration"] = self._calibration.copy()
            # A class that comes later changes outputs, which a copy has its own of.
            contents["_labels"] = GrowingLabels(self._labels.seen)
            if self._state is not None:
                # Without the room for more.
                weights, info = self._state
                known = weights[:, :, : max(1, len(self._schema))]
                contents["_state"] = LinearState(known.copy(), info.copy())
        for name in ("_fast_path", "_event_label", "_event_learn"):
            del contents[name]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self._set_fast_path(NoFastPath())
