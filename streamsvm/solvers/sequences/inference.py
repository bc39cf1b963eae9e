"""Greedy and exact inference behind one interface; each is a set of calls into compiled code.

A `Batch` is what learning needs of some sentences. Compiled code stops where room is short; here
the patterns are grown, and it continues. Patterns that were grown are handed to `keep` before more
is learnt: an interruption must not leave weights without the patterns that they are made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamsvm.solvers.sequences import (
    exact,
    exact_gap,
    greedy,
    greedy_gap,
    sentence_patterns,
    token_patterns,
)
from streamsvm.solvers.sequences.model import Model, Schedule
from streamsvm.solvers.sequences.sentence_patterns import SentencePatterns
from streamsvm.solvers.sequences.token_patterns import TokenPatterns
from streamsvm.solvers.sequences.worst_labels import new_scratch
from streamsvm.support.rows import SparseRows

Keep = Callable[[Any], None]
"""Stores patterns that were grown."""


class Batch(NamedTuple):
    """Sentences to learn."""

    x: SparseRows  # a row for each token
    first: np.ndarray  # int64 (sentences + 1,): the first token of each sentence
    labels: np.ndarray  # int32 (tokens,)
    known: np.ndarray  # int64 (sentences,): labels seen when the sentence is learnt
    box: np.ndarray  # float64 (sentences,): C times the weight


def longest_of(first: np.ndarray) -> int:
    """Return the number of tokens of the longest sentence."""
    return int(np.diff(first).max(initial=0))


class Inference(ABC):
    """What both kinds of inference share; a subclass names its compiled functions."""

    _steps: ClassVar[Any]
    """The module with `learn`."""
    _gaps: ClassVar[Any]
    """The module with `kept_gap`, `other_gap` and `learn_again`."""

    @staticmethod
    @abstractmethod
    def _grown(patterns: Any, longest: int) -> Any:
        """Return the patterns with more room, for a sentence of up to so many tokens."""

    @staticmethod
    def _scratch(model: Model, patterns: Any, first: np.ndarray | None = None) -> tuple[Any, ...]:
        """Return what the functions need besides, for the patterns and for fresh sentences."""
        return ()

    @classmethod
    def learn(
        cls, model: Model, patterns: Any, schedule: Schedule, batch: Batch, draws: np.ndarray,
        keep: Keep,
    ) -> None:  # fmt: skip
        """Learn a batch."""
        scratch = cls._scratch(model, patterns, batch.first)

        def run(patterns: Any, done: int) -> int:
            return cls._steps.learn(model, patterns, schedule, *batch, draws, done, *scratch)

        cls._with_room(run, patterns, batch.known.size, keep, longest_of(batch.first))

    @classmethod
    def learn_again(
        cls, model: Model, patterns: Any, schedule: Schedule, batch: Batch, slots: np.ndarray,
        n: int, keep: Keep,
    ) -> None:  # fmt: skip
        """Make a further pass over all examples."""
        x, first, labels, _, box = batch
        scratch = cls._scratch(model, patterns, first)

        def run(patterns: Any, done: int) -> int:
            return cls._gaps.learn_again(
                model, patterns, schedule, x, first, labels, box, slots, n, done, *scratch
            )

        cls._with_room(run, patterns, first.size - 1, keep, longest_of(first))

    @classmethod
    def _with_room(
        cls, run: Callable[[Any, int], int], patterns: Any, n: int, keep: Keep, longest: int
    ) -> None:
        done = run(patterns, 0)
        while done < n:
            patterns = cls._grown(patterns, longest)
            keep(patterns)
            done = run(patterns, done)

    @classmethod
    def kept_gap(cls, model: Model, patterns: Any, order: int, n: int) -> tuple[float, float]:
        """Return the gap over the support patterns, and the sum of their C_i."""
        scratch = cls._scratch(model, patterns)
        return cls._gaps.kept_gap(model, patterns, order, n, *scratch)

    @classmethod
    def other_gap(
        cls, model: Model, patterns: Any, order: int, batch: Batch, slots: np.ndarray, n: int
    ) -> float:
        """Return the gap of all examples that are no support patterns."""
        x, first, labels, _, box = batch
        scratch = cls._scratch(model, patterns, first)
        return cls._gaps.other_gap(
            model, patterns, order, x, first, labels, box, slots, n, *scratch
        )


class Greedy(Inference):
    """Labels are predicted from left to right; the patterns are tokens."""

    _steps: ClassVar[Any] = greedy
    _gaps: ClassVar[Any] = greedy_gap

    @staticmethod
    def new_patterns(order: int, classes: int, window: int) -> TokenPatterns:
        """Return no patterns, with room for some."""
        return token_patterns.new_patterns(order, classes, window)

    @staticmethod
    def with_classes(patterns: TokenPatterns, classes: int) -> TokenPatterns:
        """Return the patterns with room for so many classes."""
        if classes <= patterns.beta.shape[1]:
            return patterns
        return token_patterns.grown(patterns, 0, classes)

    @staticmethod
    def _grown(patterns: Any, longest: int) -> Any:
        counts, slots = patterns.active.counts[0], patterns.label.size
        while slots - counts.n + counts.n_free < longest:
            slots *= 2
        return token_patterns.grown(patterns, slots, 0)

    @staticmethod
    def numbers_in(first: np.ndarray) -> int:
        """Return how many examples sentences are."""
        return int(first[-1] - first[0])

    @staticmethod
    def predict(
        model: Model, order: int, x: SparseRows, first: np.ndarray, n: int, margins: np.ndarray
    ) -> np.ndarray:
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""
        labels = np.zeros(x.start.size - 1, np.int32)
        greedy.predict(model, order, x, first, n, labels, margins)
        return labels

    @staticmethod
    def improve(
        model: Model, patterns: Any, order: int, n: int, n_optimize: int, keep: Keep
    ) -> None:
        """Make steps on each support pattern."""
        greedy_gap.improve(model, patterns, order, n, n_optimize)

    @staticmethod
    def at_bound(patterns: TokenPatterns) -> np.ndarray:
        """Return which of the nonzero coefficients are at their upper bound."""
        is_at: np.ndarray = patterns.beta >= patterns.box[:, None]
        return is_at[patterns.beta != 0.0]

    @staticmethod
    def linear_part(patterns: TokenPatterns, cost: np.ndarray) -> float:
        """Return the linear term of the dual."""
        members = _members(patterns)
        return float(patterns.beta[members, patterns.label[members]].sum())


class Exact(Inference):
    """The best sequence of labels is predicted; the patterns are sentences."""

    _steps: ClassVar[Any] = exact
    _gaps: ClassVar[Any] = exact_gap

    @staticmethod
    def new_patterns(order: int, classes: int, window: int) -> SentencePatterns:
        """Return no patterns, with room for some."""
        return sentence_patterns.new_patterns(window)

    @staticmethod
    def with_classes(patterns: SentencePatterns, classes: int) -> SentencePatterns:
        """Return the patterns with room for so many classes: any number fits."""
        return patterns

    @staticmethod
    def _grown(patterns: Any, longest: int) -> Any:
        return sentence_patterns.grown(patterns)

    @staticmethod
    def _scratch(model: Model, patterns: Any, first: np.ndarray | None = None) -> tuple[Any, ...]:
        longest = int(patterns.lengths.length.max(initial=0))
        if first is not None:
            longest = max(longest, longest_of(first))
        return (new_scratch(longest, *model.weights.shape),)

    @staticmethod
    def numbers_in(first: np.ndarray) -> int:
        """Return how many examples sentences are."""
        return first.size - 1

    @staticmethod
    def predict(
        model: Model, order: int, x: SparseRows, first: np.ndarray, n: int, margins: np.ndarray
    ) -> np.ndarray:
        """Return the labels of all tokens, int32; fill `margins` if they have rows."""
        labels = np.zeros(x.start.size - 1, np.int32)
        scratch = new_scratch(longest_of(first), 0, model.weights.shape[1])
        exact.predict(model, order, x, first, n, labels, margins, scratch)
        return labels

    @classmethod
    def improve(
        cls, model: Model, patterns: Any, order: int, n: int, n_optimize: int, keep: Keep
    ) -> None:
        """Make steps on each support pattern."""
        scratch = cls._scratch(model, patterns)

        def run(patterns: Any, done: int) -> int:
            return exact_gap.improve(model, patterns, order, n, n_optimize, done, *scratch)

        cls._with_room(run, patterns, int(patterns.active.counts[0].n), keep, 0)

    @staticmethod
    def at_bound(patterns: SentencePatterns) -> np.ndarray:
        """Return which of the nonzero coefficients are at their upper bound."""
        members, is_at = _members(patterns), np.zeros(patterns.beta.size, bool)
        heads = patterns.head[members]
        is_at[heads] = patterns.beta[heads] >= patterns.box[members]
        return is_at[patterns.beta != 0.0]

    @staticmethod
    def linear_part(patterns: SentencePatterns, cost: np.ndarray) -> float:
        """Return the linear term of the dual."""
        return exact_gap.linear_part(patterns, cost)


def _members(patterns: Any) -> np.ndarray:
    """Return the slots of the support patterns."""
    return patterns.active.members[: patterns.active.counts[0].n_members]


def slots_of(patterns: Any, n: int) -> np.ndarray:
    """Return the slots of examples 1 .. n, int64: -1 for those that are no support patterns."""
    slots = np.full(n, -1)
    members = _members(patterns)
    slots[patterns.store.entered[members] - 1] = members
    return slots


def n_patterns(patterns: Any) -> int:
    """Return the number of support patterns."""
    return int(patterns.active.counts[0].n_members)


def n_vectors(patterns: Any) -> int:
    """Return the number of nonzero coefficients."""
    return int(np.count_nonzero(patterns.beta))
