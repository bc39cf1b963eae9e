"""Learners of label sequences as objects: weights, support patterns, and calls of compiled code.

Compiled code stops where room is short; here the patterns are grown, and it continues. They are set
before more is learnt: an interruption must not leave weights without the patterns that they are
made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamsvm._parameter_checks import check_size
from streamsvm.errors import ParameterError
from streamsvm.structured.sequences import exact, greedy, kernel_tokens, sentence_patterns
from streamsvm.structured.sequences.kernel_tokens import KernelTokens
from streamsvm.structured.sequences.model import LANES, Model, Schedule, grown, new_model
from streamsvm.structured.sequences.pairs import new_scratch
from streamsvm.structured.sequences.token_patterns import TokenPatterns
from streamsvm.support import states
from streamsvm.support.draws import new_draws
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.rows import SparseRows


class Batch(NamedTuple):
    """Sentences to learn."""

    x: Any  # a row for each token: SparseRows, or float32 (tokens, d) with a kernel
    first: np.ndarray  # int64 (sentences + 1,): the first token of each sentence
    labels: np.ndarray  # int32 (tokens,)
    known: np.ndarray  # int64 (sentences,): labels seen when the sentence is learnt
    cost: np.ndarray  # float64 (sentences,): C times the weight

    def rows(self) -> SparseRows:
        """Return the rows of the tokens of these sentences alone."""
        x, begin, stop = self.x, self.first[0], self.first[-1]
        part = slice(x.start[begin], x.start[stop])
        start = x.start[begin : stop + 1] - part.start
        return SparseRows(start, x.columns[part], x.values[part], x.d)


def longest_of(first: np.ndarray) -> int:
    """Return the number of tokens of the longest sentence."""
    return int(np.diff(first).max(initial=0))


class SequenceSolver(ABC):
    """What both kinds of inference share; a subclass names its compiled functions.

    With `is_averaged`, predictions are by the mean of the weights after each sentence; after
    `window` further examples a pattern leaves; `seed` is that of the random draws of patterns.
    """

    cache_bytes: int | None = None
    """How much kernel rows take at most; None: there are none."""

    steps: Any
    """The module with `learn`, `kept_gap`, `other_gap` and `learn_again`."""

    most_features = 2**31 - 1
    """The most features that it takes."""

    def __init__(
        self,
        schedule: Schedule,
        is_averaged: bool = False,
        window: int | None = None,
        seed: int | None = 0,
    ) -> None:
        self.schedule, self.is_averaged, self.window = schedule, is_averaged, window or 0
        self.model: Model = new_model(schedule.order, is_averaged)
        self.draws = new_draws(seed)
        self.patterns: Any = self.new_patterns()

    @abstractmethod
    def new_patterns(self) -> Any:
        """Return no patterns, with room for some."""

    @abstractmethod
    def with_room(self, longest: int) -> Any:
        """Return the patterns with more room, for a sentence of up to so many tokens."""

    def grow(self, features: int, classes: int, most_features: int) -> None:
        """Make room for so many features and classes; no prediction changes."""
        self.model = grown(self.model, features, classes, most_features)

    def scratch(self, first: np.ndarray | None = None) -> tuple[Any, ...]:
        """Return what the functions need besides, for the patterns and for fresh sentences."""
        return ()

    def parts(self) -> tuple[Any, ...]:
        """Return what `learn` of `steps` learns with."""
        return self.model, self.patterns, self.schedule

    # Learning

    def learn(self, batch: Batch) -> None:
        """Learn a batch."""
        scratch = self.scratch(batch.first)

        def run(done: int) -> Any:
            return self.steps.learn(*self.parts(), *batch, self.draws, done, *scratch)

        self.run(run, batch.known.size, longest_of(batch.first))

    def learn_again(self, batch: Batch, n: int) -> None:
        """Make a further pass over all examples, which have n labels."""
        x, first, labels, _, cost = batch
        scratch, slots = self.scratch(first), self.slots_of(first)

        def run(done: int) -> Any:
            own = self.model, self.patterns, self.schedule
            return self.steps.learn_again(*own, x, first, labels, cost, slots, n, done, *scratch)

        self.run(run, first.size - 1, longest_of(first))

    def run(self, run: Callable[[int], Any], n: int, longest: int) -> None:
        """Call `run`, which returns how many of n examples are done, until all are."""
        done = run(0)
        while done < n:
            self.patterns = self.with_room(longest)
            done = run(done)

    @abstractmethod
    def improve(self, n: int) -> None:
        """Make steps on each support pattern; there are n labels."""

    @abstractmethod
    def predict(self, x: SparseRows, first: np.ndarray, n: int, margins: np.ndarray) -> np.ndarray:
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""

    # The dual

    def kept_gap(self, n: int) -> tuple[float, float]:
        """Return the gap over the support patterns, and the sum of their C_i."""
        own = self.model, self.patterns, self.schedule.order
        return self.steps.kept_gap(*own, n, *self.scratch())

    def other_gap(self, batch: Batch, n: int) -> float:
        """Return the gap of all examples that are no support patterns."""
        x, first, labels, _, cost = batch
        own, slots = (self.model, self.patterns, self.schedule.order), self.slots_of(first)
        return self.steps.other_gap(*own, x, first, labels, cost, slots, n, *self.scratch(first))

    @abstractmethod
    def at_bound(self) -> np.ndarray:
        """Return which of the nonzero coefficients are at their upper bound."""

    @abstractmethod
    def linear_part(self) -> float:
        """Return the linear term of the dual."""

    def square_norm(self, d: int, n: int) -> float:
        """Return |w|^2 of d features and n labels."""
        # The parts in use alone: a sum depends on how much room there is, by rounding.
        weights, moves = self.model.weights[:d, :n], self.model.moves[:, : n + 1, :n]
        square = float(np.einsum("ij,ij->", weights, weights, dtype=float))
        return square + float(np.einsum("ijk,ijk->", moves, moves, dtype=float))

    # The patterns

    @staticmethod
    @abstractmethod
    def numbers_in(first: np.ndarray) -> int:
        """Return how many examples sentences are."""

    def slots_of(self, first: np.ndarray) -> np.ndarray:
        """Return the slots of the examples of all sentences, int64; -1 of no support patterns."""
        slots, members = np.full(self.numbers_in(first), -1), self.members
        slots[self.patterns.store.entered[members] - 1] = members
        return slots

    @property
    def members(self) -> np.ndarray:
        """The slots of the support patterns."""
        active = self.patterns.active
        members: np.ndarray = active.members[: active.counts[0].n_members]
        return members

    @property
    def n_vectors(self) -> int:
        """The number of nonzero coefficients."""
        return int(np.count_nonzero(self.patterns.beta))


class Greedy(SequenceSolver):
    """Labels are predicted from left to right; the patterns are tokens."""

    steps = greedy
    kind: type = TokenPatterns
    cache_bytes = 0

    def new_patterns(self) -> Any:
        """Return no patterns, with room for some."""
        sizes = {"slots": 64, "features": 1, "classes": LANES}
        sizes |= {"order": self.schedule.order, "window": self.window}
        sparse = self.kind is TokenPatterns
        return states.new(self.kind, sizes, sparse=sparse, cache_bytes=self.cache_bytes)

    def grow(self, features: int, classes: int, most_features: int) -> None:
        """Make room for so many features and classes; no prediction changes."""
        super().grow(features, classes, most_features)
        classes = self.model.weights.shape[1]
        if classes > self.patterns.beta.shape[1]:
            self.patterns = self.grown(0, classes)

    def grown(self, slots: int, classes: int, features: int = 0) -> Any:
        """Return the patterns with room for at least so many."""
        old = self.patterns
        slots, features = max(slots, old.label.size), max(features, states.n_columns(old))
        classes = max(classes, old.beta.shape[1])
        return states.grown(old, slots, features, self.cache_bytes, classes)

    def with_room(self, longest: int) -> Any:
        """Return the patterns with more room, for a sentence of up to so many tokens."""
        counts, slots = self.patterns.active.counts[0], self.patterns.label.size
        while slots - counts.n + counts.n_free < longest:
            slots *= 2
        return self.grown(slots, 0)

    @staticmethod
    def numbers_in(first: np.ndarray) -> int:
        """Return how many examples sentences are."""
        return int(first[-1] - first[0])

    def bound(self) -> Any:
        """Return the kernel in the form that compiled functions take; None: linear."""
        return None

    def parts(self) -> tuple[Any, ...]:
        """Return what `learn` of `steps` learns with."""
        return *super().parts(), self.bound()

    def predict(self, x: SparseRows, first: np.ndarray, n: int, margins: np.ndarray) -> np.ndarray:
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""
        labels = np.zeros(x.start.size - 1, np.int32)
        greedy.predict(self.model, self.schedule.order, x, first, n, labels, margins)
        return labels

    def improve(self, n: int) -> None:
        """Make steps on each support pattern; there are n labels."""
        order, n_optimize = self.schedule.order, self.schedule.n_optimize
        greedy.improve(self.model, self.patterns, self.bound(), order, n, n_optimize)

    def at_bound(self) -> np.ndarray:
        """Return which of the nonzero coefficients are at their upper bound."""
        beta = self.patterns.beta
        is_at: np.ndarray = beta >= self.patterns.cost[:, None]
        return is_at[beta != 0.0]

    def linear_part(self) -> float:
        """Return the linear term of the dual."""
        members = self.members
        return float(self.patterns.beta[members, self.patterns.label[members]].sum())


class Exact(SequenceSolver):
    """The best sequence of labels is predicted; the patterns are sentences."""

    steps = exact

    def new_patterns(self) -> Any:
        """Return no patterns, with room for some."""
        return sentence_patterns.new_patterns(self.window)

    def with_room(self, longest: int) -> Any:
        """Return the patterns with more room."""
        return sentence_patterns.grown(self.patterns)

    def scratch(self, first: np.ndarray | None = None) -> tuple[Any, ...]:
        """Return what the functions need besides, for the patterns and for fresh sentences."""
        longest = int(self.patterns.lengths.length.max(initial=0))
        if first is not None:
            longest = max(longest, longest_of(first))
        return (new_scratch(longest, *self.model.weights.shape),)

    @staticmethod
    def numbers_in(first: np.ndarray) -> int:
        """Return how many examples sentences are."""
        return first.size - 1

    def predict(self, x: SparseRows, first: np.ndarray, n: int, margins: np.ndarray) -> np.ndarray:
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""
        labels = np.zeros(x.start.size - 1, np.int32)
        scratch = new_scratch(longest_of(first), 0, self.model.weights.shape[1])
        exact.predict(self.model, self.schedule.order, x, first, n, labels, margins, scratch)
        return labels

    def improve(self, n: int) -> None:
        """Make steps on each support pattern; there are n labels."""
        scratch, (_, order, _, n_optimize, _) = self.scratch(), self.schedule

        def run(done: int) -> Any:
            own = self.model, self.patterns, order
            return exact.improve(*own, n, n_optimize, done, *scratch)

        self.run(run, int(self.patterns.active.counts[0].n), 0)

    def at_bound(self) -> np.ndarray:
        """Return which of the nonzero coefficients are at their upper bound."""
        patterns = self.patterns
        heads, is_at = patterns.head[self.members], np.zeros(patterns.beta.size, bool)
        is_at[heads] = patterns.beta[heads] >= patterns.cost[self.members]
        return is_at[patterns.beta != 0.0]

    def linear_part(self) -> float:
        """Return the linear term of the dual."""
        return exact.linear_part(self.patterns, self.model.cost)


MOST_FEATURES = 4096
"""The most features of tokens with a kernel: a pattern takes 4 bytes for each."""


class KernelGreedy(Greedy):
    """Labels are predicted from left to right; tokens are compared by a kernel."""

    kind, most_features = KernelTokens, MOST_FEATURES

    def __init__(
        self,
        kernel: Any,
        cache_bytes: int,
        schedule: Schedule,
        window: int | None,
        seed: int | None,
    ) -> None:
        self.kernel, self.cache_bytes = kernel, cache_bytes
        super().__init__(schedule, False, window, seed)

    def grow(self, features: int, classes: int, most_features: int) -> None:
        """Make room for so many features and classes; no prediction changes."""
        known = self.patterns.store.panels.shape[1]
        if features > known:
            room = min(2 * features, MOST_FEATURES) if known > 1 else features
            self.patterns = self.grown(0, 0, room)
        # The patterns are in the place of weights.
        super().grow(0, classes, most_features)

    def bound(self) -> Any:
        """Return the kernel in the form that compiled functions take."""
        return bound(self.kernel, self.patterns.store)

    def learn(self, batch: Batch) -> None:
        """Learn a batch."""
        begin = int(batch.first[0])
        rows = self.dense(batch.x, begin, int(batch.first[-1]))
        first = batch.first - begin
        super().learn(batch._replace(x=rows, first=first, labels=batch.labels[begin:]))

    def predict(self, x: SparseRows, first: np.ndarray, n: int, margins: np.ndarray) -> np.ndarray:
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""
        rows = self.dense(x, 0, x.start.size - 1)
        scores = kernel_tokens.emissions(self.patterns, self.bound(), rows)
        labels = np.zeros(len(rows), np.int32)
        kernel_tokens.decode(scores, self.model.moves, self.schedule.order, first, n, labels)
        if len(margins):
            margins[:] = scores[:, :n]
        return labels

    def square_norm(self, d: int, n: int) -> float:
        """Return |w|^2."""
        return float(self.model.info[0].square_norm)

    def dense(self, x: SparseRows, begin: int, stop: int) -> np.ndarray:
        """Return the rows begin .. stop-1 as float32 (rows, features of the store)."""
        rows = np.zeros((stop - begin, self.patterns.store.panels.shape[1]), np.float32)
        entries = slice(int(x.start[begin]), int(x.start[stop]))
        at = np.repeat(np.arange(stop - begin), np.diff(x.start[begin : stop + 1]))
        rows[at, x.columns[entries]] = x.values[entries]
        return rows


_MOST_ORDER = 32


def new_solver(
    method: int,
    inference: str,
    order: int | None,
    *,
    is_averaged: bool = False,
    steps: tuple[int, int] = (0, 0),
    limit: int | None = None,
    window: int | None = None,
    seed: int | None = 0,
    kernel: Any = None,
    cache_bytes: int = 0,
) -> SequenceSolver:
    """Return a solver; raise `ParameterError` if inference or order cannot be used.

    `steps` are those of PROCESSOLD for each example, and of OPTIMIZE after each of these; `limit`
    is the most support patterns, None for any number. For the others see `SequenceSolver`.
    """
    if inference not in ("greedy", "exact"):
        raise ParameterError(f"inference={inference!r}: use 'greedy' or 'exact'")
    is_greedy = inference == "greedy"
    own = check_size("order", order, 0, _MOST_ORDER if is_greedy else 1)
    default = 2 if is_greedy else 1
    schedule = Schedule(method, default if own is None else own, *steps, limit or 2**62)
    if kernel is not None:
        return KernelGreedy(kernel, cache_bytes, schedule, window, seed)
    return (Greedy if is_greedy else Exact)(schedule, is_averaged, window, seed)
