"""Looks of LASVM for several classes at a member of a problem: see `support.looks`.

The duality gap is the sum of those of the problems, and has a part for each member of each: see
`solvers.lasvm.gap`. So one member of all problems is drawn, with probability in proportion to its
C_s. The bound B is the largest of all problems so far.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.lasvm.state import bias_of
from streamsvm.support import looks
from streamsvm.support.draws import uniform

_TRIES = 128
"""How many draws are rejected before all members are gone through."""


@compiled_inner
def _reach(info):
    """Return the larger of g_max - b and b - g_min, at least 0: the bound of a problem's parts."""
    if info.i < 0 or info.j < 0:
        return 0.0
    return max(0.0, 0.5 * (info.g_max - info.g_min))


@compiled_inner
def note_problem(info, own):
    """Take the bound and the size of a problem that has changed into the largest ones."""
    info.look_most = max(info.look_most, _reach(own.info[0]))
    info.most_members = max(info.most_members, own.info[0].n)


@compiled_inner
def _heavy_member(state):
    """Return the problem of a member and its entry, drawn in proportion to C_s; -1, -1 of none."""
    of, info, draws = state.problems, state.info[0], state.look_draws
    for _ in range(_TRIES if info.cost_most > 0.0 else 0):
        # Not by the room, which is another one after loading.
        p = np.int64(uniform(draws) * of.table.size)
        s = np.int64(uniform(draws) * info.most_members)
        u = uniform(draws) * info.cost_most
        at = of.segments[p].start + s
        if s < of.table[p].n and u < of.upper[at] - of.lower[at]:
            return p, at
    # One example outweighs all others, or the largest C_s is not known.
    total = 0.0
    for q in range(of.table.size):
        for at in range(of.segments[q].start, of.segments[q].start + of.table[q].n):
            total += of.upper[at] - of.lower[at]
    left = uniform(draws) * total
    for q in range(of.table.size):
        for at in range(of.segments[q].start, of.segments[q].start + of.table[q].n):
            left -= of.upper[at] - of.lower[at]
            if left < 0.0:
                return np.int64(q), np.int64(at)
    return np.int64(-1), np.int64(-1)


@compiled_inner
def look(state):
    """Look at one member of all problems, if there is one."""
    of, info = state.problems, state.info[0]
    if info.n == info.n_dead:
        return
    p, at = _heavy_member(state)
    if at < 0:
        return
    b = bias_of(of.table[p])
    g, cost = of.gradient[at] - b, of.upper[at] - of.lower[at]
    z = max(0.0, max(0.0, of.y[at] * g) - of.alpha[at] / cost * g)
    # Not above the bound by rounding.
    looks.record(info, min(z, _reach(of.table[p])), info.look_most, 1.0)
    info.n_looked += 1
