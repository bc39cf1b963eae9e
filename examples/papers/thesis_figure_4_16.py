"""Figure 4.16 of Bordes' thesis (2010, section 4.3.2): labels that are asked for, from a pool.

Test error by labels on USPS, digit 0 against the rest, and on Reuters, topic money-fx against the
rest. Each label is asked of the pool's row that is nearest to the border: of 50 that are drawn, or
of all. Then LASVM learns it, or an SVM is trained from the start on all labels so far.
"random" is LASVM with labels of rows drawn at random. The published figure is a plot, means of 10
random splits. Expected: all but random are alike, and drawing 50 costs little accuracy. Published
for 500 labels on Reuters: retrained and all 917 s, LASVM and all 99 s, LASVM and 50 9.6 s: the
others take 96 and 10 times as long.

The first labels are of rows drawn at random: 10, and more until there are two classes; the error is
of the model as it is, without finishing. LASVM makes a few more steps than the thesis' one for each
label (`delta_max`), without which its bias jumps while there are few labels; they take no time to
speak of. LIBSVM starts from the solution before in the thesis, from nothing here, as scikit-learn
has no other way. Seconds are of choosing and training. Where LASVM chooses from rows that are
drawn, means are over four draws from each pool, as single ones differ.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import replication
import scipy.sparse
import thesis

from streamsvm import LASVMClassifier

NAMES = ("usps-0", "reuters")
STOPS = (25, 50, 100, 150, 200, 300, 400, 500)
"""After how many labels the error is measured."""

FIRST = 10

DRAWS = 4
"""So many times LASVM draws anew from each pool."""


class Lasvm:
    """LASVM: a step for each label, and more until the bias is known to .1."""

    def __init__(self, task: thesis.Task) -> None:
        self.model = LASVMClassifier(task.kernel, C=task.C, reserve=0, delta_max=0.1)

    def learn(self, task: thesis.Task, labelled: list[int]) -> None:
        """Learn the label that came last."""
        self.model.learn_many(task.x[labelled[-1:]], task.y[labelled[-1:]])

    def scores(self, x: Any) -> np.ndarray:
        return np.asarray(self.model.decision_function_many(x))


class Retrained:
    """LIBSVM, trained again on all labels for each one."""

    def __init__(self, task: thesis.Task) -> None:
        from sklearn.svm import SVC

        self.model = SVC(C=task.C, gamma=task.gamma)

    def learn(self, task: thesis.Task, labelled: list[int]) -> None:
        """Train on all labels so far, once they are of two classes."""
        y = task.y[labelled]
        if 0 < np.sum(y) < len(y):
            self.model.fit(task.x[labelled], y)

    def scores(self, x: Any) -> np.ndarray:
        return self.model.decision_function(x)


class Way(NamedTuple):
    """A model, and of how many rows the nearest to the border is asked for; None: of all."""

    model: Callable[[thesis.Task], Any]
    candidates: int | None


WAYS = {
    "LASVM, random": Way(Lasvm, 1),
    "LASVM, 50": Way(Lasvm, 50),
    "LASVM, 200": Way(Lasvm, 200),
    "LASVM, all": Way(Lasvm, None),
    "retrained, 50": Way(Retrained, 50),
    "retrained, all": Way(Retrained, None),
}


def split(task: thesis.Task, seed: int, limit: int | None) -> thesis.Task:
    """Return another random choice of training (the pool) and test rows, as doubles for LIBSVM."""
    stack = scipy.sparse.vstack if scipy.sparse.issparse(task.x) else np.concatenate
    x, y = stack([task.x, task.x_test]), np.concatenate([task.y, task.y_test])
    order, n = np.random.default_rng(seed).permutation(len(y)), len(task.y)
    pool, test = order[:n][:limit], order[n:]
    return task._replace(x=x[pool], y=y[pool], x_test=x[test], y_test=y[test])


def as_double(task: thesis.Task) -> thesis.Task:
    """Return the same rows as LIBSVM takes them: converting them is not its time."""
    return task._replace(x=task.x.astype(float), x_test=task.x_test.astype(float))


def run(task: thesis.Task, way: Way, seed: int, stops: tuple[int, ...]) -> np.ndarray:
    """Return labels, seconds of the processor so far, and the error in %, at each stop."""
    draws, n = np.random.default_rng(seed), len(task.y)
    task = as_double(task) if way.model is Retrained else task
    model, left, labelled = way.model(task), np.ones(n, bool), []
    found, spent = [], 0.0
    while len(labelled) < min(stops[-1], n):
        start = time.process_time()
        y = task.y[labelled]
        unlabelled = np.flatnonzero(left)
        if len(y) < FIRST or y.all() or not y.any():
            row = int(draws.choice(unlabelled))
        else:
            m = way.candidates
            rows = unlabelled if m is None else unlabelled[draws.integers(0, len(unlabelled), m)]
            row = int(rows[0 if m == 1 else np.argmin(np.abs(model.scores(task.x[rows])))])
        labelled.append(row)
        left[row] = False
        model.learn(task, labelled)
        spent += time.process_time() - start
        if len(labelled) in stops:
            wrong = (model.scores(task.x_test) > 0) != task.y_test
            found.append((len(labelled), spent, 100 * float(np.mean(wrong))))
    return np.array(found)


def compare(name: str, options: argparse.Namespace, stops: tuple[int, ...]) -> list[list[str]]:
    """Write the plot of one data set; return its rows of the table."""
    whole = thesis.load(options.data, name)
    tasks = [split(whole, seed, options.limit) for seed in range(options.runs)]
    ways = {k: way for k, way in WAYS.items() if way.model is Lasvm or options.libsvm}
    for way in ways.values():
        run(tasks[0], way, 0, (2 * FIRST,))  # load compiled code
    means = {}
    for k, way in ways.items():
        seeds = range(DRAWS if way.model is Lasvm and way.candidates else 1)
        runs = [run(t, way, 100 * j + s, stops) for s, t in enumerate(tasks) for j in seeds]
        means[k] = np.mean(runs, axis=0)
    curves = {k: (mean[:, 0], mean[:, 2]) for k, mean in means.items()}
    path = options.out / f"thesis_figure_4_16_{name}.png"
    replication.plot(path, curves, "labels", "test error in %", log="y")
    fastest = means["LASVM, 50"][-1, 1]
    rows = []
    for k, mean in means.items():
        seconds = mean[-1, 1]
        errors = [f"{error:.2f}" for error in mean[:, 2]]
        rows.append([name, k, *errors, f"{seconds:.3g}", f"{seconds / fastest:.3g}"])
    return rows


def main() -> None:
    about = "retraining takes minutes for each run"
    options = replication.options(__doc__, limit=None, names=NAMES, libsvm=about)
    most = STOPS[-1] if options.limit is None else options.limit // 2
    stops = tuple(stop for stop in STOPS if stop <= most)
    rows = [row for name in options.names for row in compare(name, options, stops)]
    head = ["data", "model, rows to choose from", *(f"error %, {stop} labels" for stop in stops)]
    head += ["seconds", "times LASVM, 50"]
    replication.table(options.out / "thesis_figure_4_16.md", head, rows)


if __name__ == "__main__":
    main()
