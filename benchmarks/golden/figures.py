"""Print LASVM's figures on the papers' problems: ``python -m benchmarks.golden.figures [NAME]``.

``--libsvm`` adds scikit-learn's SVC on the same split (minutes on the large ones).
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
from sklearn.svm import SVC

from benchmarks.golden import problems
from benchmarks.golden.problems import Problem
from streamsvm import LASVMClassifier

NAMES = ("banana", "waveform", "usps", "adult", "adult_100", "mnist_8")

# The papers' schedule: one REPROCESS an example, partners by gradient, no revisits.
PAPER = {"reprocess": 1, "delta_max": None, "second_order": False, "reserve": 0}


class Figures(NamedTuple):
    error: float
    n_support_vectors: int
    kernel_values: int
    dual: float
    epoch_seconds: float
    finish_seconds: float


def one_epoch(problem: Problem, **parameters) -> Figures:
    """Learn one epoch in a seeded random order, finish, and test."""
    parameters = parameters or PAPER
    model = LASVMClassifier(kernel=problem.kernel, C=problem.C, **parameters)
    order = np.random.default_rng(0).permutation(len(problem.y))
    x, y = np.ascontiguousarray(problem.x[order]), problem.y[order]
    start = time.perf_counter()
    model.learn_many(x, y)
    middle = time.perf_counter()
    model.finish()
    end = time.perf_counter()
    error = 100 * np.mean(model.predict_many(problem.x_test) != problem.y_test)
    return Figures(
        error,
        model.n_support_vectors,
        model.counters["kernel_values"],
        model.dual,
        middle - start,
        end - middle,
    )


def _libsvm(problem: Problem) -> tuple[float, int, float]:
    start = time.perf_counter()
    svc = SVC(C=problem.C, gamma=problem.kernel.gamma, cache_size=500)
    svc.fit(problem.x.astype(float), problem.y)
    seconds = time.perf_counter() - start
    error = 100 * np.mean(svc.predict(problem.x_test.astype(float)) != problem.y_test)
    return error, len(svc.support_), seconds


def main() -> None:
    """Print one line a problem and schedule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--libsvm", action="store_true")
    options = parser.parse_args()
    warm = problems.Problem(*problems.banana()[:4], problems.banana().kernel, 1.0)
    one_epoch(warm)
    for name in options.names:
        problem = getattr(problems, name)()
        for label, parameters in (("papers'", PAPER), ("default", {"second_order": True})):
            f = one_epoch(problem, **parameters)
            print(
                f"{name:10} LASVM {label:8} {f.error:6.2f} %  {f.n_support_vectors:6,} SV  "
                f"{f.kernel_values / 1e6:7.1f}M kernel values  dual {f.dual:.6g}  "
                f"{f.epoch_seconds:.2f} s + {f.finish_seconds:.2f} s",
                flush=True,
            )
        if options.libsvm:
            error, n, seconds = _libsvm(problem)
            print(
                f"{name:10} LIBSVM         {error:6.2f} %  {n:6,} SV  {seconds:.2f} s", flush=True
            )


if __name__ == "__main__":
    main()
