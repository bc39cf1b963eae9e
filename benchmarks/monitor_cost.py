"""What the monitor costs: ``python -m benchmarks.monitor_cost [--repeats 9]``.

Each run is made with and without a `TrackingMonitor` at its defaults, in turns and in both orders;
printed are the median time of an example without, and the medians of the paired ratios less one and
of the differences. A second table has the cost of a learner's looks, from which certificates are
computed, as a share of learning in batches; no learner can do without them.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np
from river import datasets

from benchmarks.golden import problems
from connectors import ArrowSource
from streamsvm import (
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
)
from streamsvm._compile import compiled
from streamsvm.run.runner import Run
from streamsvm.solvers.lasvm import gap as lasvm_gap
from streamsvm.solvers.tracking import state as tracking_state
from streamsvm.solvers.tracking import step as tracking_step

BANANAS = list(datasets.Bananas())


def generated(n: int, n_classes: int):
    """Return events of 20 features; of several classes the largest of the first ones is it."""
    rows = np.random.default_rng(0).normal(size=(n, 20)).tolist()
    names = [f"f{i}" for i in range(20)]
    events = [dict(zip(names, row, strict=True)) for row in rows]
    if n_classes == 2:
        return [(x, x["f0"] > 0.0) for x in events]
    return [(x, int(np.argmax(row[:n_classes]))) for x, row in zip(events, rows, strict=True)]


def by_events(events):
    """Return a function that predicts and learns dict events, and how many there are."""

    def how(model) -> None:
        for x, y in events:
            model.predict_one(x)
            model.learn_one(x, y)

    return how, len(events)


def by_run(problem):
    """Return a function that replays a problem's rows, and how many there are."""
    import pyarrow as pa

    names = [f"f{i}" for i in range(problem.x.shape[1])]
    columns = [pa.array(column) for column in problem.x.T]
    table = pa.table([*columns, pa.array(problem.y)], [*names, "label"])
    return lambda model: Run(ArrowSource(table, target="label"), model).execute(), len(table)


def workloads():
    """Yield names, how to run, and makers of models."""
    bananas = by_events(BANANAS)
    yield "Bananas events, LASVM", bananas, LASVMClassifier
    yield (
        "Bananas events, LASVM 200 SV",
        bananas,
        lambda: LASVMClassifier(max_support_vectors=200),
    )
    yield (
        "Bananas events, tracking window 500",
        bananas,
        lambda: TrackingSVMClassifier(window=500, seed=1),
    )
    for k in (2, 3):
        yield (
            f"100,000 events, {k} classes, SGD",
            by_events(generated(100_000, k)),
            SVMSGDClassifier,
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


@compiled
def _looks_of_lasvm(state, n):
    for _ in range(n):
        lasvm_gap.look(state)


@compiled
def _looks_of_tracking(state, n):
    """Make the looks of n examples at K = 10: nine at examples of steps, and one of their own."""
    i = state.active.members[0]
    for _ in range(n):
        for _ in range(9):
            tracking_state.look_at(state, i, state.f[i], 0.0)
        tracking_step._look(state, 0.0)


def print_looks(most: int = 1000) -> None:
    """Print what the looks of an example cost."""
    print(
        "\n| learner after 3,000 examples | us an example | looks, us | share |\n|---|---|---|---|"
    )
    makers = {
        "LASVM": (LASVMClassifier, _looks_of_lasvm),
        "tracking, K 10": (
            lambda kernel: TrackingSVMClassifier(kernel, seed=1),
            _looks_of_tracking,
        ),
    }
    for data, problem in (("Adult", problems.adult()), ("Banana", problems.banana())):
        for name, (make, look) in makers.items():
            model = make(problem.kernel)
            model.learn_many(problem.x[:3000], problem.y[:3000])
            start = time.process_time()
            model.learn_many(problem.x[3000:4000], problem.y[3000:4000])
            whole = (time.process_time() - start) / 1000
            look(model.state, 10)
            times = []
            for _ in range(20):
                start = time.process_time()
                look(model.state, most)
                times.append((time.process_time() - start) / most)
            own = min(times)
            print(f"| {data}, {name} | {1e6 * whole:.1f} | {1e6 * own:.2f} | {own / whole:.1%} |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    print("| workload | us an example without | monitor costs | us |")
    print("|---|---|---|---|", flush=True)
    for name, (how, n), make in workloads():
        how(TrackingMonitor(make()))
        found = []
        for r in range(repeats):
            first_watched = r % 2 == 0
            times = {}
            for watched in (first_watched, not first_watched):
                model = make()
                times[watched] = timed(how, TrackingMonitor(model) if watched else model)
            found.append((times[False], times[True] / times[False] - 1, times[True] - times[False]))
        without, share, more = np.median(found, axis=0)
        print(f"| {name} | {1e6 * without / n:.2f} | {share:+.1%} | {1e6 * more / n:.2f} |")
    print_looks()


if __name__ == "__main__":
    main()
