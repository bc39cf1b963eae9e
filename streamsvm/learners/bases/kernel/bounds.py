"""The policies of `max_support_vectors` by name: the parameter `budget` of kernel learners."""

from __future__ import annotations

from collections.abc import Mapping
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
"""How one support vector is saved when there are more than allowed: see `LASVMClassifier`."""


IDS_AND_WINDOW = "a window holds the last examples, whatever they are; leave one out"
"""Why rows with ids are refused."""


def policy_of(name: str | None, kernel: Any, policies: Mapping[str, float] = POLICIES) -> float:
    """Return the number by which solvers know a policy; None stands for the first of `policies`.

    With a kernel that is not RBF (None is an RBF) "merge" is `MERGE_MEAN`.
    """
    name = next(iter(policies)) if name is None else name
    if name not in policies:
        names = ", ".join(map(repr, policies))
        raise ParameterError(f"budget={name!r}: use None or one of {names}")
    is_rbf = kernel is None or isinstance(kernel, kernels.RBF)
    return bounds.MERGE_MEAN if name == "merge" and not is_rbf else policies[name]


def covered_by(window: int | None, max_support_vectors: int | None, budget: str | None) -> str:
    """Return what examples a gap is about, by a learner's bounds: "stream", "window" or "merged".

    Coefficients that were made by projecting or merging are no coefficients of examples.
    """
    if max_support_vectors is not None and budget not in ("remove", "smallest"):
        return "merged"
    return "stream" if window is None else "window"
