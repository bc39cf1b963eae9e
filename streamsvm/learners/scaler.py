"""Online standardising, the same event by event and in batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from river import base

from streamsvm._compile import compiled
from streamsvm.errors import FeatureError
from streamsvm.learners import frames, model_file, scaler_file
from streamsvm.learners.matrices import Matrix, SparseMatrix
from streamsvm.learners.names import Name
from streamsvm.learners.schema import Schema, check_number_feature
from streamsvm.learners.shared import Shared


@compiled
def _learn_value(statistics, f, value):  # type: ignore[no-untyped-def]
    """Learn one value of feature f."""
    statistics[0, f] += 1.0
    old_mean = statistics[1, f]
    statistics[1, f] += (value - old_mean) / statistics[0, f]
    spread = (value - old_mean) * (value - statistics[1, f])
    statistics[2, f] += (spread - statistics[2, f]) / statistics[0, f]


@compiled
def _scaled(statistics, f, value):  # type: ignore[no-untyped-def]
    """Return a value of feature f in standard deviations from the mean; 0 without variance."""
    variance = statistics[2, f]
    return (value - statistics[1, f]) / variance**0.5 if variance > 0.0 else 0.0


@compiled
def _learn_and_scale(statistics, columns, values, absent, learn, scale):  # type: ignore[no-untyped-def]
    """Learn and scale rows one after the other, in place.

    Parameters
    ----------
    statistics
        float64 (3, n_features): counts, means, variances.
    columns
        int64 (c,): the feature of each column, -1 = leave the column as it is.
    values
        float64 (n, c), overwritten.
    absent
        bool (n, c), or (0, 0) = all are there.
    learn, scale
        Which of the two to do; both = learn the row first.

    """
    some_absent = absent.size > 0
    for r in range(values.shape[0]):
        for c in range(values.shape[1]):
            f = columns[c]
            if f < 0 or (some_absent and absent[r, c]):
                continue
            value = values[r, c]
            if learn:
                _learn_value(statistics, f, value)
            if scale:
                values[r, c] = _scaled(statistics, f, value)


@compiled
def _learn_event(statistics, values):  # type: ignore[no-untyped-def]
    """Learn one event, float64 (n_features,); return False, and change nothing, if not finite."""
    for f in range(values.size):
        if not np.isfinite(values[f]):
            return False
    for f in range(values.size):
        _learn_value(statistics, f, values[f])
    return True


@compiled
def _scale_event(statistics, values, out):  # type: ignore[no-untyped-def]
    """Write the scaled event into `out`, float64 (n_features,); return False if not finite."""
    for f in range(values.size):
        if not np.isfinite(values[f]):
            return False
        out[f] = _scaled(statistics, f, values[f])
    return True


class StandardScaler(Shared, base.MiniBatchTransformer):
    """Bring features to mean 0 and variance 1 over the stream so far.

    River's ``preprocessing.StandardScaler`` event by event, with three differences: a batch gives
    exactly what its rows would have given one by one; features named ``column=value``, one-hot
    text, pass as they are (a rare category scaled to variance 1 would drown all others); and NaN,
    infinities and strings are refused instead of kept for ever in a mean.

    A feature that an event lacks stays away: it counts 0, the mean, in a learner behind. Sparse
    batches pass as they are: centred, no value of theirs would be 0.

    Examples
    --------
    >>> from streamsvm import StandardScaler
    >>> scaler = StandardScaler()
    >>> for a in (1.0, 2.0, 3.0):
    ...     scaler.learn_one({"a": a, "colour=red": 1.0})
    >>> scaler.transform_one({"a": 2.0, "colour=red": 1.0})
    {'a': 0.0, 'colour=red': 1.0}

    """

    def __init__(self) -> None:
        super().__init__()
        self._schema = Schema()
        self._statistics = np.zeros((3, 0))

    def learn_one(self, x: Mapping[Name, Any]) -> None:
        """Learn the features of one event.

        Raises
        ------
        FeatureError
            A value is no finite number; nothing changes.

        """
        with self._lock:
            values = self._schema.packed(x)
            if values is None or not _learn_event(self._statistics, values):
                self._run(_matrix_of_event(x), learn=True, scale=False)

    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the scaled event; features not learnt yet are 0."""
        with self._lock:
            values = self._schema.packed(x)
            if values is not None:
                out = np.empty(len(values))
                if _scale_event(self._statistics, values, out):
                    return dict(zip(self._schema.names, out.tolist(), strict=True))
            matrix = self._run(_matrix_of_event(x), learn=False, scale=True)
        return dict(zip(matrix.names, matrix.values[0].tolist(), strict=True))

    def learn_many(self, X: Any) -> None:
        """Learn the rows of a batch: see `LASVMClassifier.learn_many` for what it may be."""
        self._run(frames.matrix_of(X, self._schema), learn=True, scale=False)

    def transform_many(self, X: Any) -> Any:
        """Return the scaled batch in the kind of container that `X` is; missing values become 0."""
        matrix = self._run(frames.matrix_of(X, self._schema), learn=False, scale=True)
        if isinstance(matrix, SparseMatrix):
            return X
        if isinstance(X, np.ndarray):
            return matrix.values
        if isinstance(X, pa.RecordBatch):
            return pa.RecordBatch.from_arrays(list(map(pa.array, matrix.values.T)), matrix.names)
        columns = dict(zip(matrix.names, matrix.values.T, strict=True))
        return frames.columns_like(X, columns)

    def learn_transform_many(self, matrix: Any) -> Any:
        """Learn and scale each row in turn: ``learn_one`` then ``transform_one``, row by row."""
        return self._run(matrix, learn=True, scale=True)

    def transform_matrix(self, matrix: Any) -> Any:
        """Scale a matrix with what was learnt so far."""
        return self._run(matrix, learn=False, scale=True)

    def _run(self, matrix: Any, *, learn: bool, scale: bool) -> Any:
        if isinstance(matrix, SparseMatrix):
            return matrix
        values = np.array(matrix.values, np.float64, order="C")
        if not np.isfinite(values).all():
            r, c = np.argwhere(~np.isfinite(values))[0]
            check_number_feature(matrix.names[c], values[r, c])
            raise FeatureError(f"row {r}: feature {matrix.names[c]!r} is {values[r, c]!r}")
        absent = np.zeros((0, 0), bool) if matrix.absent is None else matrix.absent
        with self._lock:
            if learn:
                self._schema.extend(n for n in matrix.names if not _is_one_hot(n))
                missing = len(self._schema) - self._statistics.shape[1]
                self._statistics = np.pad(self._statistics, ((0, 0), (0, missing)))
            index = self._schema.index
            columns = np.array(
                [-1 if _is_one_hot(n) else index.get(n, -2) for n in matrix.names], np.int64
            )
            # Features that were never learnt have no variance: 0, like River's.
            values[:, columns == -2] = 0.0
            _learn_and_scale(self._statistics, columns, values, absent, learn, scale)
        return matrix._replace(values=values, is_finite=False)

    @property
    def statistics(self) -> dict[Name, tuple[int, float, float]]:
        """Count, mean and variance of each feature that is scaled."""
        counts, means, variances = self._statistics.tolist()
        return {
            name: (int(counts[i]), means[i], variances[i])
            for i, name in enumerate(self._schema.names)
        }


def _is_one_hot(name: Name) -> bool:
    return isinstance(name, str) and "=" in name


def _matrix_of_event(x: Mapping[Name, Any]) -> Matrix:
    values = np.array([[check_number_feature(name, value) for name, value in x.items()]])
    return Matrix(list(x), values.reshape(1, len(x)), None)


model_file.register(StandardScaler, scaler_file)
