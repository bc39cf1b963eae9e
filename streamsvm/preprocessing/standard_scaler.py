"""Online standardising, the same event by event and in batches."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from river import base, compose

from streamsvm._compile import compiled
from streamsvm.errors import FeatureError
from streamsvm.features import frames
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema, check_number_feature
from streamsvm.model_files.codec import register
from streamsvm.model_files.container import register_pipeline
from streamsvm.native_events.event_reader import LONGEST
from streamsvm.native_events.path_table import FALL_BACK, POSSIBLE
from streamsvm.native_events.scaler_path import ScalerFastPath, learn_value, scaled
from streamsvm.support.declaration import Field
from streamsvm.support.locked import Locked
from streamsvm.support.rows import LARGEST


@compiled
def _learn_and_scale(statistics, columns, values, absent, learn, scale):
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
                learn_value(statistics, f, value)
            if scale:
                values[r, c] = scaled(statistics, f, value)


class StandardScaler(Locked, base.MiniBatchTransformer):
    """Bring features to mean 0 and variance 1 over the stream so far.

    River's ``preprocessing.StandardScaler`` event by event, with three differences: a batch gives
    exactly what its rows would have given one by one; features named ``column=value``, one-hot
    text, pass as they are (a rare category scaled to variance 1 would drown all others); and NaN,
    infinities, strings and what is beyond single precision are refused instead of kept for ever in
    a mean.

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
        self._set_fast_path(None)

    def learn_one(self, x: Mapping[Name, Any]) -> None:
        """Learn the features of one event.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision; nothing changes.

        """
        # Of an attribute that is called at once the interpreter thinks first that it is a method.
        learn = self._event_learn
        if learn(x) is FALL_BACK:
            with self._lock:
                self._run(_matrix_of_event(x), learn=True, scale=False)
                self._bind_fast_path()

    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the scaled event; features not learnt yet are 0."""
        transform = self._event_transform
        found: Any = transform(x)
        if found is not FALL_BACK:
            return found  # type: ignore[no-any-return]
        with self._lock:
            matrix = self._run(_matrix_of_event(x), learn=False, scale=True)
            self._bind_fast_path()
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
        usable = np.abs(values) <= LARGEST
        if not usable.all():
            r, c = np.argwhere(~usable)[0]
            check_number_feature(matrix.names[c], values[r, c])
            raise FeatureError(f"row {r}: feature {matrix.names[c]!r} is {values[r, c]!r}")
        absent = np.zeros((0, 0), bool) if matrix.absent is None else matrix.absent
        with self._lock:
            if learn:
                self._schema.extend(n for n in matrix.names if not _is_one_hot(n))
            statistics = self._fitted()
            index = self._schema.index
            columns = np.array(
                [-1 if _is_one_hot(n) else index.get(n, -2) for n in matrix.names], np.int64
            )
            # Features that were never learnt have no variance: 0, like River's.
            values[:, columns == -2] = 0.0
            _learn_and_scale(statistics, columns, values, absent, learn, scale)
        return matrix._replace(values=values, is_finite=False)

    # Events of known features go a fast path

    def _bind_fast_path(self) -> None:
        """Let events go the fast path, if that is possible; the lock is held."""
        statistics, way, schema = self._fitted(), self._fast_path, self._schema
        if way is not None and way.is_bound_to(statistics):
            return
        if not POSSIBLE or not schema.are_plain or not 0 < len(schema) <= LONGEST:
            return
        if way is None or not way.is_for(schema):
            way = ScalerFastPath(schema, min(LONGEST, 2 * len(schema)), self._lock)
        self._set_fast_path(way)
        way.bind(statistics)
        if self._statistics is not statistics:
            # Who interrupted this learnt a feature.
            way.close()

    def _set_fast_path(self, way: ScalerFastPath | None) -> None:
        # One by one, as attributes of attributes cost time.
        self._event_learn = _fall_back if way is None else way.learn
        self._event_transform = _fall_back if way is None else way.transform
        self._fast_path = way

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            # Both change in place.
            own = {"_schema": copy.copy(self._schema), "_statistics": self._fitted().copy()}
            contents = super().__getstate__() | own
        for name in ("_fast_path", "_event_learn", "_event_transform"):
            del contents[name]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self._set_fast_path(None)

    @property
    def statistics(self) -> dict[Name, tuple[int, float, float]]:
        """Count, mean and variance of each feature that is scaled."""
        with self._lock:
            figures = self._fitted().T.tolist()
            names = list(self._schema.names)
        return {
            name: (int(count), mean, variance)
            for name, (count, mean, variance) in zip(names, figures, strict=True)
        }

    def _fitted(self) -> np.ndarray:
        """Return the statistics, of all features of the schema; the lock is held.

        They are narrower where features came, or after an interruption when they did.
        """
        while (missing := len(self._schema) - self._statistics.shape[1]) > 0:
            old, way = self._statistics, self._fast_path
            if way is not None:
                way.close()
            wider = np.pad(old, ((0, 0), (0, missing)))
            if self._statistics is old:
                self._statistics = wider
            # Again: who interrupted this may have led it to the old ones.
            if way is not None:
                way.close()
        return self._statistics


def _fall_back(x: Any) -> Any:
    return FALL_BACK


def _is_one_hot(name: Name) -> bool:
    return isinstance(name, str) and "=" in name


def _matrix_of_event(x: Mapping[Name, Any]) -> Matrix:
    values = np.array([[check_number_feature(name, value) for name, value in x.items()]])
    return Matrix(list(x), values.reshape(1, len(x)), None)


def _check(scaler: StandardScaler) -> None:
    if (scaler._statistics[[0, 2]] < 0.0).any():
        raise ValueError("statistics: a count or variance is below 0")


register(
    StandardScaler,
    attributes={"statistics": ("_statistics", Field((3, "features")))},
    prepare=StandardScaler._fitted,
    check=_check,
)
register_pipeline(compose.Pipeline)
