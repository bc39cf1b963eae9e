"""The solver of a linear model: weights, the schedule of the steps, and the first examples."""

from __future__ import annotations

from typing import Self

import numpy as np

from streamsvm.models.linear import rate_search
from streamsvm.models.linear.rate_search import RateSearchRows
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
from streamsvm.support.declaration import copy_arrays
from streamsvm.support.interruptions import Replaceable, append_result
from streamsvm.support.rows import Rows

FEWEST, FEWEST_SPARSE = 1024, 4096
"""The smallest room for features, of dense and of sparse rows: growing it often would take long."""

_FEWEST_OUTPUTS = 4
"""The smallest room for further classes; each time it is full, there is a quarter more."""


class LinearSolver(Replaceable):
    """Stochastic gradients; two classes have one output, of more each has one against the rest.

    Parameters
    ----------
    step
        Which step is made. The second part of the weights is for their average, or SGD-QN's B.
    schedule
        The schedule of the steps: see `schedule_of`.
    second
        Where the second part of the weights begins: see `linear_state.new_state`.

    Attributes
    ----------
    state
        The weights; None before the first example.
    first_rows
        The examples so far, by which rate and storage are chosen; None: both are decided.

    """

    def __init__(self, step: Step, schedule: Schedule, second: float | None) -> None:
        self.step, self.schedule, self.second = step, schedule, second
        self.state: LinearState | None = None
        self.first_rows: RateSearchRows | None = None

    def of_classes(self, k: int) -> Self:
        """Return a solver for k classes, of which the last one is new; this one is not changed."""
        old = self.state
        if old is None or k < 3:
            return self
        if len(old.info) > 1:
            return self.changed(state=_with_outputs(old, k, self.second))
        # The output of class 1 is that of the two classes so far, and that of class 0 its negative.
        weights, info = state = self.new_state(k, old.weights.shape[2])
        weights[:2], info[:2] = old.weights[0], old.info[0]
        # Of the parts of the weights u has the sign of v, but B of SGD-QN has none.
        weights[0, : 1 if self.step.is_sgdqn else 2] *= -1.0
        info[0, [BIAS, AVERAGE_BIAS]] *= -1.0
        return self.changed(state=state)

    def state_for(
        self, n_outputs: int, d: int, limits: tuple[int, bool], is_sparse: bool
    ) -> LinearState:
        """Return the state, created or grown to hold so many outputs and features.

        `limits` are the largest number of features, and whether their names are hashed.
        """
        state = self.state
        k, room = (0, 0) if state is None else (len(state.info), state.weights.shape[2])
        if state is not None and d <= room and n_outputs <= k:
            return state
        if state is None:
            fewest = min(FEWEST_SPARSE if is_sparse else FEWEST, limits[0])
            new = self.new_state(n_outputs, d if limits[1] else max(d, fewest))
        else:
            room = room if d <= room else max(d, min(2 * room, limits[0]))
            new = linear_state.grown(state, n_outputs, room, self.second)
        self.state = new
        return new

    def new_state(self, n_outputs: int, n_features: int) -> LinearState:
        """Return an empty state."""
        return linear_state.new_state(n_outputs, n_features, self.second)

    def without_room(self, n_features: int) -> Self:
        """Return the solver without the unused room for features."""
        if self.state is None:
            return self
        weights, info = self.state
        return self.changed(state=LinearState(weights[:, :, : max(1, n_features)], info))

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return 0 if self.state is None else int(self.state.weights.shape[2])

    # Learning

    def learn(self, rows: tuple[Rows, ...], margins: np.ndarray, done: list[object]) -> None:
        """Learn (x, y, weight); append to `done` when they were learnt."""
        append_result(done, learn_rows, (self.state, self.step, *rows, self.schedule, margins))

    def choose_rate(self, state: LinearState, x: Rows, y: np.ndarray, weight: np.ndarray) -> None:
        """Choose t0 by all rows so far, and go on from the weights of the best pass over them."""
        self.schedule = rate_search.learn_best(
            x, y, weight, self.schedule, state, self.second, self.step
        )

    # What was learnt

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
        """Bytes of ``weights`` and ``first_rows``."""
        rows, state = self.first_rows, self.state
        return {
            "weights": 0 if state is None else _whole(state.weights).nbytes,
            "first_rows": 0 if rows is None else rows.nbytes,
        }


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
