"""What changes in a kernel learner when a class is added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.labels.growing_labels import spread_to
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases.kernel.class_costs import ClassCosts
from streamsvm.learners.bases.kernel.kernel_solver import KernelSolver


def with_class(
    label: Any, targets: Targets, solver: KernelSolver, costs: ClassCosts
) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray] | None]:
    """Return what changes when a class is added that was not seen; no part is changed.

    These are the attributes of a learner with their new values, and the function that converts
    earlier signs, None if they stay.
    """
    labels = targets.labels.having(targets.labels.seen)
    is_turned, n = labels.add(label), len(labels.seen)
    change: Callable[[np.ndarray], np.ndarray]
    changes: dict[str, Any] = {"targets": targets.having(labels)}
    if changes["targets"].has_one_margin:
        if not is_turned:
            return changes, None
        change, solver = np.negative, solver.with_signs_exchanged()
        changes["costs"] = costs.with_signs_exchanged()
    elif not targets.has_one_margin:
        if costs.takes_balanced:
            changes["costs"] = costs.of_classes(n, 0)
        return changes, None
    else:
        # Signs become numbers of classes.
        change, positive = spread_to(labels), labels.seen.index(labels.positive)
        changes["costs"], solver = costs.of_classes(n, positive), solver.of_classes(n, positive)
    if solver.kept_rows is not None:
        solver.kept_rows = solver.kept_rows.with_signs(change)
    return changes | {"solver": solver}, change
