"""What the monitor costs: ``python -m tests.benchmarks.monitor_cost [--repeats 9]``.

Each run is made with and without a `TrackingMonitor` at its defaults, in turns and in both orders;
printed are the median time without, and the median of the paired ratios less one.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np
from river import datasets

from connectors import ArrowSource
from streamsvm import LASVMClassifier, StandardScaler, TrackingMonitor, TrackingSVMClassifier
from streamsvm.runner import Run
from tests.golden import problems

EVENTS = list(datasets.Bananas())


def by_events(model) -> None:
    """Predict and learn dict events."""
    for x, y in EVENTS:
        model.predict_one(x)
        model.learn_one(x, y)


def by_run(problem):
    """Return a function that replays a problem's rows."""
    import pyarrow as pa

    names = [f"f{i}" for i in range(problem.x.shape[1])]
    columns = [pa.array(column) for column in problem.x.T]
    table = pa.table([*columns, pa.array(problem.y)], [*names, "label"])
    return lambda model: Run(ArrowSource(table, target="label"), model).execute()


def workloads():
    """Yield names, how to run, and makers of models."""
    yield "Bananas events, LASVM", by_events, LASVMClassifier
    yield (
        "Bananas events, LASVM 200 SV",
        by_events,
        lambda: LASVMClassifier(max_support_vectors=200),
    )
    yield (
        "Bananas events, tracking window 500",
        by_events,
        lambda: TrackingSVMClassifier(window=500, seed=1),
    )
    adult = problems.adult()
    replay, kernel = by_run(adult), adult.kernel
    yield "Adult replay, LASVM", replay, lambda: LASVMClassifier(kernel)
    yield (
        "Adult replay, scaled, LASVM 500 SV",
        replay,
        lambda: StandardScaler() | LASVMClassifier(kernel, max_support_vectors=500),
    )
    yield "Adult replay, tracking", replay, lambda: TrackingSVMClassifier(kernel, seed=1)


def timed(how, model) -> float:
    """Return the CPU seconds of one run."""
    gc.collect()
    start = time.process_time()
    how(model)
    return time.process_time() - start


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    print("| workload | seconds without | monitor costs |")
    print("|---|---|---|", flush=True)
    for name, how, make in workloads():
        how(TrackingMonitor(make()))
        without, ratios = [], []
        for r in range(repeats):
            first_watched = r % 2 == 0
            times = {}
            for watched in (first_watched, not first_watched):
                model = make()
                times[watched] = timed(how, TrackingMonitor(model) if watched else model)
            without.append(times[False])
            ratios.append(times[True] / times[False] - 1)
        print(f"| {name} | {np.median(without):.3f} | {np.median(ratios):+.1%} |", flush=True)


if __name__ == "__main__":
    main()
