"""The support patterns of greedy inference: tokens, with the labels before them.

A slot holds one token: its features, its label, the labels before it, and a coefficient for each
label, beta[c] of problem (5.12). A token whose coefficients become 0 leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner, compiled_within, prefetch
from streamsvm.structured.sequences.model import (
    add_moves,
    add_scores,
    change,
    change_moves,
    load_early,
)
from streamsvm.support import active_set, sparse_store
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import NOT_NEGATIVE, count_of, field, index_of
from streamsvm.support.sparse_store import LIVE, WANTED, SparseStore
from streamsvm.support.states import STORE, declare


class TokenPatterns(NamedTuple):
    """Support patterns by slot."""

    store: SparseStore = STORE  # the features; `entered` is the number of the token, from 1
    active: ActiveSet = ACTIVE  # which slots are in use
    label: np.ndarray = field("slots", dtype=np.int32, range=index_of("classes"))
    # 1 + the labels before, 0 for none.
    past: np.ndarray = field("slots", "order", dtype=np.int32, range=count_of("classes"))
    beta: np.ndarray = field("slots", "classes")
    cost: np.ndarray = field("slots", range=NOT_NEGATIVE)  # C_i


declare(TokenPatterns)


@compiled_within
def have_room(patterns, x, begin, stop):
    """Tell whether tokens begin .. stop-1 fit; if not, the patterns must be `grown` first."""
    counts, store = patterns.active.counts[0], patterns.store
    n_entries = x.start[stop] - x.start[begin]
    fits = 4 * (store.counts[LIVE] + n_entries) <= 3 * store.columns.size
    store.counts[WANTED] = 0 if fits else n_entries
    return fits and patterns.label.size - counts.n + counts.n_free >= stop - begin


@compiled_within
def new_scores(patterns):
    """Return room for the scores of all labels."""
    return np.zeros(patterns.beta.shape[1], np.float32)


@compiled_within
def scores_of(model, patterns, order, slot, out):
    """Write the scores of all labels of a pattern."""
    store = patterns.store
    begin = store.start[slot]
    out[:] = 0.0
    add_scores(model.weights, store.columns, store.values, begin, begin + store.length[slot], out)
    add_moves(model.moves, order, patterns.past[slot], out)


@compiled_within
def square_of_pattern(patterns, slot):
    """Return |x|^2 of a pattern."""
    return patterns.store.norm[slot]


@compiled_within
def shift_scores(model, patterns, kernel, order, slot, up, down, step):
    """Move `step` from label `down` to label `up` of a pattern; the weights give the scores."""
    store, begin = patterns.store, patterns.store.start[slot]
    stop = begin + store.length[slot]
    change(model.weights, store.columns, store.values, begin, stop, up, down, step)
    change_moves(model.moves, order, patterns.past[slot], up, down, step)


@compiled_within
def fetch(patterns, slot, n):
    """Ask for the memory of a pattern, which takes longer to arrive than a step takes."""
    columns, start = patterns.store.columns.reshape(1, -1), patterns.store.start[slot]
    prefetch(columns, 0, start)
    prefetch(columns, 0, min(start + 16, columns.size - 1))
    for c in range(0, n, 8):
        prefetch(patterns.beta, slot, c)


@compiled_within
def fetch_weights(model, patterns, slot):
    """Ask for the weights of the features of a pattern."""
    store, begin = patterns.store, patterns.store.start[slot]
    load_early(model.weights, store.columns, begin, begin + store.length[slot])


@compiled_inner
def release(patterns, slot):
    """Free the slot of a pattern whose coefficients are in no weight."""
    patterns.beta[slot] = 0.0
    sparse_store.release(patterns.store, slot)
    active_set.leave(patterns.active, slot)
