"""Threads for kernel values: blocks of fresh rows against ranges of stored rows.

Each kernel value is computed by one thread in the same way, so that no result depends on the number
of threads. Compiled code runs without the interpreter's lock. Several threads are used when a part
of a block takes far longer than waking a thread, which is about 20 microseconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.support import sparse_store
from streamsvm.support.sparse_store import SparseStore

_WORTH = 100_000
"""Stored rows times features above which a block of 64 fresh rows is split among threads."""

_PER_NONZERO = 4
"""Cost of a stored nonzero value, relative to a feature of a dense row."""

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def check_n_jobs(n_jobs: Any) -> int:
    """Return the number of threads that the parameter `n_jobs` stands for, which is checked."""
    if n_jobs is None:
        return 1
    if n_jobs == -1 and not isinstance(n_jobs, bool):
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise ParameterError(f"n_jobs={n_jobs!r}: use None (1), a number from 1, or -1 (all cores)")
    return int(n_jobs)


def are_worth_it(store: Any, n_slots: int, d: int) -> bool:
    """Tell whether to split a block among threads, given the number of stored rows and features."""
    if n_slots and isinstance(store, SparseStore):
        return _PER_NONZERO * int(store.counts[sparse_store.LIVE]) > _WORTH
    return n_slots * d > _WORTH


def run(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Call a function with each tuple of arguments, in threads; it must release the GIL."""
    first, *others = arguments
    if others:
        # A forked process has the object, but not the threads.
        key = (os.getpid(), len(others))
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = ThreadPoolExecutor(len(others), "streamsvm")
        futures = [pool.submit(function, *other) for other in others]
        function(*first)
        for future in futures:
            future.result()
    else:
        function(*first)


def ranges(n: int, n_parts: int, step: int) -> list[tuple[int, int]]:
    """Split 0 .. n-1 into at most `n_parts` ranges that begin at multiples of `step`."""
    size = -(-n // (n_parts * step)) * step
    return [(start, min(start + size, n)) for start in range(0, n, size)] or [(0, 0)]
