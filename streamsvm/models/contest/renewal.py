"""A new model of ranks: relevance is learnt from the last examples, then the model learns them.

Both in parts, one after each look at the models, bounded by counts of work: see `Work`. Meanwhile
the model that there is goes on, and keeps its place until the new one has learnt what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from streamsvm.model_files.json_values import Json, checked
from streamsvm.models.contest.members import RANKS, Member
from streamsvm.models.kept_examples import Examples
from streamsvm.models.kernel import learned_relevance
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.relearning import Work, learn_examples
from streamsvm.models.rank_bits import MOST_ROWS, equal_weights, fitted, ranks_of, varying
from streamsvm.support.declaration import as_int
from streamsvm.support.interruptions import Replaceable

BUDGET = 4e7
"""The work after a look, in about nanoseconds (see `Work`)."""

LOOK_EVERY = 64
"""There is a look after so many examples, once relevance is learnt."""

MOST_LOOKS = 16
"""Relevance is learnt within so many looks."""

_FEWEST = 2 * LOOK_EVERY
"""So many examples are learnt after a look at least: faster than they come."""

_RELEVANT_FROM = 512
"""From so many examples on the relevance of features is learnt, if there are more than two."""
_ROWS_OF_RELEVANCE = 768
_LATER_STEPS, _LEAST_WEIGHT = 5, 0.1
"""Learnt again, it begins with the weights so far, but with at least this share of their mean."""


class Renewal(Replaceable):
    """Finds the bits of ranks anew, and lets a new model learn.

    Attributes
    ----------
    weights
        Those of the ranks of features by which bits are shared out, float64 (d,), at least 0; None:
        all alike.
    began, n_kept
        After how many examples relevance began to be learnt, 0: it is not learnt at present; and of
        how many of the last ones.
    successor
        The new model, while it learns; or None.
    start
        How many examples came before those that it learns.

    """

    def __init__(self) -> None:
        self.weights: np.ndarray | None = None
        self.began = self.n_kept = self.start = 0
        self.successor: Member | None = None
        # Learns relevance; not in copies, which make its steps again.
        self._work: Generator[float, None, np.ndarray] | None = None

    @property
    def is_on(self) -> bool:
        """Whether a new model is on its way."""
        return self.began > 0 or self.successor is not None

    def begin(self, n: int, n_kept: int) -> None:
        """Begin after n examples, of which so many are kept to learn from."""
        self.began, self.n_kept = n, n_kept

    def end(self) -> None:
        """Let no new model come."""
        self.began, self.successor, self._work = 0, None, None

    def for_copy(self) -> Renewal:
        """Return it without the steps made, which a copy makes again."""
        return self.changed(_work=None)

    def advance(
        self,
        n: int,
        last: Callable[[int], Examples],
        n_kept: int,
        new_model: Callable[[float], KernelModel],
    ) -> Member | None:
        """Go on after n examples; return the new model when it has learnt what is kept.

        `last` returns so many of the last examples, of which `n_kept` are to be learnt from, and
        `new_model` a new model of bits, given gamma.
        """
        if self.began and self._has_weights(n, last):
            examples = self._at_first(n, last)
            self.began, self._work = 0, None
            bits, gamma = fitted(np.asarray(examples.x), self.weights)
            self.successor, self.start = Member(RANKS, new_model(gamma), bits), n - n_kept
        return None if self.successor is None else self._learnt(self.successor, n, last)

    def _at_first(self, n: int, last: Callable[[int], Examples]) -> Examples:
        """Return the examples that there were when relevance began to be learnt."""
        since, before = n - self.began, min(MOST_ROWS, self.n_kept)
        return last(before + since).part(0, before)

    def _has_weights(self, n: int, last: Callable[[int], Examples]) -> bool:
        """Make steps of learning relevance, within the budget; tell whether it is learnt."""
        # Put back when nothing has interrupted its step: else all steps are made again.
        work, self._work = self._work, None
        if work is None:
            examples = self._at_first(n, last)
            if not has_relevance(examples):
                self.weights = None
                return True
            work = learn_relevance(examples, self.weights)
            # Those before did not end it.
            for _ in range((n - self.began) // LOOK_EVERY):
                _advanced(work)
        found = _advanced(work)
        if found is None:
            self._work = work
            return False
        self.weights = found
        return True

    def _learnt(self, new: Member, n: int, last: Callable[[int], Examples]) -> Member | None:
        """Let the new model learn within the budget; return it when it has learnt all."""
        examples = last(n - self.start - new.model.n_examples)
        n_left = len(examples.classes)
        # Of what is not kept any more it learns nothing.
        self.start = n - n_left - new.model.n_examples
        examples = examples._replace(x=new.seen(examples.x))
        work = Work(new.model)
        work.expect(examples.x)
        # Faster than they come, whatever it takes: so it catches up at some time.
        learnt = work.affordable(BUDGET, n_left, _FEWEST)
        learn_examples(new.model, examples.part(0, learnt))
        if learnt < n_left:
            return None
        self.successor = None
        return new

    def as_json(self) -> Json:
        """Return what a file holds of it, beside weights and the new model."""
        return {"began": self.began, "kept": self.n_kept, "start": self.start}

    def read(self, content: object, n: int) -> None:
        """Set what `as_json` returned; raise ValueError if it does not fit n examples."""
        found = checked(content, dict, "renewal")
        self.began, self.n_kept, self.start = (
            as_int(name, found.get(name), 0, n) for name in ("began", "kept", "start")
        )


def has_relevance(examples: Examples) -> bool:
    """Tell whether relevance can be learnt from examples: of two features bits see enough."""
    n = len(examples.classes)
    if n < _RELEVANT_FROM or len(varying(np.asarray(examples.x))) <= 2:
        return False
    return len(np.unique(examples.classes)) > 1


def learn_relevance(
    examples: Examples, before: np.ndarray | None
) -> Generator[float, None, np.ndarray]:
    """Learn the relevance of features, by their ranks among the examples, a step after the other.

    `before`, float64 (up to d,), are weights to begin with. Yields the work of each step; returns
    float64 (d,).
    """
    n, d = len(examples.classes), np.asarray(examples.x).shape[1]
    rows = np.linspace(0, n - 1, min(n, _ROWS_OF_RELEVANCE)).astype(np.int64)
    x, classes = np.asarray(examples.x)[rows], examples.classes[rows]
    used = varying(x)
    start, steps = equal_weights(len(used)), learned_relevance.STEPS
    if before is not None:
        start = np.pad(before, (0, d - len(before)))[used]
        start, steps = np.maximum(start, _LEAST_WEIGHT * start.mean()), _LATER_STEPS
    ranks = learned_relevance.Absolute(ranks_of(x[:, used]))
    found = np.zeros(d)
    found[used] = yield from learned_relevance.learn(ranks, classes, [start], steps)
    return found


def all_of(work: Generator[float, None, np.ndarray]) -> np.ndarray:
    """Do all the work; return what was found."""
    while (found := _advanced(work)) is None:
        pass
    return found


def _advanced(work: Generator[float, None, np.ndarray]) -> np.ndarray | None:
    """Work within the budget; return what was found, or None."""
    left = BUDGET
    while left > 0.0:
        try:
            left -= next(work)
        except StopIteration as end:
            found: np.ndarray = end.value
            return found
    return None
