"""Python programs that run in a process of their own: as users start them, or could crash."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def python(*arguments, folder=None, seconds=600, **environment):
    """Run Python in a folder; return what was printed, and fail if it did not end well."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
