"""Online standardising, the same event by event and in batches."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from river import base, compose

from streamsvm._compile import compiled
from streamsvm.errors import FeatureError
from streamsvm.features import frames
from streamsvm.features.events import check_number_feature, snapshot
from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.model_files.codec import register
from streamsvm.model_files.container import register_pipeline
from streamsvm.native_events import availability
from streamsvm.native_events.event_reader import LONGEST
from streamsvm.native_events.fast_path import Generation
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


@compiled
def _are_usable(values):
    """Tell whether no value, float64 (d,), is NaN or beyond single precision."""
    usable = True
    for t in range(values.size):
        usable &= abs(values[t]) <= LARGEST
    return usable


@compiled
def _learn_event(statistics, columns, values):
    """Learn values, float64 (d,), of features; False: nothing is done as one is refused."""
    if not _are_usable(values):
        return False
    for t in range(values.size):
        if columns[t] >= 0:
            learn_value(statistics, columns[t], values[t])
    return True


@compiled
def _scale_event(statistics, columns, values, out):
    """Write values, float64 (d,), scaled into out, float64 (d,); False: one is refused."""
    if not _are_usable(values):
        return False
    for t in range(values.size):
        f = columns[t]
        if f >= 0:
            out[t] = scaled(statistics, f, values[t])
        else:
            out[t] = values[t] if f == _ONE_HOT else 0.0
    return True


_ONE_HOT, _UNKNOWN = -1, -2
"""Columns of features that pass as they are, and of those not learnt yet."""

_MOST_LAYOUTS = 64


class _Layout(NamedTuple):
    """What is known of events with certain names in a certain order."""

    columns: np.ndarray  # int64: features, or `_ONE_HOT`, `_UNKNOWN`
    pack: Callable[..., bytes]


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

    # The fast path, and its methods: see `_set_fast_path`.
    _fast_path: ScalerFastPath | None
    _event_learn: Callable[[Any], bool | None]
    _event_transform: Callable[[Any], dict[Name, float] | None]

    def __init__(self) -> None:
        super().__init__()
        self._schema = Schema()
        self._statistics = np.zeros((3, 0))
        self._set_up()

    def _set_up(self) -> None:
        """Set what no copy has: what speeds events up."""
        # By the names of an event, for so many features of the schema.
        self._layouts: dict[tuple[Name, ...], _Layout] = {}
        self._n_laid_out = 0
        self._generation = Generation()
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
        if learn(x):
            return
        with self._lock:
            event = snapshot(x)
            names = tuple(event)
            layout = self._layout_of(names)
            if _UNKNOWN in layout.columns:
                # Only once all values are known to be usable.
                _values_of(layout, event)
                self._schema.extend(name for name in names if not _is_one_hot(name))
                layout = self._layout_of(names)
            values = _values_of(layout, event)
            # After the columns: there are statistics of all of them.
            _learn_event(self._fitted(), layout.columns, values)
            self._bind_fast_path()

    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the scaled event; features not learnt yet are 0.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        The same features in standard deviations from their means.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision.

        """
        transform = self._event_transform
        found = transform(x)
        if found is not None:
            return found
        with self._lock:
            event = snapshot(x)
            names = tuple(event)
            layout = self._layout_of(names)
            values = _values_of(layout, event)
            out = np.empty(len(values))
            _scale_event(self._fitted(), layout.columns, values, out)
            self._bind_fast_path()
        return dict(zip(names, out.tolist(), strict=True))

    def _layout_of(self, names: tuple[Name, ...]) -> _Layout:
        """Return what is known of events with these names; the lock is held."""
        if self._n_laid_out != len(self._schema) or len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts, self._n_laid_out = {}, len(self._schema)
        layout = self._layouts.get(names)
        if layout is None:
            columns = self._columns_of(names)
            layout = self._layouts[names] = _Layout(columns, struct.Struct(f"{len(names)}d").pack)
        return layout

    def _columns_of(self, names: Iterable[Name]) -> np.ndarray:
        index = self._schema.index
        columns = [_ONE_HOT if _is_one_hot(n) else index.get(n, _UNKNOWN) for n in names]
        return np.array(columns, np.int64)

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
            columns = self._columns_of(matrix.names)
            # Features that were never learnt have no variance: 0, like River's.
            values[:, columns == _UNKNOWN] = 0.0
            # After the columns: there are statistics of all of them.
            _learn_and_scale(self._fitted(), columns, values, absent, learn, scale)
        return matrix._replace(values=values, is_finite=False)

    # Events of known features take a fast path

    def _bind_fast_path(self) -> None:
        """Let events take the fast path, if that is possible; the lock is held."""
        path, schema = self._fast_path, self._schema
        if path is not None and path.is_bound_to(self._fitted()):
            return
        if not availability.is_on() or not schema.are_simple or not 0 < len(schema) <= LONGEST:
            if path is not None:
                self._generation.advance()
                self._set_fast_path(None)
            return
        if path is None or not path.is_for(schema):
            room = min(LONGEST, 2 * len(schema))
            self._set_fast_path(ScalerFastPath(schema, room, self._lock, self._generation))
        self._fitted()
        # From here on the path remains closed if anything uses the scaler.
        now = self._generation.advance()
        path = self._fast_path
        if path is not None and path.is_for(schema):
            path.bind(self._statistics, now)

    def _set_fast_path(self, path: ScalerFastPath | None) -> None:
        methods = (_fall_back, _fall_back) if path is None else (path.learn, path.transform)
        if availability.DEBUG and path is not None:
            methods = self._checked(path, methods[0]), self._checked(path, methods[1])
        # In one step. The methods for themselves, as attributes of attributes cost time.
        self.__dict__.update(_fast_path=path, _event_learn=methods[0], _event_transform=methods[1])

    def _checked(self, path: ScalerFastPath, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that first compares the addresses with those of the arrays."""
        itself = weakref.ref(self)

        def checked(x: Any) -> Any:
            scaler = itself()
            if scaler is not None:
                with scaler._lock:
                    path.check(scaler._statistics)
            return method(x)

        return checked

    def _after_fork(self) -> None:
        # The path knows the lock that there was before.
        self._generation.advance()
        self._set_fast_path(None)

    def _contents(self) -> dict[str, Any]:
        self._fitted()
        contents = super()._contents()
        for name in _NOT_COPIED:
            del contents[name]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self._set_up()

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
        """Return the statistics, of all features of the schema; the lock is held."""
        while (missing := len(self._schema) - self._statistics.shape[1]) > 0:
            old, path = self._statistics, self._fast_path
            # First: the fast path leads to the old ones.
            self._generation.advance()
            wider = np.pad(old, ((0, 0), (0, missing)))
            # Unless an interruption has widened them, and learnt, already.
            if self._statistics is old:
                self._statistics = wider
            if path is not None:
                path.release()
        return self._statistics


_NOT_COPIED = (
    "_layouts", "_n_laid_out", "_generation", "_fast_path", "_event_learn", "_event_transform"
)  # fmt: skip


def _fall_back(x: Any) -> None:
    """Do nothing, in the place of a method of a fast path."""


def _is_one_hot(name: Name) -> bool:
    return isinstance(name, str) and "=" in name


def _values_of(layout: _Layout, event: dict[Name, Any]) -> np.ndarray:
    """Return the values of an event as float64 (d,); refuse what is no usable number."""
    try:
        values = np.frombuffer(layout.pack(*event.values()), np.float64)
    except (struct.error, TypeError, OverflowError):
        values = np.array([check_number_feature(*pair) for pair in event.items()])
    if not _are_usable(values):
        for pair in event.items():
            check_number_feature(*pair)
    return values


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
