"""What a model is: it learns rows of numbers, and returns margins."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from streamsvm.model_files.json_values import Content, Json
from streamsvm.models.outputs import Outputs
from streamsvm.models.rank_bits import RankBits
from streamsvm.models.rows import NumberedRows
from streamsvm.selection.candidates import Candidates
from streamsvm.solvers.adaptive.combination import CombinationState, Scratch
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.interruptions import Changes, Replaceable, change_together
from streamsvm.support.rows import Rows, shape
from streamsvm.support.state_arrays import as_arrays, from_arrays

Kernel = tuple[float, ...]
"""A NamedTuple of float parameters whose type is registered: see `streamsvm.kernels`."""


Combining = tuple[CombinationState, Scratch, np.ndarray]
"""The combination of an adaptive model, arrays for it, and `asked` (see `adaptive.last_label`)."""


class LearntEvent(Protocol):
    """An event that compiled code has learnt, as `Model.after_event` is told of it."""

    margins: np.ndarray
    """float64 (1, outputs): from before, as the solver wrote them."""

    @property
    def weight(self) -> float:
        """The example weight."""

    @property
    def marks(self) -> int:
        """Which of several models erred on it, as bits: see `adaptive.combination`."""

    @property
    def behind(self) -> int:
        """Which of them could not learn it, as bits, as there was no room."""

    def row(self) -> Rows:
        """Return a copy of the row as it came, over the features seen."""

    def scaled_row(self) -> Rows:
        """Return the same as the solver compares it: its features are multiplied by factors."""


class Combined(Protocol):
    """A further model whose scores are combined with those of the first: see `Model.further`."""

    @property
    def slot(self) -> int:
        """Its number among the models that are combined."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def bits(self) -> RankBits | None:
        """How it sees rows: as bits of ranks, or None: as they are."""


Parts = tuple[Any, Kernel | None, object]
"""State, kernel and schedule of a model: what compiled code uses for an event.

A model that changes one of them in a way that concerns compiled code replaces the object.
"""


class Model(Replaceable, abc.ABC):
    """Learns rows of numbers of classes 0, 1, ...; it knows no names, labels, locks or River.

    Attributes
    ----------
    outputs
        What its margins mean, for the classes that it has.
    n_learnt
        int64 (1,): how many examples it has learnt; an array, as compiled code increases it.
    n_features
        How many features the rows had that it has learnt.
    is_sparse
        Whether rows are stored as their nonzero features.

    """

    is_rehearsal = False
    """Whether it only compiles: then each of several models predicts in turn."""

    outputs: Outputs
    combination: CombinationState | None = None
    n_learnt: np.ndarray
    n_features: int
    is_sparse: bool
    state: Any

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""
        return int(self.n_learnt[0])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.outputs.n_classes

    @abc.abstractmethod
    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return the margins from before each."""

    @abc.abstractmethod
    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, as its `outputs` say."""

    @abc.abstractmethod
    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows, 0 without a kernel; `FeatureError` if it cannot take one."""
        return np.zeros(shape(x)[0], np.float32)

    def costs_now(self, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of classes, given by number, would have now."""
        return np.array(weights, np.float64)

    def cost_of(self, number: float) -> float:
        """Return the C_i of the next example, if it is of this class, for a weight of 1."""
        return 1.0

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose C is multiplied by a factor.

        These are attributes with their new values; what the model predicts is not changed.
        """
        return [(self.__dict__, {"outputs": type(self.outputs)(self.n_classes + 1)})]

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as C is multiplied by other factors from now on, one a class."""
        return []

    def add_class(self, factor: float) -> None:
        """Add a class, in one step."""
        change_together(self.with_class(factor))
        self.after_class()

    def after_class(self) -> None:
        """Do what follows when a class was added."""

    def margins_before_class(self, x: Rows) -> np.ndarray | None:
        """Return the margins of a row before its class is added, if that changes what predicts."""
        return None

    # Events

    @abc.abstractmethod
    def event_parts(self) -> Parts:
        """Return what compiled code uses for an event; the state is None if it cannot."""

    def lacks_class(self) -> bool:
        """Tell whether what adds a class was interrupted: only a batch does it then."""
        return False

    def bound_kernel(self, state: Any) -> Any:
        """Return the kernel in the form that compiled code takes; None: it takes none."""
        return None

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return self.n_features

    def make_room(self, n_features: int) -> object:
        """Let the state, if there is one, have room for rows of so many features."""

    @property
    def in_use(self) -> Model:
        """The model whose arrays compiled code uses: itself, or one of those that it has."""
        return self

    @property
    def factors(self) -> np.ndarray | None:
        """What features are multiplied by before rows are compared, float32; None: by nothing."""
        return None

    def further(self, room: int) -> Sequence[Combined]:
        """Return `Member`s whose scores are combined with those of `in_use`: none, of most models.

        They have room for rows of so many features.
        """
        return ()

    # Candidates that wait to be chosen

    @property
    def delta(self) -> float:
        """By how much optimality is violated, of solvers that know; 0 of others."""
        return 0.0

    def margins_of_arrivals(self, candidates: Candidates, x: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of rows that come, and their kernel values: none, for this model."""
        margins = self.margins_of(x)
        return margins, np.zeros((len(margins), 0), np.float32)

    def margins_of_waiting(self, candidates: Candidates, d: int) -> np.ndarray:
        """Return the margins of all candidates, which have d features."""
        return self.margins_of(candidates.rows(d))

    def takes_every_row(self) -> bool:
        """Tell whether it accepts every row of finite values."""
        return True

    def combining(self, d: int) -> Combining | None:
        """Return what compiled code combines scores with, for d features; None: with nothing."""
        return None

    def after_event(self, event: LearntEvent, number: float, cost: float) -> None:
        """Take note of an event of this class that compiled code has learnt."""

    # Inspection, files, copies

    def dense_rows(self) -> np.ndarray:
        """Return rows that it keeps, dense; none, if it keeps none."""
        return np.zeros((0, self.n_features), np.float32)

    @property
    def lengths(self) -> dict[str, int]:
        """The lengths of the axes of its state."""
        n = self.n_classes
        return {"features": self.n_features, "classes": n, "sides": max(2, n)}

    def empty_state(self) -> Any:
        """Return an empty state with room for its features and classes, to be read from a file."""
        raise NotImplementedError

    def as_file(self) -> Content:
        """Return what a file holds of it: JSON values and arrays."""
        return ({}, {}) if self.state is None else as_arrays(self.state, self.lengths)

    def read(self, content: Json, arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit.

        It has the classes, features and number of examples already, and has learnt nothing.
        """
        if "info" in content or "info" in arrays:
            self.state = from_arrays(self.empty_state(), content, arrays, self.lengths)
        elif self.n_examples:
            raise ValueError("there are examples, but no state")

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of each part; a model that has one part only names none."""
        return {}

    def for_copy(self) -> Model:
        """Return it without what a copy computes again."""
        return self

    def after_copy(self, n_threads: int) -> None:
        """Add what `for_copy` left out; the process may have other cores."""
