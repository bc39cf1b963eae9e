"""A StandardScaler as JSON and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.json_values import as_json
from streamsvm.learners.scaler import StandardScaler
from streamsvm.learners.schema import Schema


def to_file(scaler: StandardScaler) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return JSON content and arrays."""
    names = [as_json(name, "the feature name") for name in scaler._schema.names]
    return {"features": names}, {"statistics": scaler._statistics}


def from_file(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> StandardScaler:
    """Return the scaler."""
    scaler = StandardScaler()
    scaler._schema = Schema(content["features"])
    if arrays["statistics"].shape != (3, len(scaler._schema)):
        raise ValueError("statistics do not fit the features")
    scaler._statistics = arrays["statistics"]
    return scaler
