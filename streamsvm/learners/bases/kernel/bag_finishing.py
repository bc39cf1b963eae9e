"""What the ambiguous SVM does with examples once more: `finish`, and the best candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_number, numbers_of
from streamsvm.errors import LabelError, ParameterError
from streamsvm.labels.bag_labels import bags_of
from streamsvm.learners.bases.kernel import finishing
from streamsvm.solvers.ambiguous import blocks

MOST_SWEEPS = 1000
"""`finish` makes so many steps on each example at most."""

_PART = 2**24
"""So many numbers change in one call of compiled code, about: some hundredths of a second."""


def finish(
    learner: Any,
    progress: Callable[[float, int], None] | None = None,
    share: float = 0.01,
    seconds: float | None = None,
) -> None:
    """Make steps on the examples kept until the duality gap over them is small.

    Without a kernel no example is kept, and this does nothing. With a large `C` more than 1,000
    steps on each example may be needed: then it ends there, or when the dual grows by less than
    1e-9 of itself in a sweep, and the log says so, and what gap is left.

    Parameters
    ----------
    progress
        Called after each sweep with (gap, number of support vectors). An exception in it, or
        Ctrl-C, leaves a model that can be used.
    share
        Stop when the gap is below this share of the dual; above 0, .01 by default.
    seconds
        As in `LASVMClassifier`.

    """
    check_number("share", share, 1e-6)
    limits = finishing.Limits(seconds, MOST_SWEEPS)

    def some() -> tuple[bool, float, int]:
        state, d = learner.state, len(learner.schema)
        n, kernel, before = int(state.info[0].n), learner.bound_kernel(state), learner.kept_gap()
        # Ctrl-C can interrupt between two parts.
        size = max(1, _PART // max(1, n * len(learner.classes)))
        for first in range(0, n, size):
            blocks.sweep(state, kernel, first, min(n, first + size), d)
        gap = learner.kept_gap().total
        return gap <= share * learner.dual, gap, n if before.total > 0.0 else 0

    if learner.has_dual:
        finishing.improve(learner, some, progress, limits)


def best_candidates(learner: Any, X: Any, y: Any, ids: Any = None) -> list[Any]:
    """Return the best candidate of each bag by its score: bags shrunk by the model itself.

    To learn rows again with these labels, under the ids that they had, mends what the other
    candidates did, once the model tells most of them apart.

    Parameters
    ----------
    X, y
        Rows and labels as in `learn_many`.
    ids
        The ids of the rows, each another one: those that are kept are scored without their own
        coefficients.

    Returns
    -------
    n labels; a bag without a label that was seen stays as it is.

    Raises
    ------
    ParameterError
        The ids are no whole numbers from 1, one a row, or one is there twice.
    LabelError
        There are not as many labels as rows.

    """
    scores, bags = learner.decision_function_many(X), bags_of(y)
    if len(bags) != len(scores):
        raise LabelError(f"{len(bags)} labels, for {len(scores)} rows")
    if (numbers := numbers_of(ids, len(scores))) is not None:
        if np.unique(numbers).size < numbers.size:
            raise ParameterError("ids: one is there twice")
        scores = scores - learner.solver.own_scores(numbers, len(learner.classes))
    found: list[Any] = learner.targets.best_of(bags, scores)
    return found
