"""Ranks of features as bits: each says whether a value is beyond a quantile of the feature."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from river import base

from streamsvm._parameter_checks import check_pattern, check_size
from streamsvm.errors import FeatureError
from streamsvm.features import frames
from streamsvm.features.events import present, snapshot
from streamsvm.features.matrices import Matrix, SparseMatrix, check_values
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT, Schema
from streamsvm.model_files.codec import register
from streamsvm.model_files.json_values import Content
from streamsvm.models import rank_bits
from streamsvm.preprocessing.layouts import Layout, is_one_hot, values_of
from streamsvm.support.declaration import Field, NamedArrays, Range, as_int
from streamsvm.support.locked import Locked, guarded, locked

_MOST_BITS = 255
"""Of one feature."""

_MOST_VALUES = rank_bits.MOST_ROWS
"""The edges of a feature stay as they are after so many values, a power of two."""

_MOST_EVENT_MAPS, _MOST_NAMES = 64, 1024
"""The maps of so many kinds of events are kept, if they have at most so many features."""


class _Feature:
    """The edges of a feature's bits, and its values until the edges stay as they are."""

    def __init__(self, name: Name, n_bits: int) -> None:
        self.names = _names_of_bits(name, n_bits)
        # float32 (n_bits,); None before the first value.
        self.edges: np.ndarray | None = None
        # The number of values, and an array that has room for them until edges are renewed.
        self.kept = 0, np.empty(1, np.float32)

    @property
    def n_missing(self) -> int:
        """How many values are missing until the edges are renewed; 0: they stay as they are."""
        n, values = self.kept
        return len(values) - n

    def learn(self, values: np.ndarray) -> None:
        """Learn values, float32 (n,), at most `n_missing`."""
        n, kept = self.kept
        stop = n + len(values)
        kept[n:stop] = values
        if stop < len(kept):
            self.kept = stop, kept
            return
        self.edges = rank_bits.quantiles(kept, len(self.names))
        if stop < _MOST_VALUES:
            self.kept = stop, np.concatenate([kept, np.empty_like(kept)])
        else:
            self.kept = 0, kept[:0].copy()

    def learn_and_map(self, values: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Return the bits of values, float32 (n,) with NaN where one is missing, as (n, n_bits).

        Those of `learnt`, bool (n,), are learnt one after the other, each before it is mapped.
        """
        bits = np.full((len(values), len(self.names)), np.nan, np.float32)
        rows = np.flatnonzero(learnt & ~np.isnan(values))
        first = 0
        while self.n_missing and len(rows):
            some, rows = rows[: self.n_missing], rows[self.n_missing :]
            if len(some) == self.n_missing:
                # From the last of them on, rows have other edges.
                self._map(values[first : some[-1]], bits[first : some[-1]])
                first = some[-1]
            self.learn(values[some])
        self._map(values[first:], bits[first:])
        return bits

    def _map(self, values: np.ndarray, bits: np.ndarray) -> None:
        if self.edges is not None:
            bits[:] = values[:, None] > self.edges
            bits[np.isnan(values)] = np.nan


class _EventMap(NamedTuple):
    """How to map events that have the same names in the same order."""

    layout: Layout
    bits: rank_bits.RankBits  # by the places of values in the event
    names: list[Name]
    one_hot: list[tuple[Name, int]]  # names and places of features that are not mapped


class RankBits(Locked, base.MiniBatchTransformer):
    """Map each feature to bits: bit k is 1 if the value is beyond the k-th of its quantiles.

    The quantiles are at equal steps, so that two events differ in as many bits of a feature as
    there are quantiles between their values. Behind it, an RBF kernel compares ranks, whatever the
    units, skewness and outliers of a feature; a linear learner has a step function of each feature.
    It takes the place of `StandardScaler`, which is better where borders are oblique or round.

    Quantiles are those of the first 1, 2, 4, ..., 2,048 values of a feature: they are renewed
    whenever it has so many, and then stay as they are, as the learner behind has learnt what its
    bits mean. Until then the values are kept, 8 kB a feature. If the stream moves to other values,
    begin anew. Quantiles are below the largest of these values, which may be that of most events.

    Bits are named by feature and quantile, ``"a>q0.25"``, and those of features with integer names,
    as arrays have them, by numbers: bit k of feature j is ``j * n_bits + k``. (Of other names:
    ``(name, "q0.25")``.) A missing value (None, NaN, a feature that an event lacks or that was
    never learnt) has no bits, or NaN in a batch: see `missing` of the learner behind. One-hot
    features, named ``column=value``, are passed on as they are. Words and counts of words have no
    use for ranks, and sparse batches are refused. There are 2^20 bits at most: features for which
    there is no room are left out.

    Parameters
    ----------
    n_bits
        From 1 to 255: how many bits each feature has. None, the default: 120 // d, but at least 1
        and at most 15, where d is the number of features of the first event learnt, without
        one-hot ones.
    one_hot
        A regular expression: features in whose names it is found are one-hot, too, as for
        `StandardScaler`.

    Attributes
    ----------
    edges : dict
        The quantiles of each feature by its name, as lists.
    gamma : float
        A value to begin with for `kernels.RBF` of the bits: 6 / (number of bits so far). With the
        default bits it is about .05 for 8 features and more, and 6 / (15 d) for fewer.

    Raises
    ------
    ParameterError
        A parameter is out of range.

    Examples
    --------
    >>> from streamsvm import LASVMClassifier, RankBits, kernels
    >>> bits = RankBits(n_bits=3)
    >>> for price in (1.0, 10.0, 100.0, 1e6):
    ...     bits.learn_one({"price": price})
    >>> bits.transform_one({"price": 60.0})
    {'price>q0.25': 1.0, 'price>q0.5': 1.0, 'price>q0.75': 0.0}
    >>> bits.gamma
    2.0
    >>> model = RankBits() | LASVMClassifier(kernels.RBF(gamma=0.05))

    """

    def __init__(self, n_bits: int | None = None, one_hot: str | None = None) -> None:
        super().__init__()
        self.n_bits, self.one_hot = n_bits, one_hot
        # Of each feature; 0: it depends on the first event.
        self._n_bits = check_size("n_bits", n_bits, 1, _MOST_BITS) or 0
        check_pattern("one_hot", one_hot)
        # All that were learnt, also one-hot ones.
        self.schema = Schema()
        self._features: dict[Name, _Feature] = {}
        self._event_maps: dict[tuple[Name, ...], _EventMap] = {}

    def _contents(self) -> dict[str, Any]:
        return super()._contents() | {"_event_maps": {}}

    @property
    @locked
    def edges(self) -> dict[Name, list[float]]:
        """The quantiles of each feature by its name."""
        return {name: edges.tolist() for name, edges in self._edges().items()}

    @property
    @locked
    def gamma(self) -> float:
        """For an RBF kernel of the bits to begin with: 6 / (number of bits so far)."""
        return rank_bits.OF_EQUAL / (self._n_bits * len(self._edges()) or rank_bits.N_BITS)

    def _edges(self) -> dict[Name, np.ndarray]:
        features = self._features.items()
        return {name: of_name.edges for name, of_name in features if of_name.edges is not None}

    @guarded
    def learn_one(self, x: Mapping[Name, Any]) -> None:
        """Learn the features of one event.

        Parameters
        ----------
        x
            Numbers by name of feature; None and NaN are missing.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision; nothing was learnt.

        """
        names, _, values = self._read(x)
        self._add(names, values)
        for i, name in enumerate(names):
            feature = self._feature_of(name)
            if feature is not None and feature.n_missing:
                if feature.n_missing == 1:
                    self._event_maps.clear()
                feature.learn(values[0, i : i + 1])

    @guarded
    def transform_one(self, x: Mapping[Name, Any]) -> dict[Name, float]:
        """Return the bits of one event.

        Parameters
        ----------
        x
            Numbers by name of feature; None and NaN are missing.

        Returns
        -------
        0.0 or 1.0 by the names of bits; and one-hot features as they are.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision.

        """
        _, event_map, values = self._read(x)
        bits = event_map.bits.of_rows(values)[0].tolist()
        found: dict[Name, float] = dict(zip(event_map.names, bits, strict=True))
        return found | {name: float(values[0, i]) for name, i in event_map.one_hot}

    def learn_many(self, X: Any) -> None:
        """Learn the rows of a batch in their order.

        Parameters
        ----------
        X
            NumPy array (n, d), Arrow RecordBatch or Table, pandas or polars frame.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision, or the batch is sparse; nothing was
            learnt.

        """
        self.learn_transform_matrix(frames.matrix_of(X, self.schema))

    def transform_many(self, X: Any) -> Any:
        """Return the bits of a batch, NaN where a value is missing.

        Parameters
        ----------
        X
            A batch as for `learn_many`.

        Returns
        -------
        The batch in the same kind of container, float32; columns are named as the bits of events,
        and bit k of column j of an array is in column ``j * n_bits + k``.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision, or the batch is sparse.

        """
        matrix = self.transform_matrix(frames.matrix_of(X, self.schema))
        if isinstance(X, np.ndarray):
            # Also of columns that were never learnt, so that each bit has its place.
            bits = np.full((len(X), X.shape[1] * self._n_bits), np.nan, np.float32)
            bits[:, np.array(matrix.names, np.int64)] = matrix.values
            return bits
        if isinstance(X, pa.RecordBatch):
            names = list(map(str, matrix.names))
            return pa.RecordBatch.from_arrays(list(map(pa.array, matrix.values.T)), names)
        return frames.columns_like(X, dict(zip(matrix.names, matrix.values.T, strict=True)))

    def transform_matrix(self, matrix: Matrix | SparseMatrix) -> Matrix:
        """Return the bits of a matrix of `frames.matrix_of`: see `transform_many`."""
        return self.learn_transform_matrix(matrix, False)

    def learn_transform_matrix(
        self, matrix: Matrix | SparseMatrix, learn: bool | np.ndarray = True
    ) -> Matrix:
        """Do ``learn_one``, if `learn`, and then ``transform_one`` with each row, in order.

        `learn` is for all rows, or bool (n,). FeatureError: as for `learn_many`.
        """
        if isinstance(matrix, SparseMatrix):
            raise FeatureError(
                "RankBits takes no sparse rows: most values of their features are 0, so that ranks "
                "say little; leave RankBits out, or pass dense rows"
            )
        check_values(matrix)
        values = np.asarray(matrix.values).astype(np.float32)
        return self._learn_and_map(matrix.names, values, np.full(len(values), learn))

    @guarded
    def _learn_and_map(
        self, names: Sequence[Name], values: np.ndarray, learnt: np.ndarray
    ) -> Matrix:
        if learnt.any():
            self._add(names, values[learnt])
            self._event_maps.clear()
        found: list[Name] = []
        columns = [np.empty((len(values), 0), np.float32)]
        for i, name in enumerate(names):
            if is_one_hot(name, self.one_hot):
                found.append(name)
                columns.append(values[:, i : i + 1])
            elif (feature := self._feature_of(name)) is not None:
                found += feature.names
                columns.append(feature.learn_and_map(values[:, i], learnt))
        return frames.by_appearance(found, np.concatenate(columns, axis=1))

    def _add(self, names: Sequence[Name], rows: np.ndarray) -> None:
        """Add the features of rows that are to be learnt, float32 (n, d), if they are new."""
        index = self.schema.index
        if new := [i for i, name in enumerate(names) if name not in index]:
            self.schema.extend(names[i] for i in new if not np.isnan(rows[:, i]).all())
        if not self._n_bits:
            numbers = [i for i, name in enumerate(names) if not is_one_hot(name, self.one_hot)]
            counts = np.count_nonzero(~np.isnan(rows[:, numbers]), axis=1)
            for d in counts[counts > 0][:1].tolist():
                self._n_bits = rank_bits.equal_number(d)

    @property
    def _has_room(self) -> bool:
        return 0 < self._n_bits <= LIMIT - len(self._features) * self._n_bits

    def _feature_of(self, name: Name) -> _Feature | None:
        """Return a feature that is to be learnt; None: it is one-hot, or has no place."""
        feature = self._features.get(name)
        if feature is None and self._has_room and not is_one_hot(name, self.one_hot):
            # Equal names may differ: 1 and 1.0.
            if (i := self.schema.index.get(name)) is not None:
                feature = self._features[name] = _Feature(self.schema.names[i], self._n_bits)
        return feature

    def _read(self, x: Mapping[Name, Any]) -> tuple[tuple[Name, ...], _EventMap, np.ndarray]:
        """Return the names of an event, how it is mapped, and its values as float32 (1, d)."""
        event = present(snapshot(x))
        names = tuple(event)
        event_map = self._event_maps.get(names)
        if event_map is None:
            event_map = self._new_event_map(names)
            if len(self._event_maps) >= _MOST_EVENT_MAPS:
                self._event_maps.clear()
            if len(names) <= _MOST_NAMES:
                self._event_maps[names] = event_map
        return names, event_map, values_of(event_map.layout, event).astype(np.float32)[None]

    def _new_event_map(self, names: tuple[Name, ...]) -> _EventMap:
        edges, places = [np.empty(0, np.float32)], [np.empty(0, np.int32)]
        bits: list[Name] = []
        one_hot = []
        for i, name in enumerate(names):
            if is_one_hot(name, self.one_hot):
                one_hot.append((name, i))
                continue
            feature = self._features.get(name)
            if feature is not None and feature.edges is not None:
                edges.append(feature.edges)
                places.append(np.full(len(feature.edges), i, np.int32))
                bits += feature.names
        by_place = rank_bits.RankBits(np.concatenate(edges), np.concatenate(places))
        return _EventMap(Layout.of(range(len(names))), by_place, bits, one_hot)

    # In files: edges, and the values that they will be renewed by

    def _as_arrays(self) -> Content:
        index, edges = self.schema.index, self._edges()
        kept = [self._features[name].kept for name in edges]
        arrays: dict[str, np.ndarray] = {
            "columns": np.array([index[name] for name in edges], np.int32),
            "edges": np.array(list(edges.values()), np.float32).reshape(len(edges), self._n_bits),
            "counts": np.array([n for n, _ in kept], np.int64),
            "values": np.concatenate([np.empty(0, np.float32), *(v[:n] for n, v in kept)]),
        }
        return {"bits_of_each": self._n_bits}, arrays

    def _read_arrays(self, content: dict[str, Any], arrays: NamedArrays) -> None:
        n_bits = as_int("bits_of_each", content.get("bits_of_each"), 0, _MOST_BITS)
        if self._n_bits not in (0, n_bits):
            raise ValueError("bits_of_each is not n_bits")
        self._n_bits, names = n_bits, self.schema.names
        n = arrays.length_of("columns", 0)
        edges = arrays.take("edges", Field((n, n_bits), np.float32), {})
        of_name = Field((n,), np.int32, range=Range(0, len(names) - 1))
        columns = arrays.take("columns", of_name, {}).tolist()
        of_counts = Field((n,), np.int64, range=Range(0, _MOST_VALUES - 1))
        counts = arrays.take("counts", of_counts, {}).tolist()
        values = arrays.take("values", Field((sum(counts),), np.float32), {})
        for column, of_feature, count in zip(columns, edges, counts, strict=True):
            feature = self._features[names[column]] = _Feature(names[column], n_bits)
            feature.edges = of_feature.copy()
            # The next power of two; no room if no value is kept.
            room = np.empty(1 << count.bit_length() if count else 0, np.float32)
            room[:count], values = values[:count], values[count:]
            feature.kept = count, room
        if len(self._features) < n:
            raise ValueError("columns: a feature comes twice")


def _names_of_bits(name: Name, n: int) -> list[Name]:
    """Return the names of n bits of a feature; no two features have one in common."""
    if isinstance(name, (int, np.integer)):
        return [int(name) * n + k for k in range(n)]
    quantiles = [f"q{k / (n + 1):.4g}" for k in range(1, n + 1)]
    return [f"{name}>{q}" if isinstance(name, str) else (name, q) for q in quantiles]


register(RankBits, more=RankBits._as_arrays, read_more=RankBits._read_arrays)
