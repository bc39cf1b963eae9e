"""What surrounds each compilation: a thread of its own, a lock between processes, clock and notice.

An exception that interrupts numba half-way, as Ctrl-C does, leaves its tables inconsistent: later
calls in the process fail. So the main thread, the only one that signals interrupt, lets another
thread compile and waits for it. Ctrl-C ends the waiting; the compilation goes on to its end, and
its result is kept.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # Windows: processes do not wait for one another
    fcntl = None  # type: ignore[assignment]

LONGEST_WAIT = 180.0
"""Seconds to wait for another process that compiles the same function."""

_POLL = 0.02
_INTERRUPTED_EVERY = 0.2

watchers: list[Callable[[str], None]] = []
"""Called, in the thread that compiles, with the name of each function that was compiled."""

_log = logging.getLogger("streamsvm")


class CompileClock:
    """How much was compiled in this process so far, and how long that took."""

    def __init__(self) -> None:
        self.functions = 0
        self._missed = False
        self._seconds = 0.0
        self._start: float | None = None
        self._has_spoken = False

    @property
    def seconds(self) -> float:
        """Seconds in which something was compiled, or another process waited for that did."""
        start = self._start
        running = 0.0 if start is None or not self._missed else time.perf_counter() - start
        return self._seconds + running

    def start(self) -> None:
        """Note that a compilation, or the loading of its result, begins."""
        self._missed, self._start = False, time.perf_counter()

    def stop(self) -> None:
        """Note its end; loading alone does not count."""
        assert self._start is not None
        seconds, missed = time.perf_counter() - self._start, self._missed
        self._start = None
        if missed:
            self._seconds += seconds

    def miss(self, folder: str | None) -> None:
        """Note that a function was not in the cache; say so the first time, unless watched.

        A logged warning, and no `warnings.warn`: nothing is wrong with the caller's code, and a
        test suite that turns warnings into errors must not fail for a cold cache. Unconfigured,
        `logging` prints it to standard error; applications route or silence it by its name.
        """
        self._missed = True
        if self._has_spoken or watchers:
            return
        self._has_spoken = True
        kept = (
            f"once, as the result is kept in {folder}"
            if folder
            else "in each process, as no folder for the result can be written"
        )
        _log.warning(
            "compiling for this machine: it happens %s, and takes some 20 to 90 seconds for a "
            "learner. `streamsvm warm`, or streamsvm.warm() in Python, does it in advance.",
            kept,
        )

    def compiled(self, name: str) -> None:
        """Note that a function was compiled, and tell the watchers."""
        self.functions += 1
        for watcher in list(watchers):
            watcher(name)


clock = CompileClock()


class EntryLock:
    """A lock between processes on the cache entry of a function; it is no reason to fail.

    The system releases it when its owner ends, however that happens. Where files cannot be locked,
    or once an owner took longer than `LONGEST_WAIT`, it is not waited for: the function is compiled
    twice then, and the second result replaces the first.

    Parameters
    ----------
    path
        A file for the lock alone; it is made, and stays.

    """

    _is_waited_for = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.depth = 0

    def acquire(self) -> None:
        """Wait for the lock; a thread that has it can have it again."""
        self.depth += 1
        if self.depth > 1 or fcntl is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            self._wait(self._file)

    @staticmethod
    def _wait(file: int) -> None:
        end = time.monotonic() + LONGEST_WAIT
        while EntryLock._is_waited_for:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                EntryLock._is_waited_for = time.monotonic() < end
                time.sleep(_POLL)

    def release(self) -> None:
        """Give it back."""
        self.depth -= 1
        if self.depth == 0 and self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                os.close(file)


def compile_whole(compile: Callable[..., Any], *args: Any, lock: EntryLock | None = None) -> Any:
    """Run a compilation that no signal can interrupt; return or raise what it does.

    Parameters
    ----------
    compile
        Numba's method that compiles, or loads from the cache.
    *args
        Its arguments.
    lock
        What `compile` may acquire, and is released at its end.

    """

    def work() -> Any:
        before = 0 if lock is None else lock.depth
        try:
            return compile(*args)
        finally:
            while lock is not None and lock.depth > before:
                lock.release()

    def timed() -> Any:
        with global_compiler_lock:
            clock.start()
            try:
                return work()
            finally:
                clock.stop()

    if global_compiler_lock.is_locked():
        # By this thread: a function that is compiled as another one's part.
        return work()
    return _in_thread(timed) if threading.current_thread() is threading.main_thread() else timed()


_running: dict[threading.Thread, threading.Event] = {}


def _in_thread(job: Callable[[], Any]) -> Any:
    """Run a job in another thread, to its end even if this one is interrupted."""
    results: list[Any] = []
    errors: list[BaseException] = []
    # `Thread.join`, when it is interrupted, takes the thread for ended.
    done = threading.Event()

    def run() -> None:
        try:
            results.append(job())
        except BaseException as error:
            errors.append(error)
        finally:
            _running.pop(thread, None)
            done.set()

    # A daemon, as interpreters wait for others before they call `_end_compiling`.
    thread = threading.Thread(target=run, name="streamsvm-compile", daemon=True)
    _running[thread] = done
    try:
        thread.start()
    except RuntimeError:
        # There are no more threads, or the interpreter ends.
        _running.pop(thread, None)
        return job()
    done.wait()
    if errors:
        raise errors[0]
    return results[0]


@atexit.register
def _end_compiling() -> None:
    """Interrupt what is still compiled when the interpreter ends: nobody needs it any more.

    The compiler's threads must not run on while its memory is freed.
    """
    for thread, done in list(_running.items()):
        while not done.wait(_INTERRUPTED_EVERY) and thread.ident is not None:
            number, kind = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)


def _fork_when_nothing_is_compiled() -> None:
    """Let a child process find no half-compiled function, and no lock without an owner.

    Locks of models are to be taken before: hooks registered later run earlier.
    """
    if not hasattr(os, "register_at_fork"):
        return
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
    os.register_at_fork(after_in_child=_running.clear)


_fork_when_nothing_is_compiled()
