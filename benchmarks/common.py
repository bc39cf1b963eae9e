"""What many benchmarks need: rows of files, River's streams, seconds, progressive errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from river import datasets
from river.datasets import synth

from benchmarks.golden.problems import FOLDER
from streamsvm import predict_then_learn_many

Event = tuple[dict[Any, Any], Any]


def rows_of(
    name: str, n: int | None = None, without: tuple[str, ...] = ("label",)
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of a file of numbers, float32 (n, d), and their labels."""
    table = pq.read_table(FOLDER / f"{name}.parquet").slice(0, n)
    names = [column for column in table.column_names if column not in without]
    x = np.stack([table.column(name).to_numpy().astype(np.float32) for name in names], axis=1)
    return x, np.array(table.column("label").to_pylist())


def events_of(name: str, n: int | None = None) -> list[Event]:
    """Return the first rows of a file as events, without what is missing, and their labels."""
    table = pq.read_table(FOLDER / f"{name}.parquet").slice(0, n)
    rows, labels = table.drop(["label"]).to_pylist(), table["label"].to_pylist()
    return [
        ({k: v for k, v in x.items() if v is not None}, y)
        for x, y in zip(rows, labels, strict=True)
    ]


def shuffled(problem: Any, seed: int = 0) -> Any:
    """Return a problem with its training rows in a seeded random order."""
    order = np.random.default_rng(seed).permutation(len(problem.y))
    x = np.ascontiguousarray(problem.x[order], np.float32)
    return problem._replace(x=x, y=problem.y[order])


def seconds_of(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the seconds of the processor that it took."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def error_of(model: Any, events: Iterable[Event]) -> float:
    """Return the share of events predicted wrong before they were learnt, in %."""
    n = wrong = 0
    for x, y in events:
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
        n += 1
    return 100.0 * wrong / n


def error_of_rows(model: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Return the same of the rows of a batch."""
    predicted = predict_then_learn_many(model, x, y.tolist())
    return 100.0 * float(np.mean(np.array(predicted, object) != y))


def numeric(x: dict[Any, Any]) -> dict[Any, float]:
    """Return an event whose strings are one-hot features."""
    return {
        (f"{k}={v}" if isinstance(v, str) else k): 1.0 if isinstance(v, str) else float(v)
        for k, v in x.items()
    }


def _drift(make: Callable[[int], Any], before: int, after: int, n: int, width: int = 50) -> Any:
    streams = make(before), make(after)
    # River computes exp(4 * position / width) at the first event, which must not overflow.
    width = max(width, n // 300)
    return synth.ConceptDriftStream(*streams, position=n // 2, width=width, seed=1)


def river_streams(n: int) -> dict[str, Callable[[], Any]]:
    """Return River's data sets, and its generators, of which n events have their drift."""

    def of_function(cls: Any) -> Callable[[int], Any]:
        return lambda v: cls(classification_function=v, seed=1)

    def sea(v: int) -> Any:
        return synth.SEA(variant=v, seed=1)

    agrawal, sine = of_function(synth.Agrawal), of_function(synth.Sine)
    mixed, stagger = of_function(synth.Mixed), of_function(synth.STAGGER)
    slow = n // 5
    return {
        "Bananas": datasets.Bananas,
        "Phishing": datasets.Phishing,
        "ImageSegments": datasets.ImageSegments,
        "SEA, abrupt": lambda: _drift(sea, 0, 3, n),
        "SEA, gradual": lambda: _drift(sea, 0, 2, n, slow),
        "Agrawal, abrupt": lambda: _drift(agrawal, 0, 4, n),
        "Agrawal, gradual": lambda: _drift(agrawal, 2, 6, n, slow),
        "hyperplane": lambda: synth.Hyperplane(
            seed=1, n_features=10, mag_change=0.001, n_drift_features=5
        ),
        "random RBF, drift": lambda: synth.RandomRBFDrift(
            seed_model=1, seed_sample=1, n_classes=4, n_features=10, n_centroids=20,
            change_speed=0.0005, n_drift_centroids=10,
        ),
        "STAGGER, abrupt": lambda: _drift(stagger, 0, 2, n),
        "LED, drift": lambda: synth.LEDDrift(seed=1, n_drift_features=4, noise_percentage=0.1),
        "mixed, abrupt": lambda: _drift(mixed, 0, 1, n),
        "sine, abrupt": lambda: _drift(sine, 0, 1, n),
        "sine, gradual": lambda: _drift(sine, 2, 3, n, slow),
    }  # fmt: skip
