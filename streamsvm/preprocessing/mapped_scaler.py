"""The transformers in front of a learner, for batches that do not pass through dicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.features.names import Name
from streamsvm.preprocessing.feature_map import FeatureMap
from streamsvm.preprocessing.standard_scaler import StandardScaler


class MappedScaler:
    """Scales rows, if there is a scaler, and maps them: two steps of a pipeline as one.

    It has those methods of `StandardScaler` that runs use for batches.
    """

    def __init__(self, scaler: StandardScaler | None, features: FeatureMap) -> None:
        self._scaler, self._features = scaler, features

    @property
    def n_clipped(self) -> dict[Name, int]:
        """How many values the scaler has learnt beyond its limit, by name."""
        return {} if self._scaler is None else self._scaler.n_clipped

    def far_message(self, name: Name, value: float) -> str:
        """Return why the scaler refuses a value."""
        assert self._scaler is not None
        return self._scaler.far_message(name, value)

    def transform_matrix(self, matrix: Any) -> Any:
        """Return the components of rows, scaled by the current statistics."""
        scaled = matrix if self._scaler is None else self._scaler.transform_matrix(matrix)
        return self._features.transform_matrix(scaled)

    def learn_transform_many(self, matrix: Any) -> Any:
        """Do it for each row, after both have learnt the row: see `StandardScaler`."""
        scaled = matrix if self._scaler is None else self._scaler.learn_transform_many(matrix)
        return self._features.learn_transform_matrix(scaled)

    def learn_transform_usable(self, matrix: Any, learn: Any = True) -> tuple[Any, np.ndarray]:
        """Do the same, but leave out the rows that the scaler rejects: see `StandardScaler`."""
        if self._scaler is None:
            mapped = self._features.learn_transform_matrix(matrix, learn)
            return mapped, np.full(len(mapped.values), -1)
        scaled, refused = self._scaler.learn_transform_usable(matrix, learn)
        return self._features.learn_transform_matrix(scaled, learn & (refused < 0)), refused
