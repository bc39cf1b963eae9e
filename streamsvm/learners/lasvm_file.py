"""A LASVMClassifier as JSON and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.json_values import as_json, kernel_as_json, kernel_from_json
from streamsvm.learners.labels import BinaryLabels
from streamsvm.learners.schema import Schema
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
    "cache_mb",
    "seed",
)


def to_file(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays: all that the model knows, but for cached kernel rows."""
    weight = model.class_weight
    content: dict[str, Any] = {
        "parameters": {name: as_json(getattr(model, name), name) for name in _PLAIN},
        "kernel": kernel_as_json(model.kernel),
        "kernel_": kernel_as_json(model.kernel_),
        "class_weight": (
            [[as_json(label, "the label"), factor] for label, factor in weight.items()]
            if isinstance(weight, dict)
            else weight
        ),
        "features": [as_json(name, "the feature name") for name in model._schema.names],
        "labels": [as_json(label, "the label") for label in model._labels.seen],
        "n_examples": model._n_examples,
    }
    arrays = {
        "calibration": model._calibration,
        "counts": model._counts,
        "moments": model._moments,
    }
    state = model._state
    if state is not None:
        n = int(state.info[0].n)
        arrays |= {name: getattr(state, name)[:n] for name in _SLOTS}
        arrays["rows"] = dense_store.rows_of(state.store, n, len(model._schema))
        arrays["entered"], arrays["weight"] = state.store.entered[:n], state.store.weight[:n]
        arrays["cache_counts"] = state.cache.counts
        content["info"] = {name: state.info[0][name].item() for name in state.info.dtype.names}
    return content, arrays


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner of that class."""
    weight = content["class_weight"]
    model = cls(
        kernel=kernel_from_json(content["kernel"]),
        class_weight=dict(map(tuple, weight)) if isinstance(weight, list) else weight,
        **content["parameters"],
    )
    model.kernel_ = kernel_from_json(content["kernel_"])
    model._schema = Schema(content["features"])
    model._labels = BinaryLabels(content["labels"])
    model._n_examples = content["n_examples"]
    model._calibration = arrays["calibration"]
    model._counts, model._moments = arrays["counts"], arrays["moments"]
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
    for name, value in info.items():
        state.info[0][name] = value
    state.cache.counts[:] = arrays["cache_counts"]
    return state
