"""Kernel values between fresh dense rows and the panels of a `DenseStore`."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import chosen_by, compiled, compiled_leaf
from streamsvm.kernels import product_of
from streamsvm.kernels.registry import value_of_product, value_of_vectors
from streamsvm.support.tiles import (
    ACROSS,
    PANEL,
    ROWS,
    distance_1_1,
    distance_1_4,
    distance_4_1,
    dot_1_1,
    dot_1_4,
    dot_4_1,
)


@compiled_leaf
def add_scaled(f, row, amount, n):
    """Add amount * row to f, for the first n elements; f float64, row float32."""
    for s in range(n):
        f[s] += amount * np.float64(row[s])


@compiled_leaf
def expansion(alpha, row, n):
    """Return sum_s alpha_s k_s over s < n; alpha float64, row float32."""
    total = 0.0
    for s in range(n):
        total += alpha[s] * np.float64(row[s])
    return total


@compiled
def apply_kernel(kernel, products):
    """Turn products, float32 (m,), into kernel values in place."""
    for s in range(products.size):
        products[s] = value_of_product(kernel, products[s])


@compiled
def _dots(kernel, panels, p, n_panels, x, n_rows, d, out):
    r = 0
    while r + ROWS <= n_rows:
        for q in range(n_panels):
            dot_4_1(panels, p + q, x, r, d, out)
        r += ROWS
    while r < n_rows:
        if n_panels == ACROSS:
            dot_1_4(panels, p, x, r, d, out)
        else:
            for q in range(n_panels):
                dot_1_1(panels, p + q, x, r, d, out)
        r += 1
    for r in range(n_rows):
        apply_kernel(kernel, out[r, p * PANEL : (p + n_panels) * PANEL])


@compiled
def _distances(kernel, panels, p, n_panels, x, n_rows, d, out):
    r = 0
    while r + ROWS <= n_rows:
        for q in range(n_panels):
            distance_4_1(panels, p + q, x, r, d, out)
        r += ROWS
    while r < n_rows:
        if n_panels == ACROSS:
            distance_1_4(panels, p, x, r, d, out)
        else:
            for q in range(n_panels):
                distance_1_1(panels, p + q, x, r, d, out)
        r += 1
    for r in range(n_rows):
        apply_kernel(kernel, out[r, p * PANEL : (p + n_panels) * PANEL])


@compiled
def _vectors(kernel, panels, p, n_panels, x, n_rows, d, out):
    for q in range(p, p + n_panels):
        for r in range(n_rows):
            for lane in range(PANEL):
                out[r, q * PANEL + lane] = value_of_vectors(kernel, x[r, :d], panels[q, :d, lane])


_panel_values: Any = chosen_by(
    0, {"dot": _dots, "distance": _distances, "vectors": _vectors}, product_of
)


@compiled
def kernel_values(kernel, store, x, n_rows, d, first, stop, out):
    """Write out[r, s] = k(x_r, row s) for r < n_rows and at least all s in first .. stop-1.

    Whole panels are computed: all entries of the panels of slots first and stop-1 are written. x is
    float32 (>= n_rows, >= d), the store a `DenseStore`, and out float32 (>= n_rows, its capacity).
    """
    if stop > first:
        p, end = first // PANEL, (stop + PANEL - 1) // PANEL
        # With a block of rows, one panel at a time stays in the cache; a single row takes four.
        most = np.int64(ACROSS if n_rows == 1 else 1)
        while p < end:
            n_panels = most if p + most <= end else np.int64(1)
            _panel_values(kernel, store.panels, p, n_panels, x, n_rows, d, out)
            p += n_panels
