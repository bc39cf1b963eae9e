"""Accuracy by labels asked for: ways of asking on five streams, around the same learner.

    python -m benchmarks.labels [--events 20000] [--seeds 3] [--systems NAME ...] [stream ...]

Beside `ActiveLearner`: River's EntropySampler, around the same learner and around logistic
regression, and scikit-activeml's strategies (`activeml_peers`; left out without that package).
They get 20 labels at first, and are searched for the setting with which they ask for the wanted
share, these included, which costs them nothing here; "asked" tells the share if it is missed by
more than 3 %. Each seed is another part of a stream, which begins 2,000 events later, or another
order of rows that are none (Adult, SMS). The last lines are means over all streams.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any

import numpy as np
from river import active, linear_model, multiclass, preprocessing

from benchmarks.activeml_peers import STRATEGIES, Asker, Rows
from benchmarks.arena import streams
from benchmarks.common import events_of
from streamsvm import ActiveLearner, AdaptiveSVMClassifier

STREAMS = ("elec2", "weather", "chessboard", "adult", "sms")
UNORDERED = ("adult", "sms")
BUDGETS = (0.05, 0.1, 0.2)
FIRST = 20
"""So many labels are given to the other systems without being asked for."""

LATER = 2000
TOLERANCE = 0.03

Make = Callable[[float], Any]
"""Returns a new wrapper of a new learner; it asks for more with a larger setting."""


def learner() -> Any:
    """Return the learner that all ways of asking have, but for one."""
    return AdaptiveSVMClassifier(seed=1)


def logistic() -> Any:
    """Return River's logistic regression behind its scaler, one for each class."""
    model = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    return preprocessing.StandardScaler() | model


def run(events: list[Any], wrapper: Any) -> tuple[float, float]:
    """Return accuracy, of all events, and the share of labels asked for."""
    right = asked = 0
    for n, (x, y) in enumerate(events):
        predicted, ask = wrapper.predict_one(x)
        right += predicted == y
        # River's would never ask again after a label of one class, or before the first one.
        if ask or (n < FIRST and not isinstance(wrapper, ActiveLearner)):
            asked += 1
            wrapper.learn_one(x, y)
    return right / len(events), asked / len(events)


def searched(
    events: list[Any], make: Make, share: float, setting: float, most: float
) -> tuple[float, float, float]:
    """Return accuracy, share asked, and the setting with which it asks for about this share.

    The search begins with `setting`.
    """
    low, high, found = 1e-4, most, (0.0, 0.0, setting)
    for n in range(12):
        accuracy, asked = run(events, make(setting))
        if abs(asked - share) < abs(found[1] - share):
            found = accuracy, asked, setting
        if abs(asked - share) < TOLERANCE * share or (asked < share and setting >= most):
            break
        low, high = (low, setting) if asked > share else (setting, high)
        # What has a budget asks for about as much.
        near = min(most, setting * share / asked)
        setting = near if n < 3 and low < near <= high else (low * high) ** 0.5
    return found


def makers(events: list[Any], seed: int) -> Iterator[tuple[str, Make, float]]:
    """Yield name, maker and the largest setting of each way of asking of others."""
    for name, model in ("EntropySampler", learner), ("EntropySampler, logistic", logistic):

        def entropy(setting: float, model: Callable[[], Any] = model) -> Any:
            return active.EntropySampler(model(), discount_factor=1.0 / setting, seed=seed)

        yield name, entropy, 100.0
    rows = Rows(events) if STRATEGIES else None
    n_classes = len({y for _, y in events})
    for name, strategy in STRATEGIES.items():

        def asker(setting: float, strategy: Callable[..., Any] = strategy) -> Any:
            return Asker(learner(), strategy(setting, seed, n_classes), events, rows)

        yield f"activeml, {name}", asker, 1.0


def compare(
    events: list[Any], share: float, seed: int, systems: list[str], settings: dict[str, float]
) -> Iterator[tuple[str, float, float]]:
    """Yield name, accuracy, and the share asked for, of each way of asking.

    `settings` are those found with other seeds, and are changed in place.
    """
    for strategy in ("quantile", "uncertainty", "random"):
        if _is_wanted(f"ours, {strategy}", systems):
            wrapper = ActiveLearner(learner(), share, strategy, seed=seed)
            yield f"ours, {strategy}", *run(events, wrapper)
    for name, make, most in makers(events, seed):
        if _is_wanted(name, systems):
            first = settings.get(name, share)
            accuracy, asked, settings[name] = searched(events, make, share, first, most)
            yield name, accuracy, asked


def _is_wanted(name: str, systems: list[str]) -> bool:
    return not systems or any(fnmatch(name, one) for one in systems)


def part(name: str, events: list[Any], n: int, seed: int) -> list[Any]:
    """Return n events of a stream, others for each seed."""
    if name in UNORDERED:
        order = np.random.default_rng(seed).permutation(len(events)) if seed else range(len(events))
        events = [events[i] for i in order]
    else:
        events = events[LATER * seed :]
    return events[:n]


def told(values: list[tuple[float, float]], share: float) -> str:
    """Return a mean accuracy, and the share asked for if it is another one."""
    accuracy, asked = np.mean(values, axis=0)
    is_near = abs(asked - share) <= TOLERANCE * share + 1e-9
    return f"{accuracy:.2%}" if is_near else f"{accuracy:.2%} (asked {asked:.1%})"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=STREAMS)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    about = "only those whose names fit one of these: 'ours*' 'activeml, split', for example"
    parser.add_argument("--systems", nargs="+", default=[], help=about)
    given = parser.parse_args()
    n_read = given.events + LATER * (given.seeds - 1)
    found_streams = dict(streams(n_read)) | {
        "adult": lambda: [(x, y > 0) for x, y in events_of("adult_train", n_read)]
    }
    total: dict[float, dict[str, list[tuple[float, float]]]] = {share: {} for share in BUDGETS}
    for name, make in found_streams.items():
        if name not in given.names:
            continue
        events = make()
        for share in BUDGETS:
            found: dict[str, list[tuple[float, float]]] = {}
            settings: dict[str, float] = {}
            for seed in range(given.seeds):
                some = part(name, events, given.events, seed)
                for system, *figures in compare(some, share, seed, given.systems, settings):
                    found.setdefault(system, []).append(tuple(figures))
            for system, values in found.items():
                total[share].setdefault(system, []).extend(values)
                print(f"{name}, {share:.0%}: {system} {told(values, share)}", flush=True)
    for share, means in total.items():
        for system, values in sorted(means.items(), key=lambda item: -np.mean(item[1], axis=0)[0]):
            print(f"mean, {share:.0%}: {system} {told(values, share)}")


if __name__ == "__main__":
    main()
