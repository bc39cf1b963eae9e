"""Rows as bits that say beyond which quantiles their values are: ranks, in a thermometer code.

Bit b of a row is 1 if the value in column `columns[b]` is larger than `edges[b]`. The edges of a
column are its quantiles among rows that came, at equal steps, so that two rows differ in as many of
its bits as there are edges between their values: an RBF kernel of bits is a Laplacian kernel of
ranks, exp(-gamma sum_j |rank_j - rank'_j|). It does not see how far values are apart, only how many
others lie between, and its borders follow the axes, as those of trees do.

There are `N_BITS` bits at most, shared out among the columns by how much each weighs: those that
weigh nothing have none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.support.declaration import Field, NamedArrays, Range

N_BITS = 120
"""So many bits are two words; twice as many are as good within .2 points."""

_MOST_OF_COLUMN = 15
"""Columns that weigh alike have so many bits each at most."""

OF_EQUAL = 6.0
"""The sum of the weights of columns that weigh alike."""

MOST_ROWS = 2048
"""The quantiles are those of at most so many of the last rows."""


class RankBits(NamedTuple):
    """Where the bits are set."""

    edges: np.ndarray  # float32 (bits,)
    columns: np.ndarray  # int32 (bits,)

    def of_rows(self, x: np.ndarray) -> np.ndarray:
        """Return the bits of dense rows, float32 (n, bits), of 0 and 1."""
        return (x.take(self.columns, axis=1) > self.edges).astype(np.float32)

    def as_arrays(self) -> dict[str, np.ndarray]:
        """Return what a file holds of it."""
        return {"bit_edges": self.edges, "bit_columns": self.columns}


def read(arrays: NamedArrays, n_features: int) -> RankBits:
    """Return what `as_arrays` returned; raise ValueError if it does not fit."""
    n = arrays.length_of("bit_edges", 0)
    columns = Field((n,), np.int32, range=Range(0, n_features - 1))
    edges = arrays.take("bit_edges", Field((n,), np.float32), {})
    return RankBits(edges, arrays.take("bit_columns", columns, {}))


def varying(x: np.ndarray) -> np.ndarray:
    """Return the columns of rows that are not constant, or the first one: int64 (columns,).

    A feature that comes later has 0 in all rows before: so the others do not depend on it.
    """
    found: np.ndarray = np.flatnonzero((x != x[:1]).any(axis=0))
    return found if len(found) else np.zeros(1, np.int64)


def equal_weights(n: int) -> np.ndarray:
    """Return weights of n columns of which nothing is known, float64 (n,)."""
    return np.full(n, OF_EQUAL / n)


def equal_number(n_features: int) -> int:
    """Return how many bits each of so many columns has if they weigh alike."""
    return max(1, min(_MOST_OF_COLUMN, N_BITS // n_features))


def quantiles(values: np.ndarray, n: int) -> np.ndarray:
    """Return n quantiles of values at equal steps, float32, below the largest unless all are equal.

    Else a value that is larger than few others, as of a flag that is mostly 1, would have no bit.
    """
    # In double precision, as a difference may be beyond single precision.
    found = np.quantile(values.astype(np.float64), np.arange(1, n + 1) / (n + 1))
    smaller = values[values < values.max()]
    return np.minimum(found, smaller.max() if len(smaller) else np.inf).astype(np.float32)


def fitted(x: np.ndarray, weights: np.ndarray | None) -> tuple[RankBits, float]:
    """Return bits by the quantiles of rows, float32 (n, d), and gamma for an RBF kernel of them.

    `weights`, float64 (d,), at least 0, are those of the ranks of columns, from 0 to 1: so the
    kernel is about exp(-sum_j weights_j |rank_j - rank'_j|). None: those that vary weigh alike.
    """
    used = varying(x)
    if weights is None or not weights[used].sum() > 0.0:
        weights = equal_weights(len(used))
        numbers = np.full(len(used), equal_number(len(used)))
    else:
        weights = weights[used]
        numbers = _shared_out(weights, N_BITS)
    edges, columns = [], []
    for c, k in zip(used.tolist(), numbers.tolist(), strict=True):
        edges.append(quantiles(x[-MOST_ROWS:, c], k))
        columns.append(np.full(k, c))
    bits = RankBits(
        np.concatenate(edges).astype(np.float32), np.concatenate(columns).astype(np.int32)
    )
    return bits, float(weights.sum()) / len(bits.edges)


def ranks_of(x: np.ndarray) -> np.ndarray:
    """Return the ranks of values in their columns, from 0 to 1: float32 (n, d)."""
    ordered, n = np.sort(x, axis=0), len(x)
    found = np.empty(x.shape, np.float32)
    for c in range(x.shape[1]):
        below, upto = (np.searchsorted(ordered[:, c], x[:, c], side) for side in ("left", "right"))
        found[:, c] = 0.5 * (below + upto) / n
    return found


def _shared_out(shares: np.ndarray, n: int) -> np.ndarray:
    """Return whole numbers, n in all, in proportion to shares: by the largest remainders."""
    wanted = n * shares / shares.sum()
    found = np.floor(wanted).astype(np.int64)
    largest = np.argsort(found - wanted, kind="stable")[: n - int(found.sum())]
    found[largest] += 1
    return found


@compiled_inner
def write_bits(edges, columns, values, out):
    """Write the bits of a row of float32 values, as `RankBits.of_rows` does: float32 (bits,)."""
    for b in range(edges.size):
        out[b] = np.float32(values[columns[b]] > edges[b])
