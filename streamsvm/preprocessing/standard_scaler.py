"""Online standardisation of features, with the same result by event and by batch."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
from river import base, compose

from streamsvm._parameter_checks import check_pattern
from streamsvm.errors import FeatureError
from streamsvm.features import frames
from streamsvm.features.event_reader import UNUSUAL
from streamsvm.features.events import present, snapshot
from streamsvm.features.matrices import SparseMatrix, check_values
from streamsvm.features.names import Name, is_long
from streamsvm.model_files.codec import register
from streamsvm.model_files.container import register_pipeline
from streamsvm.model_files.json_values import Content
from streamsvm.preprocessing.layouts import Layout, values_of
from streamsvm.preprocessing.scaled_features import ScaledFeatures, merged, widened
from streamsvm.preprocessing.scaling import (
    ONE_HOT,
    REJECT,
    UNKNOWN,
    learn_and_scale,
    learn_event,
    scale_event,
)
from streamsvm.support.declaration import Field, NamedArrays
from streamsvm.support.feature_statistics import (
    COUNT,
    N_CLIPPED,
    N_ROWS,
    RECENT,
    SQUARES,
    VARIANCE,
    far_value,
)
from streamsvm.support.locked import guarded, refuse

_MOST_LAYOUTS = 64


class StandardScaler(ScaledFeatures, base.MiniBatchTransformer):
    """Scale features to mean 0 and variance 1, estimated from the stream so far.

    No single value can ruin the scale of a feature. Scaled values lie within -clip .. clip, and in
    mean and variance a value counts as at most 2 clip standard deviations from the mean. A true
    change is followed: these limits grow with the variance, and when the last quarter of a
    feature's values, at least 100, has less than a tenth of the standard deviation of all (of 20 or
    more values, a hundredth), the earlier values are forgotten.

    River's ``preprocessing.StandardScaler`` has no such limits: one value of 1e6 leaves its trace
    for ever. With ``clip=None`` the result for events is River's; by default it is while values lie
    within the limits. Three differences remain. A batch gives exactly the result of its rows one by
    one. One-hot features, named ``column=value``, are not changed: scaled to variance 1, a rare
    category would outweigh all other features. Infinities, strings and numbers beyond single
    precision (3.4e38) are refused.

    A missing value (None, NaN, a feature that an event lacks) is not learnt, and missing behind the
    scaler, too: for a learner it is about 0, which is the mean (see its `missing`). Sparse
    batches are not changed: centring would make all their zeros nonzero.

    Parameters
    ----------
    clip
        At least 1: the limit in standard deviations, 10 by default. Mean and variance follow it
        from a feature's 21st value on. Of a feature that differs from 0 in fewer than 1 of
        4 clip^2 values (400), nonzero values of different sizes may become equal. None: no limit,
        and nothing is forgotten.
    reject
        None, the default: values of any size are learnt, as `clip` says. Or at least 1: learning an
        event with a value further than this many standard deviations from its mean (1e6, say)
        raises a `FeatureError`, from a feature's 21st value on; a run makes it a dead letter.
        Nothing is learnt from such events: if a feature changes for good, all later ones are
        refused.
    one_hot
        A regular expression: features in whose names it is found are one-hot, too. River's
        ``OneHotEncoder`` names them ``column_value``, for which ``"^(colour|job)_"`` is one. None:
        only those named ``column=value`` are.

    Attributes
    ----------
    statistics : dict
        Count, mean and variance of each feature that is scaled, by name. The count is that of the
        values that have not been forgotten.
    n_clipped : dict
        How many values were learnt beyond `clip`, by name; without features that have none.

    Examples
    --------
    >>> from streamsvm import StandardScaler
    >>> scaler = StandardScaler()
    >>> for a in (1.0, 2.0, 3.0):
    ...     scaler.learn_one({"a": a, "colour=red": 1.0})
    >>> scaler.transform_one({"a": 2.0, "colour=red": 1.0})
    {'a': 0.0, 'colour=red': 1.0}

    """

    def __init__(
        self, clip: float | None = 10.0, reject: float | None = None, one_hot: str | None = None
    ) -> None:
        self.clip, self.reject, self.one_hot = clip, reject, one_hot
        check_pattern("one_hot", one_hot)
        super().__init__(clip, reject)

    def __repr__(self) -> str:
        given = {"clip": 10.0, "reject": None, "one_hot": None}
        values = {name: getattr(self, name) for name, usual in given.items()}
        changed = [f"{name}={value!r}" for name, value in values.items() if value != given[name]]
        return f"StandardScaler({', '.join(changed)})"

    def learn_one(self, x: Mapping[Name, Any]) -> None:
        """Learn the features of one event.

        Parameters
        ----------
        x
            Numbers by name of feature; None and NaN are missing.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision, or beyond `reject`; the scaler has not
            changed.
        ModelBusyError
            The caller is inside another call of this scaler: a signal handler, or a method of a
            name or value. The same holds for all methods that learn, transform or copy.

        """
        # As `guarded` does, without the call.
        with self.lock:
            if self.is_busy:
                refuse()
            try:
                self.is_busy = True
                if self.reject is None:
                    _, layout, values = self._plain(x)
                    if layout is not None and learn_event(
                        self._fitted(), layout.columns, values, self._clip
                    ):
                        return
                self._learn_event(x)
            finally:
                self.is_busy = False

    def _plain(self, x: Mapping[Name, Any]) -> tuple[tuple[Name, ...], Layout | None, Any]:
        """Return names, layout and values of a dict of numbers whose names are known in this order.

        Without a layout it is not one: other events, and errors, are for the general path. Under
        lock.
        """
        if x.__class__ is dict:
            # At one moment: another thread may change it between names and values.
            x = dict(x)
            names = tuple(x)
            if (layout := self._layouts.get(names)) is not None:
                try:
                    # Of bytes that can be written, as all other arrays are.
                    return names, layout, np.frombuffer(bytearray(layout.pack(*x.values())))
                except UNUSUAL:
                    pass
        return (), None, None

    def _learn_event(self, x: Mapping[Name, Any]) -> None:
        event = present(snapshot(x))
        names = tuple(event)
        layout, are_known = self._layout_of(names)
        # Refuses values before the schema changes.
        values = values_of(layout, event)
        if self.reject is not None:
            limit = self._limits[REJECT]
            far = far_value(self._fitted(), layout.columns, values, limit)
            if far >= 0:
                raise FeatureError(self.far_message(names[far], values[far]))
        if not are_known:
            self.schema.extend(compress(names, layout.columns == UNKNOWN))
            layout = Layout.of(self._columns_of(names))
        # Only now: `_fitted` adds statistics for all columns of the schema.
        learn_event(self._fitted(), layout.columns, values, self._clip)

    @guarded
    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the scaled event; features not learnt yet are 0.

        Parameters
        ----------
        x
            Numbers by name of feature; None and NaN are missing.

        Returns
        -------
        The same features in standard deviations from their means, without missing ones.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision.

        """
        names, layout, values = self._plain(x)
        clip = self._clip
        if layout is None or not scale_event(self._fitted(), layout.columns, values, clip):
            event = present(snapshot(x))
            names = tuple(event)
            layout, _ = self._layout_of(names)
            values = values_of(layout, event)
            scale_event(self._fitted(), layout.columns, values, clip)
        return dict(zip(names, values.tolist(), strict=True))

    def far_message(self, name: Name, value: float) -> str:
        """Return why a value beyond `reject` is refused."""
        return (
            f"feature {name!r} is {float(value)!r}: more than reject={self.reject:g} standard "
            "deviations from the mean of its values so far; correct it, or leave the feature out"
        )

    def _layout_of(self, names: tuple[Name, ...]) -> tuple[Layout, bool]:
        """Return the layout of events with these names, and whether all are known; under lock."""
        layouts = self._layouts
        if (layout := layouts.get(names)) is not None:
            return layout, True
        columns = self._columns_of(names)
        layout, are_known = Layout.of(columns), UNKNOWN not in columns
        # The column of a known name never changes.
        if are_known and not any(map(is_long, names)):
            if len(layouts) >= _MOST_LAYOUTS:
                layouts.clear()
            layouts[names] = layout
        return layout, are_known

    def _columns_of(self, names: Iterable[Name]) -> list[int]:
        index, is_one_hot = self.schema.index, self.is_one_hot
        found = [index.get(n, UNKNOWN) for n in names]
        if UNKNOWN in found:
            pairs = zip(names, found, strict=True)
            found = [ONE_HOT if c == UNKNOWN and is_one_hot(n) else c for n, c in pairs]
        return found

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
            A value is no finite number of single precision, or beyond `reject`; the scaler has not
            changed.

        """
        self._run(frames.matrix_of(X, self.schema), learn=True, scale=False)

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
        matrix = self._run(frames.matrix_of(X, self.schema), learn=False, scale=True)
        if isinstance(matrix, SparseMatrix):
            return X
        matrix = matrix._replace(values=np.nan_to_num(matrix.values))
        if isinstance(X, np.ndarray):
            return matrix.values
        if isinstance(X, pa.RecordBatch):
            return pa.RecordBatch.from_arrays(list(map(pa.array, matrix.values.T)), matrix.names)
        columns = dict(zip(matrix.names, matrix.values.T, strict=True))
        return frames.columns_like(X, columns)

    def merge(self, other: "StandardScaler") -> None:
        """Learn what another scaler has learnt from other rows.

        Mean and variance are those of the rows of both together. What counts as a recent value
        begins anew.

        Parameters
        ----------
        other
            A scaler with the same parameters; it is not changed.

        """
        self._merge(*_learnt(other))

    @guarded
    def _merge(self, names: list[Name], theirs: np.ndarray) -> None:
        self.schema.extend(names)
        columns = np.array(self._columns_of(names), np.int64)
        statistics = self._fitted()
        statistics[:, columns] = merged(statistics[:, columns], theirs)

    def learn_transform_many(self, matrix: Any) -> Any:
        """Do ``learn_one`` and then ``transform_one`` with each row of a `Matrix`, in order.

        A `SparseMatrix` is returned as it is. FeatureError: as for `learn_many`.
        """
        return self._run(matrix, learn=True, scale=True)

    def transform_matrix(self, matrix: Any) -> Any:
        """Scale a matrix by the current statistics: see `learn_transform_many`."""
        return self._run(matrix, learn=False, scale=True)

    def learn_transform_usable(self, matrix: Any, learn: Any = True) -> tuple[Any, np.ndarray]:
        """Do what `learn_transform_many` does, but leave out the rows beyond `reject`.

        `learn`, bool (n,) or True: which rows are learnt; the others are only scaled. Returns the
        matrix, in which the rows left out are as they were, and int64 (n,): the column of the first
        value of each row that is beyond `reject`, or -1.
        """
        return self._learn_rows(matrix, learn=learn, scale=True, all_or_none=False)

    def _run(self, matrix: Any, *, learn: bool, scale: bool) -> Any:
        """Learn or scale all rows; raise FeatureError, and learn none, if one is refused."""
        scaled, refused = self._learn_rows(matrix, learn=learn, scale=scale, all_or_none=True)
        for r in np.flatnonzero(refused >= 0)[:1]:
            c = refused[r]
            raise FeatureError(f"row {r}: {self.far_message(matrix.names[c], matrix.values[r, c])}")
        return scaled

    def _learn_rows(
        self, matrix: Any, *, learn: bool | np.ndarray, scale: bool, all_or_none: bool
    ) -> tuple[Any, np.ndarray]:
        if isinstance(matrix, SparseMatrix):
            return matrix, np.full(matrix.rows.start.size - 1, -1)
        check_values(matrix)
        values = np.array(matrix.values, np.float64, order="C")
        refused = np.full(len(values), -1)
        learnt = np.full(len(values), learn)
        self._learn_values(matrix.names, values, learnt, scale, refused, all_or_none)
        return matrix._replace(values=values, is_finite=False), refused

    @guarded
    def _learn_values(
        self,
        names: Sequence[Name],
        values: np.ndarray,
        learnt: np.ndarray,
        scale: bool,
        refused: np.ndarray,
        all_or_none: bool,
    ) -> None:
        """Learn and scale rows in place; set the column of the first value that is refused."""
        if learnt.any():
            self.schema.extend(n for n in names if not self.is_one_hot(n))
        columns = np.array(self._columns_of(names), np.int64)
        # A feature that was never learnt has no variance: its value is 0, as River's is.
        values[:, columns == UNKNOWN] *= 0.0
        # Only now: `_fitted` adds statistics for all columns of the schema.
        statistics, limits = self._fitted(), self._limits
        before = statistics.copy() if all_or_none and self.reject is not None else None
        learn_and_scale(statistics, columns, values, limits, learnt, scale, refused)
        if before is not None and (refused >= 0).any():
            statistics[:] = before

    # Files

    def _as_arrays(self) -> Content:
        statistics = np.ascontiguousarray(self._statistics[:, : len(self.schema)])
        return {}, {"statistics": statistics}

    def _read_arrays(self, content: dict[str, Any], arrays: NamedArrays) -> None:
        n = len(self.schema)
        self._statistics = widened(arrays.take("statistics", Field((N_ROWS, n)), {}), n)

    def _check_arrays(self) -> None:
        if (self._statistics[[COUNT, VARIANCE, N_CLIPPED, RECENT, SQUARES]] < 0.0).any():
            raise ValueError("statistics: a count, variance or sum of squares is below 0")


@guarded
def _learnt(scaler: StandardScaler) -> tuple[list[Name], np.ndarray]:
    """Return the names of a scaler's features, and a copy of their statistics."""
    names = list(scaler.schema.names)
    return names, StandardScaler._fitted(scaler)[:, : len(names)].copy()


register(
    StandardScaler,
    prepare=StandardScaler._fitted,
    more=StandardScaler._as_arrays,
    read_more=StandardScaler._read_arrays,
    check=StandardScaler._check_arrays,
)
register_pipeline(compose.Pipeline)
