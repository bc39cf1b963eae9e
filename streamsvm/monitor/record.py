"""One record of a monitor: all figures of a moment, by name."""

from __future__ import annotations

import random
from typing import Any

from streamsvm.monitor import gap
from streamsvm.monitor.certificate import Looks
from streamsvm.monitor.watched import counts_of, work_of


def looks_of(learner: Any) -> Looks:
    """Return the looks of a learner so far; none if it makes no looks."""
    looks: Looks = getattr(learner, "looks", Looks())
    return looks


def record_of(monitor: Any, n_sampled: int) -> dict[str, Any]:
    """Measure, and return the record.

    Parameters
    ----------
    monitor
        A `TrackingMonitor`, whose buffers are empty.
    n_sampled
        How many sampled examples to compute the loss of, at most.

    Returns
    -------
    dict[str, Any]
        The values, with the names of `TrackingMonitor.get`.

    """
    learner, sample = monitor.learner, monitor._passed_by
    record: dict[str, Any] = {"n_examples": monitor._n}
    if hasattr(learner, "n_support_vectors"):
        record["n_support_vectors"] = learner.n_support_vectors
    if learner.has_dual:
        record |= counts_of(learner)
        # Drawn by the number of examples, not by what was recorded before.
        draws = random.Random(monitor._n)
        # Only on demand: each record of the history would cost as much as learning.
        n_of_reserve = gap.MOST_OF_RESERVE if n_sampled > monitor.sample else monitor.sample
        record |= gap.measured(
            learner, monitor.sampled(), n_sampled, monitor._n_before, draws, n_of_reserve
        )
        if learner.covers in ("merged", "problems"):
            # Merged vectors are no examples, and examples that a problem left out are not counted:
            # of the stream's gap nothing is known.
            record |= dict.fromkeys(gap.OF_STREAM)
        if learner.covers == "merged":
            record |= gap.stream_objective(learner, sample, n_sampled, draws)
    elif hasattr(learner, "n_drifts"):
        record |= {"n_drifts": learner.n_drifts, "last_drift": learner.last_drift}
    else:
        record["objective"] = gap.sampled_objective(learner, sample)
    seen = monitor._seen.values(looks_of(learner))
    # Only here it is about the examples that the gap is about.
    certifies = learner.has_dual and learner.covers == "kept"
    for name, of in _OF_ALL.items():
        record[name] = seen[of] if certifies else None
    record |= seen
    papers = getattr(learner, "papers_certificate", None)
    record["certificate_papers"] = None if papers is None or monitor._n_before else papers.value
    record["kappa"] = learner.kappa
    record["delta"] = getattr(learner, "delta", None)
    return record | monitor._scores.get() | monitor._rates.get() | work_of(learner)


_OF_ALL = {
    "averaged_gap": "seen_gap",
    "certificate": "kept_certificate",
    "certificate_recent": "kept_certificate_recent",
}
