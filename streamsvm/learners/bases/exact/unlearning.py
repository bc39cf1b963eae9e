"""Taking examples back from exact learners, as the large kernel learners do: no id is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm.learners.bases.kernel.unlearning import Remains, Unlearned, checked_ids

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
        kept = np.isin(wanted, learner.numbers)
        learner.unlearn_many(wanted[kept])
        return Unlearned(wanted[kept].tolist(), wanted[~kept].tolist(), learner.duality_gap())


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
        return {
            number: Remains(
                [beta[number]] if beta.get(number) else [], number in beta, False, False, [], words
            )
            for number in wanted.tolist()
        }
