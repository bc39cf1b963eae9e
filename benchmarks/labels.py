"""Accuracy by labels asked for: ways of asking on five streams, around the same learner.

    python -m benchmarks.labels [--events 20000] [--seeds 3] [stream ...]

Beside `ActiveLearner`: River's EntropySampler, around the same learner and around logistic
regression. It has no budget: its discount factor is searched for until it asks for the wanted
share, which costs it nothing here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from river import active, linear_model, multiclass, preprocessing

from benchmarks.drift_streams import streams
from streamsvm import ActiveLearner, AdaptiveSVMClassifier
from tests.golden.problems import FOLDER

STREAMS = ("elec2", "weather", "chessboard", "adult", "sms")
BUDGETS = (0.05, 0.1, 0.2)
FIRST = 20
"""So many labels are given to the other systems without being asked for."""


Wrapper = Callable[[Any, float, int], Any]
"""Returns a wrapper of a learner for a share of labels (or a discount factor) and a seed."""


def learner() -> Any:
    """Return the learner that all ways of asking have, but for one."""
    return AdaptiveSVMClassifier(seed=1)


def logistic() -> Any:
    """Return River's logistic regression behind its scaler, one for each class."""
    model = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    return preprocessing.StandardScaler() | model


def _of_ours(strategy: str) -> Wrapper:
    return lambda model, share, seed: ActiveLearner(model, share, strategy, seed=seed)


OURS = {
    f"ours, {strategy}": _of_ours(strategy) for strategy in ("quantile", "uncertainty", "random")
}


def _entropy(model: Any, factor: float, seed: int) -> Any:
    return active.EntropySampler(model, discount_factor=factor, seed=seed)


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


def with_factor(events: list[Any], make: Callable[[], Any], share: float, seed: int) -> float:
    """Return River's accuracy at the discount factor with which it asks for this share."""
    low, high, found = 0.01, 1000.0, 0.0
    for _ in range(9):
        factor = (low * high) ** 0.5
        found, asked = run(events, _entropy(make(), factor, seed))
        if abs(asked - share) < 0.03 * share:
            break
        low, high = (factor, high) if asked > share else (low, factor)
    return found


def compare(events: list[Any], share: float, seed: int) -> Iterator[tuple[str, float]]:
    """Yield the name and the accuracy of each way of asking."""
    for name, wrapper in OURS.items():
        yield name, run(events, wrapper(learner(), share, seed))[0]
    yield "EntropySampler", with_factor(events, learner, share, seed)
    yield "EntropySampler, logistic", with_factor(events, logistic, share, seed)


def adult(n: int) -> list[Any]:
    """Return the first n rows of Adult, of 123 features of 0 and 1."""
    rows = pq.read_table(FOLDER / "adult_train.parquet").slice(0, n).to_pylist()
    return [({k: v for k, v in row.items() if k != "label"}, row["label"] > 0) for row in rows]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=STREAMS)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    found_streams = dict(streams(given.events)) | {"adult": lambda: adult(given.events)}
    for name, make in found_streams.items():
        if name not in given.names:
            continue
        events = make()[: given.events]
        for share in BUDGETS:
            found: dict[str, list[float]] = {}
            for seed in range(given.seeds):
                for system, accuracy in compare(events, share, seed):
                    found.setdefault(system, []).append(accuracy)
            cells = [f"{system} {np.mean(values):.2%}" for system, values in found.items()]
            print(f"{name}, {share:.0%}: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
