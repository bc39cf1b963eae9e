"""A cache of rows of the kernel matrix between support vectors; the least recently used is evicted.

The line of slot i holds k(row of slot i, row of slot s) for s = 0 .. length-1. It is written when
its example becomes a support vector, and extended only when it is needed again: a new support
vector never writes a column into the lines of others.

Many rows are never needed again after the step with which their example entered. So a new row is on
trial: of these the last `MOST_ON_TRIAL` are kept, and one is admitted when it is needed after
another row came. The system provides memory when it is first written, which takes as long as
computing the values: beyond `AT_ONCE_BYTES`, a line that was never used is put to use only for a
row that is needed and missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner, compiled_within, prefetch
from streamsvm.support import stores
from streamsvm.support.tiles import PANEL

NONE = -1
MIN_LINES = 8
"""A step needs two lines at once; a few more keep a tiny budget from thrashing."""

MOST_ON_TRIAL = 64
"""The number of rows on trial; fewer if there are fewer than twice as many lines."""

AT_ONCE_BYTES = 64_000_000
"""Bytes of lines that are put to use for rows on trial, too."""

_VALUES_PER_CACHE_LINE = 16
"""The number of float32 values in 64 bytes, which the processor loads together."""

HITS, MISSES, EXTENDED, COMPUTED = range(4)
"""Indices of `counts`: lines found complete, missing, and extended; kernel values computed."""

ON_TRIAL, KEPT, USED, AT_ONCE = range(4)
"""Indices of `state`: lines on trial; calls of `keep`; lines that were used, from the last one; how
many may be used for rows on trial, too, or 0: no row is put on trial."""


class RowCache(NamedTuple):
    """Kernel rows in lines: two linked lists, of admitted lines and of those on trial.

    Each goes from the most to the least recent one. Lines that were never used are in neither.
    """

    values: np.ndarray  # float32 (n_lines, capacity)
    length: np.ndarray  # int64 (n_lines,) the number of valid values of a line
    line_of: np.ndarray  # int32 (capacity,) line of a slot, or -1
    slot_of: np.ndarray  # int32 (n_lines,) slot of a line, or -1
    older: np.ndarray  # int32 (n_lines + 2,) next line of a list; the last two are the heads
    newer: np.ndarray  # int32 (n_lines + 2,) previous line; the last two are the tails
    trial: np.ndarray  # int64 (n_lines,) which call of `keep` put a line on trial; 0: admitted
    row: np.ndarray  # float32 (1, features) scratch: the row whose line is computed
    counts: np.ndarray  # int64 (4,): HITS, MISSES, EXTENDED, COMPUTED
    state: np.ndarray  # int64 (4,): ON_TRIAL, KEPT, USED, AT_ONCE


def _n_lines(capacity: int, budget: int) -> int:
    return min(capacity, max(MIN_LINES, budget // (4 * capacity)))


def new_cache(capacity: int, n_features: int, budget: int) -> RowCache:
    """Allocate as many lines as fit into `budget` bytes, `MIN_LINES` to `capacity`."""
    return _empty_cache(np.zeros((_n_lines(capacity, budget), capacity), np.float32), n_features)


def _empty_cache(values: np.ndarray, n_features: int) -> RowCache:
    """Return an empty cache that keeps its lines in `values`."""
    n_lines, capacity = values.shape
    at_once = min(n_lines, max(MIN_LINES, AT_ONCE_BYTES // (4 * capacity)))
    return RowCache(
        values=values, length=np.zeros(n_lines, np.int64),
        line_of=np.full(capacity, NONE, np.int32), slot_of=np.full(n_lines, NONE, np.int32),
        older=np.arange(n_lines + 2, dtype=np.int32), newer=np.arange(n_lines + 2, dtype=np.int32),
        trial=np.zeros(n_lines, np.int64), row=np.zeros((1, max(1, n_features)), np.float32),
        counts=np.zeros(4, np.int64), state=np.array([0, 0, 0, at_once], np.int64),
    )  # fmt: skip


def used_bytes(cache: RowCache) -> int:
    """Return the bytes of the cache, without lines that were never used."""
    n_lines, capacity = cache.values.shape
    never_used = 4 * capacity * (n_lines - int(cache.state[USED]))
    return sum(array.nbytes for array in cache) - never_used


def resized(cache: RowCache, capacity: int, n_features: int, budget: int) -> RowCache:
    """Return a cache for a store that has grown, with the admitted lines of the old one.

    If the new cache fits into the memory of the old one, that memory is reused and all lines are
    lost: copying them would need twice the budget for a moment.
    """
    n_lines = _n_lines(capacity, budget)
    if n_lines < capacity and n_lines * capacity <= cache.values.size:
        values = cache.values.reshape(-1)[: n_lines * capacity].reshape(n_lines, capacity)
        new = _empty_cache(values, n_features)
        new.counts[:] = cache.counts
        return new
    new = new_cache(capacity, n_features, budget)
    new.counts[:] = cache.counts
    newest_first: list[int] = []
    head, older, slot_of = cache.length.size, cache.older.tolist(), cache.slot_of.tolist()
    line = older[head]
    while line != head and len(newest_first) < n_lines:
        if slot_of[line] != NONE:
            newest_first.append(line)
        line = older[line]
    # Lines are used from the last one: the newest row gets the first of so many.
    first = n_lines - len(newest_first)
    lengths, slots = cache.length[newest_first], cache.slot_of[newest_first]
    for line, (old, length) in enumerate(zip(newest_first, lengths.tolist(), strict=True), first):
        new.values[line, :length] = cache.values[old, :length]
    new.length[first:], new.slot_of[first:] = lengths, slots
    new.line_of[slots] = np.arange(first, n_lines)
    chain = np.array([n_lines, *range(first, n_lines), n_lines])
    new.older[chain[:-1]], new.newer[chain[1:]] = chain[1:], chain[:-1]
    new.state[USED] = len(newest_first)
    return new


@compiled_within
def _unused_line(cache):
    cache.state[USED] += 1
    return np.int64(cache.length.size - cache.state[USED])


@compiled_within
def _move(cache, line, head):
    """Make a line the first of the list with this head."""
    before, after = cache.newer[line], cache.older[line]
    cache.older[before] = after
    cache.newer[after] = before
    first = cache.older[head]
    cache.older[line] = first
    cache.newer[first] = line
    cache.newer[line] = head
    cache.older[head] = line


@compiled_within
def touch(cache, line):
    """Make a line the most recently used one; one on trial is admitted if another came after it."""
    head = cache.length.size
    if cache.older[head] == line:
        return
    if cache.trial[line] > 0:
        if cache.trial[line] == cache.state[KEPT]:
            return
        cache.trial[line] = 0
        cache.state[ON_TRIAL] -= 1
    _move(cache, line, head)


@compiled_within
def free(cache, slot):
    """Invalidate the line of a slot; it keeps its position in its list until it is reused."""
    line = cache.line_of[slot]
    if line != NONE:
        cache.slot_of[line] = NONE
        cache.line_of[slot] = NONE
        cache.length[line] = 0


@compiled_inner
def clear(cache, n):
    """Invalidate the lines of the first n slots."""
    for slot in range(n):
        free(cache, slot)


@compiled_within
def _give(cache, line, slot):
    """Make a line, emptied, that of a slot."""
    if cache.slot_of[line] != NONE:
        cache.line_of[cache.slot_of[line]] = NONE
    cache.slot_of[line] = slot
    cache.line_of[slot] = line
    cache.length[line] = 0


@compiled_within
def take_line(cache, slot):
    """Return an unused line, or else the least recently used one, as the line of a slot."""
    n_lines = cache.length.size
    line = np.int64(cache.newer[n_lines])
    if cache.state[USED] < n_lines:
        line = _unused_line(cache)
    _give(cache, line, slot)
    touch(cache, line)
    return line


@compiled_within
def _line_on_trial(cache):
    """Return the oldest line on trial; one more is put on trial while there are few."""
    n_lines, state = cache.length.size, cache.state
    trials, at_once = n_lines + 1, state[AT_ONCE]
    line = np.int64(cache.newer[trials])
    if state[ON_TRIAL] < min(MOST_ON_TRIAL, at_once // 2):
        state[ON_TRIAL] += 1
        line = _unused_line(cache) if state[USED] < at_once else np.int64(cache.newer[n_lines])
    _move(cache, line, trials)
    cache.trial[line] = state[KEPT]
    return line


@compiled_within
def keep(cache, slot, values, n):
    """Store values[:n], float32, as the line of a slot that has no line; it is on trial."""
    cache.state[KEPT] += 1
    if cache.state[AT_ONCE] == 0:
        line = take_line(cache, slot)
    else:
        line = _line_on_trial(cache)
        _give(cache, line, slot)
    for s in range(n):
        cache.values[line, s] = values[s]
    cache.length[line] = n


@compiled_within
def _panel_is_cached(cache, slot, first, n):
    """Tell if the lines of all slots of a panel within n hold the column `slot`."""
    if first + PANEL > n:
        return False
    for s in range(first, first + PANEL):
        line = cache.line_of[s]
        if line == NONE or cache.length[line] <= slot:
            return False
    return True


@compiled_within
def kernel_row(cache, kernel, store, slot, n, d):
    """Return the number of the line of a slot, whose first n values are valid."""
    line = np.int64(cache.line_of[slot])
    if line == NONE or cache.length[line] < n:
        return _completed(cache, kernel, store, slot, n, d)
    cache.counts[HITS] += 1
    touch(cache, line)
    return line


@compiled_inner
def _completed(cache, kernel, store, slot, n, d):
    """Return the line of a slot after adding the values that it lacks."""
    line = np.int64(cache.line_of[slot])
    if line == NONE:
        cache.counts[MISSES] += 1
        line = take_line(cache, slot)
    else:
        cache.counts[EXTENDED] += 1
        touch(cache, line)
    _complete(cache, kernel, store, slot, line, n, d)
    cache.length[line] = n
    return line


@compiled_inner
def _complete_by_panels(cache, kernel, store, slot, line, n, d):
    """Copy each panel of values from the lines of the other slots, or compute it.

    It is copied if all of them are cached (the matrix is symmetric to the last bit).
    """
    x = stores.row_of(store, slot, cache.row, d)
    values = cache.values[line : line + 1]
    start = cache.length[line]
    while start < n:
        panel = start // PANEL * PANEL
        stop = panel + PANEL
        if _panel_is_cached(cache, slot, panel, n):
            for s in range(start, stop):
                values[0, s] = cache.values[cache.line_of[s], slot]
        else:
            # Consecutive panels are computed together.
            while stop < n and not _panel_is_cached(cache, slot, stop, n):
                stop += PANEL
            stores.values(kernel, store, x, np.int64(1), d, panel, stop, values)
            cache.counts[COMPUTED] += min(stop, n) - start
        start = stop


@compiled_within
def _is_known(cache, store, slot, other):
    """Tell whether the line of another slot holds the column `slot`, or its member was removed."""
    line = cache.line_of[other]
    return store.entered[other] == 0 or (line != NONE and cache.length[line] > slot)


@compiled_within
def _copy_columns(cache, store, slot, start, stop):
    """Copy values start .. stop-1 of a line from the lines of these slots; 0 of removed members.

    Reading the value of one slot makes the processor load those of its neighbours. So the lines of
    neighbours that end at the same value are extended by it, too.
    """
    first = slot // _VALUES_PER_CACHE_LINE * _VALUES_PER_CACHE_LINE
    last = first + _VALUES_PER_CACHE_LINE
    cache.length[cache.line_of[slot]] = start
    for t in range(start, stop):
        is_removed = store.entered[t] == 0
        source = np.int64(0 if is_removed else cache.line_of[t])
        for s in range(first, last if is_removed else min(last, cache.length[source])):
            line = cache.line_of[s]
            if line != NONE and cache.length[line] == t:
                value = cache.values[source, s]
                cache.values[line, t] = np.float32(0.0) if is_removed else value
                cache.length[line] = t + 1


@compiled_inner
def _complete_by_members(cache, kernel, store, slot, line, n, d):
    """Copy values that other lines have; compute the panels that have any other member."""
    values, place, start = cache.values[line], store.slot, cache.length[line]
    n_slots, n_missing = store.rows.entered.size, 0
    is_wanted = np.zeros(n_slots // PANEL, np.bool_)
    for s in range(start, n):
        if not _is_known(cache, store, slot, s):
            is_wanted[place[s] // PANEL] = True
            n_missing += 1
    if n_missing == 0:
        _copy_columns(cache, store, slot, start, n)
        return
    cache.counts[COMPUTED] += n_missing
    x, found = stores.row_of(store, slot, cache.row, d), np.empty((1, n_slots), np.float32)
    stores.values_of_panels(kernel, store, x, np.int64(1), d, is_wanted, found)
    for s in range(start, n):
        if not is_wanted[place[s] // PANEL]:
            _copy_columns(cache, store, slot, s, s + 1)
        else:
            values[s] = np.float32(0.0) if store.entered[s] == 0 else found[0, place[s]]


_complete = stores.of_store(
    2, _complete_by_panels, _complete_by_panels, _complete_by_panels, _complete_by_members
)
"""_complete(cache, kernel, store, slot, line, n, d): write the values that a line lacks."""


@compiled_within
def fetch(cache, slot):
    """Prefetch the line of a slot.

    Lines are rarely in the processor's cache: those of 5,500 support vectors take 120 MB.
    """
    line = cache.line_of[slot]
    if line != NONE:
        for s in range(0, cache.length[line], _VALUES_PER_CACHE_LINE):
            prefetch(cache.values, line, s)


@compiled_inner
def set_column(cache, slot, values):
    """Write values[s], float32, to column `slot` of the line of each slot s, where that is valid.

    For a slot whose row is replaced; its own line must be freed first.
    """
    for line in range(cache.length.size):
        owner = cache.slot_of[line]
        if owner != NONE and cache.length[line] > slot:
            cache.values[line, slot] = values[owner]


@compiled_inner
def reorder(cache, order, n_kept):
    """Renumber slot order[s] to s, for s < n_kept, in every line; all other slots are removed.

    A line keeps its values up to the first slot, by the new numbers, that it has no value of.
    """
    capacity = cache.line_of.size
    copy = np.empty(capacity, np.float32)
    for line in range(cache.length.size):
        slot, length = cache.slot_of[line], cache.length[line]
        if slot == NONE:
            continue
        for s in range(length):
            copy[s] = cache.values[line, s]
        s = 0
        while s < n_kept and order[s] < length:
            cache.values[line, s] = copy[order[s]]
            s += 1
        cache.length[line] = s
        cache.slot_of[line] = NONE
    old_line = cache.line_of.copy()
    for s in range(capacity):
        cache.line_of[s] = NONE
    for s in range(n_kept):
        line = old_line[order[s]]
        if line != NONE:
            cache.line_of[s] = line
            cache.slot_of[line] = s
    for line in range(cache.length.size):
        if cache.slot_of[line] == NONE:
            cache.length[line] = 0
