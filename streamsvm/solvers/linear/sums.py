"""Sums over rows for a linear model in double precision: margins, and rows added up."""

from __future__ import annotations

from streamsvm._compile import compiled
from streamsvm.solvers.linear.state import add, dot


@compiled
def margins_of(x, w, f):
    """Write <w, x> of each row into f, float64 (n,); the last of w, float64 (d + 1,), is added."""
    for r in range(f.size):
        f[r] = dot(w, x, r) + w[w.size - 1]


@compiled
def add_rows(x, amounts, total):
    """Add each row times its amount, and the amount, to total, float64 (d + 1,)."""
    for r in range(amounts.size):
        if amounts[r] != 0.0:
            add(total, x, r, amounts[r])
            total[total.size - 1] += amounts[r]
