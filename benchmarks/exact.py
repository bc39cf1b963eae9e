"""The exact SVM beside scikit-learn's SVC, fitted again: ``python -m benchmarks.exact``.

The first 1,000 rows of Banana, gamma .5, C 1 and 316: seconds of processor time of an event, of a
deletion, and of the leave-one-out margins of all rows (exact, estimated); and of SVC for one fit,
and for a fit without each of its support vectors. Then ``--adult N`` rows of Adult, gamma .005,
C 1: seconds to learn them one by one, beside LASVM with `finish`, memory, and a deletion.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.svm import SVC

from streamsvm import IncrementalSVMClassifier, LASVMClassifier, kernels
from tests.golden import problems


def timed(do: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a function returns, and its seconds of processor time."""
    start = time.process_time()
    found = do()
    return found, time.process_time() - start


def learnt(x: np.ndarray, y: np.ndarray, gamma: float, C: float) -> IncrementalSVMClassifier:
    """Return a model that has learnt rows one by one."""
    model = IncrementalSVMClassifier(kernels.RBF(gamma=gamma), C=C)
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), label)
    return model


def deletions(model: IncrementalSVMClassifier, n: int) -> float:
    """Return the seconds of a deletion: the mean over n support vectors."""
    numbers = model.support_vectors().entered[:n].tolist()
    return timed(lambda: [model.unlearn_one(number) for number in numbers])[1] / n


def quality(svc: Any, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return by how much SVC violates optimality, and its dual, both in double precision."""
    beta = np.zeros(len(y))
    beta[svc.support_] = svc.dual_coef_[0]
    squares = ((x[:, None, :].astype(float) - x[None]) ** 2).sum(axis=2)
    f = np.exp(-svc.gamma * squares) @ beta
    h = y - f - svc.intercept_[0]
    low, high = np.minimum(0.0, y * svc.C), np.maximum(0.0, y * svc.C)
    violation = max(h[beta < high].max(), -h[beta > low].min())
    return violation, float(beta @ y - 0.5 * beta @ f)


def banana(C: float) -> None:
    """Print the times on Banana for a cost."""
    problem = problems.banana()
    x, y = problem.x[:1000], problem.y[:1000]
    learnt(x[:100], y[:100], 0.5, C).leave_one_out()  # compiles
    model, seconds = timed(lambda: learnt(x, y, 0.5, C))
    n = model.n_support_vectors
    exact, of_exact = timed(model.leave_one_out)
    estimated, of_estimate = timed(lambda: model.leave_one_out(estimate=True))
    svc = SVC(C=C, gamma=0.5, tol=1e-9, cache_size=500).fit(x, y)
    _, of_fit = timed(lambda: SVC(C=C, gamma=0.5, cache_size=500).fit(x, y))

    signs = np.where(y == model.labels[1], 1.0, -1.0)

    def refit() -> np.ndarray:
        out = signs * svc.decision_function(x)
        for i in svc.support_:
            kept = np.arange(len(y)) != i
            one = SVC(C=C, gamma=0.5, cache_size=500).fit(x[kept], y[kept])
            out[i] = signs[i] * one.decision_function(x[i : i + 1])[0]
        return out

    others, of_refits = timed(refit)
    violation, dual = quality(svc, x, signs)
    far = np.abs(model.decision_function_many(x) - svc.decision_function(x)).max()
    model_dual = model.dual
    model_delta = model.problem.violation(model.problem.fresh_gradients())
    deletion = deletions(model, 100)
    print(
        f"Banana, C {C:g}: {n} SV; event {1e6 * seconds / 1000:.0f} us, deletion "
        f"{1e3 * deletion:.2f} ms, SVC fit {1e3 * of_fit:.1f} ms; leave one out {of_exact:.3f} s "
        f"(error {exact.error:.3%}), estimated {of_estimate:.3f} s ({estimated.error:.3%}), SVC "
        f"fits without each SV {of_refits:.2f} s ({np.mean(others <= 0):.3%}); decisions differ "
        f"by {far:.1e}, the dual by {abs(model_dual - dual) / dual:.1e} of itself; optimality is "
        f"violated by {model_delta:.1e}, of SVC by {violation:.1e}",
        flush=True,
    )


def adult(n: int) -> None:
    """Print the times on n rows of Adult."""
    problem = problems.adult()
    x, y = problem.x[:n], problem.y[:n]
    model, seconds = timed(lambda: learnt(x, y, 0.005, 1.0))
    lasvm = LASVMClassifier(kernels.RBF(gamma=0.005))
    _, of_lasvm = timed(lambda: (lasvm.learn_many(x, y), lasvm.finish()))
    _, of_fit = timed(lambda: SVC(C=1.0, gamma=0.005, cache_size=500).fit(x, y))
    deletion = deletions(model, 20)
    print(
        f"Adult, {n:,} rows: {model.n_support_vectors:,} SV, learnt in {seconds:.1f} s, a deletion "
        f"{1e3 * deletion:.1f} ms, {model.memory_usage / 1e6:.0f} MB; SVC fit {of_fit:.1f} s; "
        f"LASVM with finish {of_lasvm:.2f} s",
        flush=True,
    )


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=int, default=0, help="rows of Adult; default none")
    given = parser.parse_args()
    for C in (1.0, 316.0):
        banana(C)
    if given.adult:
        adult(given.adult)


if __name__ == "__main__":
    main()
