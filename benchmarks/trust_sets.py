"""Sets with a coverage on streams that drift, beside other ways: ``benchmarks.trust sets``.

Each event is predicted, then learnt, by `AdaptiveSVMClassifier` (of texts: `SVMSGDClassifier`) and
by River's Hoeffding tree; their probabilities are then made into sets of coverage .8, .9 and .95 by

* `ConformalSets`, also with adaptive scores and by class;
* split conformal: the threshold is the quantile of the first 1,000 scores, and stays;
* the probabilities, as they are: the most likely labels until they sum up to the coverage;
* online-cp's nearest neighbours, if it is installed: on the first 2,000 events of
  some streams (`FOR_ONLINE_CP`; it takes half a minute for each).

Streams are those of `trust_streams`. Printed, of all streams: how far the share of misses is from
the one asked for, in points: in the end, the most at any moment after 2,000 events, and in the
worst window of 1,000 events after the first 1,000; the mean size of sets; how many are empty.
``--late`` prints the table of late labels instead. ``--streams NAME ...`` takes some; ``--rows N``
is the most events, 10,000. ``--json FILE`` keeps what was measured; what is in it already is not
measured again.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from river.datasets import synth

from benchmarks import arena
from benchmarks.trust_streams import Predicted, as_numbers, predictions, print_costs, streams
from streamsvm import ConformalSets, StandardScaler, SVMSGDClassifier
from streamsvm.labels.prediction_sets import LabelSets

COVERAGES = (0.8, 0.9, 0.95)
WINDOW, AFTER, CALIBRATION = 1000, 2000, 1000
OF_ONLINE_CP = 2000
FOR_ONLINE_CP = (
    "elec2", "weather", "chessboard, one colour", "Bananas", "Phishing", "SEA, abrupt",
    "SEA, gradual", "classes 1:200", "elec2, sorted",
)  # fmt: skip

Sets = tuple[np.ndarray, np.ndarray]
"""Of each event whether it was missed, and the size of its set."""


def ours(coverage: float, **parameters: Any) -> Callable[[Predicted], Sets]:
    """Return what makes sets as `ConformalSets` does."""

    def make(stream: Predicted) -> Sets:
        sets, missed, sizes = LabelSets(coverage, **parameters), [], []
        for p, y in stream:
            found = sets.of(p)
            missed.append(sets.learn(y, p, found))
            sizes.append(len(found))
        return np.array(missed), np.array(sizes)

    return make


def split(coverage: float) -> Callable[[Predicted], Sets]:
    """Return split conformal, which is calibrated once: until then sets have all labels."""

    def make(stream: Predicted) -> Sets:
        scores = sorted(1.0 - p.get(y, 0.0) for p, y in stream[:CALIBRATION])
        place = math.ceil((len(scores) + 1) * coverage) - 1
        limit = scores[place] if place < len(scores) else math.inf
        limits = [math.inf] * CALIBRATION + [limit] * len(stream)
        missed = [1.0 - p.get(y, 0.0) > q for (p, y), q in zip(stream, limits, strict=False)]
        each = zip(stream, limits, strict=False)
        sizes = [sum(1.0 - one <= q for one in p.values()) for (p, _), q in each]
        return np.array(missed), np.array(sizes)

    return make


def believed(coverage: float) -> Callable[[Predicted], Sets]:
    """Return what believes the probabilities: the most likely labels that sum up to it."""

    def make(stream: Predicted) -> Sets:
        missed, sizes = [], []
        for p, y in stream:
            labels, total = [], 0.0
            for label in sorted(p, key=lambda label: -p[label]):
                if total >= coverage:
                    break
                labels.append(label)
                total += p[label]
            missed.append(y not in labels)
            sizes.append(len(labels))
        return np.array(missed), np.array(sizes)

    return make


def online_cp(events: arena.Events, coverage: float) -> Sets | None:
    """Return the sets of online-cp's nearest neighbours; None: not there, or not for this."""
    try:
        from online_cp import ConformalNearestNeighboursClassifier
    except ImportError:
        return None
    events = events[:OF_ONLINE_CP]
    names = sorted({name for x, _ in events for name in x}, key=str)
    if len(names) > 100 or any(isinstance(v, str) for x, _ in events for v in x.values()):
        return None
    rows = np.array([[float(x.get(name, 0.0)) for name in names] for x, _ in events])
    # Of the first rows, as if they had been known before.
    rows = (rows - rows[:100].mean(axis=0)) / np.maximum(rows[:100].std(axis=0), 1e-9)
    labels = sorted({y for _, y in events}, key=str)
    codes = np.array([labels.index(y) for _, y in events])
    model = ConformalNearestNeighboursClassifier(
        k=5, label_space=np.arange(len(labels)), rnd_state=1, epsilon=1.0 - coverage
    )
    missed, sizes = [], []
    for x, y in zip(rows, codes, strict=True):
        found = set(np.asarray(model.predict(x, epsilon=1.0 - coverage).elements).tolist())
        missed.append(int(y) not in found)
        sizes.append(len(found))
        model.learn_one(x, y)
    return np.array(missed), np.array(sizes)


def figures(sets: Sets, coverage: float) -> dict[str, float]:
    """Return the figures of the sets of a stream, see the module; shares in percent."""
    missed, sizes = sets
    n, rate = len(missed), 1.0 - coverage
    total = np.cumsum(missed)
    shares = total / np.arange(1, n + 1)
    width = min(WINDOW, n // 2)
    windows = (total[width:] - total[:-width]) / width
    late = windows[min(CALIBRATION, len(windows) - 1) :]
    return {
        "miss": 100.0 * shares[-1],
        "end": 100.0 * abs(shares[-1] - rate),
        "after": 100.0 * float(np.abs(shares[min(AFTER, n) - 1 :] - rate).max()),
        "window": 100.0 * float(np.abs(late - rate).max()),
        "size": float(sizes[min(CALIBRATION, n // 2) :].mean()),
        "empty": 100.0 * float((sizes[min(CALIBRATION, n // 2) :] == 0).mean()),
    }


WAYS: dict[str, Callable[[float], Callable[[Predicted], Sets]]] = {
    "ConformalSets": ours,
    "ConformalSets, adaptive": lambda c: ours(c, score="adaptive"),
    "ConformalSets, by class": lambda c: ours(c, by_class=True),
    "ConformalSets, never empty": lambda c: ours(c, may_be_empty=False),
    "split conformal": split,
    "probabilities believed": believed,
}
ONLINE_CP, SAME = "online-cp, k-NN", "ConformalSets, same events"


def measured(name: str, events: arena.Events) -> Iterator[tuple[str, float, str, dict[str, float]]]:
    """Yield model, coverage, way and figures of one stream."""
    events, numbers = as_numbers(events)
    found = predictions(name, events, numbers)
    for coverage in COVERAGES:
        for model, stream in found.items():
            for way, make in WAYS.items():
                yield model, coverage, way, figures(make(coverage)(stream), coverage)
        if coverage != 0.9 or name not in FOR_ONLINE_CP:
            continue
        if (sets := online_cp(numbers, coverage)) is not None:
            yield "ours", coverage, ONLINE_CP, figures(sets, coverage)
            same = figures(ours(coverage)(found["ours"][:OF_ONLINE_CP]), coverage)
            yield "ours", coverage, SAME, same


def late() -> None:
    """Print what late labels do to sets of coverage .9 on two streams of River."""
    print("| stream | labels late by | covered | whole | size |")
    for name, stream in (("Sine", synth.Sine(seed=93)), ("Agrawal", synth.Agrawal(seed=91))):
        events = [(dict(x), bool(y)) for x, y in stream.take(10_000)]
        for delay in (0, 10, 30, 100, 500, 3000):
            model, held = ConformalSets(StandardScaler() | SVMSGDClassifier()), []
            for i, (x, y) in enumerate(events):
                given = model.predict_set_one(x)
                if delay == 0:
                    model.learn_one(x, y)
                    continue
                held.append((x, y, given))
                if i + 1 >= delay:
                    model.learn_one(*held[i + 1 - delay])
            for one in held[len(events) + 1 - delay :]:
                model.learn_one(*one)
            found: Any = model.sets.figures()
            cells = f"{found['coverage']:.1%} | {found['set_whole']:.1%} | {found['set_size']:.2f}"
            print(f"| {name} | {delay} | {cells} |", flush=True)


def main(arguments: list[str]) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--streams", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--late", action="store_true")
    given = parser.parse_args(arguments)
    if given.late:
        late()
        return
    print_costs(ConformalSets, "predict_set_one")
    known: dict[str, Any] = {}
    if given.json is not None and given.json.exists():
        known = json.loads(given.json.read_text())
    print("| stream, .9 | model | missed | worst window | split: missed | worst window | size |")
    for name, read in streams(given.rows):
        if given.streams and name not in given.streams:
            continue
        if name not in known:
            known[name] = list(measured(name, read()))
            if given.json is not None:
                given.json.write_text(json.dumps(known) + "\n")
        of = {(model, way): values for model, c, way, values in known[name] if c == 0.9}
        for model in dict.fromkeys(model for model, _ in of):
            own, other = of[model, "ConformalSets"], of[model, "split conformal"]
            cells = [own["miss"], own["window"], other["miss"], other["window"]]
            shown = " | ".join(f"{one:.1f}" for one in cells)
            print(f"| {name} | {model} | {shown} | {own['size']:.2f} |", flush=True)
    _means([one for found in known.values() for one in found])


def _means(found: list[Any]) -> None:
    """Print the figures of each coverage and way over all streams and models."""
    print("| coverage | way | streams | off in the end: mean, most | after 2,000: mean, most | "
          "worst window: mean, most | size | empty |")  # fmt: skip
    ways = dict.fromkeys((c, way) for _, c, way, _ in found)
    for coverage, way in sorted(ways, key=lambda one: one[0]):
        values = [one for _, c, w, one in found if (c, w) == (coverage, way)]
        cells = [
            f"{np.mean([one[key] for one in values]):.2f}, {max(one[key] for one in values):.2f}"
            for key in ("end", "after", "window")
        ]
        size, empty = (float(np.mean([one[key] for one in values])) for key in ("size", "empty"))
        print(f"| {coverage} | {way} | {len(values)} | {' | '.join(cells)} | {size:.2f} "
              f"| {empty:.1f} % |")  # fmt: skip
