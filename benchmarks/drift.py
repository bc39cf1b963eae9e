"""Learners on drifting streams, for `benchmarks.pages`: ours and River's, by defaults and tuned.

The first 20,000 events of Elec2, weather and chessboard in their order, each predicted and then
learnt; chessboard's eight classes are learnt as one square's colour against the rest. River's
distances and linear learners, and ours with a given kernel, stand behind a standard scaler, but on
chessboard, whose two features are of one scale. "Tuned" is the best of a few settings in hindsight,
of all learners alike (`TUNED`): what a user might find on recorded events.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
from river import forest, linear_model, neighbors, preprocessing, tree

from benchmarks.common import error_of, events_of
from streamsvm import (
    AdaptiveSVMClassifier,
    LASVMClassifier,
    StandardScaler,
    TrackingSVMClassifier,
    kernels,
)

STREAMS = {"Elec2": "elec2", "weather": "weather", "chessboard (one colour)": "chessboard"}
LIMIT = 20_000
Make = Callable[[], Any]


def _lasvm(**parameters: Any) -> Make:
    return lambda: LASVMClassifier(**parameters)


def _tracking(**parameters: Any) -> Make:
    return lambda: TrackingSVMClassifier(seed=1, **parameters)


def _knn(n_neighbors: int, window: int) -> Make:
    return lambda: neighbors.KNNClassifier(
        n_neighbors, engine=neighbors.LazySearch(window_size=window)
    )


DEFAULTS: dict[str, Make] = {
    "adaptive": AdaptiveSVMClassifier,
    "LASVM": _lasvm(),
    "LASVM, window 1,000": _lasvm(window=1000),
    "LASVM, window 200": _lasvm(window=200),
    "LASVM, 500 support vectors": _lasvm(max_support_vectors=500),
    "tracking, window 1,000": _tracking(window=1000),
    "tracking, 500 support vectors": _tracking(max_support_vectors=500),
    "River: nearest neighbours": neighbors.KNNClassifier,
    "River: Hoeffding tree": tree.HoeffdingTreeClassifier,
    "River: adaptive random forest": lambda: forest.ARFClassifier(seed=1),
    "River: logistic regression": linear_model.LogisticRegression,
    "River: passive-aggressive": linear_model.PAClassifier,
}
_GAMMAS = (0.25, 1.0, 4.0, 20.0)
TUNED: dict[str, list[Make]] = {
    "LASVM": [
        _lasvm(kernel=kernels.RBF(gamma=gamma), C=C) for gamma, C in product(_GAMMAS, (1.0, 10.0))
    ],
    "LASVM with a window": [
        _lasvm(kernel=kernels.RBF(gamma=gamma), C=10.0, window=window)
        for gamma, window in product(_GAMMAS, (200, 1000))
    ],
    "River: nearest neighbours": [_knn(*both) for both in product((1, 5), (200, 1000))],
    "River: adaptive random forest": [
        lambda grace=grace, n=n: forest.ARFClassifier(n, grace_period=grace, seed=1)
        for grace, n in product((20, 50), (10, 20))
    ],
    "River: logistic regression": [
        lambda rate=rate: linear_model.LogisticRegression(_sgd(rate)) for rate in (0.01, 0.1, 1.0)
    ],
    "River: passive-aggressive": [
        lambda C=C, mode=mode: linear_model.PAClassifier(C, mode)
        for C, mode in product((0.01, 0.1, 1.0), (1, 2))
    ],
}


def _sgd(rate: float) -> Any:
    from river import optim

    return optim.SGD(rate)


def events(name: str, limit: int) -> list[tuple[dict[str, float], bool]]:
    """Return the events of a stream."""
    found = events_of(STREAMS[name], limit)
    return [(x, y == found[0][1]) for x, y in found]


def _scaled(model: Any, name: str, tuned: bool) -> Any:
    """Put a scaler before learners that need one and do not scale themselves."""
    if name.startswith("chessboard") or isinstance(
        model, tree.HoeffdingTreeClassifier | forest.ARFClassifier
    ):
        return model
    if type(model).__module__.startswith("river"):
        return preprocessing.StandardScaler() | model
    # Ours find out by default whether to scale.
    return StandardScaler() | model if tuned or isinstance(model, TrackingSVMClassifier) else model


def measure(name: str, quick: bool = False) -> dict[str, dict[str, float]]:
    """Return the errors of all learners on a stream, by defaults and tuned."""
    stream = events(name, 1000 if quick else LIMIT)
    again = [before[1] == now[1] for before, now in pairwise(stream)]
    defaults = {
        learner: error_of(_scaled(make(), name, False), stream)
        for learner, make in DEFAULTS.items()
    }
    tuned = {
        learner: min(error_of(_scaled(make(), name, True), stream) for make in makes)
        for learner, makes in TUNED.items()
    }
    last = 100.0 * (1.0 - float(np.mean(again)))
    return {"defaults": defaults | {"the last label again": last}, "tuned": tuned}


def table(found: dict[str, Any]) -> list[str]:
    """Return the table of the page: a row a learner, accuracy in %."""
    lines = [f"| | {' | '.join(found)} |", "|---" * (1 + len(found)) + "|"]
    for kind, shown in (("defaults", "by defaults"), ("tuned", "tuned")):
        of_kind = [one[kind] for one in found.values()]
        best = [min(one.values()) for one in of_kind]
        for learner in of_kind[0]:
            n = f", best of {len(TUNED[learner])} settings" if kind == "tuned" else ""
            cells = [
                f"{'**' if one[learner] == least else ''}{100 - one[learner]:.1f}"
                f"{'**' if one[learner] == least else ''}"
                for one, least in zip(of_kind, best, strict=True)
            ]
            lines.append(f"| {shown}: {learner}{n} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table({name: measure(name) for name in STREAMS})))
