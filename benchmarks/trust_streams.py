"""The streams of `trust_sets` and `trust_selective`, what models predict of them, and costs.

Streams are those of `arena`; Elec2 and Letter sorted by label; Elec2 with another unit from
its middle on; and two classes 1:200.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from river import linear_model, naive_bayes, preprocessing, tree

from benchmarks import arena
from benchmarks.common import numeric
from benchmarks.golden.problems import FOLDER
from streamsvm import AdaptiveSVMClassifier, SVMSGDClassifier

TEXTS = ("sms", "sentence polarity")

Predicted = list[tuple[dict[Any, float], Any]]
"""Of each event the probabilities before it was learnt, and its label."""


def rare(n: int) -> arena.Events:
    """Return two classes, 1:200, that overlap."""
    draw, found = random.Random(1), []
    for _ in range(n):
        y = draw.random() < 1 / 200
        found.append(({c: draw.gauss(1.2 if y else 0.0, 1.0) for c in "ab"}, y))
    return found


def streams(n: int) -> Iterator[tuple[str, Callable[[], arena.Events]]]:
    """Yield the names of all streams, and functions that read them."""
    yield from arena.streams(n)
    yield "classes 1:200", lambda: rare(n)
    if FOLDER.exists():
        known = dict(arena.streams(n))
        yield "elec2, sorted", lambda: sorted(known["elec2"](), key=lambda event: str(event[1]))
        yield "letter, sorted", lambda: sorted(known["letter"](), key=lambda event: str(event[1]))
        yield "elec2, another unit", lambda: in_another_unit(known["elec2"]())


def in_another_unit(events: arena.Events) -> arena.Events:
    """Multiply all features of the second half by 1,000."""
    half = len(events) // 2
    return [
        ({name: v * (1000.0 if i >= half else 1.0) for name, v in x.items()}, y)
        for i, (x, y) in enumerate(events)
    ]


def as_numbers(events: arena.Events) -> tuple[arena.Events, arena.Events]:
    """Return events, of two classes with labels True and False, and the same with numbers only."""
    labels = sorted({y for _, y in events}, key=str)
    if len(labels) == 2:
        events = [(x, y == labels[-1]) for x, y in events]
    return events, [(numeric(x), y) for x, y in events]


def predictions(
    name: str,
    events: arena.Events,
    numbers: arena.Events,
    has_bayes: bool = False,
) -> dict[str, Predicted]:
    """Return what each model predicts of a stream, which `as_numbers` returned."""
    own = SVMSGDClassifier() if name in TEXTS else AdaptiveSVMClassifier(seed=1)
    found = {"ours": _predicted(own, numbers)}
    if name not in TEXTS:
        found["Hoeffding tree"] = _predicted(tree.HoeffdingTreeClassifier(), events)
        if has_bayes:
            found["naive Bayes"] = _predicted(naive_bayes.GaussianNB(), numbers)
    return found


def _predicted(model: Any, events: arena.Events) -> Predicted:
    """Return the probabilities of each event before it was learnt, and its label."""
    found = []
    for x, y in events:
        found.append((model.predict_proba_one(x), y))
        model.learn_one(x, y)
    return found


def print_costs(wrap: Callable[[Any], Any], method: str) -> None:
    """Print the microseconds of processor time that a wrapper's `method` adds to an event."""
    known = dict(arena.streams(5000))
    events = known.get("elec2", known["Bananas"])()
    events = [(x, y == events[0][1]) for x, y in events]
    makes: dict[str, Callable[[], Any]] = {
        "SVMSGDClassifier": SVMSGDClassifier,
        "AdaptiveSVMClassifier": lambda: AdaptiveSVMClassifier(seed=1),
        "River's scaler and logistic regression": lambda: (
            preprocessing.StandardScaler() | linear_model.LogisticRegression()
        ),
    }
    for name, make in makes.items():
        of: dict[bool, list[float]] = {False: [], True: []}
        for is_wrapped in itertools.islice(itertools.cycle(of), 8):
            model = wrap(make()) if is_wrapped else make()
            predict = getattr(model, method if is_wrapped else "predict_proba_one")
            start = time.process_time()
            for x, y in events:
                predict(x)
                model.learn_one(x, y)
            of[is_wrapped].append(1e6 * (time.process_time() - start) / len(events))
        plain, wrapped = min(of[False]), min(of[True])
        print(f"{name}: {plain:.2f} us an event with probabilities, {wrapped - plain:.2f} more")
