"""Processes that score files: each is asked for one after the other, and ends with its parent.

They are programs of their own, in sessions of their own: Ctrl-C reaches the parent only, which ends
them. What they are asked, and answer, are lines of JSON.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import IO, Any

from streamsvm.cli.learners import load_plugins
from streamsvm.cli.outputs import error_text
from streamsvm.cli.scoring.files import Scored, Scorer

_PATIENCE = 10.0
"""Seconds in which a process that is asked to end removes its unfinished file."""


class Workers:
    """Scores files in several processes; `results` has (number of the file, what came of it).

    One whose process died has that as its error; the others go on in a new process.
    """

    def __init__(self, n: int, options: dict[str, Any], scorer: Scorer, due: Sequence[int]) -> None:
        job = {"options": options, "names": list(scorer.names), "digest": scorer.digest}
        self._job = json.dumps(job) + "\n"
        self.results: SimpleQueue[tuple[int, Scored]] = SimpleQueue()
        self._due: SimpleQueue[int] = SimpleQueue()
        for i in due:
            self._due.put(i)
        self._lock, self._is_over = threading.Lock(), False
        self._processes: set[subprocess.Popen[str]] = set()
        for _ in range(min(n, len(due))):
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        """Let one process after the other score files, until there are none."""
        process = None
        while True:
            try:
                i = self._due.get_nowait()
            except Empty:
                break
            try:
                process = process or self._start()
                if process is None:
                    return
                scored = _answer(process, f"{i}\n") or _ended(process)
                process = None if process.returncode is not None else process
            except (OSError, ValueError) as error:
                scored = Scored(
                    error=f"no process can be started, or be understood: {error_text(error)}"
                )
            self.results.put((i, scored))
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def _start(self) -> subprocess.Popen[str] | None:
        """Start a process; None: it is over."""
        # What is imported here can be imported there.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with self._lock:
            if self._is_over:
                return None
            process = subprocess.Popen(
                # -P: without the current folder, whose files may have the names of modules.
                [sys.executable, "-P", "-m", "streamsvm.cli.scoring.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
            self._processes.add(process)
        _write(process, self._job)
        return process

    def end(self) -> None:
        """End all processes, with what they are doing."""
        with self._lock:
            self._is_over = True
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()


def _write(process: "subprocess.Popen[str]", line: str) -> None:
    """Write to a process; one that has ended shows by its answer."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line)
        process.stdin.flush()


def _answer(process: "subprocess.Popen[str]", line: str) -> Scored | None:
    """Return what a process answers; None: it has ended."""
    _write(process, line)
    assert process.stdout is not None
    answer = process.stdout.readline()
    return Scored(*json.loads(answer)) if answer.endswith("\n") else None


def _ended(process: "subprocess.Popen[str]") -> Scored:
    """Return what came of the file of a process that has ended without an answer."""
    code = process.wait()
    how = f"by signal {-code}" if code < 0 else f"with code {code}"
    return Scored(error=f"the process that scored it ended {how}")


def main(asked: IO[str], answers: IO[str]) -> None:
    """Answer with what came of each file that is asked for, until the parent asks no more.

    Once the parent is no more, nobody reads the answers: that is the end, too.
    """
    # As an exception, so that an unfinished file is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    job = json.loads(asked.readline())
    load_plugins()
    scorer: Scorer | None = None
    with contextlib.suppress(BrokenPipeError), answers:
        for line in asked:
            try:
                options = argparse.Namespace(**job["options"])
                scorer = scorer or Scorer(options, job["names"], job["digest"])
                scored = scorer.score(int(line))
            except Exception as error:
                scored = Scored(error=error_text(error))
            answers.write(json.dumps(scored) + "\n")
            answers.flush()
    # Nothing is unfinished; an exception while Python ends would be shown.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


if __name__ == "__main__":
    # What libraries print must not be taken for an answer.
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    main(sys.stdin, own)
