"""A monitor's record as a table with the meaning of each number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rich.markup import escape
from rich.table import Table

MEANINGS = {
    "n_examples": "examples learnt",
    "n_support_vectors": "examples with a coefficient",
    "n_free": "coefficients between the bounds 0 and C",
    "n_bounded": "coefficients at C: margin errors",
    "dual": "what training raises: the objective less the gap, on the examples kept",
    "objective": "regularisation plus mean loss, on a sample of the stream: what is minimised",
    "objective_low": "objective, lower end of the sample's 95 % interval",
    "objective_high": "objective, upper end",
    "mean_loss": "mean loss so far, each before learning, and when labels that came later enter it",
    "regret_bound": "mean_loss exceeds that of the best w of the present norm by at most this",
    "n_words": "words learnt",
    "n_symbols": "symbols seen",
    "n_relations": "relations seen",
    "n_features": "features seen",
    "n_concepts": "concepts met",
    "n_wrong": "sentences in which a choice was wrong before they were learnt",
    "n_updates": "steps",
    "n_steps": "steps that changed weights",
    "n_drifts": "drifts noticed: errors became far more, or the models began anew",
    "last_drift": "the last example before the latest drift was noticed; 0: none was",
    "averaged_gap": "mean of the gap since the start",
    "certificate": "upper bound of averaged_gap, at all moments",
    "certificate_recent": "the same bound as certificate, of late",
    "seen_gap": "mean of kept_gap so far, estimated from examples looked at after the steps",
    "kept_certificate": "upper bound of the mean of kept_gap, at all moments",
    "seen_gap_recent": "the same estimate as seen_gap, of late",
    "kept_certificate_recent": "the same bound as kept_certificate, of late",
    "certificate_papers": "bound of the mean of kept_gap in the papers' form, in expectation",
    "gap": "measured now: the objective is at most so much above the lowest possible",
    "gap_share": "the gap as a share of the objective: worry above .1",
    "gap_kept": "part of the examples kept, exact",
    "gap_discarded": "part of the examples left out, estimated from a sample",
    "kept_gap": "gap of the problem of the examples kept alone, exact",
    "gap_low": "gap, lower end of the sample's 95 % interval; gap itself if nothing was sampled",
    "gap_high": "gap, upper end",
    "n_seen": "examples that came; the selection chose those that were learnt",
    "kappa": "share of steps that changed nothing; near 1: little is new",
    "delta": "at most tau: optimal on the examples kept; finish() gets there",
    "accuracy": "progressive: predicted before learnt",
    "accuracy_recent": "the same, of the last 1,000 examples",
    "accuracy_low": "accuracy, lower end of the interval that holds at all moments at once (95 %)",
    "accuracy_high": "accuracy, upper end",
    "accuracy_recent_low": "accuracy of the last 1,000 to 2,000 examples, lower end",
    "accuracy_recent_high": "the same, upper end",
    "accuracy_change": "of late surely lower than since the start: -1, surely higher: 1; else 0",
    "balanced_accuracy": "the mean over the labels, since the start",
    "balanced_accuracy_low": "balanced accuracy, lower end of the interval",
    "balanced_accuracy_high": "balanced accuracy, upper end",
    "balanced_accuracy_recent_low": "balanced accuracy of the last 1,000 to 2,000, lower end",
    "balanced_accuracy_recent_high": "the same, upper end",
    "coverage_wanted": "the share of events whose label is to be in the set",
    "coverage": "the share whose label was in the set, so far",
    "coverage_low": "coverage, lower end of an interval that holds at all moments at once (95 %)",
    "coverage_high": "coverage, upper end",
    "coverage_least": "the coverage cannot be below, whatever the stream was",
    "coverage_recent": "coverage of the last 1,000 events",
    "set_size": "labels in a set, the mean; of numbers the mean width of finite intervals",
    "set_single": "share of sets of one label",
    "set_empty": "share of empty sets: no label was likely enough",
    "set_whole": "share of sets of all labels, or infinite intervals: nothing was ruled out",
    "candidate_difference": "how much less a candidate loses than the model in use at the start, a "
    "mean: of labels how much more often it is right",
    "candidate_difference_low": "lower end of its interval, at all moments at once (95 %)",
    "candidate_difference_high": "upper end",
    "candidate_log_evidence": "log of the e-value against 'the candidate is not better': at 3.7 "
    "(level .95) it is said to be better",
    "candidate_in_use": "1 if the candidate has taken over",
    "answered_error_wanted": "the share of the answers that may be wrong",
    "answered": "the share of the events that were answered, so far",
    "answered_recent": "of the last 1,000 events",
    "answered_error": "the share of wrong ones among the answers whose labels came",
    "answered_error_low": "the same, lower end of an interval that holds at all moments at once",
    "answered_error_high": "upper end",
    "answered_error_most": "that share cannot be above, whatever the stream was",
    "answered_error_recent": "the share of wrong ones among the last 1,000 answers",
    "unanswered_error": "the share of wrong ones if all events of late had been answered",
    "answers_held": "1 while answers are held back, as one more error would be too many",
    "examples_per_second": "since the start, without compiling and waiting for events",
    "latency_p50": "seconds of an event, or of one example of each batch: median of the last 1,000",
    "latency_p99": "99 % quantile; of fewer than 100 the longest",
    "kernel_values": "computed so far",
    "cache_hits": "share of cached kernel rows that were there",
    "memory_bytes": "held by the model's arrays",
}


class Gaps(NamedTuple):
    """The values that are shown of a gap: measured now, its mean, and a bound of the mean."""

    now: str
    mean: str
    most: str


_OF_STREAM = Gaps("gap", "averaged_gap", "certificate")
_OF_KEPT = Gaps("kept_gap", "seen_gap", "kept_certificate")


def gaps_of(covers: str) -> Gaps:
    """Return the names of what is shown of the gap, by `TrackingMonitor.covers`.

    All three are about one problem: of all examples, or, where that is not known, of those kept.
    """
    return _OF_KEPT if covers in NOT_OF_ALL else _OF_STREAM


def shown_of(values: Mapping[str, Any], covers: str) -> dict[str, Any]:
    """Return the values of a record without gaps and bounds of other problems and times.

    Side by side they would read as contradictions; `TrackingMonitor.get` has all of them. A gap or
    certificate that is not known stays, to be explained.
    """
    left_out = {*_OF_STREAM, *_OF_KEPT, *_OTHER_GAPS} - {*gaps_of(covers)}
    unknown = {name for name in ("gap", "certificate") if values.get(name) is None}
    return {k: value for k, value in values.items() if k not in left_out or k in unknown}


_OTHER_GAPS = (
    "gap_kept",
    "gap_discarded",
    "certificate_recent",
    "seen_gap_recent",
    "kept_certificate_recent",
    "certificate_papers",
)

WORRY = 0.1
"""A gap above this share of the objective is one to worry about: see docs/monitor.md."""

ABOUT = {
    "kept": "the examples kept",
    "merged": "the vectors kept",
    "problems": "the examples kept, summed over its problems of two classes",
    "stream": "all examples so far",
    "since": "the examples since the monitor was attached, and those kept from before",
    "window": "the window",
}
"""What the gap is about, by `TrackingMonitor.covers`."""


NOT_OF_ALL = {
    "merged": "not known of all examples, as vectors were merged; at most the objective",
    "problems": "not known of all examples, as each problem of two classes leaves some out",
}
"""Why there is no gap of all examples, by `TrackingMonitor.covers`."""


def shown(value: Any) -> str:
    """Return a number as text; a dash for None and NaN.

    >>> from streamsvm.monitor.report import shown
    >>> shown(12345), shown(0.0123456), shown(None)
    ('12,345', '0.01235', '-')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.4g}"


def panel(monitor: Any, values: Mapping[str, Any]) -> Table:
    """Return the table of a record of a monitor: name, value and meaning of what is shown."""
    table = Table(
        title=f"Tracking {type(monitor.learner).__name__}", title_justify="left", box=None
    )
    table.add_column("", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning", overflow="fold")
    for name, value in shown_of(values, monitor.covers).items():
        meaning = MEANINGS.get(name, "metric, progressive")
        if name == "certificate":
            reason = monitor.certificate_reason
            chance = f"with {monitor.confidence:.0%} probability"
            meaning = reason if value is None else f"{meaning} {chance}: {reason}"
        if name == "gap":
            meaning = (
                f"{meaning}, of {ABOUT[monitor.covers]}"
                if value is not None
                else NOT_OF_ALL.get(monitor.covers, "not measured yet")
            )
        table.add_row(name, shown(value), escape(meaning))
    return table
