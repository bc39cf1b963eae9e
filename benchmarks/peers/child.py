"""One system on one scenario: prints its figures as a line of JSON."""

from __future__ import annotations

import json
import os
import resource
import sys


def main() -> None:
    """Run what the arguments name."""
    from benchmarks.peers.measure import has_threads
    from benchmarks.peers.scenarios import BY_ID
    from benchmarks.peers.workloads import AbsentError

    name, system = sys.argv[1:]
    if hasattr(os, "sched_setaffinity") and not has_threads(system):
        # Whatever a library thinks of threads, it has one core.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    scenario = BY_ID[name]
    try:
        figures = scenario.systems[system](scenario.load())
    except AbsentError as absent:
        figures = {"absent": str(absent)}
    # Linux counts in kilobytes, macOS in bytes.
    unit = 1e6 if sys.platform == "darwin" else 1e3
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
