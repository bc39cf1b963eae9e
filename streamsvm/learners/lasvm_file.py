"""A LASVMClassifier as JSON and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.binary_file import (
    common_from_file,
    common_to_file,
    fill_record,
    record_as_json,
)
from streamsvm.solvers import lasvm_state
from streamsvm.support import dense_store

_SLOTS = ("alpha", "gradient", "lower", "upper", "y", "diagonal")
_PLAIN = (
    "C",
    "tau",
    "reprocess",
    "delta_max",
    "max_reprocess",
    "second_order",
    "window",
    "max_support_vectors",
    "budget",
    "cache_mb",
    "seed",
)


def to_file(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays: all that the model knows, but for cached kernel rows."""
    content, arrays = common_to_file(model, _PLAIN)
    arrays["counts"] = model._counts
    state = model._state
    if state is not None:
        n = int(state.info[0].n)
        arrays |= {name: getattr(state, name)[:n] for name in _SLOTS}
        arrays["rows"] = dense_store.rows_of(state.store, n, len(model._schema))
        arrays["entered"], arrays["weight"] = state.store.entered[:n], state.store.weight[:n]
        arrays["cache_counts"] = state.cache.counts
        content["info"] = record_as_json(state.info)
    return content, arrays


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner of that class."""
    model = common_from_file(cls, content, arrays)
    model._counts = arrays["counts"]
    if "info" in content:
        model._state = _state_from(content["info"], arrays, len(model._schema), model._cache_bytes)
    return model


def _state_from(
    info: dict[str, Any], arrays: dict[str, np.ndarray], d: int, cache_bytes: int
) -> lasvm_state.LASVMState:
    n = info["n"]
    rows = arrays["rows"]
    # Compiled code trusts these sizes.
    if rows.shape != (n, d) or any(arrays[k].shape != (n,) for k in (*_SLOTS, "entered", "weight")):
        raise ValueError("the arrays of support vectors are of different lengths")
    if not (-1 <= info["i"] < max(n, 1) and -1 <= info["j"] < max(n, 1)):
        raise ValueError("the extremes lie outside")
    state = lasvm_state.new_state(d, cache_bytes, capacity=max(64, 2 * n))
    for slot in range(n):
        dense_store.put(state.store, slot, rows[slot])
    state.store.entered[:n], state.store.weight[:n] = arrays["entered"], arrays["weight"]
    for name in _SLOTS:
        getattr(state, name)[:n] = arrays[name]
    fill_record(state.info, info)
    state.cache.counts[:] = arrays["cache_counts"]
    return state
