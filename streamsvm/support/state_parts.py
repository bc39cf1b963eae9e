"""Parts of a state that are more than an array: stores of rows, the row cache, block scratch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamsvm.support import row_store, sparse_store, stores
from streamsvm.support.declaration import Sizes
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.row_cache import RowCache


class Part(NamedTuple):
    """The functions that allocate and convert one kind of part."""

    new: Callable[[Sizes, bool, int], Any]  # (sizes, sparse, cache_bytes)
    grown: Callable[[Any, Sizes, bool, int], Any]  # (part, sizes, sparse, cache_bytes)
    stripped: Callable[[Any, Sizes, bool], Any]  # (part, sizes, sparse): without cache and scratch
    for_thread: Callable[[Any, bool], Any]  # (part, block): with scratch of its own
    made_sparse: Callable[[Any, Sizes, int], Any]  # (part, sizes, cache_bytes)
    kind: str | None = None  # the entry of the memory report; None: "support_vectors"


def _new_cache(sizes: Sizes, sparse: bool, cache_bytes: int) -> RowCache:
    return row_cache.new_cache(sizes["slots"], 1 if sparse else sizes["features"], cache_bytes)


def _grown_cache(cache: RowCache, sizes: Sizes, sparse: bool, cache_bytes: int) -> RowCache:
    width = 1 if sparse else sizes["features"]
    return row_cache.resized(cache, sizes["slots"], width, cache_bytes)


def _emptied_cache(cache: RowCache, sizes: Sizes, cache_bytes: int) -> RowCache:
    new = row_cache.new_cache(sizes["slots"], 1, cache_bytes)
    new.counts[:] = cache.counts
    return new


def _new_rows(sizes: Sizes, sparse: bool, cache_bytes: int) -> Any:
    return (sparse_store if sparse else row_store).new_store(sizes["slots"], sizes["features"])


def _block_for_thread(block: Any, own_values: bool) -> Any:
    own = block._replace(rows=stores.with_scratch(block.rows))
    return own._replace(values=np.empty_like(own.values)) if own_values else own


def _new_block(sizes: Sizes, sparse: bool) -> Any:
    return fresh_block.new_block(sizes["slots"], sizes["features"], sparse)


STORE: Any = Part(
    new=lambda sizes, sparse, _: stores.new_store(sizes["slots"], sizes["features"], sparse),
    grown=lambda store, sizes, sparse, _: stores.grown(store, sizes["slots"], sizes["features"]),
    stripped=lambda store, sizes, sparse: store,
    for_thread=lambda store, block: stores.with_scratch(store),
    made_sparse=lambda store, sizes, _: stores.made_sparse(store),
)
"""A store of rows in panels, or of sparse rows. It must be the first field: the other fields have
as many slots as it has."""

ROWS: Any = STORE._replace(new=_new_rows)
"""A store of contiguous dense rows, or of sparse rows."""

CACHE: Any = Part(
    new=_new_cache,
    grown=_grown_cache,
    stripped=lambda cache, sizes, sparse: row_cache.new_cache(sizes["slots"], 1, 0),
    for_thread=lambda cache, block: cache,
    made_sparse=_emptied_cache,
    kind="cache",
)
"""Cached kernel rows."""

BLOCK_SCRATCH: Any = Part(
    new=lambda sizes, sparse, _: _new_block(sizes, sparse),
    grown=lambda block, sizes, sparse, _: _new_block(sizes, sparse),
    stripped=lambda block, sizes, sparse: fresh_block.new_block(0, 0, sparse),
    for_thread=_block_for_thread,
    made_sparse=lambda block, sizes, _: _new_block(sizes, True),
    kind="scratch",
)
"""Scratch for a block of fresh rows."""
