"""The support patterns of exact inference: sentences, each with its support vectors.

A slot holds one sentence: its features, how many of them each token has, and a list of support
vectors, which are sequences of labels with a coefficient beta of problem (5.11). The first of the
list are the true labels. A sentence whose coefficients become 0 leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_inner, compiled_within
from streamsvm.structured.sequences import label_pool
from streamsvm.structured.sequences.label_pool import LabelPool, sequence_of
from streamsvm.structured.sequences.model import note_step
from streamsvm.structured.sequences.pairs import distance_of, move_weights, rise_of
from streamsvm.support import active_set, sparse_store, states
from streamsvm.support.active_set import ActiveSet
from streamsvm.support.declaration import copy_arrays
from streamsvm.support.rows import SparseRows
from streamsvm.support.sparse_store import LIVE, WANTED, SparseStore

_FEWEST = 64
NONE = -1
N_VECTORS, FREE, N_FREE, MORE_VECTORS, MORE_LABELS = range(5)
"""Indices of `counts`: vectors in use or free, the first free one, how many are free; and for how
many vectors and labels there was to be room when there was none."""


class SentencePatterns(NamedTuple):
    """Support patterns by slot, and support vectors by a number of their own."""

    store: SparseStore  # the features of all tokens; `entered` is the number of the sentence
    active: ActiveSet  # which slots are in use
    lengths: LabelPool  # how many features each token has
    cost: np.ndarray  # float64 (slots,): C_i
    head: np.ndarray  # int64 (slots,): the support vector of the true labels
    labels: LabelPool  # the labels of each support vector
    beta: np.ndarray  # float64 (vectors,)
    next: np.ndarray  # int64 (vectors,): the next one of the sentence, or the next free one; NONE
    counts: np.ndarray  # int64 (5,): N_VECTORS and so on


def new_patterns(window: int, slots: int = _FEWEST, vectors: int = 4 * _FEWEST) -> SentencePatterns:
    """Return an empty set of patterns; `window` is 0 for none."""
    store = sparse_store.new_store(slots, 1)
    slots = store.start.size
    active = states.new(ActiveSet, {"slots": slots, "window": window})
    return SentencePatterns(
        store, active, label_pool.new_pool(slots), np.zeros(slots), np.full(slots, NONE),
        label_pool.new_pool(vectors), np.zeros(vectors), np.full(vectors, NONE),
        np.array([0, NONE, 0, 0, 0]),
    )  # fmt: skip


def grown(old: SentencePatterns) -> SentencePatterns:
    """Return the patterns with room for what `have_room` was asked for."""
    counts, window = old.counts, old.active.ring.size
    slots, vectors, more = old.cost.size, old.beta.size, int(counts[MORE_LABELS])
    if old.active.counts[0].n_members == slots:
        slots *= 2
    while counts[N_VECTORS] - counts[N_FREE] + counts[MORE_VECTORS] > vectors:
        vectors *= 2
    store = sparse_store.grown(old.store, slots, 1)
    slots = store.start.size
    active = states.grown_arrays(old.active, {"slots": slots, "window": window})
    new = SentencePatterns(
        store, active, label_pool.grown(old.lengths, slots, more), np.zeros(slots),
        np.full(slots, NONE), label_pool.grown(old.labels, vectors, more), np.zeros(vectors),
        np.full(vectors, NONE), old.counts,
    )  # fmt: skip
    copy_arrays(old, new, ("cost", "head", "beta", "next"))
    return new


@compiled_within
def have_room(patterns, n_tokens, n_entries, n_vectors):
    """Tell whether a sentence, and vectors of so many labels each, fit without `grown`."""
    counts, store, active = patterns.counts, patterns.store, patterns.active.counts[0]
    store_fits = 4 * (store.counts[LIVE] + n_entries) <= 3 * store.columns.size
    store.counts[WANTED] = 0 if store_fits else n_entries
    counts[MORE_VECTORS], counts[MORE_LABELS] = n_vectors, n_vectors * n_tokens
    fits = label_pool.have_room(patterns.lengths, n_tokens)
    fits = fits and label_pool.have_room(patterns.labels, n_vectors * n_tokens)
    fits = fits and active.n_free + patterns.cost.size - active.n > 0
    n_used = counts[N_VECTORS] - counts[N_FREE]
    return store_fits and fits and n_used + n_vectors <= patterns.beta.size


@compiled
def new_vector(patterns, labels, beta, after):
    """Add a support vector after another one of its sentence (NONE: as the first)."""
    counts = patterns.counts
    v = counts[FREE]
    if v == NONE:
        v = counts[N_VECTORS]
        counts[N_VECTORS] += 1
    else:
        counts[FREE] = patterns.next[v]
        counts[N_FREE] -= 1
    label_pool.put(patterns.labels, v, labels)
    patterns.beta[v] = beta
    patterns.next[v] = NONE
    if after != NONE:
        patterns.next[v] = patterns.next[after]
        patterns.next[after] = v
    return v


@compiled_inner
def drop_zeros(patterns, slot):
    """Remove the support vectors of a sentence whose coefficients are 0, but the first."""
    before = patterns.head[slot]
    v = patterns.next[before]
    while v != NONE:
        following = patterns.next[v]
        if patterns.beta[v] == 0.0:
            patterns.next[before] = following
            _release_vector(patterns, v)
        else:
            before = v
        v = following


@compiled_inner
def _release_vector(patterns, v):
    label_pool.release(patterns.labels, v)
    patterns.next[v] = patterns.counts[FREE]
    patterns.counts[FREE] = v
    patterns.counts[N_FREE] += 1


@compiled_inner
def release(patterns, slot):
    """Free the slot of a sentence and its support vectors; the weights stay."""
    v = patterns.head[slot]
    while v != NONE:
        following = patterns.next[v]
        _release_vector(patterns, v)
        v = following
    patterns.head[slot] = NONE
    label_pool.release(patterns.lengths, slot)
    sparse_store.release(patterns.store, slot)
    active_set.leave(patterns.active, slot)


@compiled_inner
def tokens_of(patterns, slot):
    """Return the features of the tokens of a sentence as rows, which are views."""
    lengths, store = sequence_of(patterns.lengths, slot), patterns.store
    start = np.empty(lengths.size + 1, np.int64)
    start[0] = store.start[slot]
    for t in range(lengths.size):
        start[t + 1] = start[t] + lengths[t]
    return SparseRows(start, store.columns, store.values, 0)


@compiled_inner
def remove(model, patterns, order, slot, scratch):
    """Remove a sentence, and what it gave to the weights."""
    rows, head = tokens_of(patterns, slot), patterns.head[slot]
    truth, v = sequence_of(patterns.labels, head), patterns.next[head]
    while v != NONE:
        labels = sequence_of(patterns.labels, v)
        # Its coefficient is negative: this takes from the true labels what it gave.
        step = patterns.beta[v]
        square = distance_of(order, rows, truth, labels, scratch)
        note_step(model.info[0], rise_of(model, order, rows, truth, labels), step, square)
        move_weights(model.weights, model.moves, order, rows, truth, labels, step)
        v = patterns.next[v]
    release(patterns, slot)


@compiled_inner
def smallest(patterns):
    """Return the slot of the sentence with the smallest coefficients; there is at least one."""
    active = patterns.active
    best = active.members[0]
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        if patterns.beta[patterns.head[slot]] < patterns.beta[patterns.head[best]]:
            best = slot
    return best


def filled(
    patterns: SentencePatterns, lengths: np.ndarray, tokens: np.ndarray, counts: np.ndarray,
    betas: np.ndarray, labels: np.ndarray,
) -> SentencePatterns:  # fmt: skip
    """Return empty patterns, with room and with store and active set, filled with sentences.

    lengths: int64 (slots,), tokens of each sentence, 0 of a free slot; tokens: int32, features of
    each token; counts: int32 (slots,), support vectors of each sentence; betas, float64, and
    labels, int32: coefficients and labels of all support vectors.
    """
    slots, vectors = patterns.cost.size, patterns.beta.size
    patterns = patterns._replace(
        lengths=label_pool.grown(patterns.lengths, slots, tokens.size),
        labels=label_pool.grown(patterns.labels, vectors, labels.size),
    )
    v, token, at = 0, 0, 0
    for slot, (n, n_vectors) in enumerate(zip(lengths.tolist(), counts.tolist(), strict=True)):
        label_pool.put(patterns.lengths, slot, tokens[token : token + n])
        token += n
        last = NONE
        for _ in range(n_vectors):
            last = new_vector(patterns, labels[at : at + n], betas[v], last)
            if patterns.head[slot] == NONE:
                patterns.head[slot] = last
            v, at = v + 1, at + n
    return patterns
