"""Makes the faults, and prints the table of docs: ``python -m benchmarks.faults``.

Each line is printed when its trial has shown that it holds; one that does not is marked, and the
command then ends with exit code 1. A word as argument: only the lines that hold it. It takes a few
minutes; `benchmarks.kills` is about processes that are killed at random.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks.faults import checkpoints, files, learners, messages, python
from benchmarks.faults.trial import FAULTS

MODULES = (messages, checkpoints, files, learners, python)
"""They add their faults to the list as they are imported."""


def main() -> int:
    """Run as the command says; return the exit code."""
    words, failed, start = sys.argv[1:], 0, time.perf_counter()
    chosen = [fault for fault in FAULTS if all(word in fault.line for word in words)]
    print("| what goes wrong | what happens |\n|---|---|")
    for fault in chosen:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fault.trial(Path(folder))
            except Exception as error:
                failed += 1
                print(f"{fault.line} <- DOES NOT HOLD: {type(error).__name__}: {error}", flush=True)
            else:
                print(fault.line, flush=True)
    seconds = time.perf_counter() - start
    print(f"{len(chosen)} faults, {failed} do not hold; {seconds:.0f} s", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
