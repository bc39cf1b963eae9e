"""Many iterations on the rows kept, with the kernel rows of several computed together.

Which row an iteration steps along depends on the iteration before. But draws are rejections from a
sequence of rows that does not: so the next rows of the sequence that are below the water now, or
just above it, are most of those that the next iterations will draw, and their kernel rows are
computed together, several times as fast. The draws and the model are the same as without this.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.sbp import step
from streamsvm.solvers.sbp.state import BAND, LAST
from streamsvm.support import stores
from streamsvm.support.kernel_rows import row_cache

AHEAD = 16
"""How many kernel rows are computed together."""

_MOST_DRAWS = 4096
"""How far the sequence is looked through for them."""


@compiled_inner
def _keep(cache, s, values, n):
    """Make values[:n], float32, the line of a slot."""
    line = cache.line_of[s]
    if line == row_cache.NONE:
        line = row_cache.take_line(cache, s)
    for i in range(n):
        cache.values[line, i] = values[i]
    cache.length[line] = n


@compiled_inner
def _compute_ahead(state, kernel, drawn, d, most):
    """Compute the kernel rows of a slot and of up to `most` - 1 that are probably drawn next."""
    n, cache, info = state.active.counts[0].n, state.cache, state.info[0]
    draws, slots, size = state.draws.copy(), np.empty(AHEAD, np.int64), 1
    slots[0] = drawn
    for _ in range(_MOST_DRAWS):
        if size == most:
            break
        s, least = step.draw_candidate(state, draws)
        if least >= state.cost[s] or not step.is_near(state, s, state.levels[LAST, BAND]):
            continue
        line = cache.line_of[s]
        if line != row_cache.NONE and cache.length[line] == n:
            row_cache.touch(cache, line)
        elif s not in slots[:size]:
            slots[size] = s
            size += 1
    values = state.block.values
    x = stores.gather(state.store, slots, size, d)
    stores.values(kernel, state.store, x, size, d, np.int64(0), n, values)
    info.n_values += size * n
    for r in range(size):
        _keep(cache, slots[r], values[r], n)


@compiled
def finish_some(state, kernel, p, d, n_steps):
    """Make so many iterations on the rows kept, without a horizon; p is a `step.Numbers`."""
    state = borrowed(state)
    if not step.can_step(state, p):
        return
    state.info[0].ready = 0
    n, cache = state.active.counts[0].n, state.cache
    # Rows that are computed must not push each other out.
    most = min(np.int64(AHEAD), cache.length.size // 2)
    for k in range(n_steps):
        step.find_water(state, p)
        s = step.draw(state)
        line = cache.line_of[s]
        if line == row_cache.NONE or cache.length[line] < n:
            _compute_ahead(state, kernel, s, d, min(most, n_steps - k))
        line = row_cache.kernel_row(cache, kernel, state.store, s, n, d)
        step.step_on(state, s, cache.values[line])
    step.find_mean_water(state, p)
