"""The three ways to hold gradients in averaged tracking: ``python -m benchmarks.gradients``.

Adult, one pass, K = 10: "all" and "support" with the RBF kernel, and all three with the linear one,
where "fresh" keeps w itself. Printed: microseconds an example in each quarter of the pass, model
size, test error, certificate and the measured gap over all examples (estimated for "support").
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.budgets import shuffled
from streamsvm import TrackingMonitor, TrackingSVMClassifier, kernels
from tests.golden import problems


def main() -> None:
    """Print a table."""
    problem = shuffled(problems.adult())
    print("| kernel | gradients | us an example, by quarters | SV | MB | error % | gap | cert. |")
    print("|---|---|---|---|---|---|---|---|")
    for kernel, ways in (
        (problem.kernel, ("all", "support")),
        (kernels.Linear(scale=0.07), ("all", "support", "fresh")),
    ):
        for way in ways:
            warm = TrackingSVMClassifier(kernel, gradients=way, seed=0)
            warm.learn_many(problem.x[:300], problem.y[:300])
            model = TrackingSVMClassifier(kernel, problem.C, gradients=way, seed=0)
            # Many examples that were left out are looked at, so that the estimate is good.
            monitor = TrackingMonitor(model, every=10**9, sample=2000)
            times = []
            for part in np.array_split(np.arange(len(problem.y)), 4):
                start = time.perf_counter()
                monitor.learn_many(problem.x[part], problem.y[part])
                times.append(1e6 * (time.perf_counter() - start) / len(part))
            values = monitor.get()
            error = 100 * np.mean(np.array(model.predict_many(problem.x_test)) != problem.y_test)
            print(
                f"| {type(kernel).__name__} | {way} | {' '.join(f'{t:.0f}' for t in times)} "
                f"| {model.n_support_vectors:,} | {model.memory_usage / 1e6:.0f} | {error:.2f} "
                f"| {values['gap']:.4f} | {values['certificate']:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
