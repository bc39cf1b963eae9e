"""Rows that are equal, or nearly, with unbalanced labels: learners beside scikit-learn's SVC.

    python -m benchmarks.equal_rows [--rows 600] [--seeds 2] [learner ...]

For each set: the accuracy on all its rows, in %, of SVC; of each learner in the mean over the
second half of the stream, looked at after every 20 rows, and after `finish`; and by how much the
objective is then above SVC's, in % (of two classes). Each set is learnt with either label as the
more frequent one, with C 1 and 100, and on as many draws as there are seeds; kernels are the same,
but for the adaptive learner, which chooses its own. `ovr` is LASVM with one class against the rest
(of two classes it is `lasvm`), `budget` LASVM with at most 50 support vectors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.svm import SVC

from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier, kernels

GAMMA, COSTS, PART, BUDGET = 0.5, (1.0, 100.0), 20, 50

LEARNERS: dict[str, Callable[[float], Any]] = {
    "lasvm": lambda C: LASVMClassifier(kernel=kernels.RBF(gamma=GAMMA), C=C),
    "ovr": lambda C: LASVMClassifier(kernel=kernels.RBF(gamma=GAMMA), C=C, multiclass="ovr"),
    "budget": lambda C: LASVMClassifier(
        kernel=kernels.RBF(gamma=GAMMA), C=C, max_support_vectors=BUDGET
    ),
    "larank": lambda C: LaRankClassifier(kernel=kernels.RBF(gamma=GAMMA), C=C, seed=1),
    "adaptive": lambda C: AdaptiveSVMClassifier(C=C, seed=1),
}

Set = tuple[np.ndarray, np.ndarray]


def sets(n: int, seed: int) -> Iterator[tuple[str, Set]]:
    """Yield names, rows and labels: 0 and 1, or more."""
    draws = np.random.default_rng(seed)
    y, same = (draws.random(n) < 0.3).astype(int), np.ones((n, 1))
    flag, flags = draws.integers(0, 2, n), draws.integers(0, 2, (n, 2))
    three, twelve, points = draws.integers(0, 3, n), draws.integers(0, 12, n), np.zeros((20, 3))
    points[:] = draws.normal(size=points.shape)
    place, chance = draws.integers(0, 20, n), np.array([[0.05, 0.4], [0.3, 0.8]])
    some = draws.choice(3, n, p=[0.6, 0.3, 0.1])

    def drawn(shares: np.ndarray) -> np.ndarray:
        return (draws.random(n) < shares).astype(int)

    yield "one value, 70/30", (same, y)
    yield "one value, 90/10", (same, drawn(np.full(n, 0.1)))
    yield "nearly one value, 70/30", (same + 1e-3 * draws.normal(size=(n, 1)), y)
    yield "a flag that tells nothing, 70/30", (flag[:, None], y)
    yield "a flag, 20 % wrong", (flag[:, None], np.where(drawn(np.full(n, 0.2)), 1 - flag, flag))
    yield "two flags", (flags, drawn(chance[flags[:, 0], flags[:, 1]]))
    yield "two flags, 99/1", (flags, (draws.permutation(n) < max(2, n // 100)).astype(int))
    yield "three categories", (np.eye(3)[three], drawn(np.array([0.1, 0.4, 0.3])[three]))
    yield "twelve categories", (np.eye(12)[twelve], drawn(np.linspace(0.05, 0.6, 12)[twelve]))
    yield "20 points of both labels", (points[place], drawn(np.linspace(0.05, 0.45, 20)[place]))
    yield "one value, sorted by label", (same, np.sort(y))
    yield "one value, three classes", (same, some)
    yield "a flag, three classes", (flag[:, None], np.where(draws.random(n) < 0.6, flag, some))


def objective(square: float, margins: np.ndarray, signs: np.ndarray, C: float) -> float:
    """Return what an SVM minimises."""
    return 0.5 * square + C * float(np.maximum(0.0, 1.0 - signs * margins).sum())


def of_svc(x: np.ndarray, y: np.ndarray, C: float) -> tuple[float, float]:
    """Return accuracy and, of two classes, the objective of an SVC."""
    svc = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(x, y)
    if len(svc.classes_) > 2:
        return svc.score(x, y), np.nan
    distances = ((svc.support_vectors_[:, None] - svc.support_vectors_) ** 2).sum(axis=2)
    square = svc.dual_coef_[0] @ np.exp(-GAMMA * distances) @ svc.dual_coef_[0]
    signs = np.where(y == svc.classes_[1], 1.0, -1.0)
    return svc.score(x, y), objective(square, svc.decision_function(x), signs, C)


def of_learner(model: Any, x: np.ndarray, y: np.ndarray, C: float) -> tuple[float, float, float]:
    """Return accuracy in the mean over the second half, that after `finish`, and the objective."""

    def accuracy() -> float:
        return float(np.mean(np.array(model.predict_many(x)) == y))

    before = []
    for start in range(0, len(y), PART):
        model.learn_many(x[start : start + PART], y[start : start + PART].tolist())
        if start >= len(y) // 2:
            before.append(accuracy())
    model.finish()
    found = np.nan
    if isinstance(model, LASVMClassifier) and len(model.classes) == 2:
        signs = np.where(y == model.labels[1], 1.0, -1.0)
        found = objective(model.squared_norm, model.decision_function_many(x), signs, C)
    return float(np.mean(before)), accuracy(), found


def cases(n: int, seeds: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, float]]:
    """Yield name, rows, labels and C of each run."""
    for seed in range(seeds):
        for name, (x, y) in sets(n, seed):
            for labels in (y, y.max() - y):
                for C in COSTS:
                    yield name, np.asarray(x, np.float64), labels, C


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learners", nargs="*", default=list(LEARNERS), help=", ".join(LEARNERS))
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    found: dict[str, list[list[float]]] = {}
    for name, x, y, C in cases(options.rows, options.seeds):
        right, best = of_svc(x, y, C)
        row = [100.0 * right]
        for learner in options.learners:
            before, after, reached = of_learner(LEARNERS[learner](C), x, y, C)
            row += [100.0 * before, 100.0 * after, 100.0 * (reached / best - 1.0)]
        found.setdefault(name, []).append(row)
    columns = [f"{learner}, before | after | objective" for learner in options.learners]
    print("| set | SVC |", " | ".join(columns), "|")
    print("|---|---|" + "---|" * 3 * len(columns))
    for name, rows in found.items():
        means = np.mean(rows, axis=0)
        cells = (f"{v:+.3f}" if i and i % 3 == 0 else f"{v:.1f}" for i, v in enumerate(means))
        print(f"| {name} |", " | ".join(cells).replace("+nan", ""), "|", flush=True)


if __name__ == "__main__":
    main()
