"""Kernel values of a block of fresh rows, kept up to date while slots get other rows.

The values of up to 64 fresh rows with all slots are computed together, and those of the fresh rows
among themselves. When one of the rows is put into a slot, the values of later rows with that slot
are copied from the second table. When a slot gets another row (a merged support vector), the values
of its panel are computed again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, chosen_by, compiled, compiled_inner, compiled_within
from streamsvm.support import stores
from streamsvm.support.rows import count, part, width
from streamsvm.support.stores import Store
from streamsvm.support.tiles import PANEL

BLOCK = 64
"""The number of fresh rows whose kernel values are computed together."""

ALL_KNOWN = np.int64(-(1 << 62))
"""What `info.ready` is, in a copy of a state, if its scratch has all values: see `fill_part`."""

FOREIGN = -1
"""The origin of a slot's new row if it is not a row of the block."""


class FreshBlock(NamedTuple):
    """Scratch for one block; its content is not needed after the block."""

    values: np.ndarray  # float32 (BLOCK, capacity) k(fresh row, slot)
    among: np.ndarray  # float32 (BLOCK, BLOCK) k(fresh row, fresh row)
    rows: Store  # the fresh rows in a store of their own
    changed: np.ndarray  # int64 (4 BLOCK, 2): a slot that got another row, and the row's origin
    counts: np.ndarray  # int64 (1,): the number of used entries of `changed`


@compiled_within
def reuse_values(info, is_last):
    """Allow the solver to reuse the kernel values in its scratch if a row is the last one again.

    `info.ready` is the number of slots that the values in the scratch were computed for. The solver
    uses them if it is negative, and computes values for all other slots; for all, if it is 0.
    """
    info.ready = -info.ready if is_last and info.ready > 0 else 0


def new_block(capacity: int, n_features: int, sparse: bool) -> FreshBlock:
    """Allocate the scratch for a store of so many slots."""
    return FreshBlock(
        values=np.zeros((BLOCK, capacity), np.float32),
        among=np.zeros((BLOCK, BLOCK), np.float32),
        rows=stores.new_store(BLOCK, n_features, sparse),
        changed=np.zeros((4 * BLOCK, 2), np.int64),
        counts=np.zeros(1, np.int64),
    )


@compiled_inner
def begin(block, kernel, x):
    """Compute the values of rows x, those of `next_rows`, among themselves."""
    size = count(x)
    if size > 1:
        fresh = stores.of_rows(block.rows, x)
        stores.values(kernel, fresh, x, size, width(x), np.int64(0), size, block.among)
    block.counts[0] = 0


@compiled_inner
def has_room(block):
    """Tell whether `note` can be called four more times; else a new block must begin."""
    return block.counts[0] + 4 <= block.changed.shape[0]


@compiled_inner
def note(block, slot, origin):
    """Record that a slot got row `origin` of the block, or a `FOREIGN` one."""
    block.changed[block.counts[0], 0] = slot
    block.changed[block.counts[0], 1] = origin
    block.counts[0] += 1


@compiled_inner
def values_of(block, kernel, store, x, r):
    """Return the values of row r of the x given to `begin` with all slots, float32 (capacity,)."""
    values = block.values[r]
    for c in range(block.counts[0]):
        slot, origin = block.changed[c, 0], block.changed[c, 1]
        if origin == FOREIGN:
            panel = slot // PANEL * PANEL
            out = block.values[r : r + 1]
            row = part(x, r, r + 1)
            stores.values(kernel, store, row, np.int64(1), width(x), panel, panel + PANEL, out)
        else:
            values[slot] = block.among[r, origin]
    return values


@compiled_inner
def renew_column(values, kernel, fresh, x, slot, first, size, d):
    """Compute the values of rows first .. size-1 with a slot that has got the row x anew.

    `values` are float32 (rows, capacity), and `fresh` is a store of the `size` rows.
    """
    if first < size:
        column = np.empty((1, BLOCK), np.float32)
        stores.values(kernel, fresh, x, np.int64(1), d, first, size, column)
        for r in range(first, size):
            values[r, slot] = column[0, r]


@compiled_inner
def squeezed(values, order, first, n_block, n):
    """Reorder values, float32 (rows, capacity), after slot order[s] became slot s, for s < n.

    Only rows from `first` on are reordered. The first n_block columns were computed before; return
    how many columns, counted from the first, hold computed values now.
    """
    kept = np.int64(0)
    while kept < n and order[kept] < n_block:
        kept += 1
    for r in range(first, values.shape[0]):
        for s in range(kept):
            values[r, s] = values[r, order[s]]
    return kept


@compiled_inner
def _own(block):
    return block


@compiled_inner
def _within(block):
    return block.values


array_of: Any = chosen_by(0, {np.ndarray: _own, FreshBlock: _within})
"""array_of(block): the values of a block, where it is an array of them and nothing else, too."""


@compiled
def fill_values(kernel, store, x, first, stop, out):
    """Compute the values of rows x with slots first .. stop-1 in out, float32 (rows, capacity)."""
    stores.values(kernel, store, x, count(x), width(x), first, stop, out)


@compiled
def fill_block(state, kernel, x, first, stop):
    """Compute the values of at most `BLOCK` rows x with slots first .. stop-1 in `state.block`."""
    state = borrowed(state)
    values = array_of(state.block)
    stores.values(kernel, state.store, x, count(x), width(x), first, stop, values)


@compiled_inner
def fill_part(state, kernel, x, start, n):
    """Compute values of the next rows of x with the first n slots; return how many they are.

    If `info.ready` is `ALL_KNOWN`, the scratch has the values of all rows of x already.
    """
    size = min(array_of(state.block).shape[0], count(x) - start)
    if state.info[0].ready != ALL_KNOWN or size < count(x):
        fill_block(state, kernel, part(x, start, start + size), np.int64(0), n)
    state.info[0].ready = 0
    return size


@compiled_within
def next_rows(state, kernel, x, start, n):
    """Return the next rows of x, from `start` on, and compute their values with the first n slots.

    If they are all rows of x, those that were computed before are left out: see `reuse_values`.
    """
    size = min(BLOCK, count(x) - start)
    rows = part(x, start, start + size)
    known = known_columns(state.info[0], count(x) == size)
    if known < n:
        values = array_of(state.block)
        stores.values(kernel, state.store, rows, size, width(x), known, n, values)
    return rows


@compiled_within
def known_columns(info, are_all_rows):
    """Return of how many slots the scratch has the values already, and forget that it has."""
    known = -info.ready if are_all_rows and info.ready < 0 else np.int64(0)
    info.ready = 0
    return known


@compiled_inner
def values_of_slot(state, kernel, s, n, d):
    """Return the kernel values of a slot with the first n slots, float32, in the scratch."""
    values = array_of(state.block)
    x = stores.row_of(state.store, s, state.cache.row, d)
    stores.values(kernel, state.store, x, np.int64(1), d, np.int64(0), n, values)
    return values[0]
