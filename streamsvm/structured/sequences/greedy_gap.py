"""The duality gap of problem (5.12), and passes over all examples until it is small."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.structured.sequences.greedy import process_new, process_old
from streamsvm.structured.sequences.looks import part_of, token_part
from streamsvm.structured.sequences.model import add_moves, add_scores
from streamsvm.structured.sequences.token_patterns import have_room


@compiled
def kept_gap(model, patterns, order, n):
    """Return the gap over the support patterns, and the sum of their C_i."""
    model, patterns = borrowed((model, patterns))
    scores = np.zeros(model.weights.shape[1], np.float32)
    active, gap, costs = patterns.active, 0.0, 0.0
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        gap += token_part(model, patterns, order, slot, n, scores)
        costs += patterns.cost[slot]
    return gap, costs


@compiled
def other_gap(model, patterns, order, x, first, labels, cost, slots, n):
    """Return the gap of the tokens whose `slots` are -1, no patterns: hinge losses times C."""
    scores = np.zeros(model.weights.shape[1], np.float32)
    past, none, gap = np.zeros(max(1, order), np.int32), np.zeros(n), 0.0
    for i in range(first.size - 1):
        for t in range(first[i], first[i + 1]):
            if slots[t] >= 0:
                continue
            _past_of(labels, first[i], t, past)
            scores[:] = 0.0
            add_scores(model.weights, x.columns, x.values, x.start[t], x.start[t + 1], scores)
            add_moves(model.moves, order, past, scores)
            gap += part_of(scores, labels[t], cost[i] * model.cost[labels[t]], none, n)
    return gap


@compiled_inner
def _past_of(labels, begin, t, past):
    for s in range(past.size):
        past[s] = labels[t - 1 - s] + 1 if t - 1 - s >= begin else 0


@compiled
def learn_again(model, patterns, schedule, x, first, labels, cost, slots, n, done):
    """Make PROCESSOLD on the support patterns among all tokens, PROCESSNEW on the others.

    The parameters are those of `other_gap`; tokens are numbered in their order. Returns
    how many sentences are done, fewer than all if room is short.
    """
    model, patterns, x = borrowed((model, patterns, x))
    scores = np.zeros(model.weights.shape[1], np.float32)
    beta, past = np.zeros(scores.size), np.zeros(max(1, schedule.order), np.int32)
    store, active = patterns.store, patterns.active
    for i in range(done, first.size - 1):
        if not have_room(
            patterns, first[i + 1] - first[i], x.start[first[i + 1]] - x.start[first[i]]
        ):
            return i
        for t in range(first[i], first[i + 1]):
            slot = slots[t]
            if slot >= 0 and active.place[slot] >= 0 and store.entered[slot] == t + 1:
                process_old(model, patterns, schedule.order, slot, n, scores, np.bool_(False))
                continue
            _past_of(labels, first[i], t, past)
            c = cost[i] * model.cost[labels[t]]
            process_new(model, patterns, schedule, x, t, t + 1, labels[t], past, c, n, scores, beta)
    return first.size - 1


@compiled
def improve(model, patterns, order, n, n_optimize):
    """Make PROCESSOLD and then OPTIMIZE steps on each support pattern."""
    model, patterns = borrowed((model, patterns))
    scores = np.zeros(model.weights.shape[1], np.float32)
    active = patterns.active
    slots = active.members[: active.counts[0].n_members].copy()
    for o in range(1 + n_optimize):
        for slot in slots:
            if active.place[slot] >= 0:
                process_old(model, patterns, order, slot, n, scores, o > 0)
