"""Conversion of states of solvers to JSON values and arrays by their declarations, and back.

The content of a file is checked against the declarations before compiled code uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from streamsvm.support import stores
from streamsvm.support.declaration import (
    BOX,
    COUNT,
    Field,
    NamedArrays,
    Range,
    Record,
    Sizes,
    rows_as_arrays,
)
from streamsvm.support.rows import SparseRows
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.states import (
    Layout,
    fields_of,
    grown,
    layout_of,
    n_slots,
    scalars_of,
    sizes_of,
)
from streamsvm.support.tiles import PANEL

_OF_STORE = {
    "entered": Field(("slots",), np.int64, range=Range()),
    "weight": Field(("slots",), range=BOX),
}
_CACHE_COUNTS = Field((4,), np.int64, range=COUNT)


def as_arrays(state: Any, sizes: Sizes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the records of a state as JSON values, and its arrays, without cache and scratch.

    `sizes` are the numbers of "features" (and "classes") in use; the arrays may have room for more.
    """
    lengths = _lengths(state, sizes, n_slots(state))
    records: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    scalars = scalars_of(state)
    for name, declared, value in fields_of(state):
        if isinstance(declared, Record):
            records[name] = declared.as_json(value)
        elif isinstance(declared, Field) and not declared.scratch:
            array = value[tuple(map(slice, declared.shape(lengths)))]
            arrays[name] = array if declared.n_used is None else array[: scalars[declared.n_used]]
        elif name == "cache":
            arrays["cache_counts"] = value.counts
        elif name == "store":
            n = lengths["slots"]
            arrays.update(rows_as_arrays(stores.rows_of(value, n, lengths["features"])))
            arrays.update(entered=value.entered[:n], weight=value.weight[:n])
    return records, arrays


def from_arrays(
    empty: Any, records: Mapping[str, Any], arrays: NamedArrays, sizes: Sizes, cache_bytes: int = 0,
    given: Collection[str] = (),
) -> Any:  # fmt: skip
    """Return a state with the records and arrays that `as_arrays` returned, from a file.

    `empty` is a new state with room for at least so many features, classes, ..., which may be
    overwritten; it has the fields `given` already, and they are not in the file. ValueError: a
    record or array is missing, not as declared, or contradicts another one.
    """
    lengths = _lengths(empty, sizes, 2**40)
    checked = _records(empty, records, lengths)
    scalars = {name: value for record in checked.values() for name, value in record.items()}
    n = lengths["slots"] = int(scalars.get("n", 0))
    # Again: now the ranges that depend on the number of slots can be checked.
    _records(empty, records, lengths)
    taken = _arrays(empty, arrays, lengths, scalars, given)
    state = empty
    if hasattr(empty, "store"):
        rows = arrays.take_rows(n, lengths["features"])
        if isinstance(rows, SparseRows) != isinstance(empty.store, SparseStore):
            raise ValueError("the rows are of another kind than is_sparse says")
        entered, weight = (arrays.take(k, f, lengths) for k, f in _OF_STORE.items())
        capacity = max(2 * PANEL, 2 * n)
        state = grown(empty, capacity, lengths["features"], cache_bytes)
        state = state._replace(store=stores.filled(state.store, rows))
        state.store.entered[:n], state.store.weight[:n] = entered, weight
    for name, declared, value in fields_of(state):
        if isinstance(declared, Record):
            for scalar, number in checked[name].items():
                value[0][scalar] = number
        elif name in taken:
            value[tuple(map(slice, taken[name].shape))] = taken[name]
        elif name == "cache":
            value.counts[:] = taken["cache_counts"]
    _check(state, lengths)
    return state


def _lengths(state: Any, sizes: Sizes, n_slots: int) -> dict[str, int]:
    """Return the lengths of the axes in files."""
    lengths = {**sizes_of(state), **sizes, "slots": n_slots}
    if not hasattr(state, "store"):
        # As `Field.new` allocates.
        lengths["features"] = max(1, lengths["features"])
    return lengths


def _check(state: Any, sizes: dict[str, int]) -> None:
    """Refuse a state whose parts contradict each other."""
    layout = layout_of(state)
    for name, declared in layout.fields.items():
        if isinstance(declared, Layout):
            _check(getattr(state, name), sizes)
    layout.check(state, sizes)


def _records(empty: Any, records: Mapping[str, Any], sizes: Sizes) -> dict[str, dict[str, Any]]:
    return {
        name: declared.checked(name, records.get(name), sizes)
        for name, declared, _ in fields_of(empty)
        if isinstance(declared, Record)
    }


def _arrays(
    empty: Any,
    arrays: NamedArrays,
    sizes: Sizes,
    scalars: Mapping[str, Any],
    given: Collection[str],
) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name, declared, _ in fields_of(empty):
        if isinstance(declared, Field) and not declared.scratch and name not in given:
            found[name] = arrays.take(name, declared, sizes, scalars)
        elif name == "cache":
            found["cache_counts"] = arrays.take("cache_counts", _CACHE_COUNTS, sizes)
    return found
