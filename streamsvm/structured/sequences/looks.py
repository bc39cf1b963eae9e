"""The part of the duality gap that one support pattern has, and looks at it.

See `support.looks`. A look at a random pattern follows each sentence; it makes no step.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.structured.sequences.label_pool import sequence_of
from streamsvm.structured.sequences.model import add_moves, add_scores, note_look
from streamsvm.structured.sequences.sentence_patterns import NONE, offsets_of
from streamsvm.structured.sequences.worst_labels import best_labels, violation
from streamsvm.support.looks import heavy_member


@compiled_inner
def part_of(scores, label, cost, beta, n):
    """Return the part of a token: C_i max(0, max_c h(c) - h(y)) + sum_c beta_c (h(c) - h(y))."""
    worst, total = 0.0, 0.0
    for c in range(n):
        if c != label:
            h = 1.0 + np.float64(scores[c]) - np.float64(scores[label])
            worst = max(worst, h)
            total += beta[c] * h
    return cost * worst + total


@compiled_inner
def token_part(model, patterns, order, slot, n, scores):
    """Return the part of a token among the patterns; `scores` is scratch."""
    store = patterns.store
    begin = store.start[slot]
    scores[:] = 0.0
    add_scores(
        model.weights, store.columns, store.values, begin, begin + store.length[slot], scores
    )
    add_moves(model.moves, order, patterns.past[slot], scores)
    return part_of(scores, patterns.label[slot], patterns.cost[slot], patterns.beta[slot], n)


@compiled_inner
def sentence_part(model, patterns, order, slot, n, scratch):
    """Return the part of a sentence among the patterns."""
    columns, values = patterns.store.columns, patterns.store.values
    offsets, head = offsets_of(patterns, slot), patterns.head[slot]
    truth = sequence_of(patterns.labels, head)
    worst = best_labels(model, columns, values, offsets, truth, n, scratch)
    h = violation(model, order, columns, values, offsets, truth, worst)
    part = patterns.cost[slot] * max(0.0, h)
    v = patterns.next[head]
    while v != NONE:
        labels = sequence_of(patterns.labels, v)
        h = violation(model, order, columns, values, offsets, truth, labels)
        part += patterns.beta[v] * h
        v = patterns.next[v]
    return part


@compiled_inner
def _drawn(model, patterns):
    """Return the slot of a pattern, drawn in proportion to C_i; there is at least one."""
    active = patterns.active
    n = active.counts[0].n_members
    return heavy_member(model.look_draws, active.members, n, patterns.cost, model.info[0].cost_most)


@compiled_inner
def look_at_token(model, patterns, order, n, scores):
    """Look at one of the patterns, if there are any."""
    if patterns.active.counts[0].n_members > 0:
        slot = _drawn(model, patterns)
        part = token_part(model, patterns, order, slot, n, scores)
        note_look(model.info[0], part / patterns.cost[slot])


@compiled_inner
def look_at_sentence(model, patterns, order, n, scratch):
    """Look at one of the patterns, if there are any."""
    if patterns.active.counts[0].n_members > 0:
        slot = _drawn(model, patterns)
        part = sentence_part(model, patterns, order, slot, n, scratch)
        note_look(model.info[0], part / patterns.cost[slot])
