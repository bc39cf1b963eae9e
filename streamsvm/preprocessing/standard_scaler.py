"""Online standardisation of features, with the same result by event and by batch."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from river import base, compose

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
from streamsvm.native_events.scaler_path import ScalerFastPath
from streamsvm.preprocessing.scaling import (
    ONE_HOT,
    UNKNOWN,
    are_usable,
    learn_and_scale,
    learn_event,
    scale_event,
)
from streamsvm.support.declaration import Field
from streamsvm.support.locked import Locked, refuse_to_learn
from streamsvm.support.rows import LARGEST

_MOST_LAYOUTS = 64


class _Layout(NamedTuple):
    """How to read events that have the same names in the same order."""

    columns: np.ndarray  # int64: the columns of the names, or `ONE_HOT`, `UNKNOWN`
    pack: Callable[..., bytes]  # packs their values as float64


class StandardScaler(Locked, base.MiniBatchTransformer):
    """Scale features to mean 0 and variance 1, estimated from the stream so far.

    The result for events is that of River's ``preprocessing.StandardScaler``, with three
    differences. A batch gives exactly the result of its rows one by one. One-hot features, named
    ``column=value``, are not changed: scaled to variance 1, a rare category would outweigh all
    other features. NaN, infinities, strings and numbers beyond single precision are refused, as
    they would remain in the mean for ever.

    A feature that an event lacks is not added; for the learner it is 0, which is the mean. Sparse
    batches are not changed: centring would make all their zeros nonzero.

    Attributes
    ----------
    statistics : dict
        Count, mean and variance of each feature that is scaled, by name.

    Examples
    --------
    >>> from streamsvm import StandardScaler
    >>> scaler = StandardScaler()
    >>> for a in (1.0, 2.0, 3.0):
    ...     scaler.learn_one({"a": a, "colour=red": 1.0})
    >>> scaler.transform_one({"a": 2.0, "colour=red": 1.0})
    {'a': 0.0, 'colour=red': 1.0}

    """

    # The fast path and its methods, all set by `_set_fast_path`.
    _fast_path: ScalerFastPath | None
    _event_learn: Callable[[Any], bool | None]
    _event_transform: Callable[[Any], dict[Name, float] | None]

    def __init__(self) -> None:
        super().__init__()
        self._schema = Schema()
        self._statistics = np.zeros((3, 0))
        self._set_up()

    def _set_up(self) -> None:
        """Set the attributes that copies do not share, all of which are caches."""
        # Valid for so many features of the schema; by the names of an event.
        self._layouts: tuple[int, dict[tuple[Name, ...], _Layout]] = (0, {})
        self._generation = Generation()
        self._set_fast_path(None)

    def learn_one(self, x: Mapping[Name, Any]) -> None:
        """Learn the features of one event.

        Parameters
        ----------
        x
            Finite numbers by name of feature.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision; the scaler has not changed.
        ModelBusyError
            The caller is a signal handler, or the like, in the middle of this scaler's learning.

        """
        # A local variable: else the interpreter would first look for a method of the class.
        learn = self._event_learn
        if learn(x):
            return
        with self._lock:
            event = snapshot(x)
            if self._is_learning:
                refuse_to_learn()
            self._is_learning = True
            try:
                names = tuple(event)
                layout = self._layout_of(names)
                if UNKNOWN in layout.columns:
                    # Refuses values before the schema changes.
                    _values_of(layout, event)
                    self._schema.extend(name for name in names if not _is_one_hot(name))
                    layout = self._layout_of(names)
                values = _values_of(layout, event)
                # Only now: `_fitted` adds statistics for all columns of the schema.
                learn_event(self._fitted(), layout.columns, values)
            finally:
                self._is_learning = False
            self._bind_fast_path()

    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the scaled event; features not learnt yet are 0.

        Parameters
        ----------
        x
            Finite numbers by name of feature.

        Returns
        -------
        The same features in standard deviations from their means.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision.

        """
        transform = self._event_transform
        if (found := transform(x)) is not None:
            return found
        with self._lock:
            event = snapshot(x)
            names = tuple(event)
            layout = self._layout_of(names)
            values = _values_of(layout, event)
            out = np.empty(len(values))
            scale_event(self._fitted(), layout.columns, values, out)
            self._bind_fast_path()
        return dict(zip(names, out.tolist(), strict=True))

    def _layout_of(self, names: tuple[Name, ...]) -> _Layout:
        """Return the layout of events with these names; the caller holds the lock."""
        n, layouts = self._layouts
        if n != len(self._schema) or len(layouts) >= _MOST_LAYOUTS:
            layouts = {}
            self._layouts = len(self._schema), layouts
        layout = layouts.get(names)
        if layout is None:
            columns = self._columns_of(names)
            # If a signal handler learns a name meanwhile, these layouts are not used again.
            layout = layouts[names] = _Layout(columns, struct.Struct(f"{len(names)}d").pack)
        return layout

    def _columns_of(self, names: Iterable[Name]) -> np.ndarray:
        index = self._schema.index
        columns = [ONE_HOT if _is_one_hot(n) else index.get(n, UNKNOWN) for n in names]
        return np.array(columns, np.int64)

    def learn_many(self, X: Any) -> None:
        """Learn the rows of a batch in their order.

        Parameters
        ----------
        X
            NumPy array (n, d), Arrow RecordBatch or Table, pandas or polars frame. A sparse batch
            is accepted and ignored.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision; the scaler has not changed.

        """
        self._run(frames.matrix_of(X, self._schema), learn=True, scale=False)

    def transform_many(self, X: Any) -> Any:
        """Return the scaled batch; missing values become 0.

        Parameters
        ----------
        X
            A batch as for `learn_many`.

        Returns
        -------
        The batch in the same kind of container; a sparse batch as it is.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision.

        """
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
        """Do ``learn_one`` and then ``transform_one`` with each row, in order.

        Parameters
        ----------
        matrix
            A `Matrix` or `SparseMatrix`, as `frames.matrix_of` returns it.

        Returns
        -------
        The scaled matrix; a sparse one as it is.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision; the scaler has not changed.

        """
        return self._run(matrix, learn=True, scale=True)

    def transform_matrix(self, matrix: Any) -> Any:
        """Scale a matrix by the current statistics: see `learn_transform_many`."""
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
            if learn and self._is_learning:
                refuse_to_learn()
            was_learning, self._is_learning = self._is_learning, self._is_learning or learn
            try:
                if learn:
                    self._schema.extend(n for n in matrix.names if not _is_one_hot(n))
                columns = self._columns_of(matrix.names)
                # A feature that was never learnt has no variance: its value is 0, as River's is.
                values[:, columns == UNKNOWN] = 0.0
                # Only now: `_fitted` adds statistics for all columns of the schema.
                learn_and_scale(self._fitted(), columns, values, absent, learn, scale)
            finally:
                self._is_learning = was_learning
        return matrix._replace(values=values, is_finite=False)

    # The fast path, for events without new features

    def _bind_fast_path(self) -> None:
        """Bind the fast path to the statistics, if that is possible; the caller holds the lock."""
        path, schema = self._fast_path, self._schema
        if self._is_learning or (path is not None and path.is_bound_to(self._fitted())):
            # Learning binds it afterwards: this may be a signal handler in the middle of that.
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
        # `bind` fails if other code uses the scaler after this, a signal handler for example.
        now = self._generation.advance()
        path = self._fast_path
        if path is not None and path.is_for(schema):
            path.bind(self._statistics, now)

    def _set_fast_path(self, path: ScalerFastPath | None) -> None:
        methods = (_fall_back, _fall_back) if path is None else (path.learn, path.transform)
        if availability.DEBUG and path is not None:
            methods = self._checked(path, methods[0]), self._checked(path, methods[1])
        # In one step, as an interruption must not leave methods of another path.
        self.__dict__.update(_fast_path=path, _event_learn=methods[0], _event_transform=methods[1])

    def _checked(self, path: ScalerFastPath, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that first compares the addresses with those of the arrays."""
        itself = weakref.ref(self)

        def checked(x: Any) -> Any:
            scaler = itself()
            if scaler is not None:
                with scaler._lock:
                    now = scaler._generation.now
                    path.check(scaler._statistics, now)
            return method(x)

        return checked

    def _after_fork(self) -> None:
        # The path uses the address of the parent's lock, which has been replaced.
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
        """Return the statistics of all features of the schema; the caller holds the lock."""
        while (missing := len(self._schema) - self._statistics.shape[1]) > 0:
            old, path = self._statistics, self._fast_path
            # Before copying: it closes the fast path, which would still write to the old array.
            self._generation.advance()
            wider = np.pad(old, ((0, 0), (0, missing)))
            # A signal handler that used the scaler meanwhile has replaced the array already.
            if self._statistics is old:
                self._statistics = wider
            if path is not None:
                path.release()
        return self._statistics


_NOT_COPIED = (
    "_layouts", "_generation", "_fast_path", "_event_learn", "_event_transform"
)  # fmt: skip


def _fall_back(x: Any) -> None:
    """Return None, which says that the event has to take the general path."""


def _is_one_hot(name: Name) -> bool:
    return isinstance(name, str) and "=" in name


def _values_of(layout: _Layout, event: dict[Name, Any]) -> np.ndarray:
    """Return the values of an event as float64 (d,); raise FeatureError if one is not usable."""
    try:
        values = np.frombuffer(layout.pack(*event.values()), np.float64)
    except (struct.error, TypeError, OverflowError):
        values = np.array([check_number_feature(*pair) for pair in event.items()])
    if not are_usable(values):
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
