"""The duality gap of problem (5.11), and passes over all examples until it is small."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled
from streamsvm.structured.sequences.exact import process_new, process_old
from streamsvm.structured.sequences.label_pool import sequence_of
from streamsvm.structured.sequences.looks import sentence_part
from streamsvm.structured.sequences.pairs import loss_of
from streamsvm.structured.sequences.sentence_patterns import NONE, have_room
from streamsvm.structured.sequences.worst_labels import best_labels, violation


@compiled
def kept_gap(model, patterns, order, n, scratch):
    """Return the gap over the support patterns, and the sum of their C_i."""
    model, patterns, scratch = borrowed((model, patterns, scratch))
    active, gap, costs = patterns.active, 0.0, 0.0
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        gap += sentence_part(model, patterns, order, slot, n, scratch)
        costs += patterns.cost[slot]
    return gap, costs


@compiled
def other_gap(model, patterns, order, x, first, labels, cost, slots, n, scratch):
    """Return the gap of the sentences whose `slots` are -1, no patterns: their losses times C."""
    model, patterns, x, scratch = borrowed((model, patterns, x, scratch))
    gap = 0.0
    for i in range(first.size - 1):
        begin, stop = first[i], first[i + 1]
        if slots[i] >= 0 or begin == stop:
            continue
        offsets, truth = x.start[begin : stop + 1], labels[begin:stop]
        worst = best_labels(model, x.columns, x.values, offsets, truth, n, scratch)
        h = violation(model, order, x.columns, x.values, offsets, truth, worst)
        gap += cost[i] * max(0.0, h)
    return gap


@compiled
def learn_again(model, patterns, schedule, x, first, labels, cost, slots, n, done, scratch):
    """Make PROCESSOLD on the support patterns among all sentences, PROCESSNEW on the others.

    The parameters are those of `other_gap`; sentences are numbered in their order. Returns how many
    are done, fewer than all if room is short.
    """
    model, patterns, x, scratch = borrowed((model, patterns, x, scratch))
    store, active = patterns.store, patterns.active
    for i in range(done, first.size - 1):
        begin, stop, slot = first[i], first[i + 1], slots[i]
        longest = max(stop - begin, scratch.scores.shape[0])
        if not have_room(patterns, longest, x.start[stop] - x.start[begin], 2):
            return i
        if slot >= 0 and active.place[slot] >= 0 and store.entered[slot] == i + 1:
            process_old(model, patterns, schedule.order, slot, n, scratch, np.bool_(False))
        elif stop > begin:
            process_new(
                model, patterns, schedule, x, begin, stop, i + 1, labels[begin:stop], cost[i], n,
                scratch,
            )  # fmt: skip
    return first.size - 1


@compiled
def improve(model, patterns, order, n, n_optimize, done, scratch):
    """Make a PROCESSOLD step on each support pattern from `done` on, and OPTIMIZE steps.

    Returns where room was short, or the number of slots.
    """
    model, patterns, scratch = borrowed((model, patterns, scratch))
    active = patterns.active
    for slot in range(done, active.counts[0].n):
        if active.place[slot] < 0:
            continue
        if not have_room(patterns, scratch.scores.shape[0], 0, 1):
            return slot
        for o in range(1 + n_optimize):
            if active.place[slot] >= 0:
                process_old(model, patterns, order, slot, n, scratch, o > 0)
    return active.counts[0].n


@compiled
def linear_part(patterns, cost):
    """Return the linear term of the dual, -sum_{i, y} Delta(y, y_i) beta_i^y."""
    active, total = patterns.active, 0.0
    for m in range(active.counts[0].n_members):
        head = patterns.head[active.members[m]]
        truth, v = sequence_of(patterns.labels, head), patterns.next[head]
        while v != NONE:
            labels = sequence_of(patterns.labels, v)
            total -= loss_of(cost, truth, labels) * patterns.beta[v]
            v = patterns.next[v]
    return total
