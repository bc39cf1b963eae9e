"""Errors of models on kept examples, each predicted before it is learnt, and which are fewer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.models.kept_examples import Examples
from streamsvm.models.rows import NumberedRows

Factors = Sequence[float] | np.ndarray


class Errors(NamedTuple):
    """How n examples were predicted before they were learnt."""

    wrong: np.ndarray  # bool (n,)
    losses: np.ndarray  # float64 (n,): hinge losses


def are_fewer(wrong: np.ndarray, others: np.ndarray, deviations: float) -> bool:
    """Tell whether `wrong`, bool (n,), holds fewer errors than others on the same examples.

    By more than so many standard deviations of a sign test on the examples that only one of the two
    got wrong (McNemar's test).
    """
    fewer, more = int((others & ~wrong).sum()), int((wrong & ~others).sum())
    return fewer - more > deviations * math.sqrt(fewer + more)


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
