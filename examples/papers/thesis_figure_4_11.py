"""Figures 4.11 to 4.15 of Bordes' thesis (2010, section 4.3.2): choosing examples.

Test error, after finishing, by examples learnt, by time and by support vectors, for examples taken
at random, by gradient, active and autoactive. The published figures are plots. Expected on Adult:
gradient fails, as it learns wrong labels; active and autoactive fall below LIBSVM's error (14.9 %),
with about 2,500 support vectors in place of 11,278, in about a fifteenth of the time of a random
epoch. Expected on the digit 8 against the rest: gradient and active are alike on clean labels;
where a tenth of the labels of training is wrong, active reaches the error and the support vectors
that LIBSVM has on clean ones, and gradient does not.

Rows come in a random order, over and over until enough were learnt.
"""

import argparse
import copy
import time

import numpy as np
import replication
import thesis

from streamsvm import LASVMClassifier
from streamsvm.selection import Active, AutoActive, Gradient, Selection

RULES: dict[str, Selection | None] = {
    "random": None,
    "gradient": Gradient(candidates=50),
    "active": Active(candidates=50),
    "autoactive": AutoActive(candidates=100),
}
FIGURES = {
    "adult": ("4_11", (250, 500, 1000, 1500, 2000, 2500, 3000, 4000, 6000)),
    "mnist-8": ("4_13", (500, 1000, 1500, 2000, 3000, 5000, 8000)),
    "mnist-8-noise": ("4_14", (500, 1000, 1500, 2000, 3000, 5000, 8000)),
}
"""The figure of each data set, and after how many examples learnt the error is measured."""

MEASURES = {"": "examples learnt", "_seconds": "seconds", "_vectors": "support vectors"}
_CHUNK = 250


def run(task: thesis.Task, rule: Selection | None, seed: int, stops: tuple[int, ...]) -> np.ndarray:
    """Return examples learnt, seconds of the processor, support vectors and error at each stop."""
    model = LASVMClassifier(task.kernel, C=task.C, reserve=0, selection=rule)
    draws, n = np.random.default_rng(seed), len(task.y)
    left = [stop for stop in stops if stop < n] or [n // 4]
    left += [n] if rule is None else []
    found, spent, at, order = [], 0.0, 0, np.arange(n)
    while left:
        if at >= n:
            at, order = 0, draws.permutation(n)
        if rule is None:
            chunk = order[at : at + left[0] - model.n_examples]
        else:
            chunk = order[at : at + _CHUNK]
        at += len(chunk)
        x, y = np.ascontiguousarray(task.x[chunk]), task.y[chunk]
        start = time.process_time()
        model.learn_many(x, y, ids=chunk + 1)
        spent += time.process_time() - start
        if model.n_examples >= left[0]:
            left.pop(0)
            finished = copy.deepcopy(model)
            start = time.process_time()
            finished.finish()
            seconds = spent + time.process_time() - start
            error = thesis.error(finished, task)
            found.append((model.n_examples, seconds, finished.n_support_vectors, error))
    return np.array(found)


def compare(name: str, options: argparse.Namespace) -> None:
    """Write the table and the plots of one data set."""
    figure, stops = FIGURES[name]
    tasks = [thesis.load(options.data, name, s, options.limit) for s in range(options.runs)]
    first = tasks[0]._replace(x=tasks[0].x[:600], y=tasks[0].y[:600])
    for rule in RULES.values():
        run(first, rule, 0, stops[:1])  # load compiled code
    found = {
        rule: np.mean([run(task, RULES[rule], s, stops) for s, task in enumerate(tasks)], axis=0)
        for rule in RULES
    }
    rows = [
        [rule, f"{n:,.0f}", f"{seconds:.2f}", f"{vectors:,.0f}", f"{error:.2f}"]
        for rule, runs in found.items()
        for n, seconds, vectors, error in runs.tolist()
    ]
    best = None
    if options.libsvm:
        best = np.mean([thesis.libsvm(task) for task in tasks], axis=0)
        rows.append(["LIBSVM", "", f"{best[2]:.2f}", f"{best[1]:,.0f}", f"{best[0]:.2f}"])
    for j, (suffix, measure) in enumerate(MEASURES.items()):
        curves = {rule: (runs[:, j], runs[:, 3]) for rule, runs in found.items()}
        if best is not None:
            ends = curves["random"][0][[0, -1]]
            curves["LIBSVM"] = (ends, np.full(2, best[0]))
        path = options.out / f"thesis_figure_{figure}{suffix}.png"
        replication.plot(path, curves, measure, "test error in %", log="x")
    head = ["choice", "learnt", "seconds", "support vectors", "error %"]
    replication.table(options.out / f"thesis_figure_{figure}.md", head, rows)


def main() -> None:
    about = "takes four minutes for each run of adult, and longer for the others"
    options = replication.options(__doc__, limit=None, names=list(FIGURES), libsvm=about)
    for i, name in enumerate(options.names):
        if i:
            print()
        compare(name, options)


if __name__ == "__main__":
    main()
