"""Windows and budgets on drifting streams: ``python -m benchmarks.drift``.

Elec2, weather and chessboard in stream order, as dict events, each predicted and then learnt; the
features standardised online for all learners alike (chessboard's two are of one scale already, and
its eight classes are learnt as one square's colour against the rest). Printed: progressive accuracy
and microseconds of predict_one + learn_one an event, the scaler's included. ``--limit`` cuts the
streams.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
from river import ensemble, forest, linear_model, neighbors, preprocessing, tree

from streamsvm import LASVMClassifier, StandardScaler, TrackingSVMClassifier, kernels
from tests.golden.problems import FOLDER

RBF = kernels.RBF


def streams(limit: int | None):
    """Yield names, kernels and events."""
    for name, gamma in (("elec2", 1.0), ("weather", 0.25), ("chessboard", 20.0)):
        table = pq.read_table(FOLDER / f"{name}.parquet").slice(0, limit)
        labels = np.array(table.column("label").to_pylist())
        labels = labels == labels[0]
        rows = table.drop(["label"]).to_pylist()
        yield name, RBF(gamma=gamma), list(zip(rows, labels.tolist(), strict=True))


def learners(kernel, scaled: bool):
    """Yield names and models."""

    def ours(learner):
        return StandardScaler() | learner if scaled else learner

    def rivers(learner):
        return preprocessing.StandardScaler() | learner if scaled else learner

    for window in (None, 1000, 200):
        name = "unbounded" if window is None else f"window {window:,}"
        yield f"LASVM, {name}", ours(LASVMClassifier(kernel, C=10.0, window=window))
        if window is not None:
            model = TrackingSVMClassifier(kernel, C=10.0, window=window, seed=1)
            yield f"tracking, {name}", ours(model)
    model = LASVMClassifier(kernel, C=10.0, max_support_vectors=500)
    yield "LASVM, 500 SV", ours(model)
    model = TrackingSVMClassifier(kernel, C=10.0, max_support_vectors=500, seed=1)
    yield "tracking, 500 SV", ours(model)
    model = TrackingSVMClassifier(kernel, C=10.0, gradients="support", K=2, seed=1)
    yield "tracking, support, K 2", ours(model)
    yield "LogisticRegression", rivers(linear_model.LogisticRegression())
    yield "PAClassifier", rivers(linear_model.PAClassifier())
    yield "KNNClassifier", rivers(neighbors.KNNClassifier())
    yield "HoeffdingTree", tree.HoeffdingTreeClassifier()
    yield "HoeffdingAdaptiveTree", tree.HoeffdingAdaptiveTreeClassifier(seed=1)
    yield "ARFClassifier", forest.ARFClassifier(seed=1)
    yield (
        "ADWINBagging(tree)",
        ensemble.ADWINBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=1),
    )


def run(model, events) -> tuple[float, float]:
    """Return accuracy and microseconds an event."""
    right = 0
    start = time.perf_counter()
    for x, y in events:
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    seconds = time.perf_counter() - start
    return right / len(events), 1e6 * seconds / len(events)


def main() -> None:
    """Print a table a stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    for name, kernel, events in streams(options.limit):
        repeated = np.mean([before[1] == now[1] for before, now in pairwise(events)])
        print(f"\n{name}: {len(events):,} events, {kernel}; last label again: {repeated:.2%}")
        print("| learner | accuracy | us an event |")
        print("|---|---|---|", flush=True)
        for learner, model in learners(kernel, name != "chessboard"):
            accuracy, us = run(model, events)
            print(f"| {learner} | {accuracy:.2%} | {us:.1f} |", flush=True)


if __name__ == "__main__":
    main()
