"""Ways to make room within a bound, by name."""

from __future__ import annotations

from typing import Any

from streamsvm import kernels
from streamsvm.errors import ParameterError
from streamsvm.solvers import bounds

POLICIES = {
    "merge": bounds.MERGE,
    "project": bounds.PROJECT,
    "remove": bounds.REMOVE,
    "smallest": bounds.SMALLEST,
}
"""Ways to make room within a budget of support vectors."""


def policy_of(name: str | None, kernel: Any) -> float:
    """Return the number of a policy; None is the one that measured best.

    Parameters
    ----------
    name
        A key of `POLICIES`; None is "merge".
    kernel
        The kernel, None for an RBF of automatic width.

    """
    name = "merge" if name is None else name
    if name not in POLICIES:
        names = ", ".join(map(repr, POLICIES))
        raise ParameterError(f"budget={name!r}: use None or one of {names}")
    is_rbf = kernel is None or isinstance(kernel, kernels.RBF)
    return bounds.MERGE_MEAN if name == "merge" and not is_rbf else POLICIES[name]
