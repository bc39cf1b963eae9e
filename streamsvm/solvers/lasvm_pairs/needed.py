"""Kernel values of a block of examples, each only with vectors that its problems may have.

One against one, an example of class c is learnt by the problems of c and another class, and needs
kernel values with their members only: with those of the problems of two other classes nothing is
done. Most vectors are members of few problems. So they are kept in an order in which neighbours are
needed by the same classes, and a panel is combined with the examples of classes that need any of
its 32 vectors. The results are the same to the bit, as each kernel value is.

A set of classes is a number of 64 bits, bit c of which is that of class c. Classes that are 64
apart share a bit: their examples are combined with more vectors than they need.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import chosen_by, compiled_inner, compiled_within
from streamsvm.solvers.lasvm_pairs.problems import REST, has_few_lines
from streamsvm.solvers.lasvm_pairs.state import arrange
from streamsvm.support import stores
from streamsvm.support.rows import SparseRows, part
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.tiles import PANEL

_BITS = 64

_FEWEST_ROWS = 16
"""With fewer rows it takes longer to find out what they need."""

_LEAST_SAVED = 64
"""It pays if that saves, on the average over all values, the work for so many features a value."""

_BY_SETS, _BY_CLASS = 8, 32
"""Vectors are put in order again when one in so many has come since."""


@compiled_within
def _set_of(c):
    return np.uint64(1) << np.uint64(c % _BITS)


@compiled_inner
def _note_sets(state):
    """Write the set of classes that need the vector in each slot; return the sum of their sizes."""
    of, needed_by, total = state.problems, state.needed_by, 0
    needed_by[: state.info[0].n] = 0
    for p in range(of.table.size):
        own = of.segments[p]
        sides = _set_of(own.positive) | _set_of(own.negative)
        for at in range(own.start, own.start + of.table[p].n):
            if of.lower[at] != of.upper[at]:
                needed_by[of.slot[at]] |= sides
    # A vector that m problems have is needed by its own class and m others.
    for s in range(state.info[0].n):
        total += state.wanted[s] + np.int64(state.wanted[s] > 0)
    return total


@compiled_within
def _gray_rank(bits):
    """Return the position of a set in the Gray code, in which neighbours differ by one class."""
    for shift in (1, 2, 4, 8, 16, 32):
        bits ^= bits >> np.uint64(shift)
    return bits


@compiled_inner
def _group(state, by_class):
    """Order the vectors by the sets of classes that need them; dead slots are removed.

    If `by_class`, by their own classes first: then the members of a problem fill most of the panels
    that they are in, which are read for each kernel row that is missing.
    """
    n_kept, n = np.int64(0), state.info[0].n
    ranks, live = np.empty(n, np.uint64), np.empty(n, np.int64)
    for s in range(n):
        if state.wanted[s] > 0:
            live[n_kept] = s
            ranks[n_kept] = _gray_rank(state.needed_by[s])
            n_kept += 1
    ordered, at = np.argsort(ranks[:n_kept], kind="mergesort"), 0
    for c in range(state.info[0].n_classes if by_class else 1):
        for i in ordered:
            if not by_class or state.y[live[i]] == c:
                state.order[at] = live[i]
                at += 1
    needed_by = state.needed_by[:n].copy()
    for s in range(n_kept):
        state.needed_by[s] = needed_by[state.order[s]]
    arrange(state, n_kept)
    state.info[0].n_grouped = n_kept


@compiled_inner
def _are_grouped(state, n_rows, d, for_learning):
    """Put vectors in order where it pays, which moves them; tell if values may be left out."""
    info, of = state.info[0], state.problems
    # A later answer would be much the same, until there are an eighth more vectors.
    was_not = info.n_grouped < 0 and 8 * info.n < -9 * info.n_grouped
    may_save, by_class = for_learning and d > _LEAST_SAVED and not was_not, has_few_lines(of)
    is_small = n_rows < _FEWEST_ROWS or info.n == 0
    if is_small or of.segments[0].negative == REST or not (may_save or by_class):
        return False
    n_needed, n_most = _note_sets(state), (info.n - info.n_dead) * info.n_classes
    saves = may_save and d * (n_most - n_needed) >= _LEAST_SAVED * n_most
    if not saves and not by_class:
        info.n_grouped = -info.n
        return False
    # Those that came since the last time: together they are needed by all classes.
    if info.n - max(0, info.n_grouped) > info.n // (_BY_CLASS if by_class else _BY_SETS):
        _group(state, by_class)
    return saves


@compiled_within
def _set_of_panel(state, p):
    found = np.uint64(0)
    for s in range(p * PANEL, min((p + 1) * PANEL, state.info[0].n)):
        found |= state.needed_by[s]
    return found


@compiled_inner
def _rows_of_classes(x, y, start, size, classes, rows, which):
    """Copy the rows of a set of classes to `rows`, their places in the block to `which`."""
    n_rows = np.int64(0)
    for r in range(size):
        if classes & _set_of(np.int64(y[start + r])) != 0:
            rows[n_rows] = x[start + r]
            which[n_rows] = r
            n_rows += 1
    return n_rows


@compiled_inner
def _fill_panels(x, state, kernel, y, start, size, d):
    info, block = state.info[0], state.block
    rows, which = np.empty((size, x.shape[1]), np.float32), np.empty(size, np.int64)
    n_panels, p = (info.n + PANEL - 1) // PANEL, np.int64(0)
    state.skipped[:size] = info.n
    while p < n_panels:
        needed_by, q = _set_of_panel(state, p), p + 1
        while q < n_panels and _set_of_panel(state, q) == needed_by:
            q += 1
        first, stop = p * PANEL, min(q * PANEL, info.n)
        n_rows = _rows_of_classes(x, y, start, size, needed_by, rows, which)
        stores.values(kernel, state.store, rows, n_rows, d, first, stop, block)
        # From the last one on: which[r] >= r, so that none is overwritten before it is moved.
        for r in range(n_rows - 1, -1, -1):
            state.skipped[which[r]] -= stop - first
            for s in range(first, stop):
                block[which[r], s] = block[r, s]
        p = q


@compiled_inner
def _fill_whole(x, state, kernel, y, start, size, d, for_learning):
    rows = part(x, start, start + size)
    stores.values(kernel, state.store, rows, size, d, np.int64(0), state.info[0].n, state.block)
    state.skipped[:size] = 0


@compiled_inner
def _fill_dense(x, state, kernel, y, start, size, d, for_learning):
    if _are_grouped(state, size, d, for_learning):
        _fill_panels(x, state, kernel, y, start, size, d)
    else:
        _fill_whole(x, state, kernel, y, start, size, d, for_learning)


def may_leave_out(state: Any, d: int) -> bool:
    """Tell whether `fill` may leave values of rows of d features out, which saves more than half.

    Then threads, which would compute all of them, may take longer than one.
    """
    is_dense = not isinstance(state.store, SparseStore)
    return is_dense and d > _LEAST_SAVED and state.problems.segments["negative"][0] != REST


fill: Any = chosen_by(0, {np.ndarray: _fill_dense, SparseRows: _fill_whole})
"""fill(x, state, kernel, y, start, size, d, for_learning): write kernel values to `state.block`.

They are those of `size` rows of x from `start` on, of row start + r in block[r]. Where the rows are
for learning only, and each is a new example, there need not be all. Sparse rows are combined with
all vectors: they are fast in groups only.
"""
