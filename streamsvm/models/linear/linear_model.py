"""Linear functions of the features as a model: one for two classes, or one for each of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from streamsvm._parameter_checks import check_cost, check_number, check_positive, check_size
from streamsvm.errors import ParameterError
from streamsvm.losses import LOSSES
from streamsvm.model_files.json_values import Content, Json, checked
from streamsvm.models.kept_examples import NUMBER, KeptExamples
from streamsvm.models.linear import rate_search
from streamsvm.models.model import LearntEvent, Model, Parts
from streamsvm.models.outputs import GrowingOutputs
from streamsvm.models.rows import NumberedRows, row_after, rows_where
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import (
    AVERAGE_BIAS,
    BIAS,
    N_UPDATES,
    SCALE,
    LinearState,
    P,
    Q,
    Schedule,
    T,
)
from streamsvm.solvers.linear.step import Step, learn_rows
from streamsvm.support import density
from streamsvm.support.declaration import NamedArrays, Range, as_float, copy_arrays
from streamsvm.support.interruptions import Changes, append_result
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape, sparse

_T0 = Range(1e-300, 1e300)

_FEWEST, _FEWEST_SPARSE = 1024, 4096
"""The smallest room for features, of dense and of sparse rows: growing it often would take long."""

_FEWEST_OUTPUTS = 4
"""The smallest room for further classes; each time it is full, there is a quarter more."""


class LinearModel(Model):
    """Learns rows by stochastic gradients, at a rate that the first examples choose.

    Two classes have one output; of more each has one against the rest.

    Parameters
    ----------
    step
        Which step is made. The second part of the weights is for their average, or SGD-QN's B.
    schedule
        The schedule of the steps: see `schedule_of`.
    second
        Where the second part of the weights begins: see `linear_state.new_state`.
    sparse
        True, False, or None: the first examples decide whether rows become sparse.
    is_sparse
        Whether they are from the start.
    finds_rate
        Whether the first examples choose the rate.
    limit, buckets
        The largest number of features; the number of columns that names are hashed to, or None.

    Attributes
    ----------
    state
        The weights; None before the first example.
    first_rows
        The examples so far, by which rate and storage are chosen; None: both are decided.
    search_at
        The number of examples at the next search, while there are such rows.
    factors_of_classes
        float64 (classes,): what the loss of examples of each class is multiplied by.

    """

    def __init__(
        self,
        step: Step,
        schedule: Schedule,
        second: float | None,
        *,
        sparse: bool | None,
        is_sparse: bool,
        finds_rate: bool,
        limit: int,
        buckets: int | None,
    ) -> None:
        self.step, self.schedule, self.second = step, schedule, second
        self.sparse, self.is_sparse, self.finds_rate = sparse, is_sparse, finds_rate
        self.limit, self.buckets, self.outputs = limit, buckets, GrowingOutputs(0)
        self.factors_of_classes = np.zeros(0)
        self.n_learnt, self.n_features = np.zeros(1, np.int64), 0
        self.state: LinearState | None = None
        keeps_first = finds_rate or (sparse is None and buckets is None)
        self.first_rows = _no_rows() if keeps_first else None
        self.search_at = 1

    def empty_state(self) -> LinearState:
        """Return an empty state with room for its features and classes."""
        return linear_state.new_state(self.n_outputs, self.n_features, self.second)

    @property
    def n_outputs(self) -> int:
        """The number of outputs: 1 for two classes, otherwise the number of classes."""
        return int(self.outputs.zeros(1).size)

    def make_room(self, d: int) -> LinearState:
        """Return the state, created or grown to hold so many features and all classes."""
        state, k, room = self.state, self.n_outputs, self.room_for_features()
        if state is not None and d <= room and k <= len(state.info):
            return state
        if state is None:
            fewest = min(_FEWEST_SPARSE if self.is_sparse else _FEWEST, self.limit)
            n = max(d, fewest) if self.buckets is None else d
            state = linear_state.new_state(k, n, self.second)
        else:
            room = room if d <= room else max(d, min(2 * room, self.limit))
            state = linear_state.grown(state, k, room, self.second)
        self.state = state
        return state

    # Learning

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose losses are multiplied by a factor."""
        n = self.n_classes + 1
        factors = np.append(self.factors_of_classes, factor)
        new = {"outputs": GrowingOutputs(n), "state": self._state_of_classes(n)}
        return [(self.__dict__, new | {"factors_of_classes": factors})]

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as losses are multiplied by other factors from now on."""
        return [(self.__dict__, {"factors_of_classes": np.array(factors, np.float64)})]

    def _state_of_classes(self, k: int) -> LinearState | None:
        """Return the state for k classes, of which the last one is new."""
        old = self.state
        if old is None or k < 3:
            return old
        if len(old.info) > 1:
            return _with_outputs(old, k, self.second)
        # The output of class 1 is that of the two classes so far, and that of class 0 its negative.
        weights, info = state = linear_state.new_state(k, old.weights.shape[2], self.second)
        weights[:2], info[:2] = old.weights[0], old.info[0]
        # Of the parts of the weights u has the sign of v, but B of SGD-QN has none.
        weights[0, : 1 if self.step.is_sgdqn else 2] *= -1.0
        info[0, [BIAS, AVERAGE_BIAS]] *= -1.0
        return state

    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return margins before."""
        y, w = rows.y, rows.w
        if not (self.factors_of_classes == 1.0).all():
            w = w * self.factors_of_classes[y.astype(np.int64)]
        margins = self.outputs.zeros(len(y))
        of_outputs = margins.reshape(len(y), self.n_outputs)
        start, seen, is_example = 0, self.n_examples, rows.numbers > 0
        self.n_features = max(self.n_features, shape(rows.x)[1])
        while start < len(y):
            kept, stop = self.first_rows, len(y)
            if kept is not None:
                stop = row_after(rows.numbers, start, max(1, self.search_at - seen))
            part = slice(start, stop)
            # They may have become sparse since the batch was read.
            fresh = cut(rows.x, start, stop)
            fresh = sparse(fresh) if self.is_sparse else fresh
            state = self.make_room(shape(fresh)[1])
            learnt = np.flatnonzero(is_example[part])
            done: list[object] = []
            try:
                call = state, self.step, fresh, y[part], w[part], self.schedule, of_outputs[part]
                append_result(done, learn_rows, call)
            finally:
                # After an interruption, too, all that were learnt are counted.
                n = self.n_learnt[0] = seen + len(done) * len(learnt)
                if kept is not None and n > seen:
                    classes = y[part][learnt].astype(np.int64)
                    numbers = rows.numbers[part][learnt]
                    x = rows_where(fresh, is_example[part])
                    kept.add(x, classes, w[part][learnt], numbers)
                    if n >= self.search_at:
                        self.search_rate(n)
            start, seen = stop, n
        return margins

    def search_rate(self, n: int) -> None:
        """Choose the rate by the first n examples, and decide whether rows are sparse."""
        kept = self.first_rows
        if kept is None:
            return
        self.search_at = rate_search.next_search(n)
        x, classes, weight, _ = kept.last(n, self.n_features)
        if self.sparse is None and not self.is_sparse and density.are_sparse(dense(x)):
            x = sparse(x)
            kept.map_in_place(sparse)
            self._note_sparse(min(_FEWEST_SPARSE, self.limit))
        if self.finds_rate:
            # It goes on from the weights of the best pass over these rows.
            y, state, second = classes.astype(np.float64), self.make_room(0), self.second
            given = x, y, weight, self.schedule, state, second, self.step
            self.schedule = rate_search.learn_best(*given)
        if n >= rate_search.LAST:
            self.first_rows = None

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows, float64 (n,) or (n, classes)."""
        n, d = shape(x)
        margins = self.outputs.zeros(n)
        if self.state is not None:
            out = margins.reshape(n, self.n_outputs)
            linear_state.margins_of(self.make_room(d), x, self.schedule, out)
        return margins

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.sparse is not False:
            self._note_sparse(0)
            if not self.finds_rate:
                # The first examples have nothing left to decide.
                self.first_rows = None

    def _note_sparse(self, n_features: int) -> None:
        """Note that rows are sparse from now on; have room for so many features."""
        self.is_sparse = True
        if self.state is not None:
            # Another object, as compiled calls for events are bound to dense rows so far.
            self.state = self.make_room(n_features)._replace()

    # Events

    def event_parts(self) -> Parts:
        """Return what compiled code uses for an event."""
        return self.state, None, self.schedule

    def bound_kernel(self, state: Any) -> Step:
        """Return what compiled code takes as the kernel."""
        return self.step

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return 0 if self.state is None else int(self.state.weights.shape[2])

    def cost_of(self, number: float) -> float:
        """Return the cost of the next example, if it is of this class."""
        return self.factors_of_classes.item(int(number))

    def after_event(self, event: LearntEvent, number: float, cost: float) -> None:
        """Keep an event that was learnt, if it is one of the first."""
        kept = self.first_rows
        if kept is not None:
            n = self.n_examples
            kept.add_one(event.row(), (int(number), cost, n))
            if n >= self.search_at:
                self.search_rate(n)

    # What can be asked without learning

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective over rows of classes; -1: of none that was seen."""
        factors = np.append(self.factors_of_classes, 1.0)
        weights = weights * factors[classes.astype(np.int64)]
        state = self.make_room(shape(x)[1])
        return float(linear_state.primal(state, x, classes, weights, self.schedule))

    def predicting_weights(self) -> np.ndarray:
        """Return the weights that predict, float64 (outputs, room for features)."""
        if self.state is None:
            return np.zeros((0, 0))
        weights, info = self.state
        found = info[:, SCALE][:, None] * weights[:, 0]
        for o in range(len(info)):
            if linear_state.predicts_average(self.schedule, info[o]):
                found[o] = info[o, P] * weights[o, 1]
                found[o] += info[o, Q] * weights[o, 0]
        return np.asarray(found)

    def biases(self) -> list[float]:
        """Return the biases that predict, one for each output."""
        found = []
        for info in () if self.state is None else self.state.info:
            averages = linear_state.predicts_average(self.schedule, info)
            found.append(float(info[AVERAGE_BIAS if averages else BIAS]))
        return found

    @property
    def rate(self) -> float:
        """The learning rate of the next example: the factor of its loss gradient."""
        t = 0.0 if self.state is None else float(self.state.info[0, T])
        return float(linear_state.rate(self.schedule, t) / self.schedule.lam)

    @property
    def n_updates(self) -> int:
        """The number of updates of the weights, over all outputs."""
        return 0 if self.state is None else int(self.state.info[:, N_UPDATES].sum())

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``weights``, and of the ``first_rows`` kept for the rate search."""
        rows, state = self.first_rows, self.state
        return {
            "weights": 0 if state is None else _whole(state.weights).nbytes,
            "first_rows": 0 if rows is None else rows.nbytes,
        }

    # Files and copies

    def as_file(self) -> Content:
        """Return what a file holds of it: JSON values and arrays."""
        content, arrays = super().as_file()
        rows = self.first_rows
        if rows is not None and rows.n_rows != self.n_examples:
            # Ctrl-C came between learning an example and keeping it: no reader would take the rows.
            rows = None
        content |= {"t0": self.schedule.t0, "has_first": rows is not None}
        return content, arrays | ({} if rows is None else rows.as_arrays(self.n_features))

    def read(self, content: Json, arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit."""
        super().read(content, arrays)
        t0 = as_float("t0", content.get("t0"))
        _T0.check("t0", t0, {})
        self.schedule, self.first_rows = self.schedule._replace(t0=t0), None
        if checked(content.get("has_first"), bool, "has_first"):
            n, d = self.n_examples, self.n_features
            rows, self.search_at = _no_rows(), rate_search.next_search(n)
            rows.read(arrays, d, self.n_classes)
            if rows.n_rows != n:
                raise ValueError("not all examples are kept for the rate search")
            if isinstance(rows.last(n, d).x, SparseRows) and not self.is_sparse:
                raise ValueError("the first rows are sparse, but is_sparse is false")
            self.first_rows = rows

    def for_copy(self) -> Self:
        """Return it without the unused room for features."""
        if self.state is None:
            return self.changed()
        weights, info = self.state
        return self.changed(state=LinearState(weights[:, :, : max(1, self.n_features)], info))


def _no_rows() -> KeptExamples:
    return KeptExamples("first_", NUMBER, rate_search.LAST)


def _whole(array: np.ndarray) -> np.ndarray:
    """Return an array with its room for further outputs, of which it is the first part."""
    base = array.base
    if isinstance(base, np.ndarray) and base.shape[1:] == array.shape[1:] and base.flags.writeable:
        return base
    return array


def _with_outputs(state: LinearState, k: int, second: float | None) -> LinearState:
    """Return a state of k outputs, more than before, which takes the place of the old one.

    Its arrays begin with those of the old one, in the same memory while there is room in it: to
    copy all weights for each class would take the square of the number of classes.
    """
    before, n_features = len(state.info), state.weights.shape[2]
    whole = LinearState(*map(_whole, state))
    if k > min(map(len, whole)):
        room = k + max(_FEWEST_OUTPUTS, k // 4)
        whole = LinearState(*(np.zeros((room, *array.shape[1:])) for array in state))
        copy_arrays(state, whole)
    new = LinearState(*(array[:k] for array in whole))
    # An interruption may have left something there.
    empty = linear_state.new_state(k - before, n_features, second)
    for array, own in zip(new, empty, strict=True):
        array[before:] = own
    return new


def schedule_of(
    loss: str,
    l2: float,
    C: float | None,
    n_expected: int | None,
    t0: float | None,
    power: float,
    skip: int | str,
    averaged: bool | float | None,
    bias_rate: float,
) -> Schedule:
    """Return the schedule for the parameters of a linear learner, which are checked.

    They are those of `SVMSGDClassifier`, but `power` is a number. If `t0` is None, it is 1 in the
    schedule until it is chosen.
    """
    if loss not in LOSSES:
        names = ", ".join(map(repr, LOSSES))
        raise ParameterError(f"loss={loss!r}: use one of {names}")
    if check_number("power", power, 0.0) > 1.0:
        raise ParameterError(f"power={power!r}: use a number between 0 and 1")
    return Schedule(
        loss=LOSSES[loss],
        lam=_lambda(l2, C, n_expected),
        t0=1.0 if t0 is None else check_number("t0", t0, 1.0),
        power=float(power),
        skip=0.0 if skip == "auto" else check_number("skip", skip, 1.0),
        averaged=_least_share(averaged),
        choose=float(averaged is None),
        bias_rate=check_number("bias_rate", bias_rate, 0.0),
    )


def _lambda(l2: float, C: float | None, n_expected: int | None) -> float:
    """Return lambda: `l2`, or computed from `C`."""
    if C is None:
        return check_positive("l2", l2)
    n = check_size("n_expected", n_expected, most=2**63 - 1)
    if n is None:
        raise ParameterError(
            f"C={C!r}: the same C means less regularisation the longer the stream; "
            "give n_expected=, how many examples it is about, or l2="
        )
    return 1.0 / (check_cost(C) * n)


def _least_share(averaged: bool | float | None) -> float:
    """Return the smallest share of the last weights in the average; 0 without an average."""
    if averaged is None or isinstance(averaged, bool):
        return 0.0 if averaged is False else 1e-15
    return 3.0 / (check_number("averaged", averaged, 2.0) + 2.0)
