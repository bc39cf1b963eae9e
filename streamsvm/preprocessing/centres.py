"""Compiled loops of the Nystroem method: kernel values with centres, and an orthonormal basis.

The centres c_1, c_2, ... span a space, of which Gram and Schmidt's method makes an orthonormal
basis: component i of a row x is <x, e_i>, where e_i is the part of c_i that is orthogonal to the
centres before it, at length 1. With the kernel matrix K = L L' of the centres, the components are
L^-1 k(x), and the dot product of two rows' components is k(x)' K^-1 k(y), as with any other root of
K^-1. But a further centre adds a component and changes none, so that weights behind stay valid.

Rows are lists of entries: row r consists of the entries start[r] .. start[r + 1] - 1 of `columns`
(int64) and `values` (float32). `places` (int64) has for each column the row of the table of centres
that holds the feature, or -1. Sums are made in the order of the entries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import chosen_by, compiled, compiled_leaf
from streamsvm.kernels import product_of
from streamsvm.kernels.registry import value_of_product
from streamsvm.support.draws import uniform
from streamsvm.support.kernel_diagonal import LARGEST_DIAGONAL


class Centres(NamedTuple):
    """The centres; arrays have room for all of them."""

    table: np.ndarray  # float32 (places, centres): the value of each feature in each centre
    squares: np.ndarray  # float64 (centres,): |c|^2
    inverse: np.ndarray  # float64 (centres, centres): [j, i] is the share of centre j in e_i
    draws: np.ndarray  # state of the random generator, see `support.draws`
    counts: np.ndarray  # int64 (1,): how many centres there are


@compiled
def _values_of_dots(kernel, k, squares, square, n):
    for j in range(n):
        k[j] = value_of_product(kernel, np.float32(k[j]))
    return np.float64(value_of_product(kernel, np.float32(square)))


@compiled
def _values_of_distances(kernel, k, squares, square, n):
    for j in range(n):
        # In double precision, as the difference loses digits.
        distance = max(0.0, square + squares[j] - 2.0 * k[j])
        k[j] = value_of_product(kernel, np.float32(distance))
    return np.float64(value_of_product(kernel, np.float32(0.0)))


_kernel_values: Any = chosen_by(
    0, {"dot": _values_of_dots, "distance": _values_of_distances}, product_of
)
"""_kernel_values(kernel, k, squares, square, n): turn the n dot products in k, float64, into kernel
values; return k(x, x). `square` is |x|^2."""


@compiled_leaf
def _add(sums, row, amount):
    """Add amount * row to sums."""
    # From 0 on: with indices that might be negative, the loop would not be vectorised.
    for i in range(sums.size):
        sums[i] += amount * np.float64(row[i])


@compiled
def _components(centres, kernel, columns, values, places, first, stop, k, z):
    """Write the kernel values and the components of one row.

    Return |x|^2, k(x, x), and the squared distance of the row from the span of the centres.
    """
    n, square = centres.counts[0], 0.0
    k[:] = 0.0
    z[:] = 0.0
    for t in range(first, stop):
        value = np.float64(values[t])
        square += value * value
        place = places[columns[t]]
        if place >= 0 and value != 0.0:
            _add(k[:n], centres.table[place, :n], value)
    diagonal = _kernel_values(kernel, k, centres.squares, square, n)
    for j in range(n):
        _add(z[j:n], centres.inverse[j, j:n], k[j])
    distance = diagonal
    for i in range(n):
        distance -= z[i] * z[i]
    return square, diagonal, distance


@compiled
def map_rows(
    centres, kernel, rate, tolerance, start, columns, values, places, learn, first, is_drawn, out
):
    """Write the components of rows, until one of them is to become a centre.

    Parameters
    ----------
    centres, kernel
        The `Centres`; a kernel of "dot" or "distance".
    rate
        The probability with which a row may become a centre.
    tolerance
        Rows are no centres whose squared distance from the span is at most this share of k(x, x).
    start, columns, values, places
        The rows, see above.
    learn
        bool (n,): which rows may become centres.
    first
        The row to begin with.
    is_drawn
        True: this row is not to become a centre, as it was returned last time.
    out
        float32 (n, centres), written; NaN where k(x, x) is negative or too large.

    Returns
    -------
    The row that is to become a centre, or n.

    """
    n_rows, most = out.shape
    k, z = np.empty(most), np.empty(most)
    for r in range(first, n_rows):
        _, diagonal, distance = _components(
            centres, kernel, columns, values, places, start[r], start[r + 1], k, z
        )
        if learn[r] and centres.counts[0] < most and not (is_drawn and r == first):
            # Drawn for each row, so that the draws do not depend on the values.
            is_tried = uniform(centres.draws) < rate
            if is_tried and tolerance * diagonal < distance < LARGEST_DIAGONAL:
                return r
        is_good = 0.0 <= diagonal < LARGEST_DIAGONAL
        for i in range(most):
            out[r, i] = z[i] if is_good else np.nan
    return n_rows


@compiled
def add_centre(centres, kernel, columns, values, places, first, stop):
    """Make the entries first .. stop - 1 the next centre; its features have places."""
    n = centres.counts[0]
    k, z = np.empty(centres.squares.size), np.empty(centres.squares.size)
    square, _, distance = _components(centres, kernel, columns, values, places, first, stop, k, z)
    for t in range(first, stop):
        if values[t] != 0.0:
            centres.table[places[columns[t]], n] = values[t]
    length = math.sqrt(distance)
    for j in range(n):
        total = 0.0
        for i in range(j, n):
            total += z[i] * centres.inverse[j, i]
        centres.inverse[j, n] = -total / length
    centres.inverse[n, n] = 1.0 / length
    centres.squares[n] = square
    # Last: before, nothing of it is used.
    centres.counts[0] = n + 1
