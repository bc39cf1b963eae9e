"""The margin set of an exact incremental SVM, and the inverse of its matrix Q (see `path`).

Rank-one updates cost digits where vectors are nearly dependent. What is computed by Q^-1 is
therefore improved by its residual, and its size tells when Q^-1 must be computed anew.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.incremental.state import AT_HIGH, AT_LOW, MARGIN, ExactState

H_TOLERANCE, _H_ROUNDING = 1e-9, 1e-14
"""Gradients within this of 0 are 0, or within this share of sum |beta| k(x, x) if that is more."""

_MOST_DRIFT, _MOST_REST = 1e-7, 1e-11
"""The largest residual of v by Q^-1 on a path, and after its improvement; shares of its terms."""

FRESH = -1.0
"""The drift of a Q^-1 that was not updated since it was computed: it cannot be better."""

_ENOUGH, _MOST_IMPROVEMENTS = 1e-15, 4
"""v is improved until its residual is this share of its terms, at most so many times."""

MOST_REPAIRS = 3
"""How often what rounding errors have made wrong is settled again after a change."""

_POLISHED, _MOST_PASSES = 1e-4, 40
"""`refine` goes on until what is left is this share of `info.near`, at most so many times."""


@compiled_inner
def _residual(state, mass, row, out):
    """Write Q v + [mass, row_M] to `out`, float64 (margin + 1,); return its share of its terms.

    The first row and the others are of different scales.
    """
    m, members, v = state.info[0].m, state.members, state.v
    out[0], size, rest, terms = mass, abs(mass), 0.0, abs(v[0])
    for j in range(m):
        out[0] += v[j + 1]
        size += abs(v[j + 1])
    for i in range(m):
        values = state.rows[state.row_of[members[i]]]
        total = v[0] + row[members[i]]
        terms = max(terms, abs(row[members[i]]))
        for j in range(m):
            term = values[members[j]] * v[j + 1]
            total += term
            terms = max(terms, abs(term))
        out[i + 1] = total
        rest = max(rest, abs(total))
    worst = abs(out[0]) / size if size > 0.0 else 0.0
    return max(worst, rest / terms) if terms > 0.0 else worst


@compiled
def sensitivities(state, own, mass, row):
    """Write v = -Q^-1 [mass, row_M] to `state.v`, `row` being float64 (slots,).

    Of a slot s `own` is k(x_s, x_s), the mass 1, and the row its kernel row. Returns gamma_s, and
    the size of what it is a sum of: rounding errors are a share of that. v is improved by its
    residual, and `info.is_inexact` says whether Q^-1 should be computed anew.
    """
    info = state.info[0]
    m = info.m
    inverse, members, v, rest = state.inverse, state.members, state.v, state.residual
    for i in range(m + 1):
        total = inverse[i, 0] * mass
        for j in range(m):
            total += inverse[i, j + 1] * row[members[j]]
        v[i] = -total
    worst = _residual(state, mass, row, rest)
    if info.drift != FRESH:
        info.drift = max(info.drift, worst)
    for _ in range(_MOST_IMPROVEMENTS):
        if worst <= _ENOUGH:
            break
        before = worst
        for i in range(m + 1):
            for j in range(m + 1):
                v[i] -= inverse[i, j] * rest[j]
        worst = _residual(state, mass, row, rest)
        if worst > 0.5 * before:
            break
    info.is_inexact = info.drift != FRESH and (info.drift > _MOST_DRIFT or worst > _MOST_REST)
    gamma, size, largest = own + v[0], own + abs(v[0]), 0.0
    for j in range(m):
        term = row[members[j]] * v[j + 1]
        gamma += term
        size += abs(term)
        largest = max(largest, state.diagonal[members[j]])
    return gamma, size + largest


@compiled_inner
def add_gammas(state, row, gamma):
    """Write gamma of all slots, given v and the kernel row of the slot that moves."""
    n, m = state.info[0].n, state.info[0].m
    v = state.v
    for i in range(n):
        gamma[i] = row[i] + v[0]
    for j in range(m):
        values, factor = state.rows[state.row_of[state.members[j]]], v[j + 1]
        for i in range(n):
            gamma[i] += factor * values[i]


@compiled_inner
def enter(state, s, gamma):
    """Let slot s enter the margin set; v is that of s, and `gamma` its Schur complement."""
    info = state.info[0]
    m, v, inverse = info.m, state.v, state.inverse
    info.drift = max(info.drift, 0.0)
    if m == 0:
        info.drift = FRESH
        inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1] = (
            -state.diagonal[s],
            1.0,
            1.0,
            0.0,
        )
    else:
        inverse[m + 1, : m + 2] = 0.0
        inverse[: m + 2, m + 1] = 0.0
        v[m + 1] = 1.0
        for i in range(m + 2):
            factor = v[i] / gamma
            for j in range(m + 2):
                inverse[i, j] += factor * v[j]
    state.members[m] = s
    state.place[s], state.kind[s] = m, MARGIN
    info.m = m + 1


@compiled
def leave(state, s, kind):
    """Let slot s leave the margin set; it is of another kind then."""
    info = state.info[0]
    last, k, inverse = info.m, state.place[s] + 1, state.inverse
    if last > 1:
        # The last member takes its place.
        if k != last:
            for j in range(last + 1):
                inverse[k, j], inverse[last, j] = inverse[last, j], inverse[k, j]
            for i in range(last + 1):
                inverse[i, k], inverse[i, last] = inverse[i, last], inverse[i, k]
        pivot = inverse[last, last]
        if not pivot > 0.0:
            # Nothing is left of it but rounding errors: Q^-1 must be computed anew.
            pivot, info.drift = np.inf, np.inf
        for i in range(last):
            factor = inverse[i, last] / pivot
            for j in range(last):
                inverse[i, j] -= factor * inverse[last, j]
    moved = state.members[last - 1]
    state.members[k - 1], state.place[moved] = moved, k - 1
    state.place[s], state.kind[s] = -1, kind
    info.m = last - 1
    info.drift = max(info.drift, 0.0)


def invert(state: ExactState) -> None:
    """Compute Q^-1 anew; the kernel rows of the margin set are there."""
    m = int(state.info[0].m)
    members, inverse = state.members[:m], state.inverse[: m + 1, : m + 1]
    if m:
        # Scaled, so that kernel values are of the size of the ones beside them.
        scale = state.diagonal[members].mean() or 1.0
        Q = np.ones((m + 1, m + 1))
        Q[0, 0] = 0.0
        Q[1:, 1:] = state.rows[np.ix_(state.row_of[members], members)] / scale
        inverse[:] = np.linalg.inv(Q)
        inverse[0, 0] *= scale
        inverse[1:, 1:] /= scale
    state.info[0].drift = FRESH


@compiled_inner
def bound_of(state, s, rate):
    """Return how far slot s is from the bound that it moves to."""
    return state.high[s] - state.beta[s] if rate > 0.0 else state.beta[s] - state.low[s]


@compiled_inner
def put_at_bound(state, s):
    """Set the coefficient of a slot to the bound that it is nearer to; return the kind."""
    if state.high[s] - state.beta[s] < state.beta[s] - state.low[s]:
        state.beta[s] = state.high[s]
        return AT_HIGH
    state.beta[s] = state.low[s]
    return AT_LOW


@compiled
def excess(state, i):
    """Return by how much the gradient of slot i, at a bound, is on the wrong side; or below 0."""
    h, kind, tube = state.h[i], state.kind[i], state.info[0].tube
    if kind == AT_LOW:
        return max(h, -h - tube) if state.low[i] == 0.0 else h
    if kind == AT_HIGH:
        return max(-h, h - tube) if state.high[i] == 0.0 else -h
    return -np.inf


@compiled
def note_tolerance(state):
    """Note within what gradients are 0: their rounding errors grow with their terms."""
    info, size = state.info[0], 0.0
    for i in range(info.n):
        size += abs(state.beta[i]) * state.diagonal[i]
    info.near = max(H_TOLERANCE, _H_ROUNDING * size)


@compiled_inner
def _left_by_rounding(state, right):
    """Write the margin set's gradients to `right`; return the rest of sum beta, and the largest.

    For the latter the sum is taken at the scale of gradients.
    """
    info, largest = state.info[0], 0.0
    total = -info.total
    for i in range(info.n):
        total += state.beta[i]
    worst = 0.0
    for j in range(info.m):
        s = state.members[j]
        values, f = state.rows[state.row_of[s]], info.b
        for i in range(info.n):
            f += values[i] * state.beta[i]
        right[j] = state.target[s] - f
        worst, largest = max(worst, abs(right[j])), max(largest, state.diagonal[s])
    return total, max(worst, abs(total) * largest)


@compiled_inner
def _centre(state):
    """Move the bias, which is not unique without a margin set, to the middle of where it may be.

    As LIBSVM does: so it does not depend on what came before. With one end only it is there.
    """
    info, least, most = state.info[0], -np.inf, np.inf
    for i in range(info.n):
        h, kind = state.h[i], state.kind[i]
        if kind == AT_LOW:
            least = max(least, h)
            if state.low[i] == 0.0:
                most = min(most, h + info.tube)
        elif kind == AT_HIGH:
            most = min(most, h)
            if state.high[i] == 0.0:
                least = max(least, h - info.tube)
    if least == -np.inf and most == np.inf:
        return
    change = least if most == np.inf else most if least == -np.inf else 0.5 * (least + most)
    info.b += change
    for i in range(info.n):
        state.h[i] -= change


@compiled
def refine(state):
    """Remove what rounding has left of the sum of coefficients and of the margin set's gradients.

    Returns the size of what was found, or by how much other gradients violate optimality if that
    is more. Q^-1 tells how b and the coefficients must change; a member that would pass a bound
    leaves.
    Without a margin set b goes to the middle of its interval.
    """
    state = borrowed(state)
    # The right side is in the scratch for gradients, which has room for it: m <= n.
    info, inverse, v, right = state.info[0], state.inverse, state.v, state.gamma
    note_tolerance(state)
    first, before, n_passes = -1.0, np.inf, 0
    while info.m > 0:
        total, worst = _left_by_rounding(state, right)
        first = worst if first < 0.0 else first
        m = info.m
        for j in range(m):
            state.h[state.members[j]] = right[j]
        if worst <= _POLISHED * info.near or worst > 0.5 * before or n_passes == _MOST_PASSES:
            break
        if info.drift == np.inf:
            break
        n_passes += 1
        for i in range(m + 1):
            change = -inverse[i, 0] * total
            for j in range(m):
                change += inverse[i, j + 1] * right[j]
            v[i] = change
        rest = total
        for j in range(m):
            rest += v[j + 1]
        for i in range(m + 1):
            v[i] -= inverse[i, 0] * rest
        length, found = 1.0, -1
        for j in range(m):
            s = state.members[j]
            left = max(0.0, bound_of(state, s, v[j + 1]))
            if left < length * abs(v[j + 1]):
                length, found = left / abs(v[j + 1]), s
        info.b += length * v[0]
        for i in range(info.n):
            state.h[i] -= length * v[0]
        for j in range(m):
            s = state.members[j]
            values, change = state.rows[state.row_of[s]], length * v[j + 1]
            state.beta[s] += change
            for i in range(info.n):
                state.h[i] -= change * values[i]
        before = np.inf
        if found < 0:
            before = worst
        else:
            leave(state, found, put_at_bound(state, found))
    if info.m == 0:
        _centre(state)
    # A path may pass bounds by the tolerance.
    for j in range(info.m):
        s = state.members[j]
        state.beta[s] = min(state.high[s], max(state.low[s], state.beta[s]))
    wrong = max(first, 0.0)
    for i in range(info.n):
        wrong = max(wrong, excess(state, i))
    return wrong


@compiled
def begin_line(state, mass, length):
    """Begin a line along which only the sum of the coefficients changes, by -mass times its length.

    In one call, so that an interruption comes before or after it.
    """
    info = state.info[0]
    state.line[:] = 0.0
    info.mass, info.left = mass, length
    info.total -= mass * length


@compiled
def drop(state, columns, facts, s):
    """Remove a slot whose coefficient is 0; the last one takes its place.

    `columns`, float64 (features, slots), and `facts`, a record array (slots,), are changed, too. In
    one call, so that an interruption comes before or after it.
    """
    last = state.info[0].n - 1
    if state.row_of[s] >= 0:
        state.rows[state.row_of[s], : last + 1] = 0.0
        state.owner[state.row_of[s]], state.used[state.row_of[s]] = -1, 0
    if s != last:
        state.beta[s], state.low[s], state.high[s] = (
            state.beta[last],
            state.low[last],
            state.high[last],
        )
        state.target[s], state.h[s] = state.target[last], state.h[last]
        state.kind[s], state.place[s] = state.kind[last], state.place[last]
        state.diagonal[s], state.row_of[s] = state.diagonal[last], state.row_of[last]
        facts[s] = facts[last]
        for k in range(columns.shape[0]):
            columns[k, s] = columns[k, last]
        for r in range(state.owner.size):
            state.rows[r, s] = state.rows[r, last]
        if state.row_of[s] >= 0:
            state.owner[state.row_of[s]] = s
        if state.place[s] >= 0:
            state.members[state.place[s]] = s
    # Nothing of what has left stays.
    state.row_of[last], state.place[last] = -1, -1
    state.beta[last], state.low[last], state.high[last], state.target[last] = 0.0, 0.0, 0.0, 0.0
    state.h[last], state.diagonal[last], state.gamma[last], state.line[last] = 0.0, 0.0, 0.0, 0.0
    for r in range(state.owner.size):
        state.rows[r, last] = 0.0
    for k in range(columns.shape[0]):
        columns[k, last] = 0.0
    facts["number"][last], facts["arrived"][last] = 0, 0
    facts["weight"][last], facts["y"][last] = 0.0, 0.0
    state.info[0].n = last
    if last == 0:
        state.info[0].b = 0.0
