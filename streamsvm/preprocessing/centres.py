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

import math
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import chosen_by, compiled, compiled_inner
from streamsvm.kernels import product_of
from streamsvm.kernels.registry import value_of_product
from streamsvm.support.draws import uniform
from streamsvm.support.kernel_rows.kernel_diagonal import LARGEST_DIAGONAL

_TILE = 8
"""So many rows of a batch are mapped together."""


class Centres(NamedTuple):
    """The centres; arrays have room for all of them."""

    table: np.ndarray  # float32 (places, centres): the value of each feature in each centre
    squares: np.ndarray  # float64 (centres,): |c|^2
    inverse: np.ndarray  # float64 (centres, centres): [j, i] is the share of centre j in e_i
    draws: np.ndarray  # state of the random generator, see `support.draws`
    counts: np.ndarray  # int64 (1,): how many centres there are


@compiled_inner
def _values_of_dots(kernel, k, squares, square, n):
    for j in range(n):
        k[j] = value_of_product(kernel, np.float32(k[j]))
    return np.float64(value_of_product(kernel, np.float32(square)))


@compiled_inner
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


# All sums in the order in which they are written, so that it does not matter which of the three
# functions adds what: rows that are mapped together have the components that each has alone.


@compiled_inner
def _add(sums, row, amount):
    """Add amount * row to sums."""
    # From 0 on: with indices that might be negative, the loop would not be vectorised.
    for i in range(sums.size):
        sums[i] += amount * np.float64(row[i])


@compiled_inner
def _add_four(sums, row_0, row_1, row_2, row_3, amounts):
    """Do what four calls of `_add` do, but read and write the sums once."""
    a_0, a_1, a_2, a_3 = amounts[0], amounts[1], amounts[2], amounts[3]
    for i in range(sums.size):
        total = sums[i] + a_0 * row_0[i]
        total += a_1 * row_1[i]
        total += a_2 * row_2[i]
        sums[i] = total + a_3 * row_3[i]


@compiled_inner
def _add_four_to_both(sums, others, row_0, row_1, row_2, row_3, amounts, more):
    """Do what two calls of `_add_four` do, but read the four rows once."""
    a_0, a_1, a_2, a_3 = amounts[0], amounts[1], amounts[2], amounts[3]
    b_0, b_1, b_2, b_3 = more[0], more[1], more[2], more[3]
    for i in range(sums.size):
        r_0, r_1, r_2, r_3 = row_0[i], row_1[i], row_2[i], row_3[i]
        sums[i] = sums[i] + a_0 * r_0 + a_1 * r_1 + a_2 * r_2 + a_3 * r_3
        others[i] = others[i] + b_0 * r_0 + b_1 * r_1 + b_2 * r_2 + b_3 * r_3


@compiled_inner
def _kernel_row(centres, kernel, columns, values, places, first, stop, k):
    """Write the kernel values of one row with the centres; return |x|^2 and k(x, x)."""
    n, square = centres.counts[0], 0.0
    k[:] = 0.0
    for t in range(first, stop):
        value = np.float64(values[t])
        square += value * value
        place = places[columns[t]]
        if place >= 0 and value != 0.0:
            _add(k[:n], centres.table[place, :n], value)
    return square, _kernel_values(kernel, k, centres.squares, square, n)


@compiled_inner
def _components(centres, k, z):
    """Write the components z of some rows from their kernel values k, each float64 (rows, most).

    Rows go together, as the basis, which is 260 kB for 256 centres, is read once for all of them.
    """
    n, basis, size = centres.counts[0], centres.inverse, len(z)
    z[:] = 0.0
    most = n - n % 4
    for j in range(0, most, 4):
        # The basis is 0 below its diagonal, so that all four begin at j.
        e_0, e_1, e_2, e_3 = basis[j, j:n], basis[j + 1, j:n], basis[j + 2, j:n], basis[j + 3, j:n]
        for r in range(0, size - 1, 2):
            first, second = k[r, j : j + 4], k[r + 1, j : j + 4]
            _add_four_to_both(z[r, j:n], z[r + 1, j:n], e_0, e_1, e_2, e_3, first, second)
        if size % 2 == 1:
            _add_four(z[size - 1, j:n], e_0, e_1, e_2, e_3, k[size - 1, j : j + 4])
    for j in range(most, n):
        for r in range(size):
            _add(z[r, j:n], basis[j, j:n], k[r, j])


@compiled_inner
def _distance(diagonal, z, n):
    """Return the squared distance of a row from the span of the centres."""
    distance = diagonal
    for i in range(n):
        distance -= z[i] * z[i]
    return distance


@compiled_inner
def _n_together(learn, r, may_learn):
    """Return how many rows from r on are mapped together: a row that may be a centre goes alone."""
    size, most = 1, min(_TILE, learn.size - r)
    while size < most and not (may_learn and (learn[r] or learn[r + size])):
        size += 1
    return size


@compiled
def map_rows(
    centres, kernel, rate, tolerance, start, columns, values, places, learn, first, is_drawn, out
):
    """Write the components of rows, until one of them is to become a centre; return it, or n.

    `kernel` is one of "dot" or "distance". Of the rows in `learn`, bool (n,), each may become a
    centre with the probability `rate`, unless its squared distance from the span is at most the
    share `tolerance` of k(x, x). `start`, `columns`, `values`, `places` are the rows, see above.
    `first` is the row to begin with; with `is_drawn` it is not to become a centre, as it was
    returned last time. `out`, float32 (n, centres), is written; it is NaN where k(x, x) is negative
    or too large.
    """
    n_rows, most = out.shape
    k, z, diagonals = np.empty((_TILE, most)), np.empty((_TILE, most)), np.empty(_TILE)
    r = first
    while r < n_rows:
        n = centres.counts[0]
        size = _n_together(learn, r, n < most)
        for t in range(size):
            begin, stop = start[r + t], start[r + t + 1]
            row = _kernel_row(centres, kernel, columns, values, places, begin, stop, k[t])
            diagonals[t] = row[1]
        _components(centres, k[:size], z[:size])
        if learn[r] and n < most and not (is_drawn and r == first):
            # Drawn for each row, so that the draws do not depend on the values.
            is_tried, distance = uniform(centres.draws) < rate, _distance(diagonals[0], z[0], n)
            if is_tried and tolerance * diagonals[0] < distance < LARGEST_DIAGONAL:
                return r
        for t in range(size):
            is_good = 0.0 <= diagonals[t] < LARGEST_DIAGONAL
            for i in range(most):
                out[r + t, i] = z[t, i] if is_good else np.nan
        r += size
    return n_rows


@compiled
def add_centre(centres, kernel, columns, values, places, first, stop):
    """Make the entries first .. stop - 1 the next centre; its features have places."""
    n = centres.counts[0]
    k, z = np.empty((1, centres.squares.size)), np.empty((1, centres.squares.size))
    square, diagonal = _kernel_row(centres, kernel, columns, values, places, first, stop, k[0])
    _components(centres, k, z)
    for t in range(first, stop):
        if values[t] != 0.0:
            centres.table[places[columns[t]], n] = values[t]
    length = math.sqrt(_distance(diagonal, z[0], n))
    for j in range(n):
        total = 0.0
        for i in range(j, n):
            total += z[0, i] * centres.inverse[j, i]
        centres.inverse[j, n] = -total / length
    centres.inverse[n, n] = 1.0 / length
    centres.squares[n] = square
    # Last: before, nothing of it is used.
    centres.counts[0] = n + 1
