"""What all learners put into their files, and what kernel learners do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm.features.schema import LIMIT, Schema
from streamsvm.model_files.json_values import as_json, kernel_as_json, kernel_from_json
from streamsvm.support import stores
from streamsvm.support.rows import Rows, SparseRows


def learner_to_file(
    model: Any, plain: Iterable[str]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays of what all learners have.

    Parameters
    ----------
    model
        A `Learner` with a ``class_weight``.
    plain
        Names of its parameters that are numbers, text, booleans or None.

    """
    weight = model.class_weight
    content: dict[str, Any] = {
        "parameters": {name: as_json(getattr(model, name), name) for name in plain},
        "class_weight": (
            [[as_json(label, "the label"), factor] for label, factor in weight.items()]
            if isinstance(weight, dict)
            else weight
        ),
        "features": [as_json(name, "the feature name") for name in model._schema.names],
        "n_ignored": model._schema.n_ignored,
        "is_sparse": model._sparse,
        "labels": [as_json(label, "the label") for label in model._labels.seen],
        "n_examples": model._n_examples,
    }
    return content, {"calibration": model._calibration}


def learner_from_file(
    cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray], **further: Any
) -> Any:
    """Return the learner of that class, with further parameters, without its state."""
    weight = content["class_weight"]
    model = cls(
        class_weight=dict(map(tuple, weight)) if isinstance(weight, list) else weight,
        **content["parameters"],
        **further,
    )
    if len(content["features"]) > (model.max_features or LIMIT):
        raise ValueError("there are more features than max_features")
    model._schema = Schema(content["features"], model.max_features, model.hashing)
    model._schema.n_ignored = content.get("n_ignored", 0)
    model._sparse = content.get("is_sparse", False)
    model._labels = type(model._labels)(content["labels"])
    model._n_examples = content["n_examples"]
    model._calibration = arrays["calibration"]
    return model


def common_to_file(
    model: Any, plain: Iterable[str]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays of a `KernelLearner`, without its state."""
    content, arrays = learner_to_file(model, plain)
    content |= {"kernel": kernel_as_json(model.kernel), "kernel_": kernel_as_json(model.kernel_)}
    return content, arrays | {"moments": model._moments}


def common_from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the kernel learner of that class, without its state."""
    model = learner_from_file(cls, content, arrays, kernel=kernel_from_json(content["kernel"]))
    model.kernel_ = kernel_from_json(content["kernel_"])
    model._moments = arrays["moments"]
    return model


def rows_to_file(rows: Rows) -> dict[str, np.ndarray]:
    """Return the arrays of stored rows."""
    if isinstance(rows, SparseRows):
        return {"row_start": rows.start, "columns": rows.columns, "values": rows.values}
    return {"rows": rows}


def rows_from_file(arrays: dict[str, np.ndarray], n: int, d: int) -> Rows:
    """Return n stored rows of d features.

    Raises
    ------
    ValueError
        Compiled code would read outside of them.

    """
    if "rows" in arrays:
        if arrays["rows"].shape != (n, d):
            raise ValueError("the array of rows is of another size")
        return arrays["rows"]
    rows = SparseRows(arrays["row_start"], arrays["columns"], arrays["values"], d)
    fits = (
        rows.start.dtype == np.int64
        and rows.columns.dtype == np.int32
        and rows.values.dtype == np.float32
        and rows.start.shape == (n + 1,)
        and rows.start[0] == 0
        and bool((np.diff(rows.start) >= 0).all())
        and rows.columns.shape == rows.values.shape == (int(rows.start[-1]),)
    )
    if not fits:
        raise ValueError("the sparse rows do not fit together")
    descends = np.diff(rows.columns) <= 0
    # Only where a row begins may the columns go down.
    begins = rows.start[1:-1]
    descends[begins[(begins > 0) & (begins < len(rows.columns))] - 1] = False
    if len(rows.columns) and (descends.any() or rows.columns.min() < 0 or rows.columns.max() >= d):
        raise ValueError("a column of the sparse rows is out of place")
    return rows


def record_as_json(record: Any) -> dict[str, Any]:
    """Return the fields of a one-row record array."""
    return {name: record[0][name].item() for name in record.dtype.names}


def fill_record(record: Any, values: dict[str, Any]) -> None:
    """Write fields into a one-row record array; fields that an older file lacks stay 0."""
    for name, value in values.items():
        record[0][name] = value


def store_to_file(store: Any, n: int, d: int) -> dict[str, np.ndarray]:
    """Return the arrays of the first n rows of a store, of d features, and of their examples."""
    arrays = rows_to_file(stores.rows_of(store, n, d))
    return arrays | {"entered": store.entered[:n], "weight": store.weight[:n]}


def with_store(state: Any, rows: Rows, arrays: dict[str, np.ndarray]) -> Any:
    """Return a new state with these rows in its store, and what `store_to_file` said of them."""
    state = state._replace(store=stores.filled(state.store, rows))
    n = arrays["entered"].size
    state.store.entered[:n], state.store.weight[:n] = arrays["entered"], arrays["weight"]
    return state
