"""One model on several workers: ``python -m benchmarks.shards [adult mnist_8 ...] [--ray]``.

Adult (gamma .005, C 1) and MNIST 8 against the rest (gamma .005, C 1000, pixels / 255), rows in
their order: plain LASVM (one pass and `finish`), then shards for 1 to 64 workers, each of which is
measured alone in this process. Printed: rounds, gap, dual, that of plain LASVM divided by it, test
error, support vectors, seconds of the processor by part (of a part that of the slowest worker),
megabytes sent. ``--linear``: the linear SVM, Adult and Reuters. ``--ray``: 1 and 2 actors, by the
clock, too. Times are the smallest sum of ``--runs``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.golden import problems
from benchmarks.golden.problems import FOLDER, Problem
from streamsvm import LASVMClassifier, SVMSGDClassifier
from streamsvm.run.shards import LocalWorkers, RayWorkers, train_on_shards

PARTS = {"describe": "read", "learn": "learn", "chosen": "learn"}
WORKERS = (1, 2, 4, 8, 16, 32, 64)
GAPS = {"adult": 1e-3, "mnist_8": 1e-2}


def table_of(x: np.ndarray, y: np.ndarray | None = None) -> pa.Table:
    """Return rows, and labels if there are any, as a table."""
    columns = {f"x{c}": x[:, c] for c in range(x.shape[1])}
    return pa.table(columns if y is None else columns | {"label": y})


def plain(problem: Problem) -> LASVMClassifier:
    """Print what one LASVM does with all rows."""
    model = LASVMClassifier(problem.kernel, C=problem.C)
    table = table_of(problem.x)
    start = time.process_time()
    model.learn_many(table, problem.y)
    learnt = time.process_time()
    model.finish()
    seconds = learnt - start, time.process_time() - learnt
    print(
        f"plain: learn {seconds[0]:.2f} s, finish {seconds[1]:.2f} s, dual {model.dual:.6g}, "
        f"error {error_of(model, problem):.2f} %, {model.n_support_vectors:,} vectors",
        flush=True,
    )
    return model


def error_of(model: Any, problem: Problem) -> float:
    """Return the test error in %."""
    found = model.predict_many(table_of(problem.x_test))
    return 100.0 * float(np.mean(np.array(found.to_pylist()) != problem.y_test))


class Timed(LocalWorkers):
    """Measures each shard alone, as if a worker had it: seconds of the slowest, bytes of all."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: Counter[str] = Counter()
        self.all_seconds, self.sent, self.back = 0.0, 0, 0

    def ask(self, task: str, which: Sequence[int], *given: Any) -> Iterator[Any]:
        """Call a method of some shards, and yield what they return."""
        slowest, answers = 0.0, super().ask(task, which, *given)
        for _ in which:
            start = time.process_time()
            answer = next(answers)
            seconds = time.process_time() - start
            slowest, self.all_seconds = max(slowest, seconds), self.all_seconds + seconds
            self.sent, self.back = self.sent + size_of(given), self.back + size_of(answer)
            yield answer
        self.seconds[PARTS.get(task, "evaluate")] += slowest


def size_of(content: Any) -> int:
    """Return the bytes of the arrays in something that is sent."""
    if isinstance(content, np.ndarray):
        return content.nbytes
    return sum(map(size_of, content)) if isinstance(content, tuple) else 0


def timed(template: Any, path: Path, runs: int, **given: Any) -> tuple[Any, Any, Timed]:
    """Train; return model, report and times of the fastest of some runs."""
    found = []
    for _ in range(runs):
        workers, start = Timed(), time.process_time()
        model, report = train_on_shards(template, path, "label", workers=workers, **given)
        workers.seconds["united"] = time.process_time() - start - workers.all_seconds
        found.append((model, report, workers))
    return min(found, key=lambda one: one[2].seconds.total())


def shown(workers: Timed) -> str:
    """Return the seconds by part."""
    return ", ".join(f"{part} {seconds:.2f}" for part, seconds in workers.seconds.items())


def kernel(name: str, n: int, path: Path, problem: Problem, dual: float, runs: int) -> None:
    """Print a line of n workers."""
    template = LASVMClassifier(problem.kernel, C=problem.C)
    model, report, workers = timed(template, path, runs, gap=GAPS[name], shards=n)
    last = report.rounds[-1]
    print(
        f"{n:2d} workers: {len(report.rounds)} rounds, gap {report.gap:.1e} (rounding "
        f"{report.rounding:.0e}), dual {last.dual:.6g}, plain's {dual / last.dual:.5f} of it, "
        f"error {error_of(model, problem):.2f} %, {last.n_support_vectors:,} vectors; s: "
        f"{shown(workers)}; {(workers.sent + workers.back) / 1e6:.0f} MB",
        flush=True,
    )


def on_ray(name: str, path: Path, problem: Problem) -> None:
    """Print seconds of 1 and 2 actors, which are started in each call."""
    template = LASVMClassifier(problem.kernel, C=problem.C)
    train_on_shards(template, path, "label", gap=1e6, workers=RayWorkers(1))
    for n in (1, 2, 1, 2):
        start = time.perf_counter()
        given = {"gap": GAPS[name], "shards": n, "workers": RayWorkers(n)}
        _, report = train_on_shards(template, path, "label", **given)
        seconds = time.perf_counter() - start
        print(f"Ray, actors: {n}: {seconds:.2f} s by the clock; gap {report.gap:.1e}", flush=True)


def linear(folder: Path, runs: int) -> None:
    """Print rounds and seconds of the linear SVM."""
    x, y = problems.adult().x, problems.adult().y
    pq.write_table(table_of(x, y), folder / "linear.parquet", row_group_size=512)
    reuters = FOLDER / "reuters_moneyfx_train.parquet"
    for name, path, C in [
        ("Adult, C 1", folder / "linear.parquet", 1.0),
        ("Adult, C .01", folder / "linear.parquet", 0.01),
        ("Reuters, C 1", reuters, 1.0),
    ]:
        template = SVMSGDClassifier(C=C, n_expected=pq.read_metadata(path).num_rows)
        for n in (1, 8, 64):
            _, report, workers = timed(template, path, runs, shards=n)
            print(
                f"{name}, {n:2d} workers: {len(report.rounds)} rounds, gap {report.gap:.1e}, "
                f"objective {report.rounds[-1].primal:.6g}; s: {shown(workers)}; "
                f"{workers.back / 1e6:.2f} MB back",
                flush=True,
            )


def main() -> None:
    """Print a line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["adult", "mnist_8"])
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.linear:
            linear(folder, options.runs)
            return
        for name in options.names:
            problem, path = getattr(problems, name)(), folder / f"{name}.parquet"
            pq.write_table(table_of(problem.x, problem.y), path, row_group_size=512)
            print(f"{name}: {len(problem.y):,} rows")
            plain(problem)
            if options.ray:
                on_ray(name, path, problem)
                continue
            dual = plain(problem).dual
            for n in WORKERS:
                kernel(name, n, path, problem, dual, options.runs)


if __name__ == "__main__":
    main()
