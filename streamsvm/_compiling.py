"""Each compilation runs in a thread of its own, under a lock between processes, and is timed.

An exception that interrupts numba while it compiles, as Ctrl-C does, leaves its tables
inconsistent, so that later calls in the process fail. Signals interrupt the main thread only.
Therefore the main thread has another thread compile, and waits for it. Ctrl-C ends the waiting; the
compilation continues to its end, and its result is kept.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # on Windows processes do not wait for one another
    fcntl = None  # type: ignore[assignment]

LONGEST_WAIT = 180.0
"""How many seconds to wait for another process that compiles the same function."""

SILENT_SECONDS = 3.0
"""How long compilations may last in all before it is said on standard error."""

_POLL = 0.02
_INTERRUPTED_EVERY = 0.2

watchers: list[Callable[[str], None]] = []
"""Functions that the compiling thread calls with the name of each function that was compiled."""

_log = logging.getLogger(__name__)


class _Waited(threading.local):
    """The seconds that a thread waited for compilations, its own or those of other threads."""

    seconds = 0.0


_waited = _Waited()


def working_time() -> float:
    """Return the time by a clock of this thread that stands still while it waits for compiling.

    Returns
    -------
    Seconds; only differences have a meaning.

    """
    return time.perf_counter() - _waited.seconds


class CompileClock:
    """Counts the functions compiled in this process, and the seconds that took."""

    def __init__(self) -> None:
        self.functions = 0
        self._missed = False
        self._seconds = 0.0
        self._start: float | None = None
        self._has_warned = False
        self._timer: threading.Timer | None = None

    @property
    def finished_seconds(self) -> float:
        """The seconds spent on compilations that have ended; more after each that compiled."""
        return self._seconds

    @property
    def seconds(self) -> float:
        """The seconds spent on compiling, or on waiting for another process that compiled."""
        start = self._start
        running = 0.0 if start is None or not self._missed else time.perf_counter() - start
        return self._seconds + running

    def start(self) -> None:
        """Begin to time a compilation, or the loading of its result from the cache."""
        self._missed, self._start = False, time.perf_counter()

    def stop(self) -> None:
        """End the timing; the time counts only if something was not in the cache."""
        assert self._start is not None
        seconds, missed = time.perf_counter() - self._start, self._missed
        self._start = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if missed:
            self._seconds += seconds

    def miss(self, folder: str | None) -> None:
        """Record that a function was not in the cache; warn once if nothing watches.

        The warning is logged rather than raised by `warnings.warn`: the caller's code is right, and
        a test suite that turns warnings into errors must not fail because of an empty cache.
        Where the application has not set logging up, it is a line on standard error, after
        `SILENT_SECONDS` of compiling, unless the logger's level is above that of warnings.

        Parameters
        ----------
        folder
            The cache folder, or None if no folder can be written.

        """
        self._missed = True
        if self._has_warned or watchers or self._timer is not None:
            return
        kept = (
            f"once, as the result is kept in {folder}"
            if folder
            else "in each process, as no folder for the result can be written"
        )
        text = (
            f"compiling for this machine: it happens {kept}, and takes some 5 to 90 seconds for "
            "each learner and kind of data (single events or batches, two classes or more, dense "
            "or sparse). `streamsvm warm`, or streamsvm.warm() in Python, does it in advance."
        )
        if _is_set_up(_log):
            self._has_warned = True
            _log.warning("%s", text)
            return
        wait = max(0.0, SILENT_SECONDS - self._seconds)
        timer = threading.Timer(wait, self._print, (text,))
        timer.daemon = True
        # Where no thread can be started, nothing is said.
        with contextlib.suppress(RuntimeError):
            timer.start()
            self._timer = timer

    def _print(self, text: str) -> None:
        """Print a warning while a compilation lasts."""
        if self._has_warned or watchers or not _log.isEnabledFor(logging.WARNING):
            return
        self._has_warned = True
        # There may be no standard error, or a closed one.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"streamsvm: {text}\n")
            sys.stderr.flush()

    def compiled(self, name: str) -> None:
        """Count a function that was compiled, and call the watchers with its name."""
        self.functions += 1
        _log.debug("compiled %s", name)
        for watcher in list(watchers):
            watcher(name)


def _is_set_up(logger: logging.Logger) -> bool:
    """Tell whether what a logger says is seen: one of its handlers is none that drops all."""
    of: logging.Logger | None = logger
    while of is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in of.handlers):
            return True
        of = of.parent if of.propagate else None
    return False


clock = CompileClock()


class CacheFile(IndexDataCacheFile):
    """Numba's index and data files; each data file says which entry it is.

    Numba writes the index before the data, under a file name that an older entry may have had. A
    process that reads between the two, or after a process that ended there, would run the older
    code.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write the code of an entry."""
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        """Return the code of an entry, None if there is none."""
        found = super().load(key)
        if found is None:
            return None
        stamp, kept_key, data = found
        return data if (stamp, kept_key) == (self._source_stamp, key) else None


class EntryLock:
    """A reentrant lock between processes on the cache entry of a function; it never raises.

    The operating system releases the lock when its process ends, however that happens. Where files
    cannot be locked, and after a process has held a lock for longer than `LONGEST_WAIT`, locks are
    not waited for. Then a function may be compiled twice, and the second result replaces the first.

    Parameters
    ----------
    path
        A file for this lock only; it is created, and never deleted.

    """

    _is_waited_for = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.depth = 0

    def acquire(self) -> None:
        """Wait for the lock; a thread that holds it may acquire it again."""
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
        """Release the lock, once for each `acquire`."""
        self.depth -= 1
        if self.depth == 0 and self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                os.close(file)


def compile_whole(compile: Callable[..., Any], *args: Any, lock: EntryLock | None = None) -> Any:
    """Run a compilation that no signal can interrupt.

    Parameters
    ----------
    compile
        Numba's method that compiles a function, or loads it from the cache.
    *args
        The arguments of `compile`.
    lock
        A lock that `compile` may acquire; it is released at the end.

    Returns
    -------
    The result of `compile`; its exceptions are raised here.

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
        # This thread holds it: the function is compiled as part of another one.
        return work()
    before, began = clock.finished_seconds, time.perf_counter()
    try:
        is_main = threading.current_thread() is threading.main_thread()
        return _in_thread(timed) if is_main else timed()
    finally:
        # Not if all was loaded from the cache.
        if clock.finished_seconds != before:
            _waited.seconds += time.perf_counter() - began


_running: dict[threading.Thread, threading.Event] = {}


def _in_thread(job: Callable[[], Any]) -> Any:
    """Run a job in another thread, which continues to the end even if this one is interrupted."""
    results: list[Any] = []
    errors: list[BaseException] = []
    # Not `Thread.join`: when it is interrupted, it regards the thread as ended.
    done = threading.Event()

    def run() -> None:
        try:
            results.append(job())
        except BaseException as error:
            errors.append(error)
        finally:
            _running.pop(thread, None)
            done.set()

    # A daemon thread: the interpreter joins other threads before it calls `_end_compiling`.
    thread = threading.Thread(target=run, name="streamsvm-compile", daemon=True)
    _running[thread] = done
    try:
        thread.start()
    except RuntimeError:
        # The limit of threads is reached, or the interpreter is shutting down.
        _running.pop(thread, None)
        return job()
    done.wait()
    if errors:
        raise errors[0]
    return results[0]


@atexit.register
def _end_compiling() -> None:
    """Stop all compilations when the interpreter shuts down.

    Their threads must not run on while the memory of the compiler is freed.
    """
    for thread, done in list(_running.items()):
        while not done.wait(_INTERRUPTED_EVERY) and thread.ident is not None:
            number, kind = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)


def _fork_when_nothing_is_compiled() -> None:
    """Make forks wait for compilations, so that no child inherits a half-compiled function.

    Models are locked before that: of the hooks that run before a fork, those registered later run
    first, and models register theirs after this one.
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
