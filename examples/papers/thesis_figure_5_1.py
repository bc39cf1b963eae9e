"""Figure 5.1 of Bordes' thesis (2010, section 5.2.3): LaRank's test error against kernel values.

Letter and USPS (MNIST if it is named), parameters as in table 5.1: the course of LaRank over its
epochs until the duality gap is below C (LaRankGap), and MIRA, which is PROCESSNEW alone. The
published figure is a plot; the values at its marked points are those of table 5.2. Expected:
LaRank's error after one epoch is nearly the last one, and MIRA's is larger. The averaged perceptron
of the figure is not here.
"""

from typing import Any

import numpy as np
import replication
import thesis
import thesis_table_5_2 as larank

POINTS = 8


def course(task: thesis.Task, until_gap: bool, **schedule: Any) -> list[tuple[float, float, float]]:
    """Return (epochs, millions of kernel values, test error) along a run."""
    model, points = larank.new_model(task, 0, **schedule), []
    ids = np.arange(1, len(task.y) + 1)
    for epoch in range(larank.MOST_EPOCHS if until_gap else 1):
        for k, part in enumerate(np.array_split(np.arange(len(ids)), POINTS)):
            model.learn_many(task.x[part], task.y[part].tolist(), ids=ids[part])
            values = model.counters["kernel_values"] / 1e6
            points.append((epoch + (k + 1) / POINTS, values, thesis.error(model, task)))
        if until_gap and larank.gap(model, task) < task.C:
            break
    return points


def main() -> None:
    names = ["letter", "usps", "mnist"]
    options = replication.options(__doc__, limit=None, names=names)
    if options.names == names:
        options.names = names[:2]  # MNIST takes many minutes
    rows = []
    for name in options.names:
        task = thesis.load(options.data, name, 0, options.limit)
        runs = {
            "LaRank": course(task, True),
            "MIRA": course(task, False, reprocess=0),
        }
        curves = {label: ([p[1] for p in run], [p[2] for p in run]) for label, run in runs.items()}
        path = options.out / f"thesis_figure_5_1_{name}.png"
        x, y = "millions of kernel values", "test error in %"
        replication.plot(path, curves, x, y, log="x", points=True)
        one, gap = larank.PUBLISHED[name][:2]
        marked = [
            ("LaRank x 1", one, runs["LaRank"][POINTS - 1]),
            ("LaRankGap", gap, runs["LaRank"][-1]),
            ("MIRA", None, runs["MIRA"][-1]),
        ]
        for label, published, (epochs, values, error) in marked:
            p = ("", "") if published is None else (f"{published[0]:.2f}", published[2])
            rows.append([f"{name}: {label}", p[0], f"{error:.2f}", p[1], f"{values:.1f}", epochs])
    head = ["", "error %: published", "ours", "kernel values: published", "ours", "epochs"]
    replication.table(options.out / "thesis_figure_5_1.md", head, rows)


if __name__ == "__main__":
    main()
