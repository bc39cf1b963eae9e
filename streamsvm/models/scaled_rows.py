"""Rows whose features are multiplied by factors, as a kernel learner stores and compares them."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.support.dense_store import DenseStore, renew_words
from streamsvm.support.rows import Rows, SparseRows

LARGEST_SCALED = np.float32(1e15)
"""Scaled values are clipped to this, so that squared distances are finite."""


def scaled_rows(x: Rows, factors: np.ndarray | None) -> Any:
    """Return rows with each feature multiplied by its factor; by 1 if it came after them."""
    if factors is None:
        return x
    if isinstance(x, SparseRows):
        of_column = padded(factors, x.d)
        values = _clipped(x.values * of_column[x.columns])
        return x._replace(values=values)
    return _clipped(x * padded(factors, x.shape[1]))


def unscaled_rows(x: Rows, factors: np.ndarray | None) -> Any:
    """Return rows as they were before `scaled_rows`, up to rounding."""
    if factors is None:
        return x
    if isinstance(x, SparseRows):
        return x._replace(values=x.values / padded(factors, x.d)[x.columns])
    return x / padded(factors, x.shape[1])


def rescale(store: DenseStore, ratio: np.ndarray) -> None:
    """Multiply each feature of the rows of a store by the ratio of its factors, in place."""
    panels = store.panels
    panels[:, : ratio.size] = _clipped(panels[:, : ratio.size] * ratio[:, None])
    renew_words(store)


def padded(factors: np.ndarray, d: int) -> np.ndarray:
    """Return the factors of d features, 1 for those without one."""
    if len(factors) == d:
        return factors
    return np.pad(factors[:d], (0, max(0, d - len(factors))), constant_values=1.0)


def _clipped(values: np.ndarray) -> np.ndarray:
    return np.clip(values, -LARGEST_SCALED, LARGEST_SCALED)


@compiled_inner
def scaled_value(value, factor):
    """Return a value, float32, multiplied by its factor, as `scaled_rows` does."""
    return min(LARGEST_SCALED, max(-LARGEST_SCALED, value * factor))
