"""The Nystroem method: a linear learner behind it uses a kernel's values with some centres."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import LARGEST_SIZE, check_number, check_whole
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.features import frames
from streamsvm.features.events import present, snapshot
from streamsvm.features.matrices import Matrix, SparseMatrix, take
from streamsvm.features.names import Name, is_long
from streamsvm.features.schema import Schema
from streamsvm.model_files.codec import register
from streamsvm.model_files.json_values import Content
from streamsvm.preprocessing.centres import Centres, add_centre, map_rows
from streamsvm.preprocessing.feature_map import FeatureMap, listed, used_columns
from streamsvm.preprocessing.layouts import Layout, values_of
from streamsvm.preprocessing.random_fourier import text_of
from streamsvm.support.declaration import Field, NamedArrays, Range
from streamsvm.support.draws import new_draws
from streamsvm.support.locked import guarded

_MOST_CENTRES, _MOST_NUMBERS = 4096, 2**26
"""The limits of two arrays: 134 MB for the basis, 268 MB for the table of centres."""

_CHUNK = 1024
"""So many rows of a batch are listed at a time."""


class _Rows(NamedTuple):
    """Rows as lists of entries, by the texts of their features' names."""

    names: list[Name]
    start: np.ndarray  # int64 (n + 1,)
    columns: np.ndarray  # int64: indices into `names`
    values: np.ndarray  # float32


class Nystroem(FeatureMap):
    """Map events to components whose dot products approximate a kernel, by centres of the stream.

    The first rows of the stream that are new become centres, up to `n_components` of them. An event
    is mapped to its projection on the space that they span, in which dot products are kernel
    values; so a linear learner behind this transformer learns curved borders, in memory and time
    that do not grow with the stream. Unlike random features, the components follow the data: there
    are as many as the data needs, at most `n_components`.

    A row is new if it is not (nearly) a combination of the centres so far. Each centre adds a
    component and changes none of the others, so that the learner behind can learn all the time.
    Components that are not there yet are 0. When all centres are there, nothing is learnt any more:
    if the stream moves to other places, begin anew.

    Put `StandardScaler` in front, since a kernel treats all features alike. A missing value
    counts 0. Names are strings, numbers, or tuples of them; names of more than 1,000
    characters are left out.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels` of dot products or distances, such as
        ``kernels.RBF(gamma=0.5)``. Behind `StandardScaler`, a gamma of 1 / (number of features) is
        a value to begin with; larger values give more curved borders.
    n_components
        The largest number of centres, and how many features the learner gets, named 0, 1, ....
        256 by default, at most 4,096.
    rate
        Above 0 and at most 1: the probability with which a row is considered. 1, the default: all
        are. Less where neighbours in the stream are alike, so that centres come from more of it.
    tolerance
        Above 0 and below 1: a row is new if its squared distance from the space of the centres is
        above this share of k(x, x). .001 by default; with more, there are fewer centres.
    seed
        A whole number of at least 0, for the draws with `rate`. 0 by default.

    Attributes
    ----------
    n_centres : int
        The number of centres so far.

    Raises
    ------
    ParameterError
        A parameter is out of range.

    References
    ----------
    Williams, Seeger, Using the Nystroem Method to Speed Up Kernel Machines, NIPS (2000); the choice
    of centres: Engel, Mannor, Meir, The Kernel Recursive Least-Squares Algorithm, IEEE Transactions
    on Signal Processing 52 (2004).

    Examples
    --------
    >>> from streamsvm import Nystroem, SVMSGDClassifier, kernels
    >>> model = Nystroem(kernels.RBF(gamma=0.5)) | SVMSGDClassifier()
    >>> for _ in range(100):
    ...     for a in (-2.0, 0.0, 2.0):
    ...         model.learn_one({"a": a}, a == 0.0)
    >>> [model.predict_one({"a": a}) for a in (-2.0, 0.0, 2.0)]
    [False, True, False]
    >>> model["Nystroem"].n_centres
    3

    """

    def __init__(
        self,
        kernel: Any,
        n_components: int = 256,
        rate: float = 1.0,
        tolerance: float = 1e-3,
        seed: int = 0,
    ) -> None:
        super().__init__()
        kernels.check_kernel(kernel)
        if kernels.product_of(type(kernel)) == "vectors":
            raise ParameterError(
                f"kernel={kernel!r} is a function of the vectors themselves: use a kernel of dot "
                "products or distances, such as kernels.RBF(gamma=0.5)"
            )
        self.kernel, self.n_components, self.rate = kernel, n_components, rate
        self.tolerance, self.seed = tolerance, seed
        m = check_whole("n_components", n_components, 1, _MOST_CENTRES)
        if not 0.0 < check_number("rate", rate, 0) <= 1.0:
            raise ParameterError(f"rate={rate!r}: use a number above 0 and at most 1")
        if not 0.0 < check_number("tolerance", tolerance, 0) < 1.0:
            raise ParameterError(f"tolerance={tolerance!r}: use a number above 0 and below 1")
        draws = new_draws(check_whole("seed", seed, 0, LARGEST_SIZE))
        # The features of centres; the column of a name is its place in the table.
        self.schema = Schema()
        squares, counts = np.zeros(m), np.zeros(1, np.int64)
        table = np.zeros((0, m), np.float32)
        self._centres = Centres(table, squares, np.zeros((m, m)), draws, counts)
        self._set_up()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"kernel": kernels.RBF(gamma=0.5), "n_components": 16}

    @property
    def n_centres(self) -> int:
        """The number of centres so far."""
        return int(self._centres.counts[0])

    def learn_one(self, x: Mapping[Name, Any]) -> None:
        """Let an event become a centre, if it is new and there are not `n_components` yet.

        Parameters
        ----------
        x
            Finite numbers by name of feature.

        Raises
        ------
        FeatureError
            A value is no finite number of single precision, or a name cannot be used.

        """
        rows = self._rows_of_event(x)
        if self.n_centres < len(self._centres.squares):
            self._checked(self._run(rows, np.ones(1, bool)))

    def _map_event(self, x: Mapping[Name, Any]) -> np.ndarray:
        return self._checked(self._run(self._rows_of_event(x), np.zeros(1, bool)))

    def learn_many(self, X: Any) -> None:
        """Learn the rows of a batch, as for `transform_many`, in their order.

        FeatureError: the batch cannot be used, for the same reasons as an event.
        """
        self.learn_transform_matrix(frames.matrix_of(X, Schema()))

    # Rows

    def _new_event_map(self, names: tuple[Name, ...]) -> tuple[Layout, np.ndarray]:
        return Layout.of(np.arange(len(names))), _order(names)

    def _rows_of_event(self, x: Mapping[Name, Any]) -> _Rows:
        event = present(snapshot(x))
        names = tuple(event)
        layout, order = self._event_map_of(names)
        values = values_of(layout, event)[order].astype(np.float32)
        ordered, n = [names[i] for i in order.tolist()], order.size
        return _Rows(ordered, np.array([0, n]), np.arange(n), values)

    def _map(self, matrix: Matrix | SparseMatrix, learn: bool | np.ndarray) -> np.ndarray:
        n = matrix.rows.start.size - 1 if isinstance(matrix, SparseMatrix) else len(matrix.values)
        out = np.empty((n, len(self._centres.squares)), np.float32)
        learnt = np.full(n, learn)
        for first in range(0, n, _CHUNK):
            some = np.arange(first, min(n, first + _CHUNK))
            rows = _listed_sparse if isinstance(matrix, SparseMatrix) else _listed_dense
            out[some] = self._run(rows(take(matrix, some)), learnt[some])
        return self._checked(out)

    def _checked(self, out: np.ndarray) -> np.ndarray:
        """Return the components of rows; raise FeatureError if some are not finite."""
        are_good = np.isfinite(out).all(axis=1)
        if not are_good.all():
            raise FeatureError(
                f"row {int(np.argmin(are_good))}: {self.kernel!r} of the row with itself or a "
                "centre is no moderate number; scale the features"
            )
        return out

    @guarded
    def _run(self, rows: _Rows, learn: np.ndarray) -> np.ndarray:
        """Return the components of rows, of which some are learnt first."""
        out = np.empty((rows.start.size - 1, len(self._centres.squares)), np.float32)
        places, r, n, is_drawn = self._places_of(rows.names), 0, len(out), False
        while r < n:
            r = map_rows(
                self._centres, self.kernel, float(self.rate), float(self.tolerance), *rows[1:],
                places, learn, r, is_drawn, out,
            )  # fmt: skip
            if r < n:
                is_drawn, places = True, self._add(rows, r, places)
        return out

    def _places_of(self, names: Sequence[Name]) -> np.ndarray:
        index = self.schema.index
        return np.array([index.get(name, -1) for name in names], np.int64)

    def _add(self, rows: _Rows, r: int, places: np.ndarray) -> np.ndarray:
        """Make a row the next centre, if the table has room; return the places of all names."""
        first, stop = rows.start[r : r + 2].tolist()
        used = rows.columns[first:stop][rows.values[first:stop] != 0.0]
        new = [rows.names[c] for c in used[places[used] < 0].tolist()]
        centres, size = self._centres, len(self.schema) + len(new)
        if size * centres.squares.size > _MOST_NUMBERS:
            return places
        if size > len(centres.table):
            table = np.zeros((max(size, 2 * len(centres.table)), centres.squares.size), np.float32)
            table[: len(centres.table)] = centres.table
            self._centres = centres._replace(table=table)
        # Names without a centre do no harm, if an interruption comes in between.
        self.schema.extend(new)
        places = self._places_of(rows.names)
        add_centre(self._centres, self.kernel, rows.columns, rows.values, places, first, stop)
        return places

    # In files: the features of the centres, and the arrays as far as they are used

    def _as_arrays(self) -> Content:
        centres, n, d = self._centres, self.n_centres, len(self.schema)
        table = np.zeros((d, n), np.float32)
        known = centres.table[:d, :n]
        table[: len(known)] = known
        basis, squares = centres.inverse[:n, :n], centres.squares[:n]
        return {}, {"table": table, "squares": squares, "inverse": basis, "draws": centres.draws}

    def _read_arrays(self, content: dict[str, Any], arrays: NamedArrays) -> None:
        n, d = arrays.length_of("squares", 0), len(self.schema)
        m = len(self._centres.squares)
        if n > m or d * m > _MOST_NUMBERS:
            raise ValueError("there are more centres or features than there may be")
        sizes = {"centres": n, "features": d}
        table = np.zeros((d, m), np.float32)
        table[:, :n] = arrays.take("table", Field(("features", "centres"), np.float32), sizes)
        centres = self._centres._replace(table=table, counts=np.array([n]))
        centres.squares[:n] = arrays.take("squares", Field(("centres",), range=Range(0.0)), sizes)
        centres.inverse[:n, :n] = arrays.take("inverse", Field(("centres", "centres")), sizes)
        centres.draws[:] = arrays.take("draws", Field((1,), np.uint64, range=Range(1)), sizes)
        self._centres = centres

    def _check_arrays(self) -> None:
        basis = self._centres.inverse
        if np.tril(basis, -1).any() or (np.diag(basis)[: self.n_centres] <= 0.0).any():
            raise ValueError("inverse: not that of a triangular matrix with a positive diagonal")


def _order(names: Sequence[Name]) -> np.ndarray:
    """Return the order of names by their texts, int64, without those that are too long.

    Sums in this order are the same to the last bit, whatever order the names come in.
    """
    texts = sorted((text_of(name), i) for i, name in enumerate(names) if not is_long(name))
    return np.array([i for _, i in texts], np.int64)


def _listed_dense(matrix: Matrix) -> _Rows:
    order = _order(matrix.names)
    values = np.asarray(matrix.values)[:, order].astype(np.float32)
    row, columns = np.nonzero(values)
    start = np.zeros(len(values) + 1, np.int64)
    start[1:] = np.cumsum(np.bincount(row, minlength=len(values)))
    names = [matrix.names[i] for i in order.tolist()]
    return _Rows(names, start, columns.astype(np.int64), values[row, columns])


def _listed_sparse(matrix: SparseMatrix) -> _Rows:
    used = used_columns(matrix)
    names = [matrix.names[c] for c in used.tolist()]
    order = _order(names)
    return _Rows([names[i] for i in order.tolist()], *listed(matrix, used, order))


register(
    Nystroem,
    more=Nystroem._as_arrays,
    read_more=Nystroem._read_arrays,
    check=Nystroem._check_arrays,
)
