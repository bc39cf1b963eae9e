"""Kept examples as a model learns them: its errors on each from before, and the work that it is.

The work, in about nanoseconds, follows from counts of solvers, not from the clock: the same
examples always lead to the same parts, and the same models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.models.kept_examples import Examples
from streamsvm.models.rows import NumberedRows
from streamsvm.solvers.lasvm_pairs import layout
from streamsvm.support.rows import Rows, SparseRows, shape

Factors = Sequence[float] | np.ndarray

_OF_BYTE = 0.5
"""The work for each byte that is copied when the problems of several classes need more room."""

_ROWS_AT_FIRST = 8
"""So many rows show what one takes."""


class Errors(NamedTuple):
    """How n examples were predicted before they were learnt."""

    wrong: np.ndarray  # bool (n,)
    losses: np.ndarray  # float64 (n,): hinge losses


def are_fewer(
    wrong: np.ndarray, others: np.ndarray, deviations: float, costs: np.ndarray | None = None
) -> bool:
    """Tell whether `wrong`, bool (n,), holds fewer errors than others on the same examples.

    By more than so many standard deviations of a sign test on the examples that only one of the two
    got wrong (McNemar's test); errors count as much as `costs`, float64 (n,), say, else alike.
    """
    costs = np.ones(len(wrong)) if costs is None else costs
    gains = costs * (others.astype(np.float64) - wrong)
    return bool(gains.sum() > deviations * math.sqrt(gains @ gains))


def joined(parts: Sequence[Errors]) -> Errors:
    """Return the errors on examples that were learnt in parts."""
    return Errors(*map(np.concatenate, zip(*parts, strict=True)))


def learn_examples(
    model: Any, examples: Examples, numbers: np.ndarray | None = None, factors: Factors = ()
) -> Errors:
    """Let a kernel model learn examples that were kept; return its errors from before.

    `numbers` are those of the examples; None: they follow those that the model has learnt. A class
    that it lacks is added when its first example comes, with its factor of C; that one was wrong.
    """
    if numbers is None:
        numbers = model.n_examples + 1 + np.arange(len(examples.classes))
    y, diagonal = examples.classes.astype(np.float64), model.diagonal_of(examples.x)
    rows, parts = NumberedRows(examples.x, y, examples.weights, numbers, diagonal), []
    for start, stop in _runs(examples.classes, model.n_classes):
        own = rows.part(start, stop)
        is_new = own.y[0] >= model.n_classes
        add_classes(model, int(own.y[0]) + 1, factors)
        margins = model.learn(own)
        wrong = model.outputs.are_wrong(own.y, model.outputs.scores_of(margins))
        wrong[0] |= is_new
        parts.append(Errors(wrong, model.outputs.losses(own.y, margins)))
    return joined(parts)


def add_classes(model: Any, n: int, factors: Factors) -> None:
    """Let a model have at least n classes, whose C is multiplied by these factors."""
    while model.n_classes < n:
        model.add_class(float(factors[model.n_classes]))


def _runs(classes: np.ndarray, n_known: int) -> list[tuple[int, int]]:
    """Return ranges of rows, split at the first row of each class that is not known."""
    values, firsts = np.unique(classes, return_index=True)
    starts = np.union1d(0, firsts[values >= n_known]).tolist()
    return list(zip(starts, [*starts[1:], len(classes)], strict=True))


class Work:
    """What a kernel model does for the next rows, and what it did for the last ones.

    By `expect` the next row is estimated from the model's size, and each makes those after it
    dearer; without it each is taken to need what the last ones did, by `of_last`.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._before, self._n_before = self._total(), model.n_examples
        self._problems = self._problems_now()
        self._of_row, self._further, self._most = 0.0, 0.0, float(_ROWS_AT_FIRST)

    def affordable(self, budget: float, n: int, fewest: int) -> int:
        """Return how many of n rows the model may learn now: within the budget, but the fewest."""
        most, one, further = self._most, self._of_row, self._further
        if further:
            most = (math.sqrt(one * one + 2.0 * further * budget) - one) / further
        elif one:
            most = min(most, budget / one)
        return min(n, max(fewest, int(min(most, n))))

    def expect(self, x: Rows) -> None:
        """Estimate the work of rows like these by the size of the model."""
        n, d = shape(x)
        # Nonzero features of sparse rows are looked for one by one.
        of_values = 3.0 * len(x.values) / n if isinstance(x, SparseRows) else 0.1 * d
        n_vectors, n_classes = self._model.solver.n_vectors, self._model.n_classes
        # Of several classes a LASVM has a problem of each class with each other.
        of_class = 8000.0 if self._model.solver.has_problems else 100.0
        # Each may become a support vector, which the later ones are compared with.
        self._further = 10.0 + of_values + 0.2 * n_classes
        self._of_row = 5000.0 + of_class * n_classes + self._further * n_vectors

    def of_next(self, n: int) -> float:
        """Return what the next n rows are expected to take."""
        return n * (self._of_row + 0.5 * self._further * n)

    def of_last(self) -> float:
        """Return what the rows took that were learnt since the last time."""
        total, n, problems = self._total(), self._model.n_examples, self._problems_now()
        last, rows = total - self._before, n - self._n_before
        if problems is not self._problems:
            last += _OF_BYTE * layout.moved_bytes(self._problems, problems)
        self._before, self._n_before, self._problems = total, n, problems
        self._of_row, self._most = last / max(1, rows), 2.0 * rows
        return last

    def _total(self) -> float:
        model, counts = self._model, self._model.solver.counters
        d = 0 if model.is_sparse else model.room_for_features()
        of_value = 220.0 if model.solver.has_problems else 20.0 + 0.2 * d
        of_rows = model.n_examples * (5000.0 + 1500.0 * model.n_classes)
        steps = counts["steps"] + counts["null_steps"]
        return float(of_rows + 600.0 * steps + of_value * counts["kernel_values"])

    def _problems_now(self) -> Any:
        solver = self._model.solver
        return solver.state.problems if solver.has_problems and solver.state is not None else None
