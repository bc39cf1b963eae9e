"""The bounds of kernel learners: which policy merges, and what examples a gap is about."""

from __future__ import annotations

from streamsvm import kernels
from streamsvm.models.model import Kernel
from streamsvm.solvers import bounds

IDS_AND_WINDOW = "a window holds the last examples, whatever they are; leave one out"
"""Why rows with ids are refused."""


def merging_by(kernel: Kernel | None) -> float:
    """Return the policy by which solvers merge two vectors; the kernel None is an RBF."""
    is_rbf = kernel is None or isinstance(kernel, kernels.RBF)
    return bounds.MERGE if is_rbf else bounds.MERGE_MEAN


def covered_by(window: int | None, max_support_vectors: int | None) -> str:
    """Return what examples a gap is about, by a learner's bounds: "stream", "window" or "merged".

    Coefficients that were made by projecting or merging are no coefficients of examples.
    """
    if max_support_vectors is not None:
        return "merged"
    return "stream" if window is None else "window"
