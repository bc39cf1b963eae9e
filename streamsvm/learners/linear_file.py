"""Linear learners as JSON values and arrays, and back."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from streamsvm.learners.first_rows import FirstRows
from streamsvm.learners.json_values import as_json
from streamsvm.learners.learner_file import rows_from_file, rows_to_file
from streamsvm.learners.schema import Schema
from streamsvm.solvers.linear_state import N_INFO, LinearState


def to_file(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays of a linear learner."""
    names = set(inspect.signature(type(model)).parameters) - {"class_weight"}
    weight = model.class_weight
    content: dict[str, Any] = {
        "parameters": {name: as_json(getattr(model, name), name) for name in sorted(names)},
        "class_weight": (
            None
            if weight is None
            else [[as_json(label, "the label"), factor] for label, factor in weight.items()]
        ),
        "features": [as_json(name, "the feature name") for name in model._schema.names],
        "n_ignored": model._schema.n_ignored,
        "is_sparse": model._sparse,
        "labels": [as_json(label, "the label") for label in model._labels.seen],
        "n_examples": model._n_examples,
        "t0": model._schedule.t0,
        "has_first": model._first is not None,
    }
    arrays = {"calibration": model._calibration}
    d = len(model._schema)
    if model._state is not None:
        arrays |= {"weights": model._state.weights[:, :, : max(1, d)], "info": model._state.info}
    if model._first is not None:
        rows, y, w = model._first.all(d)
        arrays |= rows_to_file(rows) | {"first_y": y, "first_weight": w}
    return content, arrays


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner; ValueError if the arrays do not fit together."""
    weight = content["class_weight"]
    model = cls(
        **content["parameters"],
        class_weight=None if weight is None else dict(map(tuple, weight)),
    )
    model._schema = Schema(content["features"], model.max_features, model.hashing)
    model._schema.n_ignored = content["n_ignored"]
    model._sparse = content["is_sparse"]
    model._labels = type(model._labels)(content["labels"])
    model._n_examples = content["n_examples"]
    model._calibration = arrays["calibration"]
    if arrays["calibration"].shape != ((6,) if model._labels.is_binary else (2,)):
        raise ValueError("the calibration is of another size")
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
        model._first = FirstRows()
        y, w = arrays["first_y"], arrays["first_weight"]
        if len(y):
            model._first.add(rows_from_file(arrays, len(y), d), y, w)
    return model
