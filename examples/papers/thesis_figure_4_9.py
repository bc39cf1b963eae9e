"""Figure 4.9 of Bordes' thesis (2010, section 4.2.5): training time by the size of the cache.

MNIST, each digit against the rest, parameters as in table 4.1: one epoch of LASVM and finishing,
and LIBSVM with ``--libsvm``, each with caches from 8 MB to 1 GB. The published figure is a plot of
the change of the training time relative to LIBSVM with 1 GB, the mean of the ten digits. Expected:
LASVM needs a much smaller cache than LIBSVM; with 8 MB it takes less time than LIBSVM with 1 GB.
Without ``--libsvm``, times are relative to LASVM with 1 GB.
"""

import time

import numpy as np
import replication
import thesis
import thesis_table_4_1 as digits

CACHES = (8, 32, 128, 1024)
"""Megabytes; the last one is what times are relative to."""


def lasvm_seconds(task: thesis.Task, cache_mb: int) -> float:
    """Return the seconds of the processor of one epoch and finishing."""
    model = digits.new_model(task, cache_mb)
    start = time.process_time()
    model.learn_many(task.x, task.y)
    model.finish()
    return time.process_time() - start


def seconds_of(task: thesis.Task, with_libsvm: bool) -> dict[str, list[float]]:
    """Return the seconds of each solver, a value for each cache."""
    found = {"LASVM x 1": [lasvm_seconds(task, cache) for cache in CACHES]}
    if with_libsvm:
        found["LIBSVM"] = [thesis.trained_svc(task, cache)[1] for cache in CACHES]
    return found


def main() -> None:
    options = replication.options(__doc__, limit=None, libsvm="hours on one core without --limit")
    task = thesis.load(options.data, "mnist", 0, options.limit)
    tasks = [task._replace(y=task.y == digit) for digit in sorted(set(task.y_test.tolist()))]
    lasvm_seconds(tasks[0]._replace(x=task.x[:60], y=task.y[:60] == task.y[0]), CACHES[0])
    runs = [seconds_of(one, options.libsvm) for one in tasks]
    base = "LIBSVM" if options.libsvm else "LASVM x 1"
    # The least time that the clock can tell, so that a tiny run is not divided by 0.
    least = np.maximum([run[base][-1] for run in runs], 1e-6)
    rows, curves = [], {}
    for name in runs[0]:
        seconds = np.array([run[name] for run in runs])
        change = 100 * np.mean(seconds / least[:, None] - 1, axis=0)
        curves[name] = (CACHES, change)
        cells = zip(change.tolist(), seconds.sum(axis=0).tolist(), strict=True)
        rows.append([name, *(f"{c:+.0f} %, {s:.1f} s" for c, s in cells)])
    path = options.out / "thesis_figure_4_9.png"
    label = f"training time relative to {base} with 1 GB, change in %"
    replication.plot(path, curves, "cache in MB", label, log="x", points=True)
    head = [f"relative to {base} with 1 GB; all digits", *(f"{cache} MB" for cache in CACHES)]
    replication.table(options.out / "thesis_figure_4_9.md", head, rows)


if __name__ == "__main__":
    main()
