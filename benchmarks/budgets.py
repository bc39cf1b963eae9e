"""Bounds on what is kept against none: ``python -m benchmarks.budgets [NAME ...]``.

Adult, MNIST 8 against the rest, and chessboard (one colour against the rest, in stream order): one
pass of each learner with 100, 500, 1,000 and 5,000 merged vectors, or the last so many examples.
Noise: 20 % of the labels are wrong, 10 features. Printed: test error (progressive error for
chessboard and noise) in %, and seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.common import rows_of, shuffled
from benchmarks.golden import problems
from benchmarks.golden.problems import Problem
from streamsvm import LASVMClassifier, TrackingSVMClassifier, kernels

SIZES = (100, 500, 1000, 5000)
WAYS = ("max_support_vectors", "window")
LEARNERS = {"LASVM": LASVMClassifier, "tracking": TrackingSVMClassifier}


def chessboard() -> Problem:
    """The first colour against the rest, without a test part."""
    x, y = rows_of("chessboard", 100_000)
    return Problem(x, y == y[0], x[:0], y[:0] == y[0], kernels.RBF(gamma=20.0), 10.0)


def noise(seed: int = 0) -> Problem:
    """A curved border in ten features; a fifth of the labels are wrong."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(10_000, 10)).astype(np.float32)
    y = (np.sin(2 * x[:, 0]) + x[:, 1] + 0.5 * x[:, 2] ** 2 > 0.5) ^ (random.random(10_000) < 0.2)
    return Problem(x, y, x[:0], y[:0], kernels.RBF(gamma=0.1), 1.0)


PROBLEMS = {
    "noise": noise,
    "adult": lambda: shuffled(problems.adult()),
    "mnist_8": lambda: shuffled(problems.mnist_8()),
    "chessboard": chessboard,
}


def run(problem: Problem, cls, **parameters) -> tuple[float, float, int]:
    """Return the error in %, seconds and support vectors of one pass."""
    # Compiled code is loaded before the clock runs.
    cls(problem.kernel, seed=0, **parameters).learn_many(problem.x[:300], problem.y[:300])
    model = cls(problem.kernel, C=problem.C, seed=0, **parameters)
    start = time.perf_counter()
    predicted = model.predict_then_learn_many(problem.x, problem.y)
    seconds = time.perf_counter() - start
    if len(problem.y_test):
        predicted, truth = model.predict_many(problem.x_test), problem.y_test
    else:
        truth = problem.y
    return 100 * float(np.mean(np.array(predicted) != truth)), seconds, model.n_support_vectors


def main() -> None:
    """Print a table a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PROBLEMS))
    for name in parser.parse_args().names:
        problem = PROBLEMS[name]()
        error, seconds, n = run(problem, LASVMClassifier)
        print(f"\n{name}: LASVM without bound {error:.2f} %, {n:,} SV, {seconds:.1f} s")
        print("| learner | size | " + " | ".join(WAYS) + " |")
        print("|---|---|" + "---|" * len(WAYS), flush=True)
        for learner, cls in LEARNERS.items():
            for size in SIZES:
                cells = []
                for way in WAYS:
                    error, seconds, _ = run(problem, cls, **{way: size})
                    cells.append(f"{error:.2f} ({seconds:.1f} s)")
                print(f"| {learner} | {size:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
