"""Programs that run in a process of their own, because what they test could crash it."""

import os
import signal
import subprocess
import sys
import textwrap

PREAMBLE = """
import faulthandler
faulthandler.enable()
"""


def run(program, *arguments, seconds=600, **environment):
    """Run a program; return what it printed, and fail if it crashed, hung or raised."""
    process = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | environment,
        check=False,
    )
    code = process.returncode
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    assert code == 0, f"{name}\n{process.stdout[-2000:]}\n{process.stderr[-4000:]}"
    return process.stdout
