"""Pairs of support vectors that are merged, or of which one takes over the other: what all use.

Merging (Wang, Crammer, Vucetic, JMLR 13, 2012) replaces x_i and x_j by one vector
z = h x_i + (1 - h) x_j on the line between them, with the coefficient

    a_z = (a_i k(x_i, z) + a_j k(x_j, z)) / k(z, z),

the projection of both on z. For RBF kernels, with kappa = k(x_i, x_j), k(x_i, z) is
kappa^((1-h)^2) and k(x_j, z) is kappa^(h^2), and h makes a_z largest, so that least of w is lost.
For other kernels h is the mean by coefficients, a_i / (a_i + a_j): exact for the linear one.
"""

from __future__ import annotations

import math

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.bounds import MERGE

CANDIDATES = 4
"""Members drawn as candidates for a merge, beside the least harmful one: heavy vectors that lie
close together cost less than a newcomer in a region of its own."""

EQUAL = 1e-3
"""Two vectors are as one if their squared distance, relative to k(x, x), is at most this."""

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_SECTIONS = 20


@compiled_inner
def pair_cost(alpha, diagonal, i, j, k_ij):
    """Return the square of what w loses when the lighter of two goes over to the other, at most."""
    a_i, a_j, k_ij = abs(alpha[i]), abs(alpha[j]), np.float64(k_ij)
    k_ii, k_jj = np.float64(diagonal[i]), np.float64(diagonal[j])
    over_j = a_i * a_i * (k_ii - k_ij * k_ij / max(k_jj, 1e-30))
    over_i = a_j * a_j * (k_jj - k_ij * k_ij / max(k_ii, 1e-30))
    return max(0.0, min(over_i, over_j))


@compiled_inner
def are_as_one(k_ii, k_jj, k_ij):
    """Tell whether two vectors are equal, or nearly, given their kernel values."""
    k_ii, k_jj = np.float64(k_ii), np.float64(k_jj)
    return k_ii + k_jj - 2.0 * np.float64(k_ij) <= EQUAL * k_ii


@compiled_inner
def best_point(kappa, a_i, a_j):
    """Return h in [0, 1] for which a_i kappa^((1-h)^2) + a_j kappa^(h^2) is largest.

    By golden section: with kappa > exp(-2) there is one maximum; below, the better of two is in the
    half of the larger coefficient.
    """
    log = math.log(max(kappa, 1e-30))
    low, high = (0.5, 1.0) if a_i >= a_j else (0.0, 0.5)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    for _ in range(_SECTIONS):
        at_left = a_i * math.exp(log * (1 - left) ** 2) + a_j * math.exp(log * left**2)
        at_right = a_i * math.exp(log * (1 - right) ** 2) + a_j * math.exp(log * right**2)
        if at_left > at_right:
            high, right = right, left
            left = high - _GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + _GOLDEN * (high - low)
    return 0.5 * (low + high)


@compiled_inner
def weight_of(policy, kappa, a_i, a_j):
    """Return h for two vectors with the kernel value kappa and these coefficients."""
    if policy == MERGE:
        return best_point(kappa, a_i, a_j)
    return a_i / (a_i + a_j) if a_i + a_j > 0.0 else 0.5
