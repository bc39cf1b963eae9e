"""Second looks against none and LIBSVM: ``python -m benchmarks.revisits``.

One epoch and `finish`, with ``reserve=0`` and with the default, in some random orders; LASVM, and
of several classes LaRank, too. Printed: the mean test error in %, the mean dual, the seconds of the
processor of the epoch and of `finish`, the number of support vectors and the megabytes of the
reserve. ``--libsvm`` adds scikit-learn's SVC once (minutes on the large ones; no dual of several
classes); with scikit-learn-intelex installed, its SVC is taken. ``--share`` is that of LaRank's
`finish`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from benchmarks.svc import fastest_svc
from streamsvm import LaRankClassifier, LASVMClassifier, kernels
from tests.golden import problems
from tests.golden.problems import FOLDER, Problem

NAMES = (
    "banana",
    "waveform",
    "usps",
    "adult",
    "adult_100",
    "mnist_8",
    "covtype",
    "vowels",
    "spirals",
)


class Figures(NamedTuple):
    """What one epoch and finishing led to."""

    error: float
    dual: float
    epoch_seconds: float
    finish_seconds: float
    n_support_vectors: int
    reserve_mb: float


def covtype() -> Problem:
    """The most frequent class against the rest: 15,000 rows, standardised, and 5,000 to test on."""
    table = pq.read_table(FOLDER / "covtype_first20k.parquet")
    labels = np.array(table.column("label").to_pylist())
    names = [name for name in table.column_names if name != "label"]
    x = np.stack([table.column(name).to_numpy().astype(float) for name in names], axis=1)
    values, counts = np.unique(labels, return_counts=True)
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = x[order], (labels == values[counts.argmax()])[order]
    deviation = x[:15_000].std(axis=0)
    x = (x - x[:15_000].mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    x = x.astype(np.float32)
    return Problem(x[:15_000], y[:15_000], x[15_000:], y[15_000:], kernels.RBF(gamma=0.05), 10.0)


def vowels() -> Problem:
    """Letters that are vowels: 10,000 rows, standardised, and 4,000 to test on, with large C."""
    table = pq.read_table(FOLDER / "letter_train.parquet")
    is_vowel = np.isin(np.array(table.column("label").to_pylist()), list("AEIOU"))
    names = [name for name in table.column_names if name != "label"]
    x = np.stack([table.column(name).to_numpy().astype(float) for name in names], axis=1)
    order = np.random.default_rng(0).permutation(len(x))[:14_000]
    x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)[order]
    y = is_vowel[order]
    return Problem(x[:10_000], y[:10_000], x[10_000:], y[10_000:], kernels.RBF(gamma=0.05), 1000.0)


def spirals() -> Problem:
    """Two noisy spirals, 6,000 rows and 3,000 to test on, with large C."""
    rng = np.random.default_rng(0)
    y = rng.random(9000) < 0.5
    radius = rng.uniform(0.1, 2.0, 9000)
    angle = 5.0 * radius + np.pi * y
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    x = (x + 0.12 * rng.normal(size=x.shape)).astype(np.float32)
    return Problem(x[:6000], y[:6000], x[6000:], y[6000:], kernels.RBF(gamma=2.0), 1000.0)


OWN = {"covtype": covtype, "vowels": vowels, "spirals": spirals}
"""Problems of this benchmark; all others are those of the papers."""


def run(problem: Problem, order: np.ndarray, cls: Any, reserve: int | None, **how: Any) -> Figures:
    """Learn one epoch in this order, finish in this way, and test."""
    model = cls(problem.kernel, C=problem.C, seed=1, reserve=reserve)
    x, y = np.ascontiguousarray(problem.x[order]), problem.y[order]
    start = time.process_time()
    model.learn_many(x, y)
    middle = time.process_time()
    size = model.memory_parts["reserve"] / 1e6
    model.finish(**how)
    end = time.process_time()
    error = 100 * float(np.mean(np.array(model.predict_many(problem.x_test)) != problem.y_test))
    n = model.n_support_vectors
    return Figures(error, model.dual, middle - start, end - middle, n, size)


def libsvm(problem: Problem) -> str:
    """Return a row of the table for scikit-learn's SVC, or that of its extension."""
    name, svc_class = fastest_svc()
    x = problem.x.astype(float)
    start = time.process_time()
    svc = svc_class(C=problem.C, gamma=problem.kernel.gamma, cache_size=500).fit(x, problem.y)
    seconds = time.process_time() - start
    error = 100 * np.mean(svc.predict(problem.x_test.astype(float)) != problem.y_test)
    if len(svc.classes_) > 2:
        return f"{name} | {error:.2f} | | {seconds:.2f} | | {len(svc.support_):,} | |"
    alpha = np.zeros(len(problem.y))
    alpha[svc.support_] = svc.dual_coef_[0]
    f = svc.decision_function(x) - svc.intercept_[0]
    dual = alpha @ np.where(problem.y, 1.0, -1.0) - 0.5 * alpha @ f
    return f"{name} | {error:.2f} | {dual:.5g} | {seconds:.2f} | | {len(svc.support_):,} | |"


def of_learners(name: str, problem: Problem, options: argparse.Namespace) -> None:
    """Print the rows of our learners."""
    learners: dict[str, tuple[Any, dict[str, Any]]] = {"LASVM": (LASVMClassifier, {})}
    if len(np.unique(problem.y)) > 2:
        learners["LaRank"] = LaRankClassifier, {"share": options.share}
    n = len(problem.y)
    orders = [np.random.default_rng(seed).permutation(n) for seed in range(options.orders)]
    for learner, (cls, how) in learners.items():
        if options.only not in (None, learner):
            continue
        # Compiled code is loaded before the clock runs.
        run(problem, np.arange(500), cls, None, **how)
        for label, reserve in (("reserve=0", 0), ("default", None)):
            runs = [run(problem, order, cls, reserve, **how) for order in orders]
            f = Figures(*np.mean(runs, axis=0))
            print(
                f"| {name} | {learner}, {label} | {f.error:.2f} | {f.dual:.5g} | "
                f"{f.epoch_seconds:.2f} | {f.finish_seconds:.2f} | {f.n_support_vectors:,.0f} | "
                f"{f.reserve_mb:.1f} |",
                flush=True,
            )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--libsvm", action="store_true")
    parser.add_argument("--only", choices=("LASVM", "LaRank"))
    parser.add_argument("--share", type=float, default=0.01)
    options = parser.parse_args()
    print("| data | | error | dual | epoch, s | finish, s | SV | reserve, MB |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.names:
        problem = (OWN[name] if name in OWN else getattr(problems, name))()
        of_learners(name, problem, options)
        if options.libsvm:
            print(f"| {name} | {libsvm(problem)}", flush=True)


if __name__ == "__main__":
    main()
