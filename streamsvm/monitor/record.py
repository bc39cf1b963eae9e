"""One record of a monitor: all figures of a moment, by name."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np

from streamsvm.monitor import gap
from streamsvm.monitor.history import History
from streamsvm.monitor.mean_gap import SeenGap
from streamsvm.monitor.rates import Metrics, Rates
from streamsvm.monitor.sample import ReservoirSample
from streamsvm.monitor.score import Score
from streamsvm.monitor.watched import DualLearner, Model, PrimalLearner, Reported


class Measuring(Protocol):
    """A monitor, as its records ask for it."""

    model: Model
    learner: Reported
    sample: int
    n_before: int
    passed_by: ReservoirSample
    history: History
    seen: SeenGap
    score: Score
    metrics: Metrics
    rates: Rates
    confidence: float

    @property
    def covers(self) -> str:
        """What examples the gap is about."""

    def sampled(self) -> ReservoirSample | None:
        """Return the sample of examples left out, if the gap is about them, too."""

    def last(self) -> dict[str, Any]:
        """Return the last record."""


def record_of(monitor: Measuring, n: int, n_sampled: int) -> dict[str, Any]:
    """Measure a monitor whose buffers are empty, after n examples; return the record.

    At most `n_sampled` examples are drawn; the values have the names of `TrackingMonitor.get`.
    """
    learner = monitor.learner
    record: dict[str, Any] = {"n_examples": n}
    if (n_vectors := learner.n_support_vectors) is not None:
        record["n_support_vectors"] = n_vectors
    if learner.has_dual:
        record |= _gap_of(monitor, n, n_sampled)
    elif learner.takes != "rows":
        record |= learner.figures
    elif learner.n_drifts is None:
        primal = cast(PrimalLearner, learner)
        record["objective"] = gap.sampled_objective(primal, monitor.passed_by)
    if learner.n_drifts is not None:
        record |= {"n_drifts": learner.n_drifts, "last_drift": learner.last_drift}
    if learner.has_regret:
        loss = learner.mean_loss
        # Before the first loss the bound may be infinite.
        bound = None if loss is None else learner.regret_bound
        record |= {"mean_loss": loss, "regret_bound": bound}
    seen = monitor.seen.values(learner.looks)
    # Only here it is about the examples that the gap is about.
    certifies = learner.has_dual and learner.covers == "kept"
    for name, of in _OF_ALL.items():
        record[name] = seen[of] if certifies else None
    if not certifies:
        record["averaged_gap"] = _mean_gap(monitor.history.records, n, record.get("gap"))
    record |= seen
    papers = learner.papers_certificate
    record["certificate_papers"] = None if papers is None or monitor.n_before else papers.value
    record["kappa"] = learner.kappa
    if learner.waiting is not None:
        record["n_seen"] = learner.waiting.n_seen
    record["delta"] = learner.delta
    if not isinstance(monitor.model, Reported):
        # A wrapper's own; pipelines have none.
        record |= getattr(monitor.model, "figures", {})
    record |= monitor.score.figures() | monitor.metrics.get()
    return record | monitor.rates.get() | _work_of(learner)


def _gap_of(monitor: Measuring, n: int, n_sampled: int) -> dict[str, Any]:
    """Return the figures of a learner with a dual."""
    learner, covers = cast(DualLearner, monitor.learner), monitor.learner.covers
    bounded = learner.at_bound() if learner.n_examples else np.zeros(0, bool)
    n_bounded = int(np.count_nonzero(bounded))
    found: dict[str, Any] = {
        "n_free": len(bounded) - n_bounded,
        "n_bounded": n_bounded,
        "dual": learner.dual,
    }
    # Drawn by the number of examples, not by what was recorded before.
    draws = random.Random(n)
    # Only on demand: each record of the history would cost as much as learning.
    n_of_reserve = gap.MOST_OF_RESERVE if n_sampled > monitor.sample else monitor.sample
    about = monitor.sampled()
    found |= gap.measured(learner, about, n_sampled, monitor.n_before, draws, n_of_reserve)
    if covers in ("merged", "problems"):
        # Merged vectors are no examples, and examples that a problem left out are not counted:
        # of the stream's gap nothing is known.
        found |= dict.fromkeys(gap.OF_STREAM)
    if covers == "merged":
        found |= gap.stream_objective(learner, monitor.passed_by, n_sampled, draws)
    return found


def _mean_gap(records: list[dict[str, Any]], n: int, now: float | None) -> float | None:
    """Return the mean of the gaps of the records before n examples, and of that now, if any."""
    if now is None or not n:
        return None
    gaps = [record.get("gap") for record in records if record["n_examples"] < n]
    known = [gap for gap in [*gaps, now] if gap is not None and math.isfinite(gap)]
    return sum(known) / len(known) if known else None


def _work_of(learner: Reported) -> dict[str, Any]:
    """Return how much a learner has computed, and how much memory it holds."""
    counts = learner.counters
    return {
        "kernel_values": counts.get("kernel_values"),
        "cache_hits": cache_hits(counts),
        "memory_bytes": learner.memory_usage,
    }


def cache_hits(counts: Mapping[str, int]) -> float | None:
    """Return the share of the kernel rows needed that were there; None: none were needed."""
    hit, extended, missed = (counts.get(f"cached_rows_{how}", 0) for how in _HOW)
    needed = hit + extended + missed
    return (hit + extended) / needed if needed else None


_HOW = ("hit", "extended", "missed")
_OF_ALL = {
    "averaged_gap": "seen_gap",
    "certificate": "kept_certificate",
    "certificate_recent": "kept_certificate_recent",
}
