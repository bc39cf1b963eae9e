"""Taking examples back from exact learners, as the large kernel learners do: no id is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm.features import forgetting
from streamsvm.learners.bases.kernel.remains import Remains, checked_ids
from streamsvm.learners.bases.kernel.unlearning import Unlearned
from streamsvm.solvers.incremental import whole
from streamsvm.support.row_columns import are_used, entries_of

_AVERAGES = (
    "labels, means that stand for missing values, gamma if it follows the data, balanced class "
    "weights, and the calibration of probabilities"
)


def remove(learner: Any, slots: np.ndarray) -> None:
    """Take the examples of slots, int64 (k,), back, and names of features that only they used."""
    names = _dropped(learner, slots)
    if slots.size == 1 and not names.size:
        learner.problem.remove(int(slots[0]))
        return
    # On a copy: what interrupts it takes none of them back.
    changed: dict[str, Any] = {}
    problem = copy.deepcopy(learner.problem)
    whole.remove_many(problem, slots.tolist())
    if names.size:
        columns = np.setdiff1d(np.arange(len(learner.schema)), names)
        nothing = np.zeros((0, len(learner.schema)), np.float32)
        problem.take_columns(columns[columns < len(problem.columns)])
        changed["schema"] = forgetting.without(learner.schema, nothing, columns)
        changed["moments"] = entries_of(learner.moments, columns).copy()
        changed |= {"event_path": None, "event_reader": None}
        if learner.waiting is not None:
            changed["waiting"] = learner.waiting.without(np.zeros(0, np.int64), columns)
    learner.__dict__.update(changed, problem=problem)


def _dropped(learner: Any, slots: np.ndarray) -> np.ndarray:
    """Return the columns, int64, in which the rows of slots have values, and no others."""
    problem, schema = learner.problem, learner.schema
    if schema.is_range:
        return np.zeros(0, np.int64)
    rows = problem.columns[:, : problem.n]
    used = np.flatnonzero(rows[:, slots].any(axis=1))
    own, all_rows = (np.count_nonzero(part, axis=1) for part in (rows[used][:, slots], rows[used]))
    found: np.ndarray = used[own == all_rows]
    if learner.waiting is not None and found.size:
        d = len(schema)
        found = found[~are_used(learner.waiting.rows(d), d)[found]]
    return found


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
            slot = np.flatnonzero(learner.numbers == number)
            features = [learner.schema.names[c] for c in _dropped(learner, slot)]
            found[number] = Remains(own, number in beta, False, number in waiting, features, words)
        return found
