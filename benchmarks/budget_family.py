"""The perceptron family with and without budgets: ``python -m benchmarks.budget_family``.

Adult, Banana and MNIST 8 against the rest (or those named): one pass in random orders, with each
way to make room. Printed: mean and standard deviation of the test error in % over the orders, and
the seconds of the fastest pass. Beside them, where they were measured, the figures of C++ programs
on the same files, on one core of another machine: LIBOL/KOL for Projectron++, BPA-S and gradient
descent without a bound, BudgetedSVM 1.2 for merging; their kernels' parameters may differ.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.common import seconds_of, shuffled
from benchmarks.golden import problems
from benchmarks.golden.problems import Problem
from streamsvm import (
    HullerClassifier,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LASVMClassifier,
    kernels,
)


def mnist_8() -> Problem:
    """Digit 8 against the rest, at the gamma of the stochastic batch perceptron's paper."""
    return problems.mnist_8()._replace(kernel=kernels.RBF(gamma=0.02))


PROBLEMS = {"adult": problems.adult, "banana": problems.banana, "mnist_8": mnist_8}
L2 = {"adult": 1e-4, "banana": 1e-3, "mnist_8": 1e-5}
BUDGETS = (100, 500, None)
PEERS = {
    ("adult", 100, "KernelPerceptronClassifier", "project"): "Projectron++ 16.63, .48 s",
    ("adult", 500, "KernelPerceptronClassifier", "project"): "Projectron++ 25.1, 4.0 s",
    ("adult", 500, "KernelPAClassifier, C=0.1", "project"): "BPA-S 16.78, 1.7 s",
    ("adult", 100, "KernelPAClassifier", "project"): "BPA-S 39.1",
    ("adult", 100, "KernelPegasosClassifier", "merge"): "BSGD 16.05, 29.8 s",
    ("adult", None, "KernelPegasosClassifier", None): "gradient descent 15.56, 21.7 s",
    ("banana", 100, "KernelPerceptronClassifier", "project"): "Projectron++ 37.6",
    ("banana", 500, "KernelPerceptronClassifier", "project"): "Projectron++ 13.2, .22 s",
    ("banana", 100, "KernelPAClassifier", "project"): "BPA-S 12.92, .07 s",
    ("banana", 500, "KernelPAClassifier", "project"): "BPA-S 12.08, .08 s",
    ("banana", 100, "KernelPegasosClassifier", "merge"): "BSGD 31.6, 3.0 s",
    ("mnist_8", 500, "KernelPerceptronClassifier", "project"): "Projectron++ 1.50, 31 s",
    ("mnist_8", 500, "KernelPAClassifier", "project"): "BPA-S 2.83, 21 s",
}


def run(problem: Problem, cls: Any, **parameters: Any) -> tuple[float, float, int]:
    """Return test error in %, seconds and support vectors after one pass."""
    # Compiled code is loaded before the clock runs.
    cls(problem.kernel, seed=0, **parameters).learn_many(problem.x[:700], problem.y[:700])
    model = cls(problem.kernel, seed=0, **parameters)
    _, seconds = seconds_of(lambda: model.learn_many(problem.x, problem.y))
    wrong = np.array(model.predict_many(problem.x_test)) != problem.y_test
    return 100 * float(np.mean(wrong)), seconds, model.n_support_vectors


def cases(name: str, budget: int | None) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return (name, class, parameters) of what is to be measured."""
    learners: list[tuple[str, Any, dict[str, Any]]] = [
        ("KernelPerceptronClassifier", KernelPerceptronClassifier, {}),
        ("KernelPAClassifier", KernelPAClassifier, {}),
        ("KernelPAClassifier, C=0.1", KernelPAClassifier, {"C": 0.1}),
        ("KernelPegasosClassifier", KernelPegasosClassifier, {"l2": L2[name]}),
    ]
    if budget is None:
        votes = ("KernelPerceptronClassifier, voted", KernelPerceptronClassifier, {"voted": True})
        return [*learners, votes, ("HullerClassifier", HullerClassifier, {})]
    found = []
    for title, cls, parameters in learners:
        more = ("remove",) if cls is KernelPerceptronClassifier else ()
        for way in ("project", "merge", *more):
            bounds = {"max_support_vectors": budget, "budget": way}
            found.append((title, cls, parameters | bounds))
    lasvm = {"max_support_vectors": budget}
    return [*found, ("LASVMClassifier", LASVMClassifier, lasvm)]


def main() -> None:
    """Print a table a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--orders", type=int, default=3, help="random orders of the rows")
    options = parser.parse_args()
    for name in options.names:
        orders = [shuffled(PROBLEMS[name](), seed) for seed in range(options.orders)]
        print(f"\n{name}\n\n| vectors | learner | room by | error % | s | in C++ |")
        print("|---|---|---|---|---|---|", flush=True)
        for budget in BUDGETS:
            for title, cls, parameters in cases(name, budget):
                runs = [run(problem, cls, **parameters) for problem in orders]
                errors, way = [error for error, _, _ in runs], parameters.get("budget")
                n = max(n for _, _, n in runs)
                seconds = min(seconds for _, seconds, _ in runs)
                print(
                    f"| {n:,} | {title} | {way or ''} | {np.mean(errors):.2f} +- "
                    f"{np.std(errors):.2f} | {seconds:.3f} | "
                    f"{PEERS.get((name, budget, title, way), '')} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
