"""Rows of numbers as models learn them, and as kernels compare them: multiplied by factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.support.dense_store import DenseStore, renew_words
from streamsvm.support.rows import Rows, SparseRows, cut, taken


class NumberedRows(NamedTuple):
    """n rows over the features seen, some only predicted, and what is known of each."""

    x: Rows
    y: np.ndarray  # float64 (n,): numbers of classes; below 0 of bags
    w: np.ndarray  # float64 (n,): example weights
    numbers: np.ndarray  # int64 (n,): example numbers; 0: only predicted, as its label comes later
    diagonal: np.ndarray  # float32 (n,): k(x, x)
    bags: np.ndarray | None = None  # float64 (n, classes): 1 for candidates of bags; None: no bags

    def part(self, start: int, stop: int) -> NumberedRows:
        """Return the rows from `start` to before `stop`, as views."""
        bags = None if self.bags is None else self.bags[start:stop]
        facts = (self.y, self.w, self.numbers, self.diagonal)
        y, w, numbers, diagonal = (fact[start:stop] for fact in facts)
        return NumberedRows(cut(self.x, start, stop), y, w, numbers, diagonal, bags)


def row_after(numbers: np.ndarray, start: int, n: int) -> int:
    """Return the row after the n-th example from row `start` on; the end, if there are fewer.

    `numbers`, int64 (rows,), is 0 for rows that are only predicted; n is at least 1.
    """
    if len(numbers) - start < n:
        return len(numbers)
    if numbers[start : start + n].all():
        return start + n
    examples = np.flatnonzero(numbers[start:])
    return start + int(examples[n - 1]) + 1 if len(examples) >= n else len(numbers)


def rows_where(x: Rows, wanted: np.ndarray) -> Rows:
    """Return the rows for which `wanted`, bool (n,), is True; all of them without a copy."""
    return x if wanted.all() else taken(x, np.flatnonzero(wanted))


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
