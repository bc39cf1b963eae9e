"""The support patterns of greedy inference: tokens, with the labels before them.

A slot holds one token: its features, its label, the labels before it, and a coefficient for each
label, beta[c] of problem (5.12). A token whose coefficients become 0 leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner, compiled_within
from streamsvm.structured.sequences.model import (
    add_moves,
    add_scores,
    change,
    change_moves,
    note_step,
    square_of,
)
from streamsvm.support import active_set, sparse_store, states
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import NOT_NEGATIVE, count_of, field, index_of
from streamsvm.support.sparse_store import LIVE, WANTED, SparseStore
from streamsvm.support.state_parts import STORE
from streamsvm.support.states import declare

_FEWEST = 64


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


def new_patterns(order: int, classes: int, window: int) -> TokenPatterns:
    """Return an empty set of patterns; `window` is 0 for none."""
    sizes = {"slots": _FEWEST, "features": 1, "order": order, "classes": classes, "window": window}
    patterns: TokenPatterns = states.new(TokenPatterns, sizes, sparse=True)
    return patterns


def grown(old: TokenPatterns, slots: int, classes: int) -> TokenPatterns:
    """Return the patterns with room for at least so many slots and classes, and for `WANTED`."""
    slots, classes = max(slots, old.label.size), max(classes, old.beta.shape[1])
    patterns: TokenPatterns = states.grown(old, slots, 1, n_classes=classes)
    return patterns


@compiled_within
def have_room(patterns, n_tokens, n_entries):
    """Tell whether so many tokens fit; if not, the patterns must be `grown` first."""
    counts, store = patterns.active.counts[0], patterns.store
    fits = 4 * (store.counts[LIVE] + n_entries) <= 3 * store.columns.size
    store.counts[WANTED] = 0 if fits else n_entries
    return fits and patterns.label.size - counts.n + counts.n_free >= n_tokens


@compiled_within
def scores_of(model, patterns, order, slot, out):
    """Write the scores of all labels of a pattern."""
    store = patterns.store
    begin = store.start[slot]
    out[:] = 0.0
    add_scores(model.weights, store.columns, store.values, begin, begin + store.length[slot], out)
    add_moves(model.moves, order, patterns.past[slot], out)


@compiled_inner
def remove(model, patterns, order, slot):
    """Remove a pattern, and what it gave to the weights."""
    store, label = patterns.store, patterns.label[slot]
    begin = store.start[slot]
    stop = begin + store.length[slot]
    scores = np.zeros(patterns.beta.shape[1], np.float32)
    scores_of(model, patterns, order, slot, scores)
    square = square_of(store.values, begin, stop) + order
    for c in range(patterns.beta.shape[1]):
        # A direction for each label, which are orthogonal to each other.
        note_step(model.info[0], np.float64(scores[c]), -patterns.beta[slot, c], square)
    for c in range(patterns.beta.shape[1]):
        step = patterns.beta[slot, c]
        if c != label and step != 0.0:
            # Its coefficient is negative: this takes from the label what it gave.
            change(model.weights, store.columns, store.values, begin, stop, label, c, step)
            change_moves(model.moves, order, patterns.past[slot], label, c, step)
    release(patterns, slot)


@compiled_inner
def release(patterns, slot):
    """Free the slot of a pattern whose coefficients are in no weight."""
    patterns.beta[slot] = 0.0
    sparse_store.release(patterns.store, slot)
    active_set.leave(patterns.active, slot)


@compiled_inner
def smallest(patterns):
    """Return the slot of the pattern with the smallest coefficients; there is at least one."""
    active = patterns.active
    best = active.members[0]
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        if patterns.beta[slot, patterns.label[slot]] < patterns.beta[best, patterns.label[best]]:
            best = slot
    return best
