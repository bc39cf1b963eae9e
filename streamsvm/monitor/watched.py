"""What a monitor finds out about the learner that it watches."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import ParameterError


def learner_of(model: Any) -> Any:
    """Return the learner at the end of a model.

    Raises
    ------
    ParameterError
        It is none of ours.

    """
    steps = getattr(model, "steps", None)
    learner = list(steps.values())[-1] if steps else model
    if not hasattr(learner, "_observer"):
        raise ParameterError(
            f"{type(learner).__name__} is no learner of ours, so that there is no gap to follow; "
            "use LASVMClassifier or TrackingSVMClassifier, or a pipeline that ends in one"
        )
    return learner


def counts_of(learner: Any) -> dict[str, Any]:
    """Return how many support vectors of which kind a learner has, and its dual objective."""
    bounded = learner._bounded() if learner._state is not None else np.zeros(0, bool)
    n_bounded = int(np.count_nonzero(bounded))
    return {
        "n_support_vectors": len(bounded),
        "n_free": len(bounded) - n_bounded,
        "n_bounded": n_bounded,
        "dual": learner.dual,
    }


def work_of(learner: Any) -> dict[str, Any]:
    """Return what a learner has computed and holds in memory."""
    counts = learner.counters
    hits = counts.get("cached_rows_hit", 0) + counts.get("cached_rows_extended", 0)
    looked = hits + counts.get("cached_rows_missed", 0)
    return {
        "kernel_values": counts.get("kernel_values"),
        "cache_hits": hits / looked if looked else None,
        "memory_bytes": learner.memory_usage,
    }
