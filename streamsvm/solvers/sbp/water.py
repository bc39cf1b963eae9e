"""The water level over the responses: the inner problem of the stochastic batch perceptron.

With responses c_i of weights s_i, the slack that lifts the lowest of them most is water of the
volume nu sum s, poured over columns of the heights c_i and the widths s_i (paper, 3.2)::

    level g:   sum_i s_i max(0, g - c_i) = nu sum_i s_i

With a bias (3.6, appendix B) there are two basins, one a class, which the bias raises and lowers
against each other. At the best bias water covers the same width in both. So the lowest positive
width is paired with the lowest negative one, the next with the next, and the sum of both levels is
the level of water over the sums of their heights: one basin again.

The paper finds the level in linear time by dividing the heights at their median, then the half
with the level, and so on. Here the last level is the start. Without a bias, Newton's method finds
the next one: the volume below a level is a convex function of it, with the width covered as its
slope. With a bias the heights are divided at once: those surely covered, those surely dry, and a
narrow band around the last level, which alone is sorted. If the level turns out not to be in the
band, it becomes wider.

The optimal weights p of the examples are the width that is covered, of its sum (3.2). With weights,
or with examples that come more than once, only a part of the highest column of one basin may count
for both to be covered by the same width. So with the levels come `tops`: of each class the highest
height covered, and which part of the columns of this height is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled, compiled_inner, compiled_leaf
from streamsvm.solvers.sbp.state import BAND

_FEW, _MANY = 16, 256
"""The band becomes wider below so many heights in it, and narrower above."""

_MOST_STEPS = 200
"""Of Newton's method, which takes a few; more come of rounding only."""


@compiled_leaf
def _water_below(heights, cost, level, n):
    """Return the width covered at a level, and the volume of the water below it."""
    width, volume = 0.0, 0.0
    for s in range(n):
        depth = level - heights[s]
        b = cost[s] if depth >= 0.0 else 0.0
        width += b
        volume += b * depth
    return width, volume


@compiled_inner
def _lowest(heights, cost, n):
    level = np.inf
    for s in range(n):
        if cost[s] > 0.0:
            level = min(level, heights[s])
    return level


@compiled_inner
def _level_of_basin(heights, cost, volume, start, n):
    """Return the level of water of a volume over all columns, from any level to start with."""
    level = start
    width, below = _water_below(heights, cost, level, n)
    if width == 0.0:
        level = heights[:n].max()
        width, below = _water_below(heights, cost, level, n)
    # This step may go up, as the start may be below. As the function is convex, it ends at or above
    # the level looked for, and all later steps go down.
    level += (volume - below) / width
    for _ in range(_MOST_STEPS):
        width, below = _water_below(heights, cost, level, n)
        if width == 0.0:
            # Almost no volume, and rounding: below all columns.
            return _lowest(heights, cost, n)
        lower = level - (below - volume) / width
        if not lower < level:
            break
        level = lower
    return level


@compiled_leaf
def _covered(heights, cost, y, sign, low, high, n):
    """Return width and area of the columns of a class up to `low`, and how many are above."""
    width, area, size = 0.0, 0.0, 0
    for s in range(n):
        b = cost[s] if y[s] * sign >= 0.0 and heights[s] <= low else 0.0
        width += b
        area += b * heights[s]
        size += 1 if low < heights[s] <= high else 0
    return width, area, size


@compiled_inner
def _sort(heights, widths):
    """Sort columns by height, in place (heapsort: NumPy's takes four seconds to compile)."""
    end = heights.size
    first = end // 2
    while end > 1:
        if first > 0:
            first -= 1
        else:
            end -= 1
            heights[0], heights[end] = heights[end], heights[0]
            widths[0], widths[end] = widths[end], widths[0]
        above, below = first, 2 * first + 1
        while below < end:
            below += int(below + 1 < end and heights[below + 1] > heights[below])
            if heights[above] >= heights[below]:
                break
            heights[above], heights[below] = heights[below], heights[above]
            widths[above], widths[below] = widths[below], widths[above]
            above, below = below, 2 * below + 1


@compiled_inner
def _basin(heights, cost, y, sign, low, high, n):
    """Return the columns of a class, +1.0 or -1.0, and what is to be added to the volume.

    All n columns, with float64 heights, widths (`cost`) and classes, up to `low` are taken together
    as one of the height `low`, and all above `high` as one of the height `high`. The result:
    heights, ascending; widths; how much less water the columns up to `low` take at their own
    heights; the number of columns in between, in the band.
    """
    width, area, size = _covered(heights, cost, y, sign, low, high, n)
    found, widths = np.empty(size + 2), np.empty(size + 2)
    found[0], widths[0], size = low, width, 1
    for s in range(n):
        if low < heights[s] <= high and cost[s] > 0.0 and y[s] * sign >= 0.0:
            found[size], widths[size] = heights[s], cost[s]
            size += 1
    _sort(found[1:size], widths[1:size])
    found[size], widths[size] = high, np.inf
    lacking = area - width * low if width > 0.0 else 0.0
    return found[: size + 1], widths[: size + 1], lacking, size - 1


@compiled_inner
def _note_top(top, height, covered, heights, widths, first):
    """Note the highest height covered, and which part of the columns of this height is.

    What is covered of them is given, and what is left is in the columns from `first` on.
    """
    left = 0.0
    while first < heights.size - 1 and heights[first] == height:
        left += widths[first]
        first += 1
    top[0], top[1] = height, covered / (covered + left)


@compiled_inner
def _fill(p, width_p, q, width_q, volume, tops):
    """Pour water over the pairs of two basins; return both levels, or NaN if outside of the bands.

    Heights and widths are those of `_basin`, and the widths are overwritten; `tops`, too.
    """
    i, j = int(width_p[0] == 0.0), int(width_q[0] == 0.0)
    top_p, top_q, width, area, total = -np.inf, -np.inf, 0.0, 0.0, -np.inf
    covered_p, covered_q = 0.0, 0.0  # of the columns of these heights
    while width == 0.0 or total >= p[i] + q[j]:
        take = min(width_p[i], width_q[j])
        if take == np.inf:
            return np.nan, np.nan
        covered_p = take if p[i] != top_p else covered_p + take
        covered_q = take if q[j] != top_q else covered_q + take
        top_p, top_q = p[i], q[j]
        width += take
        area += take * (top_p + top_q)
        total = (volume + area) / width
        width_p[i] -= take
        width_q[j] -= take
        i += int(width_p[i] == 0.0)
        j += int(width_q[j] == 0.0)
    is_beyond = (i == p.size - 1 and p[i] < np.inf) or (j == q.size - 1 and q[j] < np.inf)
    if i == 0 or j == 0 or is_beyond or (total < top_p + top_q and volume < 0.0):
        return np.nan, np.nan
    _note_top(tops[0], top_p, covered_p, p, width_p, i)
    _note_top(tops[1], top_q, covered_q, q, width_q, j)
    # Each level is between the highest height covered and the next one; what is left free is
    # divided evenly, as in the paper's Algorithm 3.
    rise = max(0.0, total - top_p - top_q)
    up_p, up_q = min(rise, p[i] - top_p), min(rise, q[j] - top_q)
    return top_p + 0.5 * (rise + up_p - up_q), top_q + 0.5 * (rise + up_q - up_p)


@compiled_inner
def _levels_within(heights, cost, y, volume, at_p, at_q, band, tops, n):
    """Return both levels, NaN if they are not within the band, and how many columns are in it."""
    p, width_p, lacking, size = _basin(heights, cost, y, 1.0, at_p - band, at_p + band, n)
    q, width_q, other, more = _basin(heights, cost, y, -1.0, at_q - band, at_q + band, n)
    level_p, level_q = _fill(p, width_p, q, width_q, volume + lacking + other, tops)
    return level_p, level_q, size + more


@compiled_inner
def _find_both(heights, cost, y, volume, levels, tops, n):
    """Find the levels of both classes, with a bias: see `find_levels`."""
    band: Any = levels[BAND] if levels[BAND] > 0.0 else np.inf
    at_p, at_q = levels[0], levels[1]
    level_p, level_q, size = _levels_within(heights, cost, y, volume, at_p, at_q, band, tops, n)
    while np.isnan(level_p) and band < np.inf:
        # At last it is infinite, and has all columns.
        band = 4.0 * band if band < 1e6 * (abs(at_p) + abs(at_q)) else np.inf
        level_p, level_q, size = _levels_within(heights, cost, y, volume, at_p, at_q, band, tops, n)
    if np.isnan(level_p):
        # As in `find_levels`.
        level_p, level_q = 0.0, 0.0
        tops[:, 0], tops[:, 1] = 0.0, 1.0
    if band == np.inf:
        band = abs(level_p) + abs(level_q)
    elif size > _MANY:
        band *= 0.5
    elif size < _FEW:
        band *= 2.0
    levels[0], levels[1], levels[BAND] = level_p, level_q, band


@compiled_inner
def find_levels(heights, cost, y, has_bias, volume, levels, tops, n):
    """Find the water levels over both classes, from those found last.

    `heights` are the responses y_i <w, x_i>, `cost` weights s_i, 0 for slots without a row, y
    classes, +1.0 or -1.0: all float64 (at least n,). With a bias each class has a level of its own,
    and there must be rows of both, else of one. `volume` is nu times the sum of the weights.

    `levels`, float64 (3,), overwritten: of the positive and of the negative class, and the half
    width of the band, 0 if it is not known yet; without a bias, how far the level moved. `tops`,
    float64 (2, 2), overwritten: of both classes the highest height covered, and which part of the
    columns of this height is, above 0 and at most 1.
    """
    if has_bias:
        _find_both(heights, cost, y, volume, levels, tops, n)
        return
    level = _level_of_basin(heights, cost, volume, levels[0], n)
    # Responses have overflowed: only a damaged model file can have such.
    level = 0.0 if np.isnan(level) else level
    levels[BAND] = abs(level - levels[0])
    levels[0] = levels[1] = level
    tops[:, 0], tops[:, 1] = level, 1.0


@compiled
def level_of(levels):
    """Return the common level g: by it margins are scaled to 1."""
    return 0.5 * (levels[0] + levels[1])


@compiled
def bias_of(levels):
    """Return the bias b: positive rows are covered below g - b, negative ones below g + b."""
    return 0.5 * (levels[1] - levels[0])
