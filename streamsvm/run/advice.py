"""Advice about a run: what its report shows that a parameter or other features could mend."""

import inspect
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.features.absent import zeros_in_words
from streamsvm.features.names import Name
from streamsvm.labels.class_labels import plain, shown
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.watched import Reported
from streamsvm.run.report import RunReport

_FEWEST = 1000
"""Nothing is said about runs of fewer examples."""

_MOST_SUPPORT_VECTORS = 0.75
_HARD = 0.5
"""A target is hard if errors are more than this share of those of the most frequent label."""

_RARE = 0.001
_RATHER_RARE, _SELDOM_RIGHT = 0.05, 0.6
"""A class of this share at most is told of, if so few of its examples are predicted."""
_FALL = 0.05
_FAR = 0.5
_MISSED = 0.5
_FEWEST_VALUES = 50
_FAR_MEAN = 2.0
"""A mean that stands for missing values is misled if it is so many times the interquartile range
away from the median: that of lognormal values of sigma 2 is 1.8 away."""

_FEW_DIGITS = 1e-4
_LARGE = 100.0


def advice_of(report: RunReport, of: Reported) -> list[str]:
    """Return what a report and the learner advise: a sentence for each finding, most harmful first.

    Empty: nothing looks wrong. Of fewer than 1,000 examples, it is only about texts.
    """
    if report.learnt < _FEWEST:
        return [*_late(report), *report.text_findings]
    # What is asked of it below, learners of sentences have, too.
    learner = cast(Learner, of)
    zeros = zeros_in_words(learner) if isinstance(of, Learner) else None
    return [
        *_late(report),
        *_labels(report, learner),
        *_model(report, learner),
        *_features(report, learner),
        *([] if zeros is None else [zeros]),
        *_drift(report, learner),
        *_texts(report),
        *_events(report),
    ]


def _labels(report: RunReport, learner: Learner) -> Iterator[str]:
    counts = {label: n for label, n in report.labels.items() if n}
    if len(counts) == 1:
        yield f"all labels are {next(iter(counts))}: there is nothing to tell apart"
    if len(counts) < 2:
        return
    weights = getattr(learner, "class_weight", None)
    named = weights if isinstance(weights, dict) else {}
    absent = [shown(label) for label in named if label not in learner.classes]
    if absent:
        yield f"class_weight names {', '.join(absent)}, which no example is labelled"
    total = sum(counts.values())
    label = min(counts, key=lambda label: counts[label])
    # Nothing can be done about rare concepts.
    is_rare = counts[label] < _RARE * total and learner.takes != "records"
    if is_rare and weights is None:
        yield (
            f"{label} is 1 example in {total / counts[label]:,.0f}: an SVM may ignore so rare a "
            f"class; {_weighting(label, learner)}, and balanced accuracy shows whether it helps"
        )
    elif weights is None and counts[label] <= _RATHER_RARE * total and _is_missed(report, label):
        yield (
            f"{label} is {counts[label] / total:.1%} of the examples, of which "
            f"{report.recall[label]:.0%} were predicted as such: where these matter more than "
            f"others, {_weighting(label, learner)}"
        )
    elif _is_guessing(report, len(counts)) and not _has_better(report):
        yield (
            f"a balanced accuracy of {report.balanced_accuracy:.1%} is what guessing gives: the "
            "target may not depend on these features"
        )


def _is_missed(report: RunReport, label: str) -> bool:
    return report.scored >= _FEWEST and report.recall.get(label, 1.0) < _SELDOM_RIGHT


def _is_guessing(report: RunReport, k: int) -> bool:
    """Tell whether predictions of k classes are no better than guesses, if there are enough."""
    balanced = report.balanced_accuracy
    return report.scored >= _FEWEST and balanced is not None and balanced < 1.0 / k + 0.02


def _has_better(report: RunReport) -> bool:
    """Return whether a candidate beside the model is better: features say something then."""
    return (report.comparison.get("record") or report.comparison).get("decision") == "b"


def _weighting(text: str, learner: Learner) -> str:
    """Return what the parameter class_weight of a learner can do for a label, given as text."""
    if "class_weight" not in inspect.signature(type(learner)).parameters:
        return f"{type(learner).__name__} has no class weights, as other learners have"
    try:
        learner.clone({"class_weight": "balanced"})
    except ParameterError:
        label = next((y for y in learner.classes if str(plain(y)) == text), text)
        weight = f"class_weight={{{plain(label)!r}: 10.0}} (--class-weight {label}=10)"
        return f"{weight} weighs its examples tenfold"
    return "class_weight='balanced' gives both sides the same weight"


def _model(report: RunReport, learner: Learner) -> Iterator[str]:
    n = report.n_support_vectors
    if learner.n_support_patterns is not None:
        n = learner.n_support_patterns
    most = max(report.labels.values(), default=0) / max(1, sum(report.labels.values()))
    # With many classes most examples support some border, though the classes are told apart.
    is_hard = report.scored >= _FEWEST and 1.0 - report.accuracy > _HARD * (1.0 - most)
    # The model may have learnt before this run.
    n_in_epoch = max(report.learnt, report.model_examples) / max(report.epochs, 1)
    share = 0.0 if n is None else n / n_in_epoch
    if _MOST_SUPPORT_VECTORS < share <= 1.0 and is_hard:
        yield (
            f"{share:.0%} of all examples are support vectors: the target can hardly be learnt "
            "from these features, or C and gamma are far off"
        )
    far = report.monitor.get("gap")
    if far is not None and far > _FAR:
        yield (
            f"the model is far from the optimum (gap {far:.2f}; a model that learnt nothing has "
            "about 1): were the rows sorted by label? Shuffle them (--shuffle-buffer of about the "
            "number of rows), or take --learner tracking, which keeps all examples"
        )
    missed = report.counters.get("cached_rows_missed", 0)
    asked = missed + report.counters.get("cached_rows_hit", 0)
    if missed > _MISSED * asked and asked > report.learnt:
        yield f"{missed / asked:.0%} of kernel rows were not in the cache: a larger cache_mb helps"


def _late(report: RunReport) -> Iterator[str]:
    """Tell of labels that came in vain, and of events that wait behind the latest labels."""
    late = report.late
    if n := late.get("too_late", 0):
        yield (
            f"{n:,} labels came after their events were given up: a longer patience "
            "(--patience) waits for them"
        )
    if n := late.get("held_since_labels", 0):
        yield (
            f"{n:,} events wait that are older than the latest label that was read: if their "
            "labels may never come, patience and default (--patience, --default-label) learn them; "
            "if they should have come, compare the keys of both topics"
        )


def _drift(report: RunReport, learner: Learner) -> Iterator[str]:
    """Compare the accuracy on the last quarter of the predictions with the best one before it."""
    # Of what was scored: fewer are learnt than were read where labels come late, and what was
    # learnt before there was a prediction is not scored.
    n, right = report.history.column("n_scored"), report.history.column("n_right")
    is_known = ~np.isnan(n)
    n, right = n[is_known], right[is_known]
    if report.epochs > 1 or n.size < 8 or not n[-1] > 0:
        return
    cuts = np.unique(np.searchsorted(n, np.array([0.25, 0.5, 0.75]) * n[-1]))
    if not 0 < cuts[-1] < n.size - 1 or n[cuts[-1]] == n[-1]:
        return
    cuts = np.append(cuts, n.size - 1)
    *earlier, late = np.diff(right[cuts], prepend=0.0) / np.diff(n[cuts], prepend=0.0)
    before, n_late = max(earlier), n[-1] - n[cuts[-2]]
    # More than chance makes of the best of some parts.
    if before - late > max(_FALL, 4.0 * math.sqrt(max(0.0, before * (1.0 - before)) / n_late)):
        is_adaptive = learner.n_drifts is not None
        better = "a shorter window= follows" if is_adaptive else "--learner adaptive follows"
        yield (
            f"accuracy fell from {before:.1%} to {late:.1%} in the last quarter of the stream: if "
            f"what is to be learnt changes, {better} it"
        )


def _texts(report: RunReport) -> Iterator[str]:
    for name in report.number_texts:
        yield (
            f"all of the first texts of {name} are numbers or times, but learnt one-hot, each text "
            f"by itself: parse_numbers=[{name!r}] (--parse-numbers {name}) learns them as "
            "numbers, unless they are codes"
        )
    yield from report.text_findings


def _features(report: RunReport, learner: Learner) -> Iterator[str]:
    """Name the features that only grow, in the support vectors in the order of the stream."""
    if report.epochs > 1 or not hasattr(learner, "support_vectors"):
        return
    names, rows, *_ = learner.support_vectors()
    if not isinstance(rows, np.ndarray) or not rows.size:
        if hasattr(rows, "indices") and not report.clipped:
            yield from _large_beside_one_hot(names, rows)
        return
    # Rows that were scaled, and back, are rounded.
    least = -1e-6 * np.abs(rows).max(axis=0)
    if not report.clipped:  # else a scaler is in front
        yield from _means(learner, names, rows)
        yield from _digits(names, rows)
    only_grow = (np.diff(rows, axis=0) >= least).all(axis=0)
    for c in np.flatnonzero(only_grow).tolist():
        if len(np.unique(rows[:, c])) >= _FEWEST_VALUES:
            yield (
                f"{names[c]} only grows along the stream, as a time or a row number does, so that "
                "rows that come are far from those before: see whether it errs less without it "
                "(--exclude), or behind a scaler (--scale)"
            )


def _means(learner: Learner, names: Sequence[Name], rows: np.ndarray) -> Iterator[str]:
    """Name the features whose missing values count as a mean far from their support vectors."""
    means = learner.schema.missing.means(learner.schema.names)
    for c, name in enumerate(names):
        lower, median, upper = np.quantile(rows[:, c], (0.25, 0.5, 0.75))
        mean = means.get(name, median)
        if upper > lower and abs(mean - median) > _FAR_MEAN * (upper - lower):
            yield (
                f"missing values of {name} count as {mean:.4g}, its mean, but half of the support "
                f"vectors have {lower:.4g} to {upper:.4g}: few values far away can do that; "
                "StandardScaler in front (--scale) limits them"
            )


def _digits(names: Sequence[Name], rows: np.ndarray) -> Iterator[str]:
    """Name the features that differ so little that few digits of float32 are left."""
    means, spreads = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    for name, mean, spread in zip(names, means.tolist(), spreads.tolist(), strict=True):
        if 0.0 < spread < _FEW_DIGITS * abs(mean):
            yield (
                f"the values of {name} differ by some {spread:.2g} around {mean:.4g}, and rows "
                "keep seven digits of them: a scaler in front (--scale) keeps all"
            )


def _large_beside_one_hot(names: Sequence[Name], rows: Any) -> Iterator[str]:
    """Name the large numbers in sparse rows, which are not scaled by themselves."""
    columns, n = rows.indices, len(names)
    total = np.bincount(columns, np.abs(rows.data), n)
    means = total / np.maximum(1, np.bincount(columns, minlength=n))
    for c in np.flatnonzero(means > _LARGE).tolist():
        yield (
            f"{names[c]} is {means[c]:.2g} in the mean, beside one-hot features, which are 1, and "
            "rows of so many features are not scaled by themselves: see whether it errs less "
            "behind a scaler (--scale), or without it (--exclude)"
        )


def _events(report: RunReport) -> Iterator[str]:
    bad = sum(report.bad.values())
    # Events that wait for their labels were read, too.
    taken = max(report.taken, bad, 1)
    if bad > 0.01 * taken:
        share = bad / taken
        yield f"{share:.1%} of what was read could not be used: see the reasons, and dead letters"
