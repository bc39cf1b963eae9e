"""The base class of transformers that map events to a fixed number of components."""

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base

from streamsvm.features import frames
from streamsvm.features.matrices import Matrix, SparseMatrix, check_values
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.support.locked import Locked

_MOST_EVENT_MAPS, _MOST_NAMES = 64, 1024
"""The maps of so many kinds of events are kept, if they have at most so many features."""


class FeatureMap(Locked, base.MiniBatchTransformer):
    """A transformer whose components are numbered 0, 1, ...; a subclass computes them."""

    _caches: tuple[str, ...] = ("_event_maps",)
    """Attributes that copies do not share."""

    def _set_up(self) -> None:
        """Set the caches."""
        self._event_maps: dict[tuple[Name, ...], Any] = {}

    @abc.abstractmethod
    def _new_event_map(self, names: tuple[Name, ...]) -> Any:
        """Return what is needed to map events that have these names in this order."""

    def _event_map_of(self, names: tuple[Name, ...]) -> Any:
        """Return the same, found once."""
        # The cache changes in single steps: threads need no lock.
        known = self._event_maps
        found = known.get(names)
        if found is None:
            found = self._new_event_map(names)
            if len(known) >= _MOST_EVENT_MAPS:
                known.clear()
            if len(names) <= _MOST_NAMES:
                known[names] = found
        return found

    def _contents(self) -> dict[str, Any]:
        return {n: value for n, value in super()._contents().items() if n not in self._caches}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self._set_up()

    @abc.abstractmethod
    def _map(self, matrix: Matrix | SparseMatrix, learn: bool | np.ndarray) -> np.ndarray:
        """Return the components of rows, float32 (n, n_components).

        `learn` says which rows are learnt before they are mapped, as bool (n,) or for all rows. The
        values are finite in single precision.
        """

    @abc.abstractmethod
    def _map_event(self, x: Mapping[Name, Any]) -> np.ndarray:
        """Return the components of an event, float32 (1, n_components)."""

    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the components of one event.

        Parameters
        ----------
        x
            Numbers by name of feature; None and NaN are missing.

        Returns
        -------
        The components by their numbers.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision, or a name cannot be used.

        """
        return dict(enumerate(self._map_event(x)[0].tolist()))

    def transform_many(self, X: Any) -> Any:
        """Return the components of the rows of a batch, as those of events to the last bit.

        Parameters
        ----------
        X
            NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table, pandas or polars
            frame. Missing values count 0.

        Returns
        -------
        A pandas frame with the index of X if that is one, with columns 0, 1, ...; else an array,
        float32 (n, n_components).

        Raises
        ------
        FeatureError
            The batch cannot be used, for the same reasons as an event.

        """
        components = self.transform_matrix(frames.matrix_of(X, Schema())).values
        is_frame = hasattr(X, "columns") and hasattr(X, "index")
        return frames.columns_like(X, dict(enumerate(components.T))) if is_frame else components

    def transform_matrix(self, matrix: Matrix | SparseMatrix) -> Matrix:
        """Return the components of a matrix of `frames.matrix_of`: see `transform_many`."""
        return self.learn_transform_matrix(matrix, False)

    def learn_transform_matrix(
        self, matrix: Matrix | SparseMatrix, learn: bool | np.ndarray = True
    ) -> Matrix:
        """Do ``learn_one``, if `learn`, and then ``transform_one`` with each row, in order.

        FeatureError: as for `transform_many`; nothing was learnt.
        """
        check_values(matrix)
        if isinstance(matrix, Matrix):
            # A missing value is 0, which is the mean behind a scaler.
            matrix = matrix._replace(values=np.where(np.isnan(matrix.values), 0.0, matrix.values))
        out = self._map(matrix, learn)
        return Matrix(list(range(out.shape[1])), out, None, is_finite=True)


def listed(
    matrix: SparseMatrix, used: np.ndarray, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries of sparse rows in an order of the features: start, ranks and values.

    `used`, int64, are the columns that have entries, ascending; `order`, int64, has indices into
    it: entries of columns that are not in it are left out. Row r has the entries start[r] ..
    start[r + 1] - 1, by ascending rank in `order`.
    """
    start = matrix.rows.start - matrix.rows.start[0]
    entries = slice(*matrix.rows.start[[0, -1]].tolist())
    place = np.searchsorted(used, matrix.rows.columns[entries])
    # Those left out are after the others.
    rank = np.full(used.size, order.size)
    rank[order] = np.arange(order.size)
    ranks, row = rank[place], np.repeat(np.arange(start.size - 1), np.diff(start))
    by_rank = np.lexsort((ranks, row))
    by_rank = by_rank[ranks[by_rank] < order.size]
    start[1:] = np.cumsum(np.bincount(row[by_rank], minlength=start.size - 1))
    return start, ranks[by_rank], matrix.values[by_rank]


def used_columns(matrix: SparseMatrix) -> np.ndarray:
    """Return the columns of sparse rows that have entries, ascending."""
    return np.unique(matrix.rows.columns[slice(*matrix.rows.start[[0, -1]].tolist())])
