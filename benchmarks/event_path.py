"""What an event costs above the compiled step: ``python -m benchmarks.event_path``.

For each learner and number of features, microseconds of ``predict_one`` and ``learn_one`` together;
of the compiled calls in them alone, which get the values packed; and of the difference, which is
what Python does: read the dict, hold the lock, look up the label. Medians of several rounds over
the same events, after warming up. Linear learners read dicts by machine code, unless
``STREAMSVM_NATIVE_EVENTS=0`` is set. Then microseconds of a scaler, ours and River's, for events
whose names differ: `learn_one` and `transform_one` the first time, and when all names are known.
"""

from __future__ import annotations

import random
import statistics
import time

import numpy as np
from river import preprocessing

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.learners.bases import events as event_functions

ROUNDS, N = 7, 2000
RBF = kernels.RBF(gamma=0.02)
LEARNERS = {
    "LASVM, 100 SV": lambda: LASVMClassifier(RBF, max_support_vectors=100),
    "LASVM, weighted": lambda: LASVMClassifier(RBF, max_support_vectors=100),
    "LASVM, sparse": lambda: LASVMClassifier(RBF, max_support_vectors=100, sparse=True),
    "LASVM, monitored": lambda: LASVMClassifier(RBF, max_support_vectors=100),
    "LaRank, window": lambda: LaRankClassifier(RBF, window=100, seed=0),
    "tracking, window": lambda: TrackingSVMClassifier(RBF, window=100, K=1, seed=0),
    "SGD": lambda: SVMSGDClassifier(t0=100.0, sparse=False),
    "SGD, three classes": lambda: SVMSGDClassifier(t0=100.0, sparse=False),
    "SGD-QN": lambda: SGDQNClassifier(t0=100.0, sparse=False),
}


def stream(d: int, n_classes: int, seed: int = 0) -> list[tuple[dict[str, float], int]]:
    """Return events of d features."""
    draws = np.random.default_rng(seed)
    rows = draws.normal(size=(N, d))
    score = rows[:, 0] + 0.5 * draws.normal(size=N)
    y = (score > 0.0).astype(int) + (n_classes > 2) * (score > 0.7)
    names = [f"feature {c}" for c in range(d)]
    return [
        (dict(zip(names, row, strict=True)), c)
        for row, c in zip(rows.tolist(), y.tolist(), strict=False)
    ]


def whole(model, data, weight: float) -> float:
    """Return microseconds an event of `predict_one` and `learn_one`."""
    start = time.perf_counter()
    for x, y in data:
        model.predict_one(x)
        model.learn_one(x, y, weight)
    return 1e6 * (time.perf_counter() - start) / len(data)


def step(model, data, weight: float) -> float:
    """Return microseconds an event of the compiled calls alone."""
    read, signs = event_functions._read, model.targets.labels.signs
    packed = [(read(model, x, True), signs[y]) for x, y in data]
    path = event_functions._path_for(model, packed[0][0])
    assert path is not None
    start = time.perf_counter()
    for event, sign in packed:
        path.predict(event, False)
        assert path.learn(event, False, sign, weight, weight) >= 0
    return 1e6 * (time.perf_counter() - start) / len(packed)


def measured(name: str, d: int) -> tuple[float, float]:
    """Return microseconds an event: in all, and of the compiled step."""
    model = LEARNERS[name]()
    monitor = TrackingMonitor(model, every=10**9) if "monitored" in name else None
    weight = 2.0 if "weighted" in name else 1.0
    data = stream(d, 3 if "three" in name or "LaRank" in name else 2)
    for _ in range(2):
        whole(model, data, weight)
    pairs = [(whole(model, data, weight), step(model, data, weight)) for _ in range(ROUNDS)]
    assert monitor is None or monitor.last() is not None
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def events_of_changing_names(n: int = 6000) -> dict[str, list[dict[str, float]]]:
    """Return events of about 14 features each: rare words, one new name each, all names new."""
    draws = random.Random(1)
    fixed = [f"k{i}" for i in range(13)]
    return {
        "words of 20,000, Zipf": [
            {f"w{int(draws.paretovariate(0.6)) % 20_000}": 1.0 for _ in range(14)} for _ in range(n)
        ],
        "one new name": [{k: draws.gauss(0, 1) for k in fixed} | {f"n{i}": 1.0} for i in range(n)],
        "all names new": [{f"n{i} {j}": 1.0 for j in range(14)} for i in range(n)],
    }


def scaling(scaler, events) -> float:
    """Return microseconds an event of `learn_one` and `transform_one`."""
    start = time.process_time()
    for x in events:
        scaler.learn_one(x)
        scaler.transform_one(x)
    return 1e6 * (time.process_time() - start) / len(events)


def main() -> None:
    """Print the tables."""
    print(f"{'microseconds an event':24}{'features':>9}{'in all':>9}{'step':>9}{'above it':>10}")
    for name in LEARNERS:
        for d in (8, 20, 100):
            total, alone = measured(name, d)
            print(f"{name:24}{d:9}{total:9.2f}{alone:9.2f}{total - alone:10.2f}", flush=True)
    print(f"\n{'scaler':24}{'first time':>12}{'again':>8}{'River':>8}{'again':>8}")
    scaling(StandardScaler(), [{"a": 1.0}] * 9)
    for name, events in events_of_changing_names().items():
        ours, rivers = StandardScaler(), preprocessing.StandardScaler()
        times = [scaling(scaler, events) for scaler in (ours, ours, rivers, rivers)]
        print(f"{name:24}{times[0]:12.2f}{times[1]:8.2f}{times[2]:8.2f}{times[3]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
