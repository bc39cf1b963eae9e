"""A LASVMClassifier as JSON and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.model_files.learner_file import (
    common_from_file,
    common_to_file,
    fill_record,
    record_as_json,
    rows_from_file,
    store_to_file,
    with_store,
)
from streamsvm.solvers.lasvm import state as lasvm_state

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
    "sparse",
    "hashing",
    "max_features",
    "cache_mb",
    "n_jobs",
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
        arrays |= store_to_file(state.store, n, len(model._schema))
        arrays["cache_counts"] = state.cache.counts
        content["info"] = record_as_json(state.info)
    return content, arrays


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner of that class."""
    model = common_from_file(cls, content, arrays)
    model._counts = arrays["counts"]
    if "info" in content:
        model._state = _state_from(content["info"], arrays, model)
    return model


def _state_from(
    info: dict[str, Any], arrays: dict[str, np.ndarray], model: Any
) -> lasvm_state.LASVMState:
    n, d = info["n"], len(model._schema)
    rows = rows_from_file(arrays, n, d)
    # Compiled code trusts these sizes.
    if any(arrays[k].shape != (n,) for k in (*_SLOTS, "entered", "weight")):
        raise ValueError("the arrays of support vectors are of different lengths")
    if not (-1 <= info["i"] < max(n, 1) and -1 <= info["j"] < max(n, 1)):
        raise ValueError("the extremes lie outside")
    capacity = max(64, 2 * n)
    state = lasvm_state.new_state(d, model._cache_bytes, capacity, sparse=model._sparse)
    state = with_store(state, rows, arrays)
    for name in _SLOTS:
        getattr(state, name)[:n] = arrays[name]
    fill_record(state.info, info)
    state.cache.counts[:] = arrays["cache_counts"]
    return state
