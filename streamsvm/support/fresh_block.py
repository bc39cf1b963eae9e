"""Kernel values of a block of fresh rows, kept right while slots get other rows.

The values of up to 64 rows with all slots are computed together, and those of the 64 among
themselves. When one of them then takes a slot, the later rows find their value with it in the
second table; when a slot gets a row that is not of the block (a merged one), that slot's panel is
computed again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_within
from streamsvm.support import stores
from streamsvm.support.rows import count, part, width
from streamsvm.support.stores import Store
from streamsvm.support.tiles import PANEL

BLOCK = 64
"""Fresh rows whose kernel values are computed together."""

FOREIGN = -1
"""The origin of a slot's new row that is no row of the block."""


class FreshBlock(NamedTuple):
    """Scratch for one block; nothing in it outlives the block."""

    values: np.ndarray  # float32 (BLOCK, capacity) k(fresh row, slot)
    among: np.ndarray  # float32 (BLOCK, BLOCK) k(fresh row, fresh row)
    rows: Store  # the fresh rows, as stored rows
    changed: np.ndarray  # int64 (4 BLOCK, 2): slots that got another row, and its origin
    counts: np.ndarray  # int64 (1,): how many of `changed` count


@compiled_within
def reuse_values(info, is_last):
    """Have the solver use the kernel values in its scratch if the next row is the last one again.

    `info.ready` says with how many slots they are; the solver trusts it if its sign is turned.
    """
    info.ready = -info.ready if is_last and info.ready > 0 else 0


def new_block(capacity: int, n_features: int, sparse: bool) -> FreshBlock:
    """Allocate the scratch for a store of that capacity."""
    return FreshBlock(
        values=np.zeros((BLOCK, capacity), np.float32),
        among=np.zeros((BLOCK, BLOCK), np.float32),
        rows=stores.new_store(BLOCK, n_features, sparse),
        changed=np.zeros((4 * BLOCK, 2), np.int64),
        counts=np.zeros(1, np.int64),
    )


@compiled
def fill(block, kernel, store, x, first, stop):
    """Compute the values of the rows x with slots first .. stop-1."""
    stores.values(kernel, store, x, count(x), width(x), first, stop, block.values)


@compiled
def begin(block, kernel, x):
    """Begin with the rows x, whose values with all slots are filled in; add those among them."""
    size = count(x)
    if size > 1:
        fresh = stores.of_rows(block.rows, x)
        stores.values(kernel, fresh, x, size, width(x), np.int64(0), size, block.among)
    block.counts[0] = 0


@compiled
def has_room(block):
    """Tell whether a few more changes can be noted; else begin a new block."""
    return block.counts[0] + 4 <= block.changed.shape[0]


@compiled
def note(block, slot, origin):
    """Note that a slot got row `origin` of the block, or a `FOREIGN` one."""
    block.changed[block.counts[0], 0] = slot
    block.changed[block.counts[0], 1] = origin
    block.counts[0] += 1


@compiled
def values_of(block, kernel, store, x, r):
    """Return the values of row r of the block with all slots, float32 (capacity,), up to date.

    `x` holds the rows that `begin` was given.
    """
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


@compiled
def squeezed(values, order, first, n_block, n):
    """Let values, float32 (rows, capacity), follow when slot order[s] became slot s, for s < n.

    Only the rows from `first` on are wanted. Returns how many of their first n_block columns, those
    that were computed, are still in one run.
    """
    kept = np.int64(0)
    while kept < n and order[kept] < n_block:
        kept += 1
    for r in range(first, values.shape[0]):
        for s in range(kept):
            values[r, s] = values[r, order[s]]
    return kept


@compiled
def fill_block(state, kernel, x, first, stop):
    """Compute the values of at most `BLOCK` rows x with slots first .. stop-1 in `state.block`."""
    state = borrowed(state)
    stores.values(kernel, state.store, x, count(x), width(x), first, stop, state.block)
