"""Compiling while signals come, other processes compile the same, and the process ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import pytest

from streamsvm import _compile, _compiling
from tests.interruptions import needs_ctrl_c

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not _compile.JIT, reason="compiled code is switched off")

MODULE = """
import numpy as np
from streamsvm._compile import compiled

@compiled
def inner(x):
    return np.sqrt(x).sum()

@compiled
def outer(x):
    total = 0.0
    for k in range(len(x)):
        total += inner(x[k:]) * k
    return total
"""
# The first compiled function tells the process to interrupt itself: the second is half-way.
INTERRUPTED = """
import os, signal, sys, time
import numpy as np
import mine
from streamsvm import _compiling
x, compiled = np.ones(3), []

def interrupt(name):
    compiled.append(name)
    if len(compiled) == 1:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)

_compiling.watchers.append(interrupt)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    return tmp_path


def start(folder, program):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder, program, code=0):
    process = start(folder, program)
    out, error = process.communicate(timeout=300)
    assert process.returncode == code, error
    return out.split(), error


@needs_ctrl_c
def test_interruptions_anywhere_leave_the_compiler_whole(folder):
    program = """
import os, random, signal, threading, time
import numpy as np
from streamsvm import _compile

def made(i):
    @_compile.compiled
    def inner(x):
        return np.sqrt(x).sum() + i

    @_compile.compiled
    def outer(x):
        total = 0.0
        for k in range(len(x)):
            total += inner(x[k:]) * k
        return total

    return outer

rng, x, interrupted = random.Random(0), np.ones(3), 0
made(0)(x)
for i in range(1, 11):
    function = made(i)
    pause = rng.uniform(0.0, 0.3)
    timer = threading.Timer(pause, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        function(x)
        while True:
            time.sleep(1.0)
    except KeyboardInterrupt:
        interrupted += 1
    assert function(x) == 4 + 3 * i
print(interrupted)
"""
    out, error = run(folder, program)
    assert out == ["10"]
    assert "Exception ignored" not in error


@needs_ctrl_c
def test_an_interrupted_compilation_ends_the_waiting_and_goes_on(folder):
    program = """
try:
    mine.outer(x)
except KeyboardInterrupt:
    print(*compiled, len(mine.outer.overloads))
print(mine.outer(x), *compiled)
"""
    out, _ = run(folder, INTERRUPTED + program)
    assert out == ["inner", "0", "4.0", "inner", "outer"]


@needs_ctrl_c
def test_the_interpreter_ends_in_the_middle_of_a_compilation(folder):
    program = "sys.excepthook = lambda *error: print(*compiled)\nmine.outer(x)"
    out, error = run(folder, INTERRUPTED + program, -signal.SIGINT)
    assert out == ["inner"]
    assert error == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@needs_ctrl_c
def test_a_child_process_finds_the_compilation_complete(folder):
    program = """
try:
    mine.outer(x)
except KeyboardInterrupt:
    child = os.fork()
    if not child:
        os._exit(int(mine.outer(x)) if len(compiled) == 2 else 99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(folder, INTERRUPTED + program)[0] == ["4"]


def test_compiled_code_of_others_can_call_ours(folder):
    """It is compiled by a thread that holds numba's lock already."""
    program = """
import numba
@numba.njit
def theirs(x):
    return mine.outer(x)
_compiling.watchers.clear()
print(theirs(x))
"""
    assert run(folder, INTERRUPTED + program)[0] == ["4.0"]


COUNTED = """
import numpy as np
import mine
from streamsvm import _compiling
print(mine.outer(np.ones(3)), _compiling.clock.functions, _compiling.clock.seconds > 0)
"""


def test_without_threads_it_compiles_where_it_is(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_compiling.threading.Thread, "start", refuse)
    where = []
    assert _compiling.compile_whole(lambda: where.append(threading.current_thread()) or 5) == 5
    assert where == [threading.main_thread()] and not _compiling._running


def test_errors_of_the_compiler_reach_the_caller():
    @_compile.compiled
    def wrong(x):
        return x + "a"

    for _ in range(2):
        with pytest.raises(numba.TypingError):
            wrong(1.0)
    assert _compiling.compile_whole(lambda: 5) == 5


def test_time_stands_still_for_who_waits_for_a_compilation(monkeypatch):
    monkeypatch.setattr(_compiling.clock, "_has_warned", True)
    starts, found = threading.Barrier(3), {}

    def compiles():
        starts.wait()
        _compiling.clock.miss(None)
        time.sleep(0.4)

    def timed(name, job):
        began, began_work = time.perf_counter(), _compiling.working_time()
        job()
        found[name] = time.perf_counter() - began, _compiling.working_time() - began_work

    def waits():
        starts.wait()
        _compiling.compile_whole(lambda: None)

    def works():
        starts.wait()
        time.sleep(0.2)

    jobs = {
        "compiles": lambda: _compiling.compile_whole(compiles), "waits": waits, "works": works,
        "loads": lambda: _compiling.compile_whole(lambda: time.sleep(0.2)),
    }  # fmt: skip
    threads = [threading.Thread(target=timed, args=(n, jobs[n])) for n in list(jobs)[:3]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    timed("loads", jobs["loads"])
    for name in ("compiles", "waits"):
        assert found[name][0] > 0.35 and found[name][1] < 0.2, name
    for name in ("works", "loads"):
        assert found[name][1] == pytest.approx(found[name][0], abs=0.01) and found[name][1] > 0.15


def test_two_processes_compile_once(folder):
    slow = COUNTED.replace(
        "print(", "_compiling.watchers.append(lambda name: time.sleep(2))\nprint("
    )
    processes = [start(folder, "import time" + slow) for _ in range(2)]
    results = sorted(process.communicate(timeout=300)[0].split() for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    # The one that waited has spent time on it, too.
    assert results == [["4.0", "0", "True"], ["4.0", "2", "True"]]
    assert run(folder, COUNTED)[0] == ["4.0", "0", "False"]


TO_LOGGING = "import logging; logging.basicConfig()\n"
SILENT = "import logging\nfrom streamsvm import _compiling\n_compiling.SILENT_SECONDS = {}\n"
ERRORS = "logging.getLogger('streamsvm').setLevel('ERROR')\n"
WATCHED = "_compiling.watchers.append(lambda name: None)\nprint("
LINE = "streamsvm: compiling for this machine: it happens once"


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (TO_LOGGING + COUNTED, "streamsvm warm"),
        (TO_LOGGING + COUNTED.replace("print(", WATCHED), None),
        (SILENT.format(0.0) + COUNTED, LINE),
        (SILENT.format(0.0) + ERRORS + COUNTED, None),
        (SILENT.format(600.0) + COUNTED, None),
    ],
    ids=["logged", "watched", "after some seconds", "errors only", "before"],
)
def test_it_is_said_in_one_line_that_code_is_compiled(folder, program, line):
    out, error = run(folder, program)
    assert out == ["4.0", "2", "True"]
    assert error.count("\n") == (line is not None) and (line or "") in error
    assert line != LINE or error.startswith(LINE)
    if TO_LOGGING in program and line:
        assert f"kept in {folder / '__pycache__'}" in error
        assert run(folder, program)[1] == ""


def test_a_killed_owner_blocks_nobody(folder):
    program = """
import os, signal
import numpy as np
import mine
from streamsvm import _compiling
_compiling.watchers.append(lambda name: os.kill(os.getpid(), signal.SIGKILL))
mine.outer(np.ones(3))
"""
    run(folder, program, -signal.SIGKILL)
    assert list(folder.rglob("*.lock"))
    assert run(folder, COUNTED)[0] == ["4.0", "2", "True"]


@pytest.fixture
def lock(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiling, "LONGEST_WAIT", 0.1)
    monkeypatch.setattr(_compiling.EntryLock, "_is_waited_for", True)
    return _compiling.EntryLock(tmp_path / "locks" / "entry.lock")


def test_a_lock_that_its_owner_keeps_is_waited_for_once(lock):
    owner = _compiling.EntryLock(lock._path)
    owner.acquire()
    for _ in range(2):
        lock.acquire()
        lock.release()
        assert not _compiling.EntryLock._is_waited_for
    owner.release()


def test_a_lock_can_be_acquired_twice_and_is_free_at_last(lock):
    other = _compiling.EntryLock(lock._path)
    lock.acquire()
    lock.acquire()
    lock.release()
    lock.release()
    other.acquire()
    assert _compiling.EntryLock._is_waited_for
    other.release()


def test_locks_that_cannot_be_made_and_systems_without_do_not_hinder(lock, monkeypatch):
    lock._path.parent.write_text("a file in the place of the folder")
    for fcntl in (_compiling.fcntl, None):
        monkeypatch.setattr(_compiling, "fcntl", fcntl)
        lock.acquire()
        lock.release()
        assert lock.depth == 0 and not lock._path.exists()
        lock._path.parent.unlink(missing_ok=True)
