"""The figures of a run, each written once: what tables, charts, pages and metrics show of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


def shown(value: Any) -> str:
    """Return a number as text; a dash for None and NaN.

    >>> from streamsvm.monitor.figures import shown
    >>> shown(12345), shown(0.0123456), shown(None)
    ('12,345', '0.01235', '-')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.4g}"


def thousands(value: float) -> str:
    """Return a number of any size in a few characters.

    >>> from streamsvm.monitor.figures import thousands
    >>> thousands(950.0), thousands(12_000.0), thousands(2_500_000.0)
    ('950', '12k', '2.5M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.4g}{unit}"
    return f"{value:,.4g}" if abs(value) < 1e3 else f"{value:,.0f}"


def _in_units(*units: tuple[float, str]) -> Callable[[float], str]:
    """Return a function that writes a value in the largest of the units that is not above it.

    >>> from streamsvm.monitor.figures import BYTES, SECONDS
    >>> SECONDS.shown(0.0000213), SECONDS.shown(0.004), BYTES.shown(2_500_000), BYTES.shown(900)
    ('21.3 us', '4 ms', '2.5 MB', '900 bytes')
    """

    def written(value: float) -> str:
        size, unit = next((one for one in units if value >= one[0]), units[-1])
        return f"{value / size:.3g} {unit}"

    return written


class Unit(NamedTuple):
    """What a figure counts: the label of an axis, and a value on a chart."""

    label: str
    shown: Callable[[float], str]


COUNT = Unit("number", thousands)
NUMBER = Unit("", "{:.4g}".format)
SHARE = Unit("share", "{:.1%}".format)
SECONDS = Unit("time", _in_units((1.0, "s"), (1e-3, "ms"), (1e-6, "us")))
RATE = Unit("a second", thousands)
BYTES = Unit("bytes", _in_units((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")))


class Figure(NamedTuple):
    """A figure: its meaning, its unit, the chart with its line, and what reports and pages call it.

    A `counter` is one for Prometheus, all others are gauges.
    """

    meaning: str
    unit: Unit = NUMBER
    chart: str = ""
    title: str = ""
    counter: bool = False


# fmt: off
FIGURES = {
    "n_examples": Figure("examples learnt", COUNT, title="examples learnt"),
    "n_support_vectors": Figure("examples with a coefficient", COUNT, "support_vectors",
        "support vectors"),
    "n_bounded": Figure("coefficients at C: margin errors", COUNT, "support_vectors",
        "of them at C: margin errors"),
    "n_free": Figure("coefficients between the bounds 0 and C", COUNT, "support_vectors",
        "between 0 and C"),
    "dual": Figure("what training raises: the objective less the gap, on the examples kept", NUMBER,
        "dual", "dual objective"),
    "objective": Figure("penalty plus mean loss, on a sample of the stream: what training lowers",
        NUMBER, "objective", "objective"),
    "objective_low": Figure("objective, lower end of the sample's 95 % interval"),
    "objective_high": Figure("objective, upper end"),
    "mean_loss": Figure(
        "mean loss so far, each before learning, and when labels that came later enter it",
        NUMBER, "loss", "mean loss"),
    "regret_bound": Figure(
        "mean_loss exceeds that of the best w of the present norm by at most this",
        NUMBER, "loss", "its regret is at most"),
    "n_words": Figure("words learnt", COUNT),
    "n_symbols": Figure("symbols seen", COUNT),
    "n_relations": Figure("relations seen", COUNT),
    "n_features": Figure("features seen", COUNT),
    "n_concepts": Figure("concepts met", COUNT),
    "n_wrong": Figure("sentences in which a choice was wrong before they were learnt", COUNT),
    "n_updates": Figure("steps", COUNT),
    "n_steps": Figure("steps that changed weights", COUNT),
    "n_drifts": Figure("drifts noticed: errors became far more, or the models began anew", COUNT,
        title="drifts"),
    "last_drift": Figure("the last example before the latest drift was noticed; 0: none was",
        COUNT),
    "gap": Figure("measured now: the objective is at most so much above the lowest possible",
        NUMBER, "gap", "duality gap"),
    "kept_gap": Figure("gap of the problem of the examples kept alone, exact", NUMBER, "gap",
        "gap of the examples kept"),
    "averaged_gap": Figure("mean of the gap since the start", NUMBER, "gap", "mean gap"),
    "seen_gap": Figure("mean of kept_gap so far, estimated from examples looked at after the steps",
        NUMBER, "gap", "mean gap of the examples kept"),
    "gap_share": Figure("the gap as a share of the objective: worry above .1", SHARE,
        title="gap, share of the objective"),
    "gap_kept": Figure("part of the examples kept, exact"),
    "gap_discarded": Figure("part of the examples left out, estimated from a sample"),
    "gap_low": Figure(
        "gap, lower end of the sample's 95 % interval; gap itself if nothing was sampled"),
    "gap_high": Figure("gap, upper end"),
    "certificate": Figure("upper bound of averaged_gap, at all moments"),
    "certificate_recent": Figure("the same bound as certificate, of late"),
    "kept_certificate": Figure("upper bound of the mean of kept_gap, at all moments"),
    "seen_gap_recent": Figure("the same estimate as seen_gap, of late"),
    "kept_certificate_recent": Figure("the same bound as kept_certificate, of late"),
    "certificate_papers": Figure(
        "bound of the mean of kept_gap in the papers' form, in expectation"),
    "n_seen": Figure("examples that came; the selection chose those that were learnt", COUNT),
    "kappa": Figure("share of steps that changed nothing; near 1: little is new", SHARE, "kappa",
        "share of the steps"),
    "delta": Figure("at most tau: optimal on the examples kept; finish() gets there", NUMBER,
        "delta", "delta"),
    "accuracy": Figure("progressive: predicted before learnt", SHARE, "accuracy",
        "progressive accuracy"),
    "accuracy_recent": Figure("the same, of the last 1,000 to 2,000 examples", SHARE, "accuracy",
        "accuracy of late"),
    "accuracy_low": Figure(
        "accuracy, lower end of the interval that holds at all moments at once (95 %)", SHARE),
    "accuracy_high": Figure("accuracy, upper end", SHARE),
    "accuracy_recent_low": Figure("accuracy of late, lower end of its interval", SHARE),
    "accuracy_recent_high": Figure("the same, upper end", SHARE),
    "accuracy_change": Figure(
        "of late surely lower than since the start: -1, surely higher: 1; else 0"),
    "balanced_accuracy": Figure("the mean over the labels, since the start", SHARE, "accuracy",
        "balanced accuracy"),
    "balanced_accuracy_low": Figure("balanced accuracy, lower end of the interval", SHARE),
    "balanced_accuracy_high": Figure("balanced accuracy, upper end", SHARE),
    "balanced_accuracy_recent_low": Figure(
        "balanced accuracy of the last 1,000 to 2,000, lower end", SHARE),
    "balanced_accuracy_recent_high": Figure("the same, upper end", SHARE),
    "coverage": Figure("the share whose label was in the set, so far", SHARE, "coverage",
        "coverage"),
    "coverage_wanted": Figure("the share of events whose label is to be in the set", SHARE,
        "coverage", "coverage wanted"),
    "coverage_low": Figure(
        "coverage, lower end of an interval that holds at all moments at once (95 %)", SHARE),
    "coverage_high": Figure("coverage, upper end", SHARE),
    "coverage_least": Figure("the coverage cannot be below, whatever the stream was", SHARE),
    "coverage_recent": Figure("coverage of the last 1,000 events", SHARE),
    "set_size": Figure("labels in a set, the mean; of numbers the mean width of finite intervals"),
    "set_single": Figure("share of sets of one label", SHARE),
    "set_empty": Figure("share of empty sets: no label was likely enough", SHARE),
    "set_whole": Figure("share of sets of all labels, or infinite intervals: nothing was ruled out",
        SHARE),
    "candidate_difference": Figure(
        "how much less a candidate loses than the model in use at the start, a mean: of labels "
        "how much more often it is right"),
    "candidate_difference_low": Figure("lower end of its interval, at all moments at once (95 %)"),
    "candidate_difference_high": Figure("upper end"),
    "candidate_log_evidence": Figure(
        "log of the e-value against 'the candidate is not better': at 3.7 (level .95) it is said "
        "to be better"),
    "candidate_in_use": Figure("1 if the candidate has taken over"),
    "answered_error_wanted": Figure("the share of the answers that may be wrong", SHARE),
    "answered": Figure("the share of the events that were answered, so far", SHARE,
        title="answered"),
    "answered_recent": Figure("of the last 1,000 events", SHARE),
    "answered_error": Figure("the share of wrong ones among the answers whose labels came", SHARE),
    "answered_error_low": Figure(
        "the same, lower end of an interval that holds at all moments at once", SHARE),
    "answered_error_high": Figure("upper end", SHARE),
    "answered_error_most": Figure("that share cannot be above, whatever the stream was", SHARE),
    "answered_error_recent": Figure("the share of wrong ones among the last 1,000 answers", SHARE),
    "unanswered_error": Figure("the share of wrong ones if all events of late had been answered",
        SHARE),
    "answers_held": Figure("1 while answers are held back, as one more error would be too many"),
    "examples_per_second": Figure("since the start, without compiling and waiting for events", RATE,
        "speed", "examples a second"),
    "latency_p50": Figure(
        "seconds of an event, or of one example of each batch: median of the last 1,000",
        SECONDS, "latency", "latency, median"),
    "latency_p99": Figure("99 % quantile; of fewer than 100 the longest", SECONDS, "latency",
        "latency, 99 %"),
    "kernel_values": Figure("computed so far", COUNT),
    "cache_hits": Figure("share of cached kernel rows that were there", SHARE,
        title="kernel cache"),
    "memory_bytes": Figure("held by the model's arrays", BYTES, "memory", "memory"),
}
# fmt: on
"""The figures of a monitor's record, by name; those of a chart in the order of its lines."""

# fmt: off
OF_RUN = {
    "events": Figure("events taken from the source, good or bad", COUNT, "", "events", True),
    "bad_events": Figure("events that could not be used", COUNT, "bad",
        "bad events", True),
    "bad_events_by_kind": Figure("events that could not be used, by what was wrong", COUNT, "",
        "bad events, by kind", True),
    "forgotten": Figure("requests to forget an example, by what became of it", COUNT, "",
        "requests to forget", True),
    "lag": Figure("messages of the assigned partitions not taken yet, as far as the client knows",
        COUNT, title="lag"),
    "lag_by_partition": Figure("the same of each partition", COUNT, title="lag by partition"),
    "checkpoint_age_seconds": Figure("seconds since the last checkpoint was written", SECONDS),
    "held_events": Figure("events that wait for their labels", COUNT),
    "held_labels": Figure("labels that wait for their events", COUNT),
    "labels_never_came": Figure("events that were given up, as their labels did not come", COUNT,
        counter=True),
    "failed_commits": Figure(
        "commits of offsets that failed for now, and are made up for by later ones",
        COUNT, title="failed commits", counter=True),
    "offsets_left_out": Figure("offsets without a message: deleted, or marks of transactions",
        COUNT, title="offsets left out", counter=True),
}
# fmt: on
"""The figures that only a run has."""

ALL = FIGURES | OF_RUN


class Kind(NamedTuple):
    """A chart that there may be: its heading, what it shows, and what to do."""

    title: str
    caption: str
    log: bool = False


CHARTS = {
    "accuracy": Kind(
        "Accuracy",
        "Each example is predicted before it is learnt. Shaded: intervals that hold at all moments "
        "at once, with 95 % probability. Of late is of the last 1,000 to 2,000; if that falls "
        "below what is since the start, what is to be learnt changes: a window or the adaptive "
        "learner follows it.",
    ),
    "gap": Kind(
        "Distance from the optimum",
        "The duality gap: more training on these examples could lower the objective (a penalty for "
        "complex models plus the mean loss) by at most this. Worry if it stays above a tenth of "
        "the objective. Shaded, with 95 %: where the gap is estimated from a sample, its interval; "
        "where its mean has a bound, what is up to it: a single gap may be above that one. At the "
        "end of a run the last point uses a larger sample than the others.",
        log=True,
    ),
    "objective": Kind(
        "Objective",
        "What training lowers: a penalty for complex models plus the mean loss, estimated on a "
        "sample of the stream. It rises where the stream becomes harder.",
    ),
    "coverage": Kind(
        "Coverage",
        "The share of events whose label was in the set. Shaded: the interval that holds at all "
        "moments at once, with 95 % probability.",
    ),
    "support_vectors": Kind(
        "Support vectors",
        "The examples kept to predict with: memory and the time of an event grow with them; "
        "max_support_vectors bounds them.",
    ),
    "loss": Kind(
        "Mean loss so far",
        "Of each example before it was learnt, and a bound of how much higher it is than that of "
        "the best weights as large as the present ones.",
    ),
    "dual": Kind(
        "Dual objective",
        "What each step raises: it bounds from below what any weights would have lost.",
    ),
    "kappa": Kind(
        "Training steps that changed nothing",
        "Their share so far. Near 1, the stream brings little that is new, and a smaller K or "
        "reprocess would do.",
    ),
    "delta": Kind(
        "Delta: distance from the optimum of the examples kept",
        "At tau or below there is nothing left to train; above it, --finish (or model.finish()) "
        "goes there.",
    ),
    "speed": Kind(
        "Examples a second",
        "Since the start, without the time of compiling, and of waiting for events.",
    ),
    "latency": Kind(
        "Latency",
        "Of learning an event, or of one example of each batch (a replay learns batches): of the "
        "last 1,000 of them. Of fewer than 100 the longest is shown: as a rule it is the first.",
        log=True,
    ),
    "memory": Kind("Memory", "Held by the model's arrays."),
    "bad": Kind("Events that could not be used", "All so far, of all kinds."),
}
"""All charts, in the order of the pages."""

LINES = {chart: [name for name, figure in ALL.items() if figure.chart == chart] for chart in CHARTS}
"""The figures of each chart."""


def title_of(name: str) -> str:
    """Return the title of a figure by its name; other names are titles themselves.

    >>> from streamsvm.monitor.figures import title_of
    >>> title_of("n_support_vectors"), title_of("missing values")
    ('support vectors', 'missing values')
    """
    return (ALL[name].title if name in ALL else "") or name


def meaning_of(name: str) -> str:
    """Return the meaning of a value of a monitor's record."""
    return FIGURES[name].meaning if name in FIGURES else "metric, progressive"


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
    "gap_kept gap_discarded certificate_recent seen_gap_recent kept_certificate_recent "
    "certificate_papers"
).split()

WORRY = 0.1
"""A gap above this share of the objective is one to worry about: see docs/monitor.md."""

ABOUT = {
    "kept": "the examples kept",
    "merged": "the vectors kept",
    "problems": "the examples kept, summed over its problems of two classes",
    "stream": "all examples so far",
    "since": "the examples since the monitor was attached, and those kept from before",
    "window": "the window, and older examples kept",
}
"""What the gap is about, by `TrackingMonitor.covers`."""


NOT_OF_ALL = {
    "merged": "not known of all examples, as vectors were merged; at most the objective",
    "problems": "not known of all examples, as each problem of two classes leaves some out",
}
"""Why there is no gap of all examples, by `TrackingMonitor.covers`."""
