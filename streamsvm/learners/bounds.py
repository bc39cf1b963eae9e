"""The parameters that bound a learner's memory, checked and turned into numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.errors import ParameterError
from streamsvm.solvers import budget

POLICIES = {
    "merge": budget.MERGE,
    "project": budget.PROJECT,
    "remove": budget.REMOVE,
    "smallest": budget.SMALLEST,
}
"""Ways to make room within a budget of support vectors."""


def check_size(name: str, value: Any, least: int = 1) -> int | None:
    """Return a bound as an int, None for none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ParameterError(f"{name}={value!r}: use a whole number of at least {least}, or None")
    return int(value)


def policy_of(name: str | None, kernel: Any) -> float:
    """Return the number of a policy; None is the one that measured best for the kernel.

    Parameters
    ----------
    name
        A key of `POLICIES`, or None: "merge" for RBF kernels, else "project".
    kernel
        The kernel, None for an RBF of automatic width.

    """
    is_rbf = kernel is None or isinstance(kernel, kernels.RBF)
    if name is None:
        return budget.MERGE if is_rbf else budget.PROJECT
    if name not in POLICIES:
        raise ParameterError(
            f"budget={name!r}: use None or one of {', '.join(map(repr, POLICIES))}"
        )
    if name == "merge" and not is_rbf:
        raise ParameterError(
            f"budget='merge': only RBF kernels have vectors between two others, not {kernel!r}; "
            "use 'project' or 'remove'"
        )
    return POLICIES[name]
