"""Figures 3.1 and 3.2 of Bordes' thesis (2010, section 3.2.3): SVMSGD2, SGD-QN and LIBLINEAR.

Primal cost (figure 3.1) and test error (3.2) against passes over the training set, and against
seconds; squared hinge loss, lambda 1e-4 (Adult) and 1e-5 (Covertype, class 2 against the rest,
features divided by their largest value, 15,000 / 5,000 of its first 20,000 rows). The thesis' sets,
ALPHA, DELTA and RCV1, are not here, and the published figures are plots. "Our default" predicts
with the mean of the weights where that is better. Expected: SGD-QN reaches a cost in fewer passes
than SVMSGD2, and its pass takes less than twice the time; LIBLINEAR, the dual solver, is slower.
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import replication
import thesis

from streamsvm import SGDQNClassifier, SVMSGDClassifier

PASSES = (1, 2, 3, 5, 10, 20, 50)
L2 = {"adult": 1e-4, "covertype": 1e-5}


class Point(NamedTuple):
    """A solver after some passes."""

    cost: float
    error: float
    seconds: float  # of the processor


def covertype(folder: Path, limit: int | None) -> thesis.Task:
    """Class 2 against the rest; features from 0 to 1."""
    x, y = replication.read(folder / "covtype_first20k.parquet")
    order = np.random.default_rng(0).permutation(len(y))
    x, y, n = x[order] / np.maximum(np.abs(x).max(axis=0), 1), y[order] == 2, 3 * len(y) // 4
    return thesis.Task(x[:n][:limit], y[:n][:limit], x[n:], y[n:], 0.0, 0.0)


def with_constant(task: thesis.Task) -> thesis.Task:
    """Add a feature 1 to all rows: the thesis' classifiers have no bias of their own."""

    def wider(x: np.ndarray) -> np.ndarray:
        return np.hstack([x, np.ones((len(x), 1), np.float32)]).astype(np.float32)

    return task._replace(x=wider(task.x), x_test=wider(task.x_test))


def point(w: np.ndarray, task: thesis.Task, l2: float, seconds: float) -> Point:
    """Return the primal cost and the test error of weights."""
    margins = np.where(task.y, 1.0, -1.0) * (task.x @ w)
    cost = 0.5 * l2 * w @ w + 0.5 * np.mean(np.maximum(0.0, 1.0 - margins) ** 2)
    wrong = 100 * float(np.mean((task.x_test @ w > 0) != task.y_test))
    return Point(float(cost), wrong, seconds)


def sgd(model: Any, task: thesis.Task, l2: float) -> Iterator[Point]:
    """Yield the points of a stochastic gradient solver."""
    seconds, made, d = 0.0, 0, task.x.shape[1]
    for passes in PASSES:
        start = time.process_time()
        for _ in range(passes - made):
            model.learn_many(task.x, task.y)
        seconds += time.process_time() - start
        made = passes
        yield point(np.array([model.weights.get(j, 0.0) for j in range(d)]), task, l2, seconds)


def liblinear(task: thesis.Task, l2: float, tol: float = 1e-12, **settings: Any) -> Iterator[Point]:
    """Yield the points of LIBLINEAR, which starts again for each number of passes."""
    from sklearn.svm import LinearSVC

    x, C = task.x.astype(float), 1.0 / (2.0 * l2 * len(task.y))
    for passes in settings.pop("passes", PASSES):
        svc = LinearSVC(
            C=C, fit_intercept=False, tol=tol, max_iter=passes, random_state=0, **settings
        )
        start = time.process_time()
        with warnings.catch_warnings(action="ignore"):
            svc.fit(x, task.y)
        yield point(svc.coef_[0], task, l2, time.process_time() - start)


def curves_of(task: thesis.Task, l2: float) -> tuple[dict[str, list[Point]], Point]:
    """Return the points of all solvers, and the optimum."""
    solvers: dict[str, Any] = {
        "SVMSGD2": SVMSGDClassifier(
            loss="squared_hinge", l2=l2, skip="auto", averaged=False, bias_rate=0.0
        ),
        "SGD-QN": SGDQNClassifier(loss="squared_hinge", l2=l2, bias_rate=0.0),
        "our default": SVMSGDClassifier(loss="squared_hinge", l2=l2, bias_rate=0.0),
    }
    found = {}
    for name, model in solvers.items():
        list(sgd(model.clone(), task._replace(x=task.x[:50], y=task.y[:50]), l2))  # compile
        found[name] = list(sgd(model, task, l2))
    found["LIBLINEAR"] = list(liblinear(task, l2, dual=True))
    (best,) = liblinear(task, l2, tol=1e-10, passes=(1000,), dual=False)
    return found, best


def plots(out: Path, name: str, found: dict[str, list[Point]], best: Point) -> None:
    """Draw both figures, by passes and by seconds."""
    for number, measure, label in ((1, "cost", "cost above the optimum"), (2, "error", "error")):
        for across in ("passes", "seconds"):
            curves = {}
            for solver, points in found.items():
                xs = PASSES if across == "passes" else [p.seconds for p in points]
                less = best.cost if measure == "cost" else 0.0
                curves[solver] = (xs, [getattr(p, measure) - less for p in points])
            path = out / f"thesis_figure_3_{number}_{name}_{across}.png"
            log = "xy" if measure == "cost" else "x"
            replication.plot(path, curves, across, label, log=log, points=True)


def main() -> None:
    options = replication.options(__doc__, limit=None, names=list(L2))
    rows = []
    for name in options.names:
        if name == "adult":
            task = thesis.load(options.data, name, 0, options.limit)
        else:
            task = covertype(options.data, options.limit)
        found, best = curves_of(with_constant(task), L2[name])
        plots(options.out, name, found, best)
        for solver, points in found.items():
            cells = [f"{p.cost - best.cost:.1e}, {p.error:.2f}" for p in points]
            rows.append(
                [f"{name}: {solver}", *cells, f"{1e3 * points[-1].seconds / PASSES[-1]:.1f}"]
            )
        last = [f"{best.cost:.4f}, {best.error:.2f}"] * len(PASSES)
        rows.append([f"{name}: the optimum's cost, error", *last, ""])
    head = ["cost above the optimum, error %", *(f"{n} passes" for n in PASSES), "ms a pass"]
    replication.table(options.out / "thesis_figure_3_2.md", head, rows)


if __name__ == "__main__":
    main()
