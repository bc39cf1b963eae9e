"""Kernel values between fresh dense rows and the panels of a `DenseStore`.

Dot products and distances of rows of 0 and 1 are counted in their bits. They are the same numbers
to the last bit, and go through the same function: nothing depends on which way was taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import JIT, chosen_by, compiled, compiled_inner, compiled_leaf
from streamsvm.kernels import RBF, Linear, product_of
from streamsvm.kernels.registry import value_of_product, value_of_vectors
from streamsvm.support import bits
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

_TOGETHER = 8
"""The number of panels whose counts of bits become kernel values in one go."""


_FEWEST = 128
"""With fewer features times panels, to pack the bits of fresh rows takes longer than it saves."""


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


@compiled_inner
def apply_kernel(kernel, products):
    """Turn products, float32 (m,), into kernel values in place."""
    for s in range(products.size):
        products[s] = value_of_product(kernel, products[s])


@compiled_inner
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


@compiled_inner
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


@compiled_inner
def _vectors(kernel, panels, p, n_panels, x, n_rows, d, out):
    for q in range(p, p + n_panels):
        for r in range(n_rows):
            for lane in range(PANEL):
                out[r, q * PANEL + lane] = value_of_vectors(kernel, x[r, :d], panels[q, :d, lane])


_panel_values: Any = chosen_by(
    0, {"dot": _dots, "distance": _distances, "vectors": _vectors}, product_of
)


@compiled_inner
def _dot_counts(kernel, words, first, stop, x, n_rows, d, out):
    for p in range(first, stop):
        r = 0
        while r + ROWS <= n_rows:
            bits.dot_4(words, p, x, r, d, out)
            r += ROWS
        while r < n_rows:
            bits.dot_1(words, p, x, r, d, out)
            r += 1


@compiled_inner
def _distance_counts(kernel, words, first, stop, x, n_rows, d, out):
    for p in range(first, stop):
        r = 0
        while r + ROWS <= n_rows:
            bits.distance_4(words, p, x, r, d, out)
            r += ROWS
        while r < n_rows:
            bits.distance_1(words, p, x, r, d, out)
            r += 1


_counts: Any = chosen_by(0, {"dot": _dot_counts, "distance": _distance_counts}, product_of)


@compiled_inner
def _no_table(kernel, d, n_values):
    return np.empty(0, np.float32)


@compiled_inner
def _table(kernel, d, n_values):
    """Return the kernel values for 0 .. d, or none if so few values are computed faster."""
    size = d // PANEL * PANEL + PANEL
    if n_values < 4 * size or not JIT:
        return np.empty(0, np.float32)
    table = np.empty(size, np.float32)
    for product in range(size):
        table[product] = min(product, d)
    apply_kernel(kernel, table)
    return table


# The functions of these take less time than to look a value up.
_table_of: Any = chosen_by(
    0, {True: _no_table, False: _table}, lambda kernel_type: kernel_type in (RBF, Linear)
)


@compiled_inner
def _look_up(table, products):
    for s in range(products.size):
        products[s] = table[np.int64(products[s])]


@compiled_inner
def values_of_bits(kernel, words, own, n_rows, d, first, end, out):
    """Write the kernel values of rows with panels first .. end-1: see `kernel_values`.

    `words` are those of the store and `own` those of the rows, uint64 (n_rows, >= n_words(d)).
    """
    table = _table_of(kernel, d, n_rows * (end - first) * PANEL)
    for p in range(first, end, _TOGETHER):
        stop = min(p + _TOGETHER, end)
        _counts(kernel, words, p, stop, own, n_rows, d, out)
        for r in range(n_rows):
            products = out[r, p * PANEL : stop * PANEL]
            if table.size > 0:
                _look_up(table, products)
            else:
                apply_kernel(kernel, products)


@compiled_inner
def _by_bits(kernel, store, x, n_rows, d, first, end, out):
    """Compute the values with panels first .. end-1 by bits, or tell that x has other values."""
    own = np.empty((n_rows, bits.n_words(d)), np.uint64)
    for r in range(n_rows):
        if not bits.pack(x[r], d, own[r]):
            return False
    values_of_bits(kernel, store.words, own, n_rows, d, first, end, out)
    return True


@compiled_inner
def _not_by_bits(kernel, store, x, n_rows, d, first, end, out):
    return False


_values_by_bits: Any = chosen_by(
    0, {"dot": _by_bits, "distance": _by_bits, "vectors": _not_by_bits}, product_of
)


@compiled
def kernel_values(kernel, store, x, n_rows, d, first, stop, out):
    """Write out[r, s] = k(x_r, row s) for r < n_rows and at least all s in first .. stop-1.

    Whole panels are computed: all entries of the panels of slots first and stop-1 are written. x is
    float32 (>= n_rows, >= d), the store a `DenseStore`, and out float32 (>= n_rows, its capacity).
    """
    if stop > first:
        p, end = first // PANEL, (stop + PANEL - 1) // PANEL
        if store.binary[0] and d * (end - p) >= _FEWEST:
            if _values_by_bits(kernel, store, x, n_rows, d, p, end, out):
                return
        # With a block of rows, one panel at a time stays in the cache; a single row takes four.
        most = np.int64(ACROSS if n_rows == 1 else 1)
        while p < end:
            n_panels = most if p + most <= end else np.int64(1)
            _panel_values(kernel, store.panels, p, n_panels, x, n_rows, d, out)
            p += n_panels
