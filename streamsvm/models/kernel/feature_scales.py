"""Standard deviations of features, for the factors that bring them to one scale.

Values that lie far beyond almost all of the first ones are outliers: they are left out, then and
later. If there are many of them of late, the feature itself has changed, and they are counted.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from streamsvm._compile import compiled
from streamsvm.support.declaration import Field, NamedArrays, Range
from streamsvm.support.feature_statistics import COUNT, N_ROWS, VARIANCE, learn_value
from streamsvm.support.rows import Columns, Rows, SparseRows, entries_of, shape

HALF = 512
"""Of the rows that come while the stream doubles, so many are looked at; see `FeatureScales`."""

_CLIP = 10.0
_ALIKE = 1.5
"""Scales within this factor are taken for one."""
_CHANGED = 10.0
"""If rows were best as they are, the scale of a feature has changed beyond this factor."""
_MUCH_SMALLER = 30.0
"""The same for one that is smaller than in the trial: what is constant for long seems to shrink."""
_SMALLEST, _LARGEST = 1e-30, 1e30


def within_limits(factors: np.ndarray) -> np.ndarray:
    """Return factors of features, float32, none so small or large that squares are lost."""
    return np.clip(factors, _SMALLEST, _LARGEST).astype(np.float32)


LOW, HIGH, FAR = range(3)
"""The rows of limits, float64 (3, features): values below or above are outliers; and how many there
were of late."""
N_LIMITS = 3
NO_LIMIT = 1e300
"""Beyond any value of a row."""

_TAIL = 50
"""One value of so many at either end may be an outlier."""
_BEYOND = 10.0
"""Limits are so many times the width of the others away from them."""
_STEADY = 30.0
"""If half of the steps from a value to the next are smaller than the width divided by this, what is
far away may be what the feature is about: a rare word, which a scaler has moved a little."""
_MANY = 8.0
"""So many outliers of late are none."""
_FADE = 0.25
"""What another value takes from their number, so that a fifth of all values may be outliers."""
_WIDER = 4.0
"""Limits that are too narrow are moved apart by this factor."""


@compiled
def _learn_columns(x, statistics, is_flag, limits, clip):
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            value = np.float64(x[r, c])
            if value < limits[LOW, c] or value > limits[HIGH, c]:
                limits[FAR, c] += 1.0
                if limits[FAR, c] < _MANY:
                    continue
                # The next one outside widens them again.
                limits[FAR, c] = _MANY - 1.0
                more = 0.5 * (_WIDER - 1.0) * (limits[HIGH, c] - limits[LOW, c])
                limits[LOW, c] -= more
                limits[HIGH, c] += more
            else:
                limits[FAR, c] = max(0.0, limits[FAR, c] - _FADE)
            is_flag[c] &= value == 0.0 or value == 1.0
            learn_value(statistics, c, value, clip)


def limits_of(x: np.ndarray) -> np.ndarray:
    """Return the limits of features, float64 (N_LIMITS, d), given their first values (n, d).

    A feature that has nearly one value most of the time has no limits.
    """
    limits, last = np.zeros((N_LIMITS, x.shape[1])), x.shape[0] - 1
    limits[LOW], limits[HIGH] = -NO_LIMIT, NO_LIMIT
    if last > 0:
        places = [last // _TAIL, last - last // _TAIL]
        low, high = np.partition(x, places, axis=0)[places].astype(np.float64)
        with np.errstate(over="ignore"):
            steps = np.partition(np.abs(np.diff(x, axis=0)), last // 2, axis=0)[last // 2]
        varies = _STEADY * steps.astype(np.float64) > high - low
        beyond = _BEYOND * (high - low)
        limits[LOW, varies], limits[HIGH, varies] = (low - beyond)[varies], (high + beyond)[varies]
    return limits


class FeatureScales:
    """Statistics of the features of a stream, which values far away cannot ruin.

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
    limits
        float64 (N_LIMITS, d): see `LOW`.
    weights
        None: scaled features all weigh the same. Or float64 (1 + d,), if rows were best as they
        are: of a feature that comes later, and of each feature, the standard deviation that it
        shall have.
    relevance
        None: all scaled features matter. Or float64 (d,): what each of them is multiplied by, 1, or
        less if it is irrelevant.

    """

    def __init__(self) -> None:
        self.statistics, self.is_flag = np.zeros((N_ROWS, 0)), np.zeros(0, bool)
        self.limits = np.zeros((N_LIMITS, 0))
        self.weights: np.ndarray | None = None
        self.relevance: np.ndarray | None = None

    def learn_first(self, x: Rows) -> None:
        """Learn the first rows; what is far beyond almost all of them is left out from now on."""
        if not isinstance(x, SparseRows):
            self.grow(shape(x)[1])
            self.limits = limits_of(x)
            self.learn(x)

    def learn(self, x: Rows) -> None:
        """Learn rows; those that are sparse, which are not scaled, are left out."""
        if isinstance(x, SparseRows):
            return
        self.grow(shape(x)[1])
        rows = np.ascontiguousarray(x)
        _learn_columns(rows, self.statistics, self.is_flag, self.limits, _CLIP)

    def grow(self, d: int) -> None:
        """Make room for d features."""
        missing = d - self.is_flag.size
        if missing <= 0:
            return
        # A feature that is new was 0 before.
        statistics = np.pad(self.statistics, ((0, 0), (0, missing)))
        statistics[COUNT, -missing:] = self.statistics[COUNT].max(initial=0.0)
        limits = np.pad(self.limits, ((0, 0), (0, missing)))
        limits[LOW, -missing:], limits[HIGH, -missing:] = -NO_LIMIT, NO_LIMIT
        weights, relevance = self.weights, self.relevance
        if weights is not None:
            weights = np.pad(weights, (0, missing), constant_values=weights[0])
        if relevance is not None:
            relevance = np.pad(relevance, (0, missing), constant_values=1.0)
        # In one step: an interruption comes before or after it.
        self.__dict__.update(
            statistics=statistics,
            is_flag=np.pad(self.is_flag, (0, missing), constant_values=True),
            limits=limits,
            weights=weights,
            relevance=relevance,
        )

    def over(self, columns: Columns) -> FeatureScales:
        """Return those of some columns."""
        new = FeatureScales()
        for name, value in self.__dict__.items():
            setattr(new, name, None if value is None else entries_of(value, columns).copy())
        if self.weights is not None:
            # The first one is of features that come later.
            own = entries_of(self.weights[1:], columns)
            new.weights = np.concatenate([self.weights[:1], own])
        return new

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

    def total(self, factors: np.ndarray | None, plain: np.ndarray) -> float:
        """Return the sum of the variances of features that are multiplied by factors.

        Parameters
        ----------
        factors
            float32 (d,); None: rows are taken as they are. Then what features without limits are
            about may be far away, and counts as it is.
        plain
            float64 (d,): the variances of all values.

        """
        variance = self.statistics[VARIANCE]
        if factors is None:
            return float(np.where(self._have_limits, variance, plain).sum())
        return float((factors.astype(np.float64) ** 2 * variance).sum())

    def factors(self) -> np.ndarray:
        """Return what each feature is multiplied by, float32 (d,): 1 if it is not scaled."""
        deviations = np.where(self.is_flag, 0.0, np.sqrt(self.statistics[VARIANCE]))
        has_scale = deviations > _SMALLEST
        weights = 1.0 if self.weights is None else self.weights[1:]
        factors = np.where(has_scale, weights / np.where(has_scale, deviations, 1.0), 1.0)
        if self.relevance is not None:
            factors = factors * self.relevance
        return within_limits(factors)

    def unweighted(self) -> FeatureScales:
        """Return the same of features that all weigh alike; shares what it knows of them."""
        new = copy.copy(self)
        new.relevance = None
        return new

    def are_alike(self, plain: np.ndarray) -> bool:
        """Tell whether features have about one scale, as behind a `StandardScaler`.

        Those of only zeros and ones have the scale 1, which they keep.

        Parameters
        ----------
        plain
            float64 (d,): the variances of all values, as for `total`.

        """
        variance = np.where(self._have_limits, self.statistics[VARIANCE], plain)
        scales = np.sqrt(variance[(variance > 0.0) & ~self.is_flag])
        if self.is_flag[variance > 0.0].any():
            scales = np.append(scales, 1.0)
        return scales.size == 0 or not differ(scales / scales[0])

    def keep_weights(self) -> None:
        """Let each feature weigh as much later as it does now, in rows as they are.

        A feature that has nearly one value most of the time may weigh what others do on average:
        how much it varies is not known yet.
        """
        variance = self.statistics[VARIANCE]
        is_known = self._have_limits
        known = variance[is_known if is_known.any() else variance > 0.0]
        average = math.sqrt(known.mean()) if known.size else 1.0
        deviations = np.sqrt(variance)
        weights = np.where(is_known, deviations, np.maximum(deviations, average))
        self.weights = np.concatenate([[average], weights])

    @property
    def _have_limits(self) -> np.ndarray:
        return np.asarray(self.limits[HIGH] < NO_LIMIT)

    def followed(self, before: np.ndarray) -> np.ndarray | None:
        """Return the factors from now on, or None if those from before are still good.

        Parameters
        ----------
        before
            float32 (d,): the factors in use.

        """
        factors = self.factors()
        if self.weights is None:
            return factors if differ(factors / before) else None
        # What seldom varies may seem to have become smaller by chance.
        factors = np.where(self._have_limits, factors, np.minimum(factors, 1.0))
        ratio = factors / before
        much = np.where(factors > 1.0, _MUCH_SMALLER, _CHANGED)
        has_changed = (ratio < 1.0 / _CHANGED) | (ratio > much)
        return np.where(has_changed, factors, before) if has_changed.any() else None

    @property
    def nbytes(self) -> int:
        """Bytes of the statistics."""
        return sum(of.nbytes for of in self.__dict__.values() if of is not None)

    # Files

    def as_arrays(self) -> dict[str, np.ndarray]:
        """Return the statistics as arrays for a file."""
        arrays: dict[str, np.ndarray] = {"scales": self.statistics, "scale_limits": self.limits}
        arrays["is_flag"] = self.is_flag.astype(np.int32)
        more = {"scale_weights": self.weights, "scale_relevance": self.relevance}
        return arrays | {name: array for name, array in more.items() if array is not None}

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
        scales.limits = arrays.take("scale_limits", Field((N_LIMITS, n)), {})
        if "scale_weights" in arrays:
            field = Field((1 + n,), range=Range(0.0))
            scales.weights = arrays.take("scale_weights", field, {})
        if "scale_relevance" in arrays:
            field = Field((n,), range=Range(1e-6, 1.0))
            scales.relevance = arrays.take("scale_relevance", field, {})
        if (scales.statistics[[COUNT, VARIANCE]] < 0.0).any():
            raise ValueError("scales: a count or a variance is below 0")
        if (scales.limits[LOW] > scales.limits[HIGH]).any() or (scales.limits[FAR] < 0.0).any():
            raise ValueError("scale_limits: a lower limit is above the upper, or a count below 0")
        return scales


def stride(n_before: int) -> int:
    """Return of how many rows one is looked at after so many examples, at least 2 `HALF`."""
    return (1 << int(n_before).bit_length()) // (2 * HALF)


def differ(ratio: np.ndarray) -> bool:
    """Tell whether scales differ, given the ratios of their factors."""
    return bool(max(1.0, ratio.max()) > _ALIKE * min(1.0, ratio.min()))
