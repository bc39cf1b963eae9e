"""Figure 4.10 of Bordes' thesis (2010, section 4.2.5): additional REPROCESS, on Banana.

After each example REPROCESS is repeated until delta, the uncertainty of the bias, is below
delta_max. Measured after one epoch, after one epoch and finishing, and after two epochs and
finishing. The published figure is a plot. Expected: two epochs and finishing give LIBSVM's error
for any delta_max; around delta_max = 3 an epoch alone comes near it, and the finishing takes
little time; smaller ones take longer, and keep too few support vectors in one epoch.
"""

import copy
import time

import numpy as np
import replication
import thesis

from streamsvm import LASVMClassifier

DELTAS = (0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
RUNS = ("one epoch", "one and finishing", "two and finishing")
MEASURES = ("test error in %", "support vectors", "seconds")


def run(task: thesis.Task, delta_max: float) -> np.ndarray:
    """Return error, support vectors and seconds of the processor for each of `RUNS`."""
    model = LASVMClassifier(
        task.kernel,
        C=task.C,
        delta_max=delta_max,
        max_reprocess=10**6,
        second_order=False,
        reserve=0,
    )
    ids = np.arange(1, len(task.y) + 1)
    start = time.process_time()
    model.learn_many(task.x, task.y, ids=ids)
    first = time.process_time() - start
    finished = copy.deepcopy(model)
    start = time.process_time()
    finished.finish()
    finishing = time.process_time() - start
    twice = copy.deepcopy(model)
    start = time.process_time()
    twice.learn_many(task.x, task.y, ids=ids)
    twice.finish()
    second = time.process_time() - start
    seconds = first, first + finishing, first + second
    return np.array(
        [
            (thesis.error(m, task), m.n_support_vectors, s)
            for m, s in zip((model, finished, twice), seconds, strict=True)
        ]
    )


def main() -> None:
    options = replication.options(__doc__, limit=None)
    tasks = [thesis.load(options.data, "banana", s, options.limit) for s in range(options.runs)]
    run(tasks[0]._replace(x=tasks[0].x[:50], y=tasks[0].y[:50]), 1.0)  # load compiled code
    found = np.array([np.mean([run(task, d) for task in tasks], axis=0) for d in DELTAS])
    svc = thesis.libsvm(tasks[0])
    rows = [
        [f"{d:g}", *(f"{e:.2f}, {n:,.0f}, {s:.2f}" for e, n, s in runs)]
        for d, runs in zip(DELTAS, found.tolist(), strict=True)
    ]
    solution = f"{svc.error:.2f}, {svc.n_support_vectors:,}, {svc.seconds:.2f}"
    rows.append(["LIBSVM", *[solution] * len(RUNS)])
    for j, (measure, best) in enumerate(zip(MEASURES, svc, strict=True)):
        curves = {name: (DELTAS, found[:, i, j]) for i, name in enumerate(RUNS)}
        curves["LIBSVM"] = (DELTAS, [best] * len(DELTAS))
        suffix = ("", "_vectors", "_seconds")[j]
        path = options.out / f"thesis_figure_4_10{suffix}.png"
        log = "x" if j == 0 else "xy"
        replication.plot(path, curves, "delta_max", measure, log=log, points=True)
    head = ["delta_max", *(f"{name}: error %, SV, seconds" for name in RUNS)]
    replication.table(options.out / "thesis_figure_4_10.md", head, rows)


if __name__ == "__main__":
    main()
