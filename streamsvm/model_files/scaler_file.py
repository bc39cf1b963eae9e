"""A StandardScaler as JSON and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.features.schema import Schema
from streamsvm.model_files.json_values import as_json


def to_file(scaler: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays."""
    names = [as_json(name, "the feature name") for name in scaler._schema.names]
    return {"features": names}, {"statistics": scaler._fitted()}


def from_file(cls: type, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the scaler of that class."""
    scaler = cls()
    scaler._schema = Schema(content["features"])
    if arrays["statistics"].shape != (3, len(scaler._schema)):
        raise ValueError("statistics do not fit the features")
    scaler._statistics = arrays["statistics"]
    return scaler
