"""States of solvers, by their declarations: allocated, grown, stripped, made sparse, measured.

A state is a NamedTuple of arrays, of a record of scalars, and of parts that keep rows, cached
kernel rows or the scratch of a block of fresh rows. `declare` says once what each field is; the
functions here do the rest for any state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamsvm.support import sparse_store, stores
from streamsvm.support.declaration import Check, Field, Record, Sizes
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.state_parts import Part, grown_store


class Layout(NamedTuple):
    """What is declared of a state, or of a NamedTuple of arrays within one."""

    cls: type
    fields: dict[str, Any]  # Field, Record, Part or Layout
    check: Check = lambda state, sizes: None


_layouts: dict[type, Layout] = {}


def declare(cls: type, fields: dict[str, Any], check: Check = lambda state, sizes: None) -> Layout:
    """Declare the fields of a NamedTuple of arrays.

    Parameters
    ----------
    cls
        The NamedTuple.
    fields
        A `Field`, `Record`, `Part` or `Layout` for each of its fields.
    check
        Refuses a state from a file whose parts contradict each other, with a ValueError: check(
        state, sizes).

    Returns
    -------
    The declaration, to be a field of others.

    """
    if tuple(fields) != cls._fields:  # type: ignore[attr-defined]
        raise AssertionError(f"{cls.__name__}: declare all fields, in their order")
    _layouts[cls] = Layout(cls, fields, check)
    return _layouts[cls]


def layout_of(state: Any) -> Layout:
    """Return what was declared of the type of a state."""
    return _layouts[type(state)]


def map_fields(state: Any, change: Callable[[str, Any, Any], Any]) -> Any:
    """Return a state whose fields are change(name, declared, value)."""
    layout = layout_of(state)
    return layout.cls._make(  # type: ignore[attr-defined]
        map_fields(value, change) if isinstance(declared, Layout) else change(name, declared, value)
        for (name, declared), value in zip(layout.fields.items(), state, strict=True)
    )


# Sizes


def n_columns(state: Any) -> int:
    """Return for how many features there is room."""
    return stores.n_columns(state.store)


def capacity_of(state: Any) -> int:
    """Return for how many slots there is room."""
    return int(state.store.entered.size)


def n_slots(state: Any) -> int:
    """Return how many slots are in use, or were."""
    return int(scalars_of(state)["n"])


def n_computed(state: Any) -> int:
    """Return with how many slots the kernel values of a fresh row are computed ahead of learning.

    None without a cache of kernel rows: such a state keeps the weights themselves.
    """
    return n_slots(state) if hasattr(state, "cache") else 0


def scalars_of(state: Any) -> dict[str, Any]:
    """Return all scalars of the records of a state by name."""
    found: dict[str, Any] = {}

    def add(name: str, declared: Any, value: Any) -> Any:
        if isinstance(declared, Record):
            found.update(declared.as_json(value))
        return value

    map_fields(state, add)
    return found


def sizes_of(state: Any) -> dict[str, int]:
    """Return the lengths of all axes of a state."""
    sizes = {"slots": capacity_of(state), "features": n_columns(state)}

    def add(name: str, declared: Any, value: Any) -> Any:
        if isinstance(declared, Field) and not declared.scratch:
            for axis, length in zip(declared.axes, value.shape, strict=True):
                if isinstance(axis, str):
                    sizes.setdefault(axis, length)
        return value

    map_fields(state, add)
    return sizes


# Making and changing


def new(
    cls: type, sizes: Sizes, *, sparse: bool = False, cache_bytes: int = 0, **given: Any
) -> Any:
    """Allocate an empty state.

    Parameters
    ----------
    cls
        A declared NamedTuple.
    sizes
        The lengths of its axes; stores may round "slots" up.
    sparse
        Whether rows are kept by their nonzero features.
    cache_bytes
        For cached kernel rows.
    given
        Fields that exist already.

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


def grown(
    state: Any, capacity: int, n_features: int, cache_bytes: int = 0, n_classes: int | None = None
) -> Any:
    """Return a state with room for more slots, features or classes, and the same content.

    A new feature is zero in all rows, so that no kernel value of a dot product or a distance
    changes; kernels of ``"vectors"`` must be rebuilt (see `rebuild` of the solver's state).
    """
    sparse = isinstance(state.store, SparseStore)
    sizes = sizes_of(state) | {"slots": capacity, "features": n_features}
    if n_classes is not None:
        sizes["classes"] = n_classes
    store = grown_store(state.store, sizes, sparse, cache_bytes)
    sizes["slots"] = store.entered.size

    def change(name: str, declared: Any, value: Any) -> Any:
        if name == "store":
            return store
        if isinstance(declared, Part):
            return declared.grown(value, sizes, sparse, cache_bytes)
        if isinstance(declared, Record):
            return declared.copy_of(value)
        return _grown_array(declared, value, sizes)

    return map_fields(state, change)


def grown_arrays(state: Any, sizes: Sizes) -> Any:
    """Return a NamedTuple of arrays and records with longer axes, and the same content."""

    def change(name: str, declared: Any, value: Any) -> Any:
        is_record = isinstance(declared, Record)
        return declared.copy_of(value) if is_record else _grown_array(declared, value, sizes)

    return map_fields(state, change)


def copy_arrays(old: Any, new: Any) -> None:
    """Copy the arrays of a NamedTuple into longer ones."""
    for source, target in zip(old, new, strict=True):
        target[tuple(map(slice, source.shape))] = source


def _grown_array(field: Field, old: np.ndarray, sizes: Sizes) -> np.ndarray:
    if not field.scratch and not any(isinstance(axis, str) for axis in field.axes):
        return old
    array = field.new(sizes)
    if not field.scratch:
        array[tuple(map(slice, old.shape))] = old
    return array


def without_cache(state: Any) -> Any:
    """Return the state with an empty row cache and no scratch: what is worth sending."""
    sizes, sparse = sizes_of(state), isinstance(state.store, SparseStore)

    def change(name: str, declared: Any, value: Any) -> Any:
        if isinstance(declared, Part):
            return declared.stripped(value, sizes, sparse)
        if isinstance(declared, Field) and declared.scratch:
            return declared.new({**sizes, "slots": 0})
        return value

    return map_fields(state, change)


def with_cache(state: Any, cache_bytes: int) -> Any:
    """Return a state that `without_cache` stripped, ready to learn again."""
    return grown(state, capacity_of(state), n_columns(state), cache_bytes)


def with_scratch(state: Any, block: bool) -> Any:
    """Return a state for another thread: the same content, scratch of its own; `block`, too."""

    def change(name: str, declared: Any, value: Any) -> Any:
        if isinstance(declared, Part):
            return declared.for_thread(value, block)
        if isinstance(declared, Field) and declared.scratch and (block or name != "block"):
            return np.empty_like(value)
        return value

    return map_fields(state, change)


def made_sparse(state: Any, cache_bytes: int) -> Any:
    """Return the state with rows by their nonzero features, and an empty cache."""
    sizes = sizes_of(state)

    def change(name: str, declared: Any, value: Any) -> Any:
        is_part = isinstance(declared, Part)
        return declared.made_sparse(value, sizes, cache_bytes) if is_part else value

    return map_fields(state, change)


def memory_parts(state: Any) -> dict[str, int]:
    """Return the bytes of the ``support_vectors``, of the row ``cache`` and of ``scratch``."""
    parts = {"support_vectors": 0, "cache": 0, "scratch": 0}
    if state is not None:

        def add(name: str, declared: Any, value: Any) -> Any:
            kind = "scratch" if isinstance(declared, Field) and declared.scratch else None
            _add_bytes(parts, kind or getattr(declared, "kind", None) or "support_vectors", value)
            return value

        map_fields(state, add)
    return parts


def _add_bytes(parts: dict[str, int], kind: str, part: Any) -> None:
    if isinstance(part, np.ndarray):
        parts[kind] += part.nbytes
    elif isinstance(part, tuple):
        scratch = sparse_store.SCRATCH if isinstance(part, SparseStore) else ()
        for name, field in zip(part._fields, part, strict=True):  # type: ignore[attr-defined]
            _add_bytes(parts, "scratch" if name in scratch else kind, field)
