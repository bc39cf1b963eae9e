"""Taking examples back from exact learners, as the large kernel learners do: no id is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm.learners.bases.kernel.remains import Remains, checked_ids
from streamsvm.learners.bases.kernel.unlearning import Unlearned

_AVERAGES = (
    "labels, names of features, means that stand for missing values, gamma if it follows the data, "
    "balanced class weights, and the calibration of probabilities"
)


def unlearn(learner: Any, ids: Iterable[int] | int) -> Unlearned:
    """Take examples back: see `unlearn_one`, and `LASVMClassifier.unlearn`.

    Parameters
    ----------
    ids
        Their numbers or ids, or one; those that are not kept are no error.

    Returns
    -------
    Unlearned
        The ids removed, those not kept, and the duality gap.

    """
    wanted = checked_ids(ids)
    with learner.lock:
        learner.problem.settle()
        kept = keeps(learner, wanted)
        learner.unlearn_many(wanted[np.isin(wanted, learner.numbers)])
        if learner.waiting is not None:
            learner.waiting = learner.waiting.without(wanted, None)
        return Unlearned(wanted[kept].tolist(), wanted[~kept].tolist(), learner.duality_gap())


def keeps(learner: Any, ids: np.ndarray) -> np.ndarray:
    """Return of which ids, int64 (n,), something is kept that `unlearn` would remove; bool (n,)."""
    with learner.lock:
        found = np.isin(ids, learner.numbers)
        return found if learner.waiting is None else found | learner.waiting.knows(ids)


def audit(learner: Any, ids: Iterable[int] | int) -> dict[int, Remains]:
    """Tell what the model has of examples: see `LASVMClassifier.audit`.

    Parameters
    ----------
    ids
        Their numbers or ids, or one.

    Returns
    -------
    dict[int, Remains]
        By id.

    """
    wanted = checked_ids(ids)
    with learner.lock:
        learner.problem.settle()
        beta = dict(
            zip(learner.numbers.tolist(), learner.problem.state.beta.tolist(), strict=False)
        )
        words = [_AVERAGES] if learner.n_examples else []
        waiting = [] if learner.waiting is None else wanted[learner.waiting.knows(wanted)].tolist()
        found = {}
        for number in wanted.tolist():
            own = [beta[number]] if beta.get(number) else []
            found[number] = Remains(own, number in beta, False, number in waiting, [], words)
        return found
