"""The statistics of a scaler, by feature."""

from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_number
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.preprocessing.layouts import is_one_hot
from streamsvm.support.feature_statistics import COUNT, MEAN, N_CLIPPED, N_ROWS, VARIANCE
from streamsvm.support.locked import Locked


class ScaledFeatures(Locked):
    """Base class of the scaler: it keeps the statistics.

    `clip` and `reject` are its limits, at least 1 (else ParameterError); None: no such limit.
    """

    one_hot: str | None  # a parameter of the scaler

    def __init__(self, clip: float | None, reject: float | None) -> None:
        super().__init__()
        self.schema = Schema()
        self._statistics = np.zeros((N_ROWS, 0))
        self._limits = np.array([_limit("clip", clip), _limit("reject", reject)])
        self._clip = float(self._limits[0])
        # By the names of an event, all of which are known.
        self._layouts: dict[tuple[Name, ...], Any] = {}

    @property
    def statistics(self) -> dict[Name, tuple[int, float, float]]:
        """Count, mean and variance of each feature that is scaled."""
        with self.lock:
            names = list(self.schema.names)
            figures = self._fitted()[: VARIANCE + 1, : len(names)].T.tolist()
        return {
            name: (int(count), mean, variance)
            for name, (count, mean, variance) in zip(names, figures, strict=True)
        }

    @property
    def n_clipped(self) -> dict[Name, int]:
        """How many values were learnt beyond `clip`, of each feature that has any."""
        with self.lock:
            names = list(self.schema.names)
            counts = self._fitted()[N_CLIPPED, : len(names)].tolist()
        return {name: int(n) for name, n in zip(names, counts, strict=True) if n > 0}

    def replace_moments(self, names: list[Name], moments: np.ndarray) -> None:
        """Set count, mean, variance and clipped values, float64 (4, n), of features."""
        with self.lock:
            self.schema.extend(names)
            columns = [self.schema.index[name] for name in names]
            self._fitted()[: N_CLIPPED + 1, columns] = moments

    def is_one_hot(self, name: Name) -> bool:
        """Tell whether a feature is one-hot by its name: it is not scaled."""
        return is_one_hot(name, self.one_hot)

    def _contents(self) -> dict[str, Any]:
        self._fitted()
        return super()._contents() | {"_layouts": {}}

    def _fitted(self) -> np.ndarray:
        """Return the statistics of all features of the schema; the caller holds the lock.

        They have room for more, so that features which come one by one do not copy them each time.
        """
        if len(self.schema) > self._statistics.shape[1]:
            self._statistics = widened(self._statistics, len(self.schema))
        return self._statistics


def widened(statistics: np.ndarray, n: int) -> np.ndarray:
    """Return statistics with room for n features, however many there were before."""
    # 0, 16, 24, 40, 72, ...: with a power of two the figures of a feature, which lie so far apart,
    # would share few sets of the processor's cache.
    room = 8 + (1 << max(n - 9, 7).bit_length()) if n else 0
    return np.pad(statistics, ((0, 0), (0, room - statistics.shape[1])))


def merged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the statistics of two sets of rows together (Chan, Golub and LeVeque, 1979).

    Both are float64 (N_ROWS, d). Recent values are not known any more: they begin anew.
    """
    out = np.zeros_like(a)
    n = out[COUNT] = a[COUNT] + b[COUNT]
    share = b[COUNT] / np.maximum(n, 1.0)
    between = b[MEAN] - a[MEAN]
    out[MEAN] = a[MEAN] + share * between
    within = (1.0 - share) * a[VARIANCE] + share * b[VARIANCE]
    out[VARIANCE] = within + share * (1.0 - share) * between**2
    out[N_CLIPPED] = a[N_CLIPPED] + b[N_CLIPPED]
    return out


def _limit(name: str, value: float | None) -> float:
    return np.inf if value is None else check_number(name, value, 1.0)
