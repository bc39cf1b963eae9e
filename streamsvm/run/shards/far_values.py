"""Far values among the rows of all shards, and the scale of features without them.

One value of 1e30 would make the plain variance of its feature so large that all others were 0. On a
stream a value counts as at most 2 clip standard deviations from the mean of those before. Shards
have all values, and so no order is needed: values beyond clip deviations are left out, moments are
those of the others, and so on until no further value is left out; then all values count again, but
as at most 2 clip deviations from that mean. So k of n values, however large, multiply the variance
by at most about 1 + (2 clip)^2 k / n, as on a stream, provided that they are fewer than 1 of clip^2
(Chebyshev: more cannot be beyond clip deviations of all); of more, the plain moments hold.

Of a feature that is the same in almost all rows (0, say) little would be left but that value. There
the same is done with the other values alone, which give the limits for all.

Every step uses all rows, and sums in the order of the shards: it does not depend on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.names import Name
from streamsvm.preprocessing.scaled_features import merged
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.support.feature_statistics import COUNT, MEAN, N_CLIPPED, VARIANCE

_MOST_PASSES = 20
"""One for each order of size among the far values is enough: 1e30, 1e9 and 1e4 take four."""

_LEAST_CLIP = 5.0
"""With a `clip` below this, usual values would be left out, until next to none was left."""

_RARE = 0.05
"""At most so many values differ from the usual one, if a feature has such a one."""

_EQUAL = 2.0**-23
"""Values with a smaller deviation than so much of their mean are equal in single precision."""


class Limits(NamedTuple):
    """Between which values moments are asked for, by feature."""

    names: list[Name]
    low: np.ndarray  # float64 (d,)
    high: np.ndarray  # float64 (d,)
    usual: np.ndarray  # float64 (d,): values equal to it are left out; NaN: none
    counts_all: bool  # values beyond a limit count as the limit; else they are left out


_Ask = Callable[[str, Limits], list[np.ndarray]]
"""Asks all shards for their `moments` or `middles`, and returns what each has answered."""


def moments_within(matrices: list[Any], limits: Limits) -> np.ndarray:
    """Return count, mean, variance, and how many values are beyond a limit: float64 (4, d)."""
    found = np.zeros((N_CLIPPED + 1, len(limits.names)))
    for f, values in _columns(matrices, limits.names):
        low, high, usual = limits.low[f], limits.high[f], limits.usual[f]
        is_there = ~(np.isnan(values) | (np.abs(values - usual) <= _EQUAL * np.abs(usual)))
        is_within = is_there & (values >= low) & (values <= high)
        counted = is_there if limits.counts_all else is_within
        values = np.where(counted, np.clip(values, low, high), 0.0)
        own = np.zeros((len(found), len(f)))
        own[COUNT] = counted.sum(axis=0)
        n = np.maximum(own[COUNT], 1.0)
        own[MEAN] = values.sum(axis=0) / n
        own[VARIANCE] = (np.where(counted, values - own[MEAN], 0.0) ** 2).sum(axis=0) / n
        own[N_CLIPPED] = (is_there & ~is_within).sum(axis=0)
        found[:, f] = merged(found[:, f], own)
    return found


def middles_of(matrices: list[Any], names: list[Name]) -> np.ndarray:
    """Return count and median, NaN of none, of the values of each feature: float64 (2, d)."""
    found = np.full((2, len(names)), np.nan)
    parts: list[list[np.ndarray]] = [[] for _ in names]
    for f, values in _columns(matrices, names):
        for k, column in zip(f, values.T, strict=True):
            parts[k].append(column[~np.isnan(column)])
    for k, columns in enumerate(parts):
        values = np.concatenate([np.zeros(0), *columns])
        found[0, k] = n = len(values)
        if n:  # one of the values, also of an even number
            found[1, k] = np.partition(values, n // 2)[n // 2]
    return found


def _columns(matrices: list[Any], names: list[Name]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield, of each batch, which of the features it has, and their values, float64 (n, c)."""
    place = {name: f for f, name in enumerate(names)}
    for matrix in matrices:
        if isinstance(matrix, SparseMatrix):  # which is not scaled
            continue
        columns = [c for c, name in enumerate(matrix.names) if name in place]
        own = np.asarray(matrix.values[:, columns], np.float64)
        yield [place[matrix.names[c]] for c in columns], own


def limit_far_values(scaler: StandardScaler, ask: _Ask) -> None:
    """Replace plain moments by those in which far values count less; count these.

    Features without far values stay exactly as they are: if all are such, only the first question
    is asked.
    """
    if scaler.clip is None or not scaler.statistics:
        return
    limit = max(scaler.clip, _LEAST_CLIP)
    names, plain = list(scaler.statistics), np.array(list(scaler.statistics.values())).T
    bulk = _Bulk(ask, names, plain)
    far = bulk.beyond(limit)
    if not len(far):
        return
    bulk = _Bulk(ask, [names[f] for f in far], plain[:, far])
    bulk.leave_out_usual()
    bulk.narrow(limit)
    found = bulk.limited(2.0 * limit)
    is_limited = found[N_CLIPPED] > 0.0
    kept = [names[f] for f in far[is_limited]]
    scaler.replace_moments(kept, found[:, is_limited])


class _Bulk:
    """Moments of the values of features that are neither far nor the usual one."""

    def __init__(self, ask: _Ask, names: list[Name], moments: np.ndarray) -> None:
        self._ask, self._names = ask, names
        self._moments = moments.copy()  # float64 (3, d): count, mean, variance
        self._usual, self._n_far = np.full(len(names), np.nan), np.zeros(len(names))
        self._all = np.arange(len(names))

    def beyond(self, limit: float) -> np.ndarray:
        """Return which features have values beyond so many deviations."""
        which = np.flatnonzero(self._moments[VARIANCE] > 0.0)
        return which[self._within(which, limit)[N_CLIPPED] > 0.0]

    def leave_out_usual(self) -> None:
        """Find the features that are the same in almost all rows; take their other values alone."""
        none = np.full(len(self._names), np.nan)
        unlimited = Limits(self._names, none, none, none, counts_all=True)
        of_shards = np.array(self._ask("middles", unlimited))  # (shards, 2, d): count, median
        self._usual = _weighted_median(of_shards[:, 1], of_shards[:, 0])
        found = self._within(self._all, np.inf)
        is_rare = found[COUNT] <= _RARE * self._moments[COUNT]
        self._moments[:, is_rare] = found[:N_CLIPPED, is_rare]
        self._usual[~is_rare] = np.nan

    def narrow(self, limit: float) -> None:
        """Leave values out until no further one is beyond `limit` deviations."""
        # Of n values one is at most sqrt(n) deviations from the mean: of rare ones there are few.
        limits = np.where(np.isnan(self._usual), limit, min(limit, _LEAST_CLIP))
        is_open = self._moments[VARIANCE] > 0.0
        for _ in range(_MOST_PASSES):
            which = np.flatnonzero(is_open)
            if not len(which):
                return
            n, mean, variance, self._n_far[which] = found = self._within(which, limits[which])
            is_less, is_varied = n < self._moments[COUNT, which], variance > (_EQUAL * mean) ** 2
            still = is_open[which] = is_less & is_varied
            self._moments[:, which[still]] = found[:N_CLIPPED, still]

    def limited(self, limit: float) -> np.ndarray:
        """Return the moments of all values, far ones as at most so many deviations: (4, d)."""
        low, high = self._limits(self._all, limit)
        # The usual value may lie outside of the others.
        low, high = np.fmin(low, self._usual), np.fmax(high, self._usual)
        none = np.full(len(low), np.nan)
        found = self._united(Limits(self._names, low, high, none, counts_all=True))
        found[N_CLIPPED] = self._n_far
        return found

    def _within(self, which: np.ndarray, distance: Any) -> np.ndarray:
        low, high = self._limits(which, distance)
        names = [self._names[f] for f in which]
        return self._united(Limits(names, low, high, self._usual[which], counts_all=False))

    def _limits(self, which: np.ndarray, distance: Any) -> tuple[np.ndarray, np.ndarray]:
        _, mean, variance = self._moments[:, which]
        away = np.full(len(which), np.inf)
        is_varied = variance > 0.0
        away[is_varied] = (distance * np.sqrt(variance))[is_varied]
        return mean - away, mean + away

    def _united(self, limits: Limits) -> np.ndarray:
        found = np.zeros((N_CLIPPED + 1, len(limits.names)))
        for own in self._ask("moments", limits):
            found = merged(found, own)
        return found


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return that of each column; weights, (n, d), of NaN are 0."""
    order = np.argsort(values, axis=0, kind="stable")
    sums = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    at = np.argmax(sums >= 0.5 * sums[-1], axis=0)
    return np.take_along_axis(values, order, axis=0)[at, np.arange(values.shape[1])]
