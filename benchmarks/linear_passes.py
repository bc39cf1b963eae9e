"""How near the optimum linear learners are after each pass: parts of `benchmarks.linear`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.golden import problems
from streamsvm import SGDQNClassifier, SVMSGDClassifier


def _optimum(x: np.ndarray, y: np.ndarray, lam: float) -> tuple[LinearSVC, float, float]:
    """Return LIBLINEAR's squared hinge SVM without bias, its objective and seconds."""
    start = time.perf_counter()
    # Its loss has no half.
    best = LinearSVC(C=0.5 / (lam * len(y)), fit_intercept=False, tol=1e-5, max_iter=5000)
    best.fit(x, y)
    seconds = time.perf_counter() - start
    short = np.maximum(0.0, 1.0 - y * best.decision_function(x))
    return best, 0.5 * lam * float((best.coef_**2).sum()) + 0.5 * float(np.mean(short**2)), seconds


def _epochs(model: Any, x: np.ndarray, y: np.ndarray, passes: int) -> list[tuple[float, float]]:
    """Return objective, and seconds, after each pass; each has an order of its own."""
    rng, found = np.random.default_rng(0), []
    signs = (y > 0).tolist()
    for _ in range(passes):
        order = rng.permutation(len(y))
        rows, labels = x[order], np.array(signs)[order]
        start = time.perf_counter()
        model.learn_many(rows, labels)
        seconds = time.perf_counter() - start
        found.append((model.objective(x, y > 0), seconds))
    return found


def _variants(lam: float) -> dict[str, Any]:
    common = {"loss": "squared_hinge", "l2": lam, "bias_rate": 0.0}
    return {
        "SGD": SVMSGDClassifier(averaged=False, **common),
        "SVMSGD2": SVMSGDClassifier(averaged=False, skip="auto", **common),
        "ASGD": SVMSGDClassifier(averaged=True, **common),
        "SGD-QN": SGDQNClassifier(**common),
    }


def passes() -> None:
    """Objective (excess over the optimum) and test error after 1, 2 and 5 passes."""
    letter = problems.letter()
    sets = {
        "Adult": problems.adult(),
        "Letter, A against the rest": letter._replace(
            y=np.where(letter.y == "A", 1, -1), y_test=np.where(letter.y_test == "A", 1, -1)
        ),
        "MNIST, 8 against the rest": problems.mnist_8(),
    }
    for title, problem in sets.items():
        x, y = np.ascontiguousarray(problem.x, np.float32), np.where(problem.y > 0, 1, -1)
        lam = 1e-4
        best, optimum, seconds = _optimum(x, y, lam)
        truth = np.where(problem.y_test > 0, 1, -1)
        wrong = 100.0 * np.mean(best.predict(problem.x_test) != truth)
        print(f"{title}: LIBLINEAR {seconds:.3f} s, objective {optimum:.5f}, test {wrong:.2f} %")
        for name, model in _variants(lam).items():
            cells = []
            for found, seconds in _epochs(model, x, y, 5):
                error = 100.0 * np.mean(
                    (np.array(model.predict_many(problem.x_test)) > 0) != (truth > 0)
                )
                cells.append(f"+{100 * (found / optimum - 1):.1f} % {1e3 * seconds:.0f} ms")
            print(
                f"  {name:8} passes 1, 2, 5: {cells[0]}, {cells[1]}, {cells[4]}; test {error:.2f} %"
            )


def conditioned(n: int = 100_000, d: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Return dense rows of 500 features whose sizes fall evenly over a decade, and noisy labels."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** (-np.arange(d) / d)
    sizes /= np.sqrt((sizes**2).sum())
    x = (rng.normal(size=(n, d)) * sizes).astype(np.float32)
    w = rng.normal(size=d) / (sizes * np.sqrt(d))
    return x, np.where(x @ w + 0.5 * rng.normal(size=n) > 0.0, 1, -1)


def conditioning() -> None:
    """Passes that SGD-QN and SVMSGD2 need on badly conditioned rows, and what a pass costs."""
    x, y = conditioned()
    lam = 1e-5
    _, optimum, seconds = _optimum(x, y, lam)
    print(f"100,000 x 500, sizes over a decade: LIBLINEAR {seconds:.1f} s, objective {optimum:.5f}")
    for name in ("SVMSGD2", "SGD-QN"):
        found = _epochs(_variants(lam)[name], x, y, 20)
        excess = [100.0 * (cost / optimum - 1.0) for cost, _ in found]
        until = {
            goal: next((i + 1 for i, e in enumerate(excess) if e <= goal), None)
            for goal in (10.0, 5.0, 3.0)
        }
        middle = 1e3 * np.median([seconds for _, seconds in found])
        print(f"  {name:8} {middle:.0f} ms a pass; passes to within 10, 5, 3 %: {until}")
        print("    excess in %:", ", ".join(f"{e:.1f}" for e in excess), flush=True)
