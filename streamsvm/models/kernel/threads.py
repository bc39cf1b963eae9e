"""Threads for kernel values: calls of compiled code that whoever is free makes next.

Each kernel value is computed by one thread in the same way, so that no result depends on the number
of threads. Compiled code runs without the interpreter's lock.

The threads of a process are common to all learners, and sleep while there is nothing to do. The
caller of shared calls makes those that no thread has begun, so that it never waits for threads that
are busy elsewhere. A forked process starts threads of its own when it needs some.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.support.limits import usable_cores


def check_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that the parameter `n_jobs` stands for, which is checked."""
    if n_jobs is None:
        return 1
    if n_jobs == -1 and not isinstance(n_jobs, bool):
        return usable_cores()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise ParameterError(f"n_jobs={n_jobs!r}: use None (1), a number from 1, or -1 (all cores)")
    return int(n_jobs)


def n_used(n_jobs: int | None) -> int:
    """Return how many threads a learner with this `n_jobs` uses: 1 if it has asked for none yet."""
    return min(check_n_jobs(n_jobs), _pool.n_threads + 1)


class SharedCalls:
    """Calls of a function, which must release the GIL: each is made by the next free thread.

    At most `n_threads` threads make some at a time, the caller included. After `begin`, `finish` or
    `stop` must be called, whatever happens: then no thread makes any of them any more.
    """

    def __init__(
        self, function: Callable[..., object], calls: Iterable[tuple[object, ...]], n_threads: int
    ) -> None:
        self._function, self._left = function, deque(calls)
        self._errors: list[BaseException] = []
        # Each is held by a thread while it makes calls.
        self._at_work = [threading.Lock() for _ in range(min(n_threads - 1, len(self._left)))]

    def begin(self) -> None:
        """Let other threads make calls from now on."""
        _pool.help(self._help, self._at_work)

    def _help(self, at_work: threading.Lock) -> None:
        with at_work:
            try:
                self._make_calls()
            except BaseException as error:
                self._errors.append(error)

    def _make_calls(self) -> None:
        while True:
            try:
                arguments = self._left.popleft()
            except IndexError:
                return
            self._function(*arguments)

    def finish(self) -> None:
        """Make the calls that are left, and wait for those of others."""
        try:
            self._make_calls()
        finally:
            self.stop()
        if self._errors:
            raise self._errors[0]

    def stop(self) -> None:
        """Let nobody begin another call, and wait for those that were begun."""
        self._left.clear()
        try:
            self._wait()
        except BaseException:
            # Even after Ctrl-C: what threads write to would be used for other things.
            self._wait()
            raise

    def _wait(self) -> None:
        for at_work in self._at_work:
            with at_work:
                pass


def make_calls(
    function: Callable[..., object], calls: Sequence[tuple[object, ...]], n_threads: int
) -> None:
    """Call a function, which must release the GIL, with each tuple of arguments, in threads."""
    shared = SharedCalls(function, calls, n_threads if len(calls) > 1 else 1)
    try:
        shared.begin()
        shared.finish()
    finally:
        shared.stop()


class _Pool:
    """Threads that wait for shared calls, each for one more of them."""

    def __init__(self) -> None:
        # Queues of this kind wait without polling, and can be used in a signal handler.
        self._tickets: SimpleQueue[tuple[Callable[[threading.Lock], None], threading.Lock]] = (
            SimpleQueue()
        )
        self.n_threads, self._starting = 0, threading.Lock()

    def help(
        self, function: Callable[[threading.Lock], None], places: list[threading.Lock]
    ) -> None:
        """Let a thread call the function with each place, as soon as one is free."""
        if len(places) > self.n_threads:
            self._start(len(places))
        # Not for threads that could not be started: nobody would take them.
        for place in places[: self.n_threads]:
            self._tickets.put((function, place))

    def _start(self, n: int) -> None:
        with self._starting:
            while self.n_threads < n:
                # A daemon: it is asleep when the interpreter ends, which does not wait for it.
                thread = threading.Thread(target=self._serve, name="streamsvm", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    # The limit of threads is reached: the caller does all.
                    return
                self.n_threads += 1

    def _serve(self) -> None:
        tickets = self._tickets
        while True:
            function, place = tickets.get()
            function(place)
            # Nothing of the last call is kept in memory while the thread sleeps.
            del function, place


_pool = _Pool()


def _renew_pool() -> None:
    """Forget the threads of the parent, which a forked process does not have."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_pool)


def ranges(n: int, n_parts: int, step: int) -> list[tuple[int, int]]:
    """Split 0 .. n-1 into at most `n_parts` ranges that begin at multiples of `step`."""
    size = max(1, -(-n // (n_parts * step))) * step
    return [(start, min(start + size, n)) for start in range(0, n, size)] or [(0, 0)]
