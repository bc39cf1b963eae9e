"""Standard deviations of features, for the factors that bring them to one scale."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.support.declaration import Field, NamedArrays, Range
from streamsvm.support.feature_statistics import COUNT, N_ROWS, VARIANCE, learn_value
from streamsvm.support.rows import Rows, SparseRows, shape

HALF = 512
"""Of the rows that come while the stream doubles, so many are looked at; see `FeatureScales`."""

_CLIP = 10.0
_ALIKE = 1.5
"""Scales within this factor are taken for one."""
_SMALLEST, _LARGEST = 1e-30, 1e30


@compiled
def _learn_columns(x, statistics, is_flag, clip):
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            value = np.float64(x[r, c])
            is_flag[c] &= value == 0.0 or value == 1.0
            learn_value(statistics, c, value, clip)


class FeatureScales:
    """Statistics of the features of a stream, which single values far away cannot ruin.

    All rows of the first 2 `HALF` examples are looked at, and then `HALF` rows, at even distances,
    of those that come while the stream doubles: `stride` says which. As these rows count as much as
    all before, the statistics are those of all examples, at a cost that vanishes.

    Attributes
    ----------
    statistics
        float64 (N_ROWS, d): see `feature_statistics`.
    is_flag
        bool (d,): whether each value of the feature was 0 or 1, as one-hot features are. Such
        features are not scaled.

    """

    def __init__(self) -> None:
        self.statistics, self.is_flag = np.zeros((N_ROWS, 0)), np.zeros(0, bool)

    def learn(self, x: Rows) -> None:
        """Learn rows; those that are sparse, which are not scaled, are left out."""
        if isinstance(x, SparseRows):
            return
        missing = shape(x)[1] - self.is_flag.size
        if missing > 0:
            # A feature that is new was 0 before.
            count = self.statistics[COUNT].max(initial=0.0)
            self.statistics = np.pad(self.statistics, ((0, 0), (0, missing)))
            self.statistics[COUNT, -missing:] = count
            self.is_flag = np.pad(self.is_flag, (0, missing), constant_values=True)
        _learn_columns(np.ascontiguousarray(x), self.statistics, self.is_flag, _CLIP)

    def learn_some(self, x: Rows, n_before: int) -> None:
        """Learn those of the rows that are wanted; `n_before` examples of the stream came before.

        The number of examples does not pass a power of two.
        """
        if not isinstance(x, SparseRows):
            step = stride(n_before)
            self.learn(x[np.arange(step - 1 - n_before % step, shape(x)[0], step)])

    def begin_half(self) -> None:
        """Let the `HALF` rows that come next count as much as all rows so far."""
        self.statistics[COUNT] = np.minimum(self.statistics[COUNT], HALF)

    @property
    def _deviations(self) -> np.ndarray:
        return np.where(self.is_flag, 0.0, np.sqrt(self.statistics[VARIANCE]))

    def factors(self) -> np.ndarray:
        """Return what each feature is multiplied by, float32 (d,): 1 if it is not scaled."""
        deviations = self._deviations
        has_scale = deviations > _SMALLEST
        factors = np.where(has_scale, 1.0 / np.where(has_scale, deviations, 1.0), 1.0)
        return np.clip(factors, _SMALLEST, _LARGEST).astype(np.float32)

    def are_alike(self) -> bool:
        """Tell whether features have about one scale, as behind a `StandardScaler`.

        Those of only zeros and ones have the scale 1, which they keep.
        """
        factors = self.factors()[self.statistics[VARIANCE] > 0.0]
        return factors.size == 0 or not differ(factors / factors[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the statistics."""
        return self.statistics.nbytes + self.is_flag.nbytes

    # Files

    def as_arrays(self) -> dict[str, np.ndarray]:
        """Return the statistics as arrays for a file."""
        return {"scales": self.statistics, "is_flag": self.is_flag.astype(np.int32)}

    @classmethod
    def read(cls, arrays: NamedArrays, d: int) -> FeatureScales | None:
        """Return what `as_arrays` gave, or None; raise ValueError if it does not fit d features."""
        if "scales" not in arrays:
            return None
        scales, n = cls(), arrays.length_of("is_flag", 0)
        if n > d:
            raise ValueError("scales are of more features than there are")
        scales.statistics = arrays.take("scales", Field((N_ROWS, n)), {})
        scales.is_flag = arrays.take("is_flag", Field((n,), np.int32, range=Range(0, 1)), {}) == 1
        if (scales.statistics[[COUNT, VARIANCE]] < 0.0).any():
            raise ValueError("scales: a count or a variance is below 0")
        return scales


def stride(n_before: int) -> int:
    """Return of how many rows one is looked at after so many examples, at least 2 `HALF`."""
    return (1 << int(n_before).bit_length()) // (2 * HALF)


def differ(ratio: np.ndarray) -> bool:
    """Tell whether scales differ, given the ratios of their factors."""
    return bool(max(1.0, ratio.max()) > _ALIKE * min(1.0, ratio.min()))
