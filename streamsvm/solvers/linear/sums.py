"""Sums over rows for a linear model in double precision: margins, and rows added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import chosen_by, compiled, compiled_within
from streamsvm.support.rows import SparseRows


@compiled_within
def _dot_dense(w, x, r):
    total = 0.0
    for c in range(x.shape[1]):
        total += w[c] * np.float64(x[r, c])
    return total


@compiled_within
def _dot_sparse(w, x, r):
    total = 0.0
    for t in range(x.start[r], x.start[r + 1]):
        total += w[x.columns[t]] * np.float64(x.values[t])
    return total


@compiled_within
def _add_dense(w, x, r, amount):
    for c in range(x.shape[1]):
        w[c] += amount * np.float64(x[r, c])


@compiled_within
def _add_sparse(w, x, r, amount):
    for t in range(x.start[r], x.start[r + 1]):
        w[x.columns[t]] += amount * np.float64(x.values[t])


_dot: Any = chosen_by(1, {np.ndarray: _dot_dense, SparseRows: _dot_sparse})
_add: Any = chosen_by(1, {np.ndarray: _add_dense, SparseRows: _add_sparse})


@compiled
def margins_of(x, w, f):
    """Write <w, x> of each row into f, float64 (n,); the last of w, float64 (d + 1,), is added."""
    for r in range(f.size):
        f[r] = _dot(w, x, r) + w[w.size - 1]


@compiled
def add_rows(x, amounts, total):
    """Add each row times its amount, and the amount, to total, float64 (d + 1,)."""
    for r in range(amounts.size):
        if amounts[r] != 0.0:
            _add(total, x, r, amounts[r])
            total[total.size - 1] += amounts[r]
