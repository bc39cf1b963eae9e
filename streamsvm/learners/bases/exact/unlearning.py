"""Taking examples back from exact learners, and what still depends on them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm.features import forgetting
from streamsvm.learners.bases.kernel.remains import Remains, checked_ids
from streamsvm.learners.bases.kernel.unlearning import Unlearned
from streamsvm.solvers.incremental import whole
from streamsvm.support.locked import refuse_to_learn
from streamsvm.support.row_columns import are_used, entries_of
from streamsvm.support.rows import taken


def remove(learner: Any, wanted: np.ndarray) -> None:
    """Take back what is kept of these ids, int64 (n,): kept and waiting examples, and names."""
    problem, waiting = learner.problem, learner.waiting
    slots = np.flatnonzero(np.isin(learner.numbers, wanted))
    names = _dropped(learner, wanted)
    waits = waiting is not None and bool(waiting.knows(wanted).any())
    if slots.size == 1 and not names.size and not waits:
        problem.remove(int(slots[0]))
        return
    # On copies: what interrupts it takes none of them back.
    changed: dict[str, Any] = {}
    columns = None
    if slots.size or names.size:
        changed["problem"] = problem = copy.deepcopy(problem)
        if slots.size:
            whole.remove_many(problem, slots.tolist())
    if names.size:
        columns = np.setdiff1d(np.arange(len(learner.schema)), names)
        nothing = np.zeros((0, len(learner.schema)), np.float32)
        problem.take_columns(columns[columns < len(problem.columns)])
        changed["schema"] = forgetting.without(learner.schema, nothing, columns)
        changed["moments"] = entries_of(learner.moments, columns).copy()
        changed |= {"event_path": None, "event_reader": None}
    if waits or (columns is not None and waiting is not None):
        changed["waiting"] = waiting.without(wanted, columns)
    learner.__dict__.update(changed)


def _dropped(learner: Any, wanted: np.ndarray) -> np.ndarray:
    """Return the columns, int64, in which rows with these ids have values, and no others."""
    problem, d = learner.problem, len(learner.schema)
    if learner.schema.is_range:
        return np.zeros(0, np.int64)
    rows, gone = problem.columns[:, : problem.n], np.isin(learner.numbers, wanted)
    is_used, is_left = np.zeros(d, bool), np.zeros(d, bool)
    is_used[: len(rows)] = rows[:, gone].any(axis=1)
    if learner.waiting is not None:
        x, leaves = learner.waiting.rows(d), np.isin(learner.waiting.facts["id"], wanted)
        is_used |= are_used(taken(x, np.flatnonzero(leaves)), d)
        is_left = are_used(taken(x, np.flatnonzero(~leaves)), d)
    found = np.flatnonzero(is_used & ~is_left)
    of_kept = found[found < len(rows)]
    is_left[of_kept] = np.count_nonzero(rows[of_kept][:, ~gone], axis=1) > 0
    return np.flatnonzero(is_used & ~is_left)


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
        if learner.is_learning:
            refuse_to_learn()
        kept = keeps(learner, wanted)
        if kept.any():
            remove(learner, wanted[kept])
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
        words = [learner.averages] if learner.n_examples else []
        waiting = [] if learner.waiting is None else wanted[learner.waiting.knows(wanted)].tolist()
        found = {}
        for number in wanted.tolist():
            own = [beta[number]] if beta.get(number) else []
            names = learner.schema.names
            features = [names[c] for c in _dropped(learner, np.array([number]))]
            found[number] = Remains(own, number in beta, False, number in waiting, features, words)
        return found
