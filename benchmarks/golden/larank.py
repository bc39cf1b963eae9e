"""LaRank's published figures, redone: ``python -m benchmarks.golden.larank``.

Figure 5.2 of the thesis: test error and kernel values of one epoch on USPS, with PROCESSNEW only,
with OPTIMIZE, with PROCESSOLD, and with both. Then the theorem: over seeds, the mean duality gap of
uniform block steps against its certificate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from river import datasets

from benchmarks.golden import problems
from streamsvm import LaRankClassifier, StandardScaler

OPERATIONS = {
    "PROCESSNEW only": {"old": 0.0, "optimize": 0.0},
    "+ OPTIMIZE": {"old": 0.0, "optimize": 1.0},
    "+ PROCESSOLD": {"old": 1.0, "optimize": 0.0},
    "all": {"old": 1.0, "optimize": 1.0},
}


def restricted(operations: dict[str, float], problem: problems.Problem, seed: int) -> Any:
    """Return LaRank after one epoch, with some of its operations."""
    model = LaRankClassifier(problem.kernel, C=problem.C, seed=seed)
    model.solver.schedule = model.solver.schedule._replace(**operations)
    order = np.random.default_rng(seed).permutation(len(problem.y))
    model.learn_many(np.ascontiguousarray(problem.x[order]), problem.y[order].tolist())
    return model


def figure_5_2(seeds: int = 3) -> dict[str, tuple[float, float, float]]:
    """Return test error, millions of kernel values and thousands of arg max by operations."""
    problem, found = problems.usps_10(), {}
    for name, operations in OPERATIONS.items():
        rows = []
        for seed in range(seeds):
            model = restricted(operations, problem, seed)
            wrong = np.mean(np.array(model.predict_many(problem.x_test)) != problem.y_test)
            counts = model.counters
            argmax = counts["argmax_new"] + counts["argmax_old"]
            rows.append((100.0 * wrong, counts["kernel_values"] / 1e6, argmax / 1e3))
        found[name] = tuple(np.mean(rows, axis=0).tolist())
    return found


def segments(n: int) -> tuple[np.ndarray, list[Any]]:
    """Return River's ImageSegments, scaled."""
    scaler, rows, labels = StandardScaler(), [], []
    for x, y in datasets.ImageSegments():
        scaler.learn_one(x)
        rows.append(list(scaler.transform_one(x).values()))
        labels.append(y)
    order = np.random.default_rng(0).permutation(len(labels))[:n]
    return np.array(rows)[order], [labels[i] for i in order.tolist()]


def theorem(x: np.ndarray, y: list[Any], K: int, C: float, seeds: int) -> tuple[float, float]:
    """Return the mean gap over stream and seeds, and the mean certificate."""
    gaps, bounds = [], []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        model, own = LaRankClassifier(C=C, K=K, seed=seed), []
        for i in order.tolist():
            model.learn_many(x[i : i + 1], [y[i]])
            own.append(model.duality_gap())
        gaps.append(np.mean(own))
        bounds.append(model.certificate.value or 0.0)
    return float(np.mean(gaps)), float(np.mean(bounds))


def main() -> None:
    """Print both."""
    print("USPS, one epoch: error, kernel values, arg max")
    for name, (error, values, argmax) in figure_5_2().items():
        print(f"  {name:16} {error:5.2f} %  {values:5.1f} M  {argmax:5.1f} thousand")
    usps, letter = problems.usps_10(), problems.letter()
    sets = {
        "ImageSegments": segments(600),
        "USPS": (usps.x[:600], usps.y[:600].tolist()),
        "Letter": (letter.x[:600], letter.y[:600].tolist()),
    }
    print("mean gap and certificate, 600 examples, 5 seeds")
    for name, (x, y) in sets.items():
        for K in (2, 10):
            for C in (1.0, 10.0):
                gap, bound = theorem(x, y, K, C, 5)
                print(f"  {name:14} K {K:2} C {C:4g}: {gap:.4f} <= {bound:.3f}", flush=True)


if __name__ == "__main__":
    main()
