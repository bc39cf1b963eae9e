"""Taking examples back from a kernel learner, and what still depends on them.

All that the learner keeps of the examples is removed from copies of its parts, which then take the
place of those that it has, in one step: an interruption leaves it as it was, or without them. Then
it finishes, so that the others are at their optimum. That can be interrupted, too; the examples are
gone by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from streamsvm.features import forgetting
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.learners.bases.kernel.lasvm_solver import PairsSolver
from streamsvm.learners.bases.kernel.remains import (
    Kept,
    checked_ids,
    dropped,
    is_known_well,
    kept_of,
)
from streamsvm.support.interruptions import Changes, change_together
from streamsvm.support.locked import learning
from streamsvm.support.row_columns import Columns
from streamsvm.support.rows import Rows, joined, sparse, taken

if TYPE_CHECKING:
    from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner

_OF_CALIBRATION = 4096
"""Of the examples so many are used for a calibration, the last ones: older ones hardly count."""


class Unlearned(NamedTuple):
    """What `unlearn` did.

    Attributes
    ----------
    removed
        The ids of which something was kept, ascending: nothing is now.
    not_kept
        The other ids: of these examples nothing was kept, or there were none.
    gap
        The normalised duality gap on the examples kept afterwards, as `duality_gap` returns it.

    """

    removed: list[int]
    not_kept: list[int]
    gap: float


def unlearn(learner: KernelLearner, ids: Iterable[int] | int) -> Unlearned:
    """Take examples back: the model goes on as one that is trained on the others.

    Coefficients, rows, cached kernel rows, the reserve, waiting candidates and feature names that
    no other example has are removed; then the learner finishes. See the page "Forgetting" for what
    stays, as averages of many examples. Other threads may predict meanwhile. Ctrl-C before the
    first step of finishing leaves the model as it was; after that the examples are gone, and the
    model can be used.

    Parameters
    ----------
    ids
        Numbers of examples, counted from 1, or the ids that were given to `learn_many`; or one.

    Returns
    -------
    Unlearned
        The ids removed, those not kept (no error), and the duality gap.

    Raises
    ------
    ParameterError
        The ids are no whole numbers of at least 1; nothing has changed.
    ModelBusyError
        As for `learn_one`.

    """
    wanted = checked_ids(ids)
    found = _remove(learner, wanted)
    # Its type as a learner that finishes: those without are not given this method.
    anyone = cast(Any, learner)
    if len(found) and learner.state is not None:
        anyone.finish()
    missing = wanted[~np.isin(wanted, found)]
    return Unlearned(found.tolist(), missing.tolist(), anyone.duality_gap())


# Removing


@learning
def _remove(learner: KernelLearner, wanted: np.ndarray) -> np.ndarray:
    """Remove what is kept of examples; return their ids."""
    own = kept_of(learner, wanted)
    found = own.ids
    if not found.size:
        learner.solver.drop_numbers()
        return found
    d, gone = len(learner.schema), dropped(learner, found)
    columns = np.setdiff1d(np.arange(d), gone) if gone.size else None
    new = _parts_without(learner, own, columns)
    changes: list[Changes] = [(learner.__dict__, new)]
    if learner.observer is not None:
        changes.append(learner.observer.without(found, columns))
    change_together(changes)
    return found


def _parts_without(learner: KernelLearner, own: Kept, columns: Columns) -> dict[str, Any]:
    """Return the parts of the learner without these examples, over some columns."""
    solver, d, numbers = learner.solver, len(learner.schema), own.ids
    # What waits was counted, too, when it came.
    schema = forgetting.without(learner.schema, joined([own.x, own.x_waiting], d), columns)
    preparation = learner.preparation.without(learner, numbers, own.x, columns)
    if solver.state is not None:
        solver = solver.without(own.slots, columns, d)
    if solver.kept_rows is not None:
        kept = np.flatnonzero(~np.isin(solver.kept_rows.facts()["number"], numbers))
        solver = solver.changed(kept_rows=solver.kept_rows.only(kept, columns))
    waiting = learner.waiting
    if waiting is not None:
        waiting = waiting.without(numbers, columns)
    parts = {"solver": solver, "preparation": preparation, "schema": schema, "waiting": waiting}
    parts |= {"costs": learner.costs.without(own.signs), "event_path": None, "event_reader": None}
    if is_known_well(learner):
        sizes = learner.sizes(len(schema))._replace(schema=schema)
        parts |= _calibrated(solver, learner.targets, sizes)
    return parts


# The calibration of probabilities


def _calibrated(solver: KernelSolver, targets: Targets, sizes: Sizes) -> dict[str, Any]:
    """Return targets, and solver, with a calibration by the last of the examples that are known.

    Their margins are those of the model now. Without their own terms, which would be those of
    examples not learnt yet, support vectors at their bound are wrong without exception, as the
    others cannot take their place: probabilities would be far too unsure.
    """
    if solver.state is None or targets.n_classes < 2:
        return {"targets": type(targets)(targets.labels)}
    x, signs = _last_known(solver, sizes)
    if isinstance(solver, PairsSolver):
        return {"solver": solver.calibrated(x, signs, sizes)}
    margins = targets.zeros(len(signs))
    solver.write_margins(solver.state, x, margins)
    new = type(targets)(targets.labels)
    new.calibrate(margins, signs)
    return {"targets": new}


def _last_known(solver: KernelSolver, sizes: Sizes) -> tuple[Rows, np.ndarray]:
    """Return the last rows that are kept, or in the reserve, as the solver has them; and signs."""
    d = len(sizes.schema)
    rows, _, entered = solver.expansion(d)
    live = np.flatnonzero(entered > 0)
    blocks, numbers = [taken(rows, live)], entered[live]
    signs = solver.signs_of(live)
    if solver.kept_rows is not None:
        x, facts = solver.kept_rows.rows()
        others = np.flatnonzero(~np.isin(facts["number"], numbers))
        blocks.append(taken(x, others))
        numbers = np.append(numbers, facts["number"][others])
        signs = np.append(signs, facts["sign"][others])
    last = np.argsort(numbers, kind="stable")[-_OF_CALIBRATION:]
    x = taken(joined(blocks, d), last)
    return sparse(x) if sizes.is_sparse else x, signs[last]
