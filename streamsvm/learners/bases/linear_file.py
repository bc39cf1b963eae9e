"""Linear learners as JSON values and arrays, and back."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from streamsvm.learners.bases.rate_search import RateSearchRows
from streamsvm.model_files.learner_file import (
    learner_from_file,
    learner_to_file,
    rows_from_file,
    rows_to_file,
)
from streamsvm.solvers.linear.state import N_INFO, LinearState


def to_file(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays of a linear learner, whose lock is held."""
    model._search_rate_if_due()
    names = set(inspect.signature(type(model)).parameters) - {"class_weight"}
    content, arrays = learner_to_file(model, sorted(names))
    content |= {"t0": model._schedule.t0, "has_first": model._first is not None}
    d = len(model._schema)
    if model._state is not None:
        arrays |= {"weights": model._state.weights[:, :, : max(1, d)], "info": model._state.info}
    if model._first is not None:
        rows, y, w = model._first.all(d)
        arrays |= rows_to_file(rows) | {"first_y": y, "first_weight": w}
    return content, arrays


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner; ValueError if the arrays do not fit together."""
    model = learner_from_file(cls, content, arrays)
    if arrays["calibration"].shape != ((6,) if model._labels.is_binary else (2,)):
        raise ValueError("the calibration is of another size")
    if arrays["calibration"].dtype != np.float64:
        raise ValueError("the calibration is of another type")
    model._schedule = model._schedule._replace(t0=content["t0"])
    d = len(model._schema)
    if "weights" in arrays:
        parts = 1 if model._second() is None else 2
        if arrays["weights"].shape != (model._n_outputs(), parts, max(1, d)) or arrays[
            "info"
        ].shape != (model._n_outputs(), N_INFO):
            raise ValueError("the weights are of another size")
        if not arrays["weights"].dtype == arrays["info"].dtype == np.float64:
            raise ValueError("the weights are of another type")
        model._state = LinearState(arrays["weights"], arrays["info"])
    model._first = None
    if content["has_first"]:
        model._first = RateSearchRows()
        y, w = arrays["first_y"], arrays["first_weight"]
        if len(y):
            model._first.add(rows_from_file(arrays, len(y), d), y, w)
    return model
