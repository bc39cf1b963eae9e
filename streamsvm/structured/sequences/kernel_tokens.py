"""LaRank for greedy inference with a kernel between tokens, whose features are dense.

The score of label c of token x, after the labels in `past`, is

    sum_i beta_i^c k(x_i, x)  +  sum_{s < k} moves[s, past_s, c]

over the support patterns i. Problem and steps are those of `greedy`; the first sum of each pattern
is kept up to date in `f`, by the rows of the kernel matrix of `kernel_rows.row_cache`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_inner, compiled_within
from streamsvm.structured.sequences.model import add_moves, change_moves, shift
from streamsvm.support import active_set, stores
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import NOT_NEGATIVE, count_of, field, index_of
from streamsvm.support.dense_store import DenseStore
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import BLOCK, fill_values
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import RowCache, kernel_row
from streamsvm.support.states import CACHE, STORE, declare


class KernelTokens(NamedTuple):
    """Support patterns by slot."""

    store: DenseStore = STORE  # the features; `entered` is the number of the token, from 1
    cache: RowCache = CACHE
    active: ActiveSet = ACTIVE  # which slots are in use
    f: np.ndarray = field("classes", "slots")  # sum_i beta_i^c k(x_i, x_s)
    label: np.ndarray = field("slots", dtype=np.int32, range=index_of("classes"))
    # 1 + the labels before, 0 for none.
    past: np.ndarray = field("slots", "order", dtype=np.int32, range=count_of("classes"))
    beta: np.ndarray = field("slots", "classes")
    cost: np.ndarray = field("slots", range=NOT_NEGATIVE)  # C_i
    diagonal: np.ndarray = field("slots", range=NOT_NEGATIVE)  # k(x_s, x_s)
    row: np.ndarray = field(1, "slots", dtype=np.float32, scratch=True)  # of a fresh token


declare(KernelTokens)


@compiled_within
def scores_of(model, patterns, order, slot, out):
    """Write the scores of all labels of a pattern."""
    for c in range(out.size):
        out[c] = patterns.f[c, slot]
    add_moves(model.moves, order, patterns.past[slot], out)


@compiled_within
def square_of_pattern(patterns, slot):
    """Return k(x, x) of a pattern."""
    return patterns.diagonal[slot]


@compiled_inner
def shift_scores(model, patterns, kernel, order, slot, up, down, step):
    """Move `step` from label `down` to label `up` of a pattern; all patterns' `f` changes."""
    n, d = patterns.active.counts[0].n, patterns.store.panels.shape[1]
    row = patterns.cache.values[kernel_row(patterns.cache, kernel, patterns.store, slot, n, d)]
    add_scaled(patterns.f[up], row, step, n)
    add_scaled(patterns.f[down], row, -step, n)
    change_moves(model.moves, order, patterns.past[slot], up, down, step)


@compiled_within
def have_room(patterns, x, begin, stop):
    """Tell whether tokens begin .. stop-1 fit; if not, the patterns must be `grown` first."""
    counts = patterns.active.counts[0]
    return patterns.label.size - counts.n + counts.n_free >= stop - begin


@compiled_within
def new_scores(patterns):
    """Return room for the scores of all labels."""
    return np.zeros(patterns.beta.shape[1])


@compiled_within
def release(patterns, slot):
    """Free the slot of a pattern whose coefficients are in no score."""
    patterns.beta[slot] = 0.0
    patterns.store.entered[slot] = 0
    active_set.leave(patterns.active, slot)


@compiled_inner
def start_scores(model, patterns, kernel, order, x, past, scores):
    """Write the scores of all labels of a fresh token, float32 (1, d), and its kernel values."""
    used, d = patterns.active.counts[0].n, patterns.store.panels.shape[1]
    if used > 0:
        stores.values(kernel, patterns.store, x, np.int64(1), d, np.int64(0), used, patterns.row)
    _expand(patterns, patterns.row[0], scores)
    add_moves(model.moves, order, past, scores)


@compiled_inner
def entered(patterns, kernel, x, number, scores):
    """Return the slot of a token that becomes a pattern, without coefficients yet."""
    active, row = patterns.active, patterns.row[0]
    before = active.counts[0].n
    slot = active_set.enter(active, number)
    stores.put(patterns.store, slot, x)
    row[slot] = own_value(patterns, kernel, x, slot)
    patterns.diagonal[slot] = row[slot]
    if slot < before:
        # The slot was used before: cached kernel values of its old example are invalid.
        row_cache.free(patterns.cache, slot)
        row_cache.set_column(patterns.cache, slot, row)
    row_cache.keep(patterns.cache, slot, row, active.counts[0].n)
    patterns.store.entered[slot] = number
    _write_f(patterns, slot, row, scores)
    return slot


@compiled_inner
def own_value(patterns, kernel, x, slot):
    """Return k(x, x) of the row in a slot."""
    out = np.empty((1, patterns.label.size), np.float32)
    d = patterns.store.panels.shape[1]
    stores.values(kernel, patterns.store, x, np.int64(1), d, slot, slot + 1, out)
    return out[0, slot]


@compiled_inner
def _write_f(patterns, slot, row, out):
    """Write sum_i beta_i^c k(x_i, x) of the token with these kernel values to `out` and `f`."""
    _expand(patterns, row, out)
    for c in range(out.size):
        patterns.f[c, slot] = out[c]


@compiled_inner
def _expand(patterns, row, out):
    """Write sum_i beta_i^c k(x_i, x), given the kernel values of x."""
    active = patterns.active
    out[:] = 0.0
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        value = np.float64(row[slot])
        for c in range(out.size):
            out[c] += patterns.beta[slot, c] * value


def emissions(patterns: KernelTokens, kernel: Any, x: np.ndarray) -> np.ndarray:
    """Return the scores of all labels but for moves, float64 (tokens, classes)."""
    used = int(patterns.active.counts[0].n)
    found = np.zeros((len(x), patterns.beta.shape[1]))
    out = np.zeros((BLOCK, patterns.label.size), np.float32)
    for begin in range(0, len(x) if used else 0, BLOCK):
        part = x[begin : begin + BLOCK]
        fill_values(kernel, patterns.store, part, 0, used, out)
        found[begin : begin + BLOCK] = out[: len(part), :used] @ patterns.beta[:used]
    return found


@compiled
def decode(scores, moves, order, first, n, labels):
    """Set the labels of sentences, predicted from left to right; add moves to the scores."""
    past = np.zeros(max(1, order), np.int32)
    for i in range(first.size - 1):
        past[:] = 0
        for t in range(first[i], first[i + 1]):
            add_moves(moves, order, past, scores[t])
            labels[t] = np.argmax(scores[t, :n])
            shift(past, labels[t])
