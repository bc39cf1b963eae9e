"""Where the time of a replay goes: ``python -m benchmarks.replay_profile adult 500``.

A Parquet file goes through a run with its monitor into a bounded LASVM, under Linux' ``perf``.
Compiled functions get their names from a map that is written when they have been compiled in the
profiled process (into a cache of its own, so that there is something to name); only samples after
the first replay count.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

REPLAYS = 5
# The first pattern that is found in "function (library)" names the part.
PARTS = [
    ("kernel arithmetic", r"kernel_values|dense_store\d+get\b|row_of|_1_4|_4_1|_1_1"),
    ("merging: which pair, gradients, columns", r"lasvm_bounds|budget"),
    ("cached rows: order, upkeep", r"row_cache|dense_store"),
    ("steps: gradients, partners", r"solvers|NRT_|chosen_by|extreme|tiles"),
    ("other compiled code: labels, checks", r"streamsvm|perf-"),
    ("reading Parquet, decoding", r"libarrow|libparquet|pyarrow|lib\.cpython"),
    ("NumPy: columns into rows", r"_multiarray"),
    ("memory: the kernel and libc", r"kernel\.kallsyms|libc\.|\[k\]"),
    ("the interpreter", r"python"),
]


def _replays(name: str, n_support_vectors: int) -> None:
    """Replay a file several times; print when the first one was done, and the last."""
    from benchmarks.golden.problems import FOLDER
    from connectors import ParquetSource
    from streamsvm import LASVMClassifier, TrackingMonitor, kernels
    from streamsvm.run.runner import Run

    gamma, C, positive = (0.005 / 255**2, 1000.0, "8") if name == "mnist" else (0.005, 1.0, None)
    for turn in range(REPLAYS + 1):
        model = LASVMClassifier(
            kernels.RBF(gamma=gamma), C=C, max_support_vectors=n_support_vectors
        )
        start = time.perf_counter()
        with ParquetSource(FOLDER / f"{name}_train.parquet", "label") as source:
            report = Run(source, TrackingMonitor(model), positive=positive).execute()
        seconds = time.perf_counter() - start
        if turn == 0:
            begin = time.clock_gettime(time.CLOCK_MONOTONIC)
    print(begin, time.clock_gettime(time.CLOCK_MONOTONIC))
    print(f"{name}: {report.rows:,} rows, {n_support_vectors} SV, {seconds:.2f} s the last time")
    _write_map()


def _write_map() -> None:
    """Tell perf where compiled functions are, in the file that it looks for."""
    from numba.core.dispatcher import Dispatcher

    names: dict[int, str] = {}
    for dispatcher in [found for found in gc.get_objects() if isinstance(found, Dispatcher)]:
        for result in dispatcher.overloads.values():
            library: Any = result.library
            engine = library._codegen._engine._ee
            for function in library._final_module.functions:
                if not function.is_declaration:
                    names[engine.get_function_address(function.name)] = function.name
    starts = sorted(address for address in names if address)
    with open(f"/tmp/perf-{os.getpid()}.map", "w", encoding="utf-8") as out:
        for start, end in zip(starts, [*starts[1:], starts[-1] + 4096], strict=True):
            out.write(f"{start:x} {min(end - start, 65536):x} {names[start].replace(' ', '')}\n")


def _summed(samples: str, begin: float, end: float) -> Counter[str]:
    """Count samples between two moments by part; a line is "seconds: address symbol (library)"."""
    counts: Counter[str] = Counter()
    for line in samples.splitlines():
        when, _, where = line.strip().partition(":")
        if not begin <= float(when) <= end:
            continue
        # What follows the name of a compiled function are its types.
        name = re.sub(r"B\d+v\d+\S*", "", where)
        found = (part for part, pattern in PARTS if re.search(pattern, name))
        counts[next(found, "the rest")] += 1
    return counts


def main() -> None:
    """Profile, and print each part's share."""
    if sys.argv[1:2] == ["--replays"]:
        _replays(sys.argv[2], int(sys.argv[3]))
        return
    name = sys.argv[1] if len(sys.argv) > 1 else "adult"
    size = sys.argv[2] if len(sys.argv) > 2 else "500"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        own = [sys.executable, "-m", "benchmarks.replay_profile", "--replays", name, size]
        record = ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-o", str(data), *own]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = os.environ | one | {"NUMBA_CACHE_DIR": folder}
        done = subprocess.run(record, capture_output=True, text=True, check=True, env=environment)
        times, told = done.stdout.splitlines()[:2]
        script = ["perf", "script", "-i", str(data), "-F", "time,ip,sym,dso"]
        samples = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    counts = _summed(samples, *map(float, times.split()))
    print(told)
    for part, n in counts.most_common():
        print(f"  {n / counts.total():6.1%}  {part}")


if __name__ == "__main__":
    main()
