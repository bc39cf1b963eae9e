"""Looks: gaps of randomly drawn examples, whose mean estimates and bounds the mean duality gap.

The duality gap is a sum of parts, one for each example of the problem. Of an example that is drawn
with probability C_i / sum_j C_j, the part divided by C_i,

    Z = gap_i / C_i,      E[Z] = gap / sum_j C_j,      0 <= Z <= B,

has the normalised gap as its mean, whatever led to the present coefficients. So a solver looks at
one or more examples after its steps, and sums Z, Z^2 and the largest B; `monitor.certificate` makes
a bound of these sums. Looks are drawn by a generator of their own: they change no model.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.support.declaration import Range, field
from streamsvm.support.draws import uniform

SCALARS = [
    ("n_looked", np.int64),  # S: examples after which there were looks
    ("look_sum", np.float64),  # sum of Z; several looks after one example count as their mean
    ("look_squares", np.float64),  # sum of Z^2, with the weights of `look_sum`
    ("look_most", np.float64),  # largest B, with the weights of `look_sum`
    ("cost_most", np.float64),  # largest C_i so far
    ("cost_least", np.float64),  # smallest C_i so far; 0: not known
]
"""The scalars that a solver with looks has in its record `info`."""

ROUNDING = 1e-9
"""What rounding may leave of a coefficient, as a share of the largest C_i so far."""

DRAWS = field(1, dtype=np.uint64, fill=0x9E3779B97F4A7C15, range=Range(1))
"""The state of the generator of looks, see `support.draws`."""

TRIES = 32
"""How many draws are rejected before all examples are gone through; more if there are many."""


@compiled_inner
def note_cost(info, cost):
    """Take the C_i of an example that enters into the largest and smallest ones."""
    if info.cost_most == 0.0:
        info.cost_least = cost
    info.cost_most = max(info.cost_most, cost)
    info.cost_least = min(info.cost_least, cost)


@compiled_inner
def are_equal(info):
    """Tell whether all C_i so far are equal: then uniform draws are in proportion to them."""
    return info.cost_least == info.cost_most > 0.0


@compiled_inner
def record(info, z, bound, weight):
    """Add Z and its bound B, with a weight; those of one example have the sum 1 on average."""
    z *= weight
    info.look_sum += z
    info.look_squares += z * z
    info.look_most = max(info.look_most, weight * bound)


@compiled_inner
def heavy_member(draws, members, n, cost, most):
    """Return one of the first n members, drawn with probabilities in proportion to cost[member].

    n is at least 1, members are int64 (>= n,), cost float64, at least 0, some above; `most` is an
    upper bound of it, or 0 if none is known.
    """
    # A draw is cheaper than a term of the sum below by about a factor of eight.
    tries = max(TRIES, n >> 3) if most > 0.0 else 0
    for _ in range(tries):
        i = members[np.int64(uniform(draws) * n)]
        if cost[i] >= most or uniform(draws) * most < cost[i]:
            return i
    # One example outweighs all others, or `most` is not known.
    total = 0.0
    for m in range(n):
        total += cost[members[m]]
    left = uniform(draws) * total
    for m in range(n):
        left -= cost[members[m]]
        if left < 0.0:
            return members[m]
    return members[n - 1]
