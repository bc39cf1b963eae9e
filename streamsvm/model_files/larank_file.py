"""A LaRankClassifier as JSON and arrays."""

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
from streamsvm.solvers.larank import state as larank_state
from streamsvm.solvers.larank.state import LaRankState

_SLOTS = ("n_own", "y", "box", "diagonal", "where")
_CLASSES = ("gradient", "coefficient", "slot", "place")
_PLAIN = (
    "C",
    "tau",
    "reprocess",
    "clock",
    "K",
    "candidates",
    "window",
    "max_support_patterns",
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
    arrays["draws"] = model._draws
    state = model._state
    if state is not None:
        n, k = int(state.info[0].n), len(model._labels.seen)
        arrays |= {name: getattr(state, name)[:n] for name in _SLOTS}
        arrays |= {name: getattr(state, name)[:k, :n] for name in _CLASSES}
        arrays["own"], arrays["n_vectors"] = state.own[:n, :k], state.n_vectors[:k]
        arrays["alive"] = state.alive[: int(state.info[0].n_alive)]
        arrays |= store_to_file(state.store, n, len(model._schema))
        arrays["cache_counts"] = state.cache.counts
        content["info"] = record_as_json(state.info)
    return content, arrays


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner of that class."""
    model = common_from_file(cls, content, arrays)
    if arrays["draws"].shape != (1,) or arrays["draws"].dtype != np.uint64:
        raise ValueError("the state of the draws is of another kind")
    model._draws = arrays["draws"]
    if "info" in content:
        model._state = _state_from(content["info"], arrays, model)
    return model


def _state_from(info: dict[str, Any], arrays: dict[str, np.ndarray], model: Any) -> LaRankState:
    n, d, k = info["n"], len(model._schema), len(model._labels.seen)
    rows = rows_from_file(arrays, n, d)
    _check(info, arrays, n, k)
    state = larank_state.new_state(
        d, model._cache_bytes, model._draws, max(4, 2 * k), max(64, 2 * n), sparse=model._sparse
    )
    state = with_store(state, rows, arrays)
    for name in _SLOTS:
        getattr(state, name)[:n] = arrays[name]
    for name in _CLASSES:
        getattr(state, name)[:k, :n] = arrays[name]
    state.own[:n, :k] = arrays["own"]
    state.n_vectors[:k] = arrays["n_vectors"]
    state.alive[: info["n_alive"]] = arrays["alive"]
    fill_record(state.info, info)
    state.info[0].ready = 0
    state.cache.counts[:] = arrays["cache_counts"]
    return state


def _check(info: dict[str, Any], arrays: dict[str, np.ndarray], n: int, k: int) -> None:
    """Refuse what compiled code would read outside of: it trusts these numbers."""
    shapes: dict[str, tuple[int, ...]] = {name: (n,) for name in (*_SLOTS, "entered", "weight")}
    shapes |= {name: (k, n) for name in _CLASSES}
    shapes |= {"own": (n, k), "n_vectors": (k,), "alive": (info["n_alive"],)}
    if info["n_classes"] > k or any(arrays[name].shape != at for name, at in shapes.items()):
        raise ValueError("the arrays of support patterns are of different lengths")
    own, n_own = arrays["own"], arrays["n_own"]
    within = {"y": k, "alive": max(n, 1), "n_own": k + 1, "n_vectors": n + 1}
    fits = all(_lies(arrays[name], 0, end) for name, end in within.items())
    fits = fits and _lies(arrays["place"], -1, n)
    fits = fits and _lies(own[np.arange(k) < n_own[:, None]], 0, k)
    if fits:
        fits = bool((arrays["where"][arrays["alive"]] == np.arange(info["n_alive"])).all())
    # Each coefficient's place leads back to its slot, and there are as many as there should be.
    places = arrays["place"]
    for c in range(k if fits else 0):
        held = np.flatnonzero(places[c] >= 0)
        fits = fits and len(held) == arrays["n_vectors"][c]
        fits = fits and bool((arrays["slot"][c, places[c, held]] == held).all())
    if not fits:
        raise ValueError("a number of a slot, class or place lies outside")


def _lies(values: np.ndarray, low: int, end: int) -> bool:
    return values.dtype.kind == "i" and bool(((values >= low) & (values < end)).all())
