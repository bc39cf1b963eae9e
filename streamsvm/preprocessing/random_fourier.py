"""Random Fourier features: a linear learner behind them finds curved borders in fixed memory."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from streamsvm._parameter_checks import LARGEST_SIZE, check_positive, check_whole
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.features.events import present, snapshot
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name, is_long
from streamsvm.features.schema import LIMIT
from streamsvm.model_files.codec import register
from streamsvm.preprocessing.cosines import map_dense, map_sparse
from streamsvm.preprocessing.feature_map import FeatureMap, listed, used_columns
from streamsvm.preprocessing.layouts import Layout, values_of

_MOST_NUMBERS = 2**24
"""So many weights are kept (67 MB); then all are forgotten, and drawn again when needed."""


def text_of(name: Name) -> str:
    """Return the text that a feature's weights are drawn from; equal names have equal texts.

    FeatureError: the name is no string, bytes or number, nor a tuple of them. The text of other
    objects may differ from process to process.
    """
    if isinstance(name, str):
        return repr(str(name))
    if isinstance(name, (int, float, np.integer, np.floating)):
        # 1, 1.0 and True are the same name to a dict.
        return repr(int(name)) if name % 1 == 0 else repr(float(name))
    if isinstance(name, bytes):
        return repr(bytes(name))
    if isinstance(name, tuple):
        return f"({','.join(map(text_of, name))})"
    raise FeatureError(
        f"the name of a feature is {name!r:.80} ({type(name).__name__}): it decides on "
        "weights or order, so use a string, a number, or a tuple of them"
    )


def normals_of(text: str, n: int, seed: int) -> np.ndarray:
    """Return n independent draws from a normal distribution of variance 1, float32.

    They depend on nothing but the arguments: not on the process, nor on NumPy's version.
    """
    # SHAKE is a hash function with as many bytes of output as wanted.
    data = f"{seed}:{text}".encode(errors="surrogatepass")
    words = np.frombuffer(hashlib.shake_128(data).digest(16 * n), "<u8")
    # In (0, 1], as the logarithm of 0 is infinite.
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
    # The method of Box and Muller.
    length, angle = np.sqrt(-2.0 * np.log(uniform[:n])), 2.0 * np.pi * uniform[n:]
    return (length * np.cos(angle)).astype(np.float32)


class RandomDirections:
    """The n random weights of features by name, drawn when they are first asked for.

    They are a function of the name and the seed: what is kept here only saves time.
    """

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._seed = n, seed
        self._known: dict[Name, tuple[str, np.ndarray]] = {}

    def of(self, names: Sequence[Name]) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of features in the order of their texts, as order and directions.

        int64 (d,): the names by increasing text, without those that are too long. A sum in this
        order is the same to the last bit, whatever order the names come in. float32 (d, n): their
        weights. FeatureError: weights cannot be drawn from a name.
        """
        found = [(*self._feature(name), i) for i, name in enumerate(names) if not is_long(name)]
        found.sort(key=itemgetter(0))
        directions = np.empty((len(found), self._n), np.float32)
        for row, (_, weights, _) in enumerate(found):
            directions[row] = weights
        return np.array([i for _, _, i in found], np.int64), directions

    def _feature(self, name: Name) -> tuple[str, np.ndarray]:
        known = self._known
        # Threads may do this at the same time: all would add the same.
        feature = known.get(name)
        if feature is None:
            text = text_of(name)
            feature = text, normals_of(text, self._n, self._seed)
            if len(known) * self._n >= _MOST_NUMBERS:
                known.clear()
            known[name] = feature
        return feature


class _EventMap(NamedTuple):
    """How to transform events that have the same names in the same order."""

    layout: Layout
    order: np.ndarray
    directions: np.ndarray


class RandomFourierFeatures(FeatureMap):
    """Map events to random features whose dot products approximate the RBF kernel.

    With the features z(x) of Rahimi and Recht, ``z(x) . z(y)`` is exp(-gamma |x - y|^2) on average,
    with an error that falls as 1 / sqrt(n_components). So a linear learner behind this transformer
    learns curved borders, in memory and time that do not grow with the stream. Components are
    pairs: the cosine and the sine of one random combination of all features of the event.

    Put `StandardScaler` in front, since one gamma is used for all features. Nothing is learnt: the
    random weights of a feature are drawn from its name and the seed. They are the same in each
    process, and whatever order the features appear in. A missing value counts 0.
    Values beyond 3e11 / sqrt(gamma) on either side of 0 count as that: angles of larger ones have
    no cosine in double precision.
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

    _caches = ("_event_maps", "_directions")

    def _set_up(self) -> None:
        super()._set_up()
        self._directions = RandomDirections(self._n // 2, int(self.seed))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"gamma": 0.5, "n_components": 16}

    def _map_event(self, x: Mapping[Name, Any]) -> np.ndarray:
        # Only caches change, in single steps: threads need no lock.
        event = present(snapshot(x))
        event_map = self._event_map_of(tuple(event))
        # Copied, as code would be compiled once more for values that cannot be written.
        values = values_of(event_map.layout, event).reshape(1, -1).copy()
        out = np.empty((1, self._n), np.float32)
        map_dense(values, event_map.order, event_map.directions, self._scale, out)
        return out

    def _new_event_map(self, names: tuple[Name, ...]) -> _EventMap:
        return _EventMap(Layout.of(np.arange(len(names))), *self._directions.of(names))

    def _map(self, matrix: Matrix | SparseMatrix, learn: bool | np.ndarray) -> np.ndarray:
        if isinstance(matrix, Matrix):
            order, directions = self._directions.of(matrix.names)
            out = np.empty((len(matrix.values), self._n), np.float32)
            values = np.ascontiguousarray(matrix.values, np.float64)
            map_dense(values, order, directions, self._scale, out)
            return out
        used = used_columns(matrix)
        order, directions = self._directions.of([matrix.names[c] for c in used.tolist()])
        start, ranks, values = listed(matrix, used, order)
        out = np.empty((start.size - 1, self._n), np.float32)
        map_sparse(start, ranks, values, directions, self._scale, out)
        return out


register(RandomFourierFeatures)
