"""Random Fourier features: a linear learner behind them finds curved borders in fixed memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from river import base

from streamsvm._parameter_checks import LARGEST_SIZE, check_positive, check_whole
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.features import frames
from streamsvm.features.events import refusal, snapshot
from streamsvm.features.matrices import Matrix, SparseMatrix, are_usable, bad_value
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT, Schema
from streamsvm.model_files.codec import register
from streamsvm.preprocessing.cosines import map_dense, map_sparse
from streamsvm.preprocessing.layouts import Layout, values_of
from streamsvm.preprocessing.random_directions import RandomDirections
from streamsvm.support.locked import Locked
from streamsvm.support.rows import LARGEST

_MOST_EVENT_MAPS, _MOST_NAMES = 64, 1024
"""The maps of so many kinds of events are kept, if they have at most so many features."""


class _EventMap(NamedTuple):
    """How to transform events that have the same names in the same order."""

    layout: Layout
    order: np.ndarray
    directions: np.ndarray


class RandomFourierFeatures(Locked, base.MiniBatchTransformer):
    """Map events to random features whose dot products approximate the RBF kernel.

    With the features z(x) of Rahimi and Recht, ``z(x) . z(y)`` is exp(-gamma |x - y|^2) on average,
    with an error that falls as 1 / sqrt(n_components). So a linear learner behind this transformer
    learns curved borders, in memory and time that do not grow with the stream. Components are
    pairs: the cosine and the sine of one random combination of all features of the event.

    Put `StandardScaler` in front, since one gamma is used for all features. Nothing is learnt: the
    random weights of a feature are drawn from its name and the seed. They are the same in each
    process, and whatever order the features appear in. A feature that an event lacks counts 0.
    Names are strings, numbers, or tuples of them; names of more than 1,000 characters are left out.

    Parameters
    ----------
    gamma
        Above 0: that of the kernel. Behind `StandardScaler`, 1 / (number of features) is a value
        to begin with; larger values give more curved borders.
    n_components
        An even number: how many features the learner gets, named 0, 1, .... 256 by default.
    seed
        A whole number of at least 0: other seeds give other random weights. 0 by default.

    Raises
    ------
    ParameterError
        A parameter is out of range.

    Examples
    --------
    >>> from streamsvm import RandomFourierFeatures, SVMSGDClassifier
    >>> model = RandomFourierFeatures(gamma=0.5) | SVMSGDClassifier()
    >>> for _ in range(100):
    ...     for a in (-2.0, 0.0, 2.0):
    ...         model.learn_one({"a": a}, a == 0.0)
    >>> [model.predict_one({"a": a}) for a in (-2.0, 0.0, 2.0)]
    [False, True, False]

    """

    def __init__(self, gamma: float, n_components: int = 256, seed: int = 0) -> None:
        super().__init__()
        self.gamma, self.n_components, self.seed = gamma, n_components, seed
        # In turns: 1 is 2 pi. In two roots, as 2 gamma may be infinite.
        self._scale = math.sqrt(2.0) * math.sqrt(check_positive("gamma", gamma)) / (2.0 * math.pi)
        self._n = check_whole("n_components", n_components, 2, LIMIT)
        if self._n % 2:
            raise ParameterError(f"n_components={n_components!r}: use an even number, such as 256")
        check_whole("seed", seed, 0, LARGEST_SIZE)
        self._set_up()

    def _set_up(self) -> None:
        """Set the caches, which copies do not share."""
        self._directions = RandomDirections(self._n // 2, int(self.seed))
        self._event_maps: dict[tuple[Name, ...], _EventMap] = {}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"gamma": 0.5, "n_components": 16}

    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the random features of one event.

        Parameters
        ----------
        x
            Finite numbers by name of feature.

        Returns
        -------
        The components by their numbers.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision, or random weights cannot be drawn from
            a name.

        """
        # Only caches change, in single steps: threads and signal handlers need no lock.
        event = snapshot(x)
        event_map = self._event_map_of(tuple(event))
        # Copied, as code would be compiled once more for values that cannot be written.
        values = values_of(event_map.layout, event).reshape(1, -1).copy()
        out = np.empty((1, self._n), np.float32)
        map_dense(values, event_map.order, event_map.directions, self._scale, out)
        return dict(enumerate(out[0].tolist()))

    def _event_map_of(self, names: tuple[Name, ...]) -> _EventMap:
        known = self._event_maps
        found = known.get(names)
        if found is None:
            order, directions = self._directions.of(names)
            found = _EventMap(Layout.of(np.arange(len(names))), order, directions)
            if len(known) >= _MOST_EVENT_MAPS:
                known.clear()
            if len(names) <= _MOST_NAMES:
                known[names] = found
        return found

    def transform_many(self, X: Any) -> Any:
        """Return the random features of the rows of a batch, as those of events to the last bit.

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
        """Return the random features of a matrix, as `frames.matrix_of` returns it.

        Parameters
        ----------
        matrix
            The rows.

        Returns
        -------
        Their components.

        Raises
        ------
        FeatureError
            As for `transform_many`.

        """
        _check_values(matrix)
        if isinstance(matrix, SparseMatrix):
            out = self._map_sparse(matrix)
        else:
            out = self._map_dense(matrix)
        return Matrix(list(range(self._n)), out, None, is_finite=True)

    def _map_dense(self, matrix: Matrix) -> np.ndarray:
        names = matrix.names
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise FeatureError(f"two columns are named {twice!r}: rename one of them")
        order, directions = self._directions.of(names)
        out = np.empty((len(matrix.values), self._n), np.float32)
        values = np.ascontiguousarray(matrix.values, np.float64)
        map_dense(values, order, directions, self._scale, out)
        return out

    def _map_sparse(self, matrix: SparseMatrix) -> np.ndarray:
        start = matrix.rows.start - matrix.rows.start[0]
        entries = slice(*matrix.rows.start[[0, -1]].tolist())
        used, place = np.unique(matrix.rows.columns[entries], return_inverse=True)
        order, directions = self._directions.of([matrix.names[c] for c in used.tolist()])
        # Where each used column is in that order; those left out are after the others.
        rank = np.full(used.size, order.size)
        rank[order] = np.arange(order.size)
        ranks, row = rank[place], np.repeat(np.arange(start.size - 1), np.diff(start))
        by_rank = np.lexsort((ranks, row))
        by_rank = by_rank[ranks[by_rank] < order.size]
        start[1:] = np.cumsum(np.bincount(row[by_rank], minlength=start.size - 1))
        out = np.empty((start.size - 1, self._n), np.float32)
        map_sparse(start, ranks[by_rank], matrix.values[by_rank], directions, self._scale, out)
        return out

    def _contents(self) -> dict[str, Any]:
        contents = super()._contents()
        del contents["_directions"], contents["_event_maps"]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self._set_up()


def _check_values(matrix: Matrix | SparseMatrix) -> None:
    """Raise FeatureError if a value is not finite in single precision."""
    for r in np.flatnonzero(~are_usable(matrix, LARGEST))[:1].tolist():
        name, value = bad_value(matrix, r, LARGEST) or ("", math.nan)
        raise FeatureError(f"row {r}: {refusal(name, value)}")


register(RandomFourierFeatures)
