"""Runs systems in processes of their own, in turns, and compares them."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

from benchmarks.peers.scenarios import Scenario

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
_LIBRARIES = (
    "streamsvm",
    "numpy",
    "numba",
    "river",
    "pyarrow",
    "scikit-learn",
    "scikit-learn-intelex",
    "libsvm-official",
    "vowpalwabbit",
)
Result = dict[str, Any]
LONG = 60.0
"""Seconds of a run, its data and warming included, after which a system is not run again."""


def has_threads(system: str) -> bool:
    """Tell whether a system is one that has two threads and two cores."""
    return "2 threads" in system


def in_a_process(scenario: str, system: str, timeout: float) -> Result:
    """Run one system on one scenario in a new process, and return its figures or ``absent``."""
    command = [sys.executable, "-m", "benchmarks.peers.child", scenario, system]
    threads = dict.fromkeys(ONE_THREAD, "2") if has_threads(system) else ONE_THREAD
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=os.environ | threads
        )
    except subprocess.TimeoutExpired:
        return {"absent": f"not done after {timeout:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.splitlines() or ["no output"])[-1]
        return {"absent": f"failed: {last}"}
    figures: Result = json.loads(lines[-1])
    return figures


def summary(runs: list[Result], of_threads: bool = False) -> Result:
    """Return medians of all numbers, and the spread of ``seconds``.

    Seconds of one thread are those of the processor, which other work on the machine does not
    change much; of several, those of the clock. ``wall_seconds`` are kept beside them.
    """
    runs = [
        run
        | {"wall_seconds": run["seconds"]}
        | ({} if of_threads else {"seconds": run["cpu_seconds"]})
        if "cpu_seconds" in run
        else run
        for run in runs
    ]
    good = [run for run in runs if "absent" not in run]
    if not good:
        return {"absent": runs[0]["absent"], "runs": 0}
    result: Result = {
        key: statistics.median(run[key] for run in good)
        for key, value in good[0].items()
        if isinstance(value, (int, float))
    }
    seconds = [run["seconds"] for run in good]
    return result | {"low": min(seconds), "high": max(seconds), "runs": len(good)}


def measure(
    scenario: Scenario,
    repeats: int,
    slow: bool,
    timeout: float,
    run: Callable[[str, str, float], Result] = in_a_process,
) -> dict[str, Result]:
    """Return the figures of all systems of a scenario, measured in turns, with ratios to the first.

    Parameters
    ----------
    scenario
        What to measure.
    repeats
        How often; systems named slow, and those that take more than `LONG` seconds, once.
    slow
        Whether slow systems take part at all.
    timeout
        Seconds after which a run is given up.
    run
        How one system is run.

    """
    runs: dict[str, list[Result]] = {name: [] for name in scenario.systems}
    long: set[str] = set()
    for turn in range(repeats):
        for name in scenario.systems:
            if name in scenario.slow and (turn or not slow):
                if not slow:
                    runs[name] = [{"absent": "slow: run with --slow"}]
                continue
            if any("absent" in earlier for earlier in runs[name]) or name in long:
                continue
            start = time.perf_counter()
            runs[name].append(run(scenario.id, name, timeout))
            if time.perf_counter() - start > LONG:
                long.add(name)
    results = {name: summary(found, has_threads(name)) for name, found in runs.items()}
    for name, (seconds, error) in scenario.elsewhere.items():
        results[name] = {"seconds": seconds, "error": error, "runs": 0, "elsewhere": True}
    return with_ratios(results)


def with_ratios(results: dict[str, Result]) -> dict[str, Result]:
    """Add to each the ratio of its seconds to those of the first, and its spread."""
    own = next(iter(results.values()))
    if "seconds" not in own:
        return results
    for result in results.values():
        if "seconds" in result:
            result["ratio"] = result["seconds"] / own["seconds"]
            if "low" in result:
                result["ratio_low"] = result["low"] / own["high"]
                result["ratio_high"] = result["high"] / own["low"]
    return results


def machine() -> Result:
    """Return what the figures depend on."""
    return {
        "processor": _processor(),
        "python": platform.python_version(),
        "libraries": dict(_versions()),
        "threads": 1,
    }


def _versions() -> Iterator[tuple[str, str]]:
    for name in _LIBRARIES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "absent"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            named = [
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            ]
    except OSError:
        named = []
    return named[0] if named else platform.processor() or platform.machine()
