"""One choice for all pairs of classes, or one for each: ``python -m benchmarks.pairs_of_classes``.

Progressive accuracy in percent and microseconds of the processor an event (predicted, then learnt)
of the defaults: `LASVMClassifier` and `AdaptiveSVMClassifier`, which choose scale, gamma and C once
for all classes, and River's `OneVsOneClassifier` around `LASVMClassifier`, whose pairs each choose
for themselves. Names of streams select some of them; ``--learners a,b`` selects columns;
``--rows N`` takes at most so many rows of each.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import multiclass

from benchmarks import default_streams
from benchmarks.common import Event, numeric
from streamsvm import AdaptiveSVMClassifier, LASVMClassifier


def texts(n: int) -> Iterator[Event]:
    """Yield events of four classes, given by two text columns and intervals of three numbers."""
    draw = random.Random(1)
    for _ in range(n):
        city, kind = draw.choice("abcdef"), draw.choice("uvwx")
        amount, age, hour = draw.uniform(0, 1000), draw.gauss(40, 12), draw.uniform(0, 24)
        if kind in "uv":
            y = "A" if (amount < 400) == (city in "abc") else "B"
        elif kind == "w":
            y = "C" if age < 40 else "A" if hour < 12 else "D"
        else:
            y = "D" if 300 < amount < 700 else "B" if city in "ad" else "C"
        y = draw.choice("ABCD") if draw.random() < 0.05 else y
        yield numeric({"city": city, "kind": kind, "amount": amount, "age": age, "hour": hour}), y


def shifts(n: int) -> Iterator[Event]:
    """Yield events of four classes: a text's number, shifted by thresholds that another sets."""
    draw = random.Random(2)
    of_a = {f"a{i}": draw.randrange(4) for i in range(12)}
    of_b = {f"b{i}": draw.uniform(0.2, 0.8) for i in range(5)}
    for _ in range(n):
        a, b = draw.choice(list(of_a)), draw.choice(list(of_b))
        u, v, w = draw.random(), draw.gauss(0, 5), draw.expovariate(0.01)
        y = (of_a[a] + (u > of_b[b]) + (2 if v > 2 else 0)) % 4
        y = draw.randrange(4) if draw.random() < 0.05 else y
        yield numeric({"a": a, "b": b, "u": u, "v": v, "w": w}), y


def own_features(n: int) -> Iterator[Event]:
    """Yield events of six classes: each two are told apart by other ones of twelve features."""
    x = np.random.default_rng(3).normal(size=(n, 12))
    last = np.where(np.sin(3 * x[:, 6]) > 0, 4, 5)
    inner = np.where(x[:, 4] ** 2 + x[:, 5] ** 2 < 1, 3, last)
    first = np.where(x[:, 1] * x[:, 2] > 0, 0, 1)
    y = np.where(x[:, 0] > 0, first, np.where(x[:, 3] > 0.5, 2, inner))
    units = np.array([1, 100, 0.01, 1, 10, 1, 1, 1000, 1, 0.1, 1, 1])
    for row, label in zip((x * units).tolist(), y.tolist(), strict=True):
        yield dict(enumerate(row)), label


def _digits(n: int) -> Iterator[Event]:
    from sklearn.datasets import load_digits

    found = load_digits()
    for i in np.random.default_rng(0).permutation(len(found.target))[:n].tolist():
        yield dict(enumerate(found.data[i].tolist())), int(found.target[i])


def _known(name: str) -> Callable[[int], Iterator[Event]]:
    def read(n: int) -> Iterator[Event]:
        x, y = default_streams.streams(n)[name](n)
        names = list(map(str, range(x.shape[1])))
        for row, label in zip(x.tolist(), y.tolist(), strict=True):
            yield dict(zip(names, row, strict=True)), label

    return read


STREAMS: dict[str, tuple[Callable[[int], Iterator[Event]], int]] = {
    "two text columns, intervals": (texts, 6000),
    "two text columns, shifts": (shifts, 6000),
    "Covertype, as it came": (_known("covtype_first20k"), 8000),
    "Covertype, shuffled": (_known("covtype_sample10k"), 6000),
    "Letter": (_known("letter_train"), 8000),
    "USPS": (_known("usps_train"), 5000),
    "digits": (_digits, 1797),
    "chessboard": (_known("chessboard"), 8000),
    "ImageSegments": (_known("ImageSegments"), 2310),
    "Waveform": (_known("waveform"), 5000),
    "LED, drift": (_known("LED drift"), 5000),
    "random RBF, drift": (_known("random RBF drift"), 5000),
    "features of their own": (own_features, 6000),
}
"""Events of each stream, and how many are taken."""

LEARNERS: dict[str, Callable[[], Any]] = {
    "LASVM": LASVMClassifier,
    "adaptive": lambda: AdaptiveSVMClassifier(seed=1),
    "OneVsOne": lambda: multiclass.OneVsOneClassifier(LASVMClassifier()),
}


def measured(name: str, events: list[Event]) -> tuple[float, float]:
    """Return progressive accuracy in % and microseconds an event."""
    model, right, start = LEARNERS[name](), 0, time.process_time()
    for x, y in events:
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    seconds = time.process_time() - start
    return 100.0 * right / len(events), 1e6 * seconds / len(events)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--learners", default=",".join(LEARNERS))
    given = parser.parse_args()
    learners = given.learners.split(",")
    print(f"| stream | {' | '.join(learners)} |")
    print("|---" * (1 + len(learners)) + "|")
    for name in learners:
        # Compiled code is loaded before the clock runs.
        measured(name, list(texts(1200)))
    for name, (read, n) in STREAMS.items():
        if given.names and name not in given.names:
            continue
        events = list(read(min(n, given.rows)))
        found = [measured(learner, events) for learner in learners]
        cells = [f"{accuracy:.1f} %, {us:,.0f} us" for accuracy, us in found]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
