"""Taking examples back from a kernel learner, and what still depends on them.

All that the learner keeps of the examples is removed from copies of its parts, which then take the
place of those that it has, in one step: an interruption leaves it as it was, or without them. Then
it finishes, so that the others are at their optimum. That can be interrupted, too; the examples are
gone by then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.features import forgetting
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases.kernel.remains import Kept, Traces
from streamsvm.models.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.support.rows import Columns, Rows, joined, sparse, taken

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


def parts_without(
    traces: Traces, own: Kept, columns: Columns, room: Sizes
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the parts of a learner, and of its model, without examples, over some columns.

    `room` is what its state has room for.
    """
    solver, d, numbers = traces.solver, len(traces.schema), own.ids
    # What waits was counted, too, when it came.
    schema = forgetting.without(traces.schema, joined([own.x, own.x_waiting], d), columns)
    preparation = traces.preparation.without(
        traces.n_examples, traces.is_sparse, numbers, own.x, columns
    )
    if solver.state is not None:
        solver = solver.without(own.slots, columns, d)
    if solver.kept_rows is not None:
        kept = np.flatnonzero(~np.isin(solver.kept_rows.facts()["number"], numbers))
        solver = solver.changed(kept_rows=solver.kept_rows.only(kept, columns))
    waiting = traces.waiting
    if waiting is not None:
        waiting = waiting.without(numbers, columns)
    of_face: dict[str, object] = {"schema": schema, "waiting": waiting}
    of_model: dict[str, object] = {
        "solver": solver,
        "preparation": preparation,
        "n_features": len(schema),
    }
    if traces.is_known_well():
        sizes = room._replace(n_features=len(schema), n_known=len(schema))
        targets, calibrated = _calibrated(solver, traces.targets, sizes)
        of_face["targets"], of_model["solver"] = targets, calibrated
    return of_face, of_model


# The calibration of probabilities


def _calibrated(
    solver: KernelSolver, targets: Targets, sizes: Sizes
) -> tuple[Targets, KernelSolver]:
    """Return targets, and solver, with a calibration by the last of the examples that are known.

    Their margins are those of the model now. Without their own terms, which would be those of
    examples not learnt yet, support vectors at their bound are wrong without exception, as the
    others cannot take their place: probabilities would be far too unsure.
    """
    if solver.state is None or targets.n_classes < 2:
        return type(targets)(targets.labels), solver
    x, classes = _last_known(solver, sizes)
    calibrated = solver.calibrated(x, classes, sizes)
    if calibrated is not None:
        return targets, calibrated
    margins = targets.outputs.zeros(len(classes))
    solver.write_margins(solver.state, x, margins)
    new = type(targets)(targets.labels)
    new.calibrate(margins, classes)
    return new, solver


def _last_known(solver: KernelSolver, sizes: Sizes) -> tuple[Rows, np.ndarray]:
    """Return the last rows that are kept, or in the reserve, with classes."""
    d = sizes.n_known
    rows, _, entered = solver.expansion(d)
    live = np.flatnonzero(entered > 0)
    blocks, numbers = [taken(rows, live)], entered[live]
    classes = solver.classes_of(live)
    if solver.kept_rows is not None:
        x, facts = solver.kept_rows.rows()
        others = np.flatnonzero(~np.isin(facts["number"], numbers))
        blocks.append(taken(x, others))
        numbers = np.append(numbers, facts["number"][others])
        classes = np.append(classes, facts["class"][others])
    last = np.argsort(numbers, kind="stable")[-_OF_CALIBRATION:]
    x = taken(joined(blocks, d), last)
    return sparse(x) if sizes.is_sparse else x, classes[last]
