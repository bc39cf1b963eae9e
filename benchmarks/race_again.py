"""Whether the trial of scale and width should go on: ``python -m benchmarks.race_again``.

For each stream the progressive accuracy in percent of the learner with its defaults (LASVM for two
classes, LaRank for more), and how much more or less it has

* *scales frozen*: with the standard deviations of the first 1,024 examples for ever, and *scales
  at once*: rescaled at each power of two, however little they have changed (default: by 1.5);
* *race again*: replaced by a fresh learner that has learnt the last 1,024 examples, trying scale
  and width on them, whenever River's ADWIN notices that errors rise; *256*: that has learnt the
  last 256, so that its trial goes on with the examples that follow; *same choice*: that has learnt
  the last 1,024 with the scale and width of before; *race again if better*: only if it erred less
  on the newer 512 of the 1,024 than the predictions that were made;
* *adaptive*: instead of all this, `AdaptiveSVMClassifier`.

In brackets how often the learner was replaced, and how often scale or width were other ones then.
``--rows N`` is the most events of a stream, 10,000 (generators have 5,000); names of streams
select some. Events are those of `arena`.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from river import drift

from benchmarks.arena import Events, streams
from benchmarks.common import numeric
from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier, kernels
from streamsvm.models.kernel import feature_scales

KEPT = 1024
STREAMS = (
    "elec2", "weather", "covtype", "chessboard", "SEA, abrupt", "SEA, gradual", "Agrawal, abrupt",
    "Agrawal, gradual", "hyperplane", "random RBF, drift", "STAGGER, abrupt", "LED, drift",
    "mixed, abrupt", "sine, abrupt", "sine, gradual",
)  # fmt: skip


class Outcome(NamedTuple):
    """What a way of learning had on a stream."""

    accuracy: float
    n_replaced: int = 0
    n_changed: int = 0  # how often by one of another scale or width


def plain(new: Callable[[], Any], events: Events, at_1024: Callable[[Any], None]) -> Outcome:
    """Return the outcome of a learner, to which something is done after the trial."""
    model, right = new(), 0
    for i, (x, y) in enumerate(events):
        right += model.predict_one(x) == y
        model.learn_one(x, y)
        if i + 1 == KEPT:
            at_1024(model)
    return Outcome(100.0 * right / len(events))


def always(new: Callable[[], Any], events: Events) -> Outcome:
    """Return the outcome of a learner that follows the smallest change of scales."""
    differ = feature_scales.differ
    feature_scales.differ = lambda ratio: True
    try:
        return plain(new, events, lambda model: None)
    finally:
        feature_scales.differ = differ


def _freeze(model: Any) -> None:
    model.model.preparation.scales = None


def again(
    new: Callable[[], Any],
    events: Events,
    n_kept: int = KEPT,
    races: bool = True,
    if_better: bool = False,
) -> Outcome:
    """Return the outcome of a learner that is replaced when errors rise."""
    model, detector, right, replaced, changed = new(), drift.ADWIN(), 0, 0, 0
    kept: deque[tuple[Any, Any, bool]] = deque(maxlen=n_kept)
    age = 0
    for x, y in events:
        wrong = model.predict_one(x) != y
        right += not wrong
        model.learn_one(x, y)
        kept.append((x, y, wrong))
        age += 1
        before = detector.estimation
        detector.update(wrong)
        # Before, the learner is still in its trial.
        if age >= KEPT and detector.drift_detected and detector.estimation > before:
            fresh = new() if races else like(model)
            errors = [learn(fresh, *event[:2]) for event in kept]
            half = n_kept // 2
            if if_better and sum(errors[half:]) >= sum(event[2] for event in list(kept)[half:]):
                continue
            replaced += 1
            changed += is_other(fresh, model)
            model, age = fresh, n_kept
    return Outcome(100.0 * right / len(events), replaced, changed)


def learn(model: Any, x: Any, y: Any) -> bool:
    """Learn an event; return whether it was predicted wrong before."""
    wrong = model.predict_one(x) != y
    model.learn_one(x, y)
    return bool(wrong)


def like(model: Any) -> Any:
    """Return a new learner with the scale and width that another one uses."""
    fresh = type(model)(kernel=kernels.RBF(gamma=model.kernel_.gamma), seed=1)
    fresh.schema, fresh.model.preparation.factors = model.schema, model.model.factors
    return fresh


def is_other(fresh: Any, model: Any) -> bool:
    """Tell whether rows are scaled in one only, or gamma is another one by more than a factor 2."""
    ratio = fresh.kernel_.gamma / model.kernel_.gamma
    are_scaled = [one.model.factors is not None for one in (fresh, model)]
    return are_scaled[0] != are_scaled[1] or not 0.5 <= ratio <= 2.0


WAYS: dict[str, Callable[[Callable[[], Any], Events], Outcome]] = {
    "defaults": lambda new, events: plain(new, events, lambda model: None),
    "scales frozen": lambda new, events: plain(new, events, _freeze),
    "scales at once": always,
    "race again": again,
    "256": lambda new, events: again(new, events, n_kept=256),
    "same choice": lambda new, events: again(new, events, races=False),
    "race again if better": lambda new, events: again(new, events, if_better=True),
    "adaptive": lambda new, events: plain(
        lambda: AdaptiveSVMClassifier(seed=1), events, lambda model: None
    ),
}


def _cell(outcome: Outcome, base: Outcome | None) -> str:
    if base is None:
        return f"{outcome.accuracy:.1f}"
    times = f" ({outcome.n_replaced}, {outcome.n_changed})" if outcome.n_replaced else ""
    return f"{outcome.accuracy - base.accuracy:+.1f}{times}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=list(STREAMS))
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    print(f"| stream | {' | '.join(WAYS)} |")
    print("|---" * (1 + len(WAYS)) + "|", flush=True)
    accuracies = []
    for name, read in streams(given.rows):
        if name not in given.names:
            continue
        events = [(numeric(x), y) for x, y in read()]
        several = len({y for _, y in events}) > 2
        kind = LaRankClassifier if several else LASVMClassifier
        outcomes = [way(lambda kind=kind: kind(seed=1), events) for way in WAYS.values()]
        cells = [_cell(o, outcomes[0] if i else None) for i, o in enumerate(outcomes)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        accuracies.append([outcome.accuracy for outcome in outcomes])
    means = np.mean(accuracies, axis=0)
    cells = [f"{means[0]:.1f}", *(f"{mean - means[0]:+.1f}" for mean in means[1:])]
    print(f"| mean of {len(accuracies)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
