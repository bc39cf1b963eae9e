"""A TrackingSVMClassifier as JSON and arrays."""

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
from streamsvm.solvers.tracking import linear as tracking_linear
from streamsvm.solvers.tracking import state as tracking_state

_PLAIN = (
    "C",
    "K",
    "epsilon",
    "process",
    "averaged",
    "gradients",
    "window",
    "reservoir",
    "max_support_vectors",
    "budget",
    "tau",
    "sparse",
    "hashing",
    "max_features",
    "cache_mb",
    "n_jobs",
    "seed",
)
_ACTIVE = ("members", "place", "free", "arrival")


def to_file(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays: all that the model knows, but for cached kernel rows."""
    content, arrays = common_to_file(model, _PLAIN)
    state = model._state
    if state is None:
        return content, arrays
    n = int(state.active.counts[0].n)
    slotwise = model._states.SLOTWISE
    arrays |= {name: getattr(state, name)[:n] for name in slotwise}
    arrays |= {name: getattr(state.active, name)[:n] for name in _ACTIVE}
    arrays |= {"ring": state.active.ring, "draws": state.draws}
    d = len(model._schema)
    arrays |= store_to_file(state.store, n, d)
    if isinstance(state, tracking_linear.LinearTrackingState):
        arrays["w"], arrays["w_average"] = state.w[:d], state.w_average[:d]
    else:
        arrays["cache_counts"] = state.cache.counts
    content["info"] = record_as_json(state.info)
    content["counts"] = record_as_json(state.active.counts)
    return content, arrays


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner of that class."""
    model = common_from_file(cls, content, arrays)
    if "info" in content:
        model._state = _state_from(model, content, arrays)
    return model


def _state_from(model: Any, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    d, n = len(model._schema), content["counts"]["n"]
    rows = rows_from_file(arrays, n, d)
    _check_sizes(content, arrays, n, model._states.SLOTWISE, model.window or 0)
    linear = model._states is tracking_linear
    capacity = max(64, 2 * n)
    sparse, window = model._sparse, model.window or 0
    if linear:
        state: Any = tracking_linear.new_state(d, window, 0, capacity, sparse)
        state.w[:d], state.w_average[:d] = arrays["w"], arrays["w_average"]
    else:
        state = tracking_state.new_state(d, model._cache_bytes, window, 0, capacity, sparse)
        state.cache.counts[:] = arrays["cache_counts"]
    state = with_store(state, rows, arrays)
    for name in model._states.SLOTWISE:
        getattr(state, name)[:n] = arrays[name]
    for name in _ACTIVE:
        getattr(state.active, name)[:n] = arrays[name]
    state.active.ring[:] = arrays["ring"]
    state.draws[:] = arrays["draws"]
    fill_record(state.info, content["info"])
    fill_record(state.active.counts, content["counts"])
    return state


def _check_sizes(
    content: dict[str, Any],
    arrays: dict[str, np.ndarray],
    n: int,
    slotwise: tuple[str, ...],
    window: int,
) -> None:
    """Refuse arrays on which compiled code would read or write outside."""
    names = (*slotwise, *_ACTIVE, "entered", "weight")
    if any(arrays[name].shape != (n,) for name in names):
        raise ValueError("the arrays of examples are of different lengths")
    if arrays["ring"].shape != (window,) or arrays["draws"].shape != (1,):
        raise ValueError("the window or the random generator is of another size")
    n_members, n_free = content["counts"]["n_members"], content["counts"]["n_free"]
    n_touched = content["info"]["n_touched"]
    if min(n_members, n_free, n_touched) < 0 or max(n_members + n_free, n_touched) > n:
        raise ValueError("the counts of examples do not fit")
    slots = [arrays["members"][:n_members], arrays["free"][:n_free], arrays["touched"][:n_touched]]
    slots.append(arrays["ring"])
    for array in slots:
        if len(array) and (array.min() < -1 or array.max() >= max(n, 1)):
            raise ValueError("a slot lies outside")
