"""States of solvers, which are allocated, grown, stripped and measured by their declarations.

A state is a NamedTuple of arrays, of records of scalars, and of parts: a store of rows, a cache of
kernel rows, or the scratch for a block of fresh rows. Its field `info`, a record or an array, holds
the scalars. `declare` says what each field is; the other functions work for any declared state, but
those for slots, copies and scratch only for states with a store of rows.

A slot of a removed example keeps its row, and other entries, until another example takes it; caches
and scratch have kernel values with it. What `only_kept` returns has none of this. It may also have
fewer columns: those that are left out are 0 in all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm.support import dense_store, sparse_store, stores
from streamsvm.support.bits import WORD
from streamsvm.support.declaration import Check, Field, Record, Sizes
from streamsvm.support.dense_store import DenseStore, RowStore
from streamsvm.support.draws import new_draws
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.rows import Columns, SparseRows, columns_of, entries_of
from streamsvm.support.sparse_store import LIVE, USED, SparseStore
from streamsvm.support.tiles import PANEL


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
    new = sparse_store.new_store if sparse else dense_store.new_row_store
    return new(sizes["slots"], sizes["features"])


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


class Layout(NamedTuple):
    """The declaration of a state, or of a NamedTuple of arrays within one."""

    cls: type
    fields: dict[str, Any]  # Field, Record, Part or Layout
    check: Check = lambda state, sizes: None


_layouts: dict[type, Layout] = {}


def declare(cls: Any, check: Check = lambda state, sizes: None) -> Any:
    """Declare a NamedTuple of arrays, whose fields have as defaults what they are.

    That is a `field`, Record or Part, or the result of this function for another NamedTuple.
    ``check(state, sizes)`` raises ValueError if parts of a state from a file contradict each other.
    """
    if tuple(cls._field_defaults) != cls._fields:
        raise AssertionError(f"{cls.__name__}: say of each field what it is")
    _layouts[cls] = Layout(cls, cls._field_defaults, check)
    return _layouts[cls]


def layout_of(state: Any) -> Layout:
    """Return the declaration of the type of a state."""
    return _layouts[type(state)]


def fields_of(state: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, declaration and value of each field, also of those within another one."""
    for (name, declared), value in zip(layout_of(state).fields.items(), state, strict=True):
        if isinstance(declared, Layout):
            yield from fields_of(value)
        else:
            yield name, declared, value


def map_fields(state: Any, change: Callable[[str, Any, Any], Any]) -> Any:
    """Return a state whose fields are change(name, declared, value)."""
    layout = layout_of(state)
    return layout.cls._make(  # type: ignore[attr-defined]
        map_fields(value, change) if isinstance(declared, Layout) else change(name, declared, value)
        for (name, declared), value in zip(layout.fields.items(), state, strict=True)
    )


# Sizes


def n_columns(state: Any) -> int:
    """Return the number of features that the state has room for."""
    return stores.n_columns(state.store)


def capacity_of(state: Any) -> int:
    """Return the number of slots that the state has room for."""
    return int(state.store.entered.size)


def counts_of(state: Any) -> Any:
    """Return the record whose `n` is the number of slots in use; None without a store."""
    found = None
    for _, declared, value in fields_of(state):
        if isinstance(declared, Record) and "n" in (declared.dtype.names or ()):
            found = value
    return found


def n_slots(state: Any) -> int:
    """Return the number of slots that are in use, or were used before; 0 without a store."""
    counts = counts_of(state)
    return 0 if counts is None else counts["n"].item()


def n_computed(state: Any) -> int:
    """Return how many kernel values of a row are computed before it is learnt; none by weights."""
    return n_slots(state) if hasattr(state, "block") else 0


def scalars_of(state: Any) -> dict[str, Any]:
    """Return all scalars of the records of a state by name."""
    found: dict[str, Any] = {}
    for _, declared, value in fields_of(state):
        if isinstance(declared, Record):
            found.update(declared.as_json(value))
    return found


def sizes_of(state: Any) -> dict[str, int]:
    """Return the lengths of all axes of a state."""
    sizes: dict[str, int] = {}
    if hasattr(state, "store"):
        sizes = {"slots": capacity_of(state), "features": n_columns(state)}
    for _, declared, value in fields_of(state):
        if isinstance(declared, Field) and not declared.scratch:
            for axis, length in zip(declared.axes, value.shape, strict=True):
                if isinstance(axis, str):
                    sizes.setdefault(axis, length)
    return sizes


# Making and changing


def new(
    cls: type, sizes: Sizes, *, sparse: bool = False, cache_bytes: int = 0, **given: Any
) -> Any:
    """Allocate an empty state of a declared type; stores may round the size "slots" up.

    `sparse` tells whether rows are kept by their nonzero features; `given` are fields that exist
    already.
    """
    lengths, values = dict(sizes), []
    for name, declared in _layouts[cls].fields.items():
        if name in given:
            value = given[name]
        elif isinstance(declared, Part):
            value = declared.new(lengths, sparse, cache_bytes)
        elif isinstance(declared, Layout):
            value = new(declared.cls, lengths)
        else:
            value = declared.new() if isinstance(declared, Record) else declared.new(lengths)
        if name == "store":
            lengths["slots"] = value.entered.size
        values.append(value)
    return cls._make(values)  # type: ignore[attr-defined]


def new_state(
    cls: type, n_features: int, cache_bytes: int = 0, seed: int | None = None, sparse: bool = False,
    draws: np.ndarray | None = None, **sizes: int,
) -> Any:  # fmt: skip
    """Allocate an empty state of a solver; `sizes` are those of its other axes, and "slots".

    If the solver draws from its examples, it is by `draws`, or by a generator of this seed; without
    a seed the draws are different ones each time. The first draw seeds its generator of looks.
    """
    sizes = {"slots": 2 * PANEL, "features": n_features, **sizes}
    given, fields = {}, _layouts[cls].fields
    if "draws" in fields:
        given["draws"] = new_draws(seed) if draws is None else draws
        if "look_draws" in fields:
            given["look_draws"] = new_draws(int(given["draws"][0]))
    return new(cls, sizes, sparse=sparse, cache_bytes=cache_bytes, **given)


def grown(
    state: Any, capacity: int, n_features: int, cache_bytes: int = 0, n_classes: int | None = None
) -> Any:
    """Return a state with room for more slots, features or classes, and the same content.

    A new feature is zero in all rows, so kernel values that depend on a dot product or a distance
    do not change. Those of other kernels (``"vectors"``) may: see `rebuild` of the solver's state.
    """
    sparse = isinstance(state.store, SparseStore)
    sizes = sizes_of(state) | {"slots": capacity, "features": n_features}
    if n_classes is not None:
        sizes["classes"] = n_classes
    store = stores.grown(state.store, capacity, n_features)
    sizes["slots"] = store.entered.size

    def change(name: str, declared: Any, value: Any) -> Any:
        if name == "store":
            return store
        if isinstance(declared, Part):
            return declared.grown(value, sizes, sparse, cache_bytes)
        return _grown(declared, value, sizes)

    return map_fields(state, change)


def grown_arrays(state: Any, sizes: Sizes) -> Any:
    """Return a NamedTuple of arrays and records with longer axes, and the same content."""
    return map_fields(state, lambda name, declared, value: _grown(declared, value, sizes))


def _grown(field: Field | Record, old: Any, sizes: Sizes) -> Any:
    if isinstance(field, Record):
        return field.copy_of(old)
    if not field.scratch and not any(isinstance(axis, str) for axis in field.axes):
        return old
    array = field.new(sizes)
    if not field.scratch:
        array[tuple(map(slice, old.shape))] = old
    return array


def without_cache(state: Any) -> Any:
    """Return the state with an empty row cache and no scratch, for pickles."""
    sizes, sparse = sizes_of(state), isinstance(state.store, SparseStore)

    def change(name: str, declared: Any, value: Any) -> Any:
        if isinstance(declared, Part):
            return declared.stripped(value, sizes, sparse)
        if isinstance(declared, Field) and declared.scratch:
            return declared.new({**sizes, "slots": 0})
        return value

    return map_fields(state, change)


def with_cache(state: Any, cache_bytes: int) -> Any:
    """Return a state from `without_cache` with a row cache and scratch, so that it can learn."""
    return grown(state, capacity_of(state), n_columns(state), cache_bytes)


def with_scratch(state: Any, block: bool) -> Any:
    """Return a state for another thread, with scratch of its own, that of blocks if wanted."""

    def change(name: str, declared: Any, value: Any) -> Any:
        if isinstance(declared, Part):
            return declared.for_thread(value, block)
        if isinstance(declared, Field) and declared.scratch and (block or name != "block"):
            return np.empty_like(value)
        return value

    return map_fields(state, change)


def made_sparse(state: Any, cache_bytes: int) -> Any:
    """Return the state with sparse rows, and an empty row cache."""
    sizes = sizes_of(state)

    def change(name: str, declared: Any, value: Any) -> Any:
        is_part = isinstance(declared, Part)
        return declared.made_sparse(value, sizes, cache_bytes) if is_part else value

    return map_fields(state, change)


def memory_parts(state: Any) -> dict[str, int]:
    """Return the bytes of ``support_vectors``, ``cache`` and ``scratch``; of None all are 0."""
    parts = {"support_vectors": 0, "cache": 0, "scratch": 0}
    for _, declared, value in () if state is None else fields_of(state):
        kind = "scratch" if isinstance(declared, Field) and declared.scratch else None
        _add_bytes(parts, kind or getattr(declared, "kind", None) or "support_vectors", value)
    return parts


def _add_bytes(parts: dict[str, int], kind: str, part: Any) -> None:
    if isinstance(part, np.ndarray):
        parts[kind] += part.nbytes
    elif isinstance(part, RowCache):
        parts[kind] += row_cache.used_bytes(part)
    elif isinstance(part, tuple):
        scratch = sparse_store.SCRATCH if isinstance(part, SparseStore) else ()
        for name, field in zip(part._fields, part, strict=True):  # type: ignore[attr-defined]
            _add_bytes(parts, "scratch" if name in scratch else kind, field)


def only_kept(state: Any, columns: Columns, cache_bytes: int) -> Any:
    """Return a copy of a state, without removed examples, over these columns, with room as before.

    Cached kernel rows are computed anew.
    """
    sizes, n = sizes_of(state), n_slots(state)
    is_sparse = isinstance(state.store, SparseStore)

    def change(name: str, declared: Any, value: Any) -> Any:
        if name == "store":
            return _store_of_kept(value, n, columns)
        if isinstance(declared, Part):
            stripped = declared.stripped(value, sizes, is_sparse)
            return declared.grown(stripped, sizes, is_sparse, cache_bytes)
        return declared.copy_of(value) if isinstance(declared, Record) else used(declared, value)

    def used(declared: Field, value: np.ndarray) -> np.ndarray:
        if not any(isinstance(axis, str) for axis in declared.axes):
            # Other objects may share it, as the state of random numbers.
            return value
        new = declared.new(sizes)
        if not declared.scratch:
            part = value[tuple(slice(n if axis == "slots" else None) for axis in declared.axes)]
            part = entries_of(part, columns) if declared.axes == ("features",) else part
            new[tuple(map(slice, part.shape))] = part
        return new

    found = map_fields(state, change)
    if hasattr(found, "cache"):
        found.cache.counts[:] = state.cache.counts
    return found


def _store_of_kept(store: Any, n: int, columns: Columns) -> Any:
    capacity, d = store.entered.size, stores.n_columns(store)
    live = np.flatnonzero(store.entered[:n])
    rows = columns_of(stores.rows_of(store, n, d), columns)
    new: Any
    if isinstance(rows, SparseRows):
        new = _sparse_store(store, rows, live)
    else:
        new = _dense_store(store, rows, live, (capacity, d))
    new.entered[live], new.weight[live] = store.entered[live], store.weight[live]
    return new


def _dense_store(
    store: DenseStore | RowStore, rows: np.ndarray, live: np.ndarray, size: tuple[int, int]
) -> DenseStore | RowStore:
    if isinstance(store, RowStore):
        of_rows = dense_store.new_row_store(*size)
        of_rows.rows[live, : rows.shape[1]] = rows[live]
        return of_rows
    new = dense_store.new_store(*size)
    new.panels[live // PANEL, : rows.shape[1], live % PANEL] = rows[live]
    dense_store.renew_words(new)
    return new


def _sparse_store(store: SparseStore, rows: SparseRows, live: np.ndarray) -> SparseStore:
    new = sparse_store.new_store(store.entered.size, store.place.size, store.columns.size)
    n, used = len(rows.start) - 1, len(rows.values)
    new.start[:n], new.length[:n] = rows.start[:-1], np.diff(rows.start)
    new.columns[:used], new.values[:used] = rows.columns, rows.values
    new.norm[live], new.counts[[USED, LIVE]] = store.norm[live], used
    new.binary[0] &= bool((rows.values == 1.0).all())
    if new.binary[0]:
        slot = np.repeat(np.arange(n), new.length[:n])
        bits = np.uint64(1) << (rows.columns % WORD).astype(np.uint64)
        np.bitwise_or.at(new.words, (slot // PANEL, rows.columns // WORD, slot % PANEL), bits)
    return new
