"""LaRank for greedy inference with a kernel between tokens, whose features are dense.

The score of label c of token x, after the labels in `past`, is

    sum_i beta_i^c k(x_i, x)  +  sum_{s < k} moves[s, past_s, c]

over the support patterns i. Problem and steps are those of `greedy`; the first sum of each pattern
is kept up to date in `f`, by the rows of the kernel matrix of `kernel_rows.row_cache`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.structured.sequences.greedy import choose_step, move, part_of, shift
from streamsvm.structured.sequences.model import (
    add_moves,
    change_moves,
    drawn_pattern,
    note_look,
    note_pattern,
    note_step,
)
from streamsvm.structured.sequences.token_patterns import smallest
from streamsvm.support import active_set, states, stores
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import NOT_NEGATIVE, count_of, field, index_of
from streamsvm.support.dense_store import DenseStore
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import BLOCK
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import RowCache, kernel_row
from streamsvm.support.state_parts import CACHE, STORE
from streamsvm.support.states import declare

_FEWEST = 64


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


def new_patterns(order: int, classes: int, window: int, budget: int) -> KernelTokens:
    """Return an empty set of patterns of one feature, with `budget` bytes for kernel rows."""
    sizes = {"slots": _FEWEST, "features": 1, "order": order, "classes": classes, "window": window}
    patterns: KernelTokens = states.new(KernelTokens, sizes, cache_bytes=budget)
    return patterns


def grown(old: KernelTokens, slots: int, classes: int, d: int, budget: int) -> KernelTokens:
    """Return the patterns with room for at least so many slots, classes and features."""
    slots, classes = max(slots, old.label.size), max(classes, old.beta.shape[1])
    d = max(d, states.n_columns(old))
    patterns: KernelTokens = states.grown(old, slots, d, budget, classes)
    return patterns


@compiled_within
def _scores_of(model, patterns, order, slot, out):
    """Write the scores of all labels of a pattern."""
    for c in range(out.size):
        out[c] = patterns.f[c, slot]
    add_moves(model.moves, order, patterns.past[slot], out)


@compiled_inner
def _shift_f(model, patterns, order, past, row, up, down, step):
    """Move `step` from label `down` to label `up` of the token with these kernel values."""
    n = patterns.active.counts[0].n
    add_scaled(patterns.f[up], row, step, n)
    add_scaled(patterns.f[down], row, -step, n)
    change_moves(model.moves, order, past, up, down, step)


@compiled_within
def _release(patterns, slot):
    """Free the slot of a pattern whose coefficients are in no score."""
    patterns.beta[slot] = 0.0
    patterns.store.entered[slot] = 0
    active_set.leave(patterns.active, slot)


@compiled_inner
def remove(model, patterns, kernel, order, slot):
    """Remove a pattern, and what it gave to the scores."""
    n, d, label = patterns.active.counts[0].n, patterns.store.panels.shape[1], patterns.label[slot]
    row = patterns.cache.values[kernel_row(patterns.cache, kernel, patterns.store, slot, n, d)]
    scores = np.zeros(patterns.beta.shape[1])
    for c in range(scores.size):
        step = patterns.beta[slot, c]
        if c != label and step != 0.0:
            _scores_of(model, patterns, order, slot, scores)
            # Its coefficient is negative: this takes from the label what it gave.
            square = 2.0 * (patterns.diagonal[slot] + order)
            note_step(model.info[0], scores[label] - scores[c], step, square)
            _shift_f(model, patterns, order, patterns.past[slot], row, label, c, step)
    _release(patterns, slot)


@compiled_inner
def process_old(model, patterns, kernel, order, slot, n, scores, only_vectors):
    """Make a PROCESSOLD or OPTIMIZE step on a pattern."""
    _scores_of(model, patterns, order, slot, scores)
    square = 2.0 * (patterns.diagonal[slot] + order)
    beta, label, cost = patterns.beta[slot], patterns.label[slot], patterns.cost[slot]
    up, down, step = choose_step(scores, beta, label, cost, n, square, only_vectors)
    model.info[0].n_steps += 1
    if step <= 0.0:
        return
    model.info[0].n_moved += 1
    note_step(model.info[0], scores[up] - scores[down], step, square)
    move(beta, label, cost, up, down, step)
    used, d = patterns.active.counts[0].n, patterns.store.panels.shape[1]
    row = patterns.cache.values[kernel_row(patterns.cache, kernel, patterns.store, slot, used, d)]
    _shift_f(model, patterns, order, patterns.past[slot], row, up, down, step)
    if beta[label] == 0.0:
        _release(patterns, slot)


@compiled_inner
def _enter(model, patterns, schedule, kernel, x, number, scores):
    """Return the slot of a token that becomes a pattern, without coefficients yet."""
    active, row = patterns.active, patterns.row[0]
    if active.counts[0].n_members >= schedule.limit:
        remove(model, patterns, kernel, schedule.order, smallest(patterns))
        model.info[0].n_forgotten += 1
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


@compiled_inner
def process_new(model, patterns, schedule, kernel, x, number, label, past, cost, n, scores):
    """Make a PROCESSNEW step on a fresh token, float32 (1, d)."""
    order, info, d = schedule.order, model.info[0], patterns.store.panels.shape[1]
    used = patterns.active.counts[0].n
    if used > 0:
        stores.values(kernel, patterns.store, x, np.int64(1), d, np.int64(0), used, patterns.row)
    _expand(patterns, patterns.row[0], scores)
    add_moves(model.moves, order, past, scores)
    none = np.zeros(scores.size)
    # With any positive square it tells whether there is a step.
    _, _, step = choose_step(scores, none, label, cost, n, 1.0, np.bool_(False))
    info.n_steps += 1
    if step <= 0.0:
        return
    slot = _enter(model, patterns, schedule, kernel, x, number, scores)
    patterns.label[slot], patterns.cost[slot] = label, cost
    for s in range(order):
        patterns.past[slot, s] = past[s]
    # Once more, as another pattern may have left.
    _scores_of(model, patterns, order, slot, scores)
    square, beta = 2.0 * (patterns.diagonal[slot] + order), patterns.beta[slot]
    up, down, step = choose_step(scores, beta, label, cost, n, square, np.bool_(False))
    if step <= 0.0:
        _release(patterns, slot)
        return
    info.n_moved += 1
    note_step(info, scores[up] - scores[down], step, square)
    note_pattern(info, cost, square, 1.0)
    move(beta, label, cost, up, down, step)
    _shift_f(model, patterns, order, past, patterns.row[0], up, down, step)


@compiled
def learn(model, patterns, schedule, kernel, x, first, labels, known, cost, draws, done):
    """Learn sentences in order: as `greedy.learn`, but x is float32 (tokens, d)."""
    model, patterns, kernel = borrowed((model, patterns, kernel))
    scores = np.zeros(patterns.beta.shape[1])
    past = np.zeros(max(1, schedule.order), np.int32)
    active, info, order = patterns.active, model.info[0], schedule.order
    for i in range(done, first.size - 1):
        counts = active.counts[0]
        if patterns.label.size - counts.n + counts.n_free < first[i + 1] - first[i]:
            return i
        past[:] = 0
        for t in range(first[i], first[i + 1]):
            counts.n_offered += 1
            old = active_set.expired(active)
            if old >= 0:
                remove(model, patterns, kernel, order, old)
                info.n_forgotten += 1
            c = cost[i] * model.cost[labels[t]]
            process_new(
                model, patterns, schedule, kernel, x[t : t + 1], counts.n_offered, labels[t], past,
                c, known[i], scores,
            )  # fmt: skip
            for _ in range(schedule.n_reprocess):
                for o in range(1 + schedule.n_optimize):
                    if counts.n_members > 0:
                        slot = active.members[below(draws, counts.n_members)]
                        process_old(model, patterns, kernel, order, slot, known[i], scores, o > 0)
            shift(past, labels[t])
        _look(model, patterns, order, known[i], scores)
        info.n_sentences += 1
        info.n_tokens += first[i + 1] - first[i]
    return first.size - 1


@compiled_inner
def _look(model, patterns, order, n, scores):
    """Look at one of the patterns, if there are any."""
    slot = drawn_pattern(model, patterns)
    if slot >= 0:
        part = _part(model, patterns, order, slot, n, scores)
        note_look(model.info[0], part / patterns.cost[slot])


@compiled_within
def _part(model, patterns, order, slot, n, scores):
    """Return the part of the gap of a pattern; `scores` is scratch."""
    _scores_of(model, patterns, order, slot, scores)
    return part_of(scores, patterns.label[slot], patterns.cost[slot], patterns.beta[slot], n)


@compiled
def kept_gap(model, patterns, order, n):
    """Return the gap over the support patterns, and the sum of their C_i."""
    model, patterns = borrowed((model, patterns))
    scores, active, gap, costs = np.zeros(patterns.beta.shape[1]), patterns.active, 0.0, 0.0
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        gap += _part(model, patterns, order, slot, n, scores)
        costs += patterns.cost[slot]
    return gap, costs


@compiled
def improve(model, patterns, kernel, order, n, n_optimize):
    """Make PROCESSOLD and then OPTIMIZE steps on each support pattern."""
    model, patterns, kernel = borrowed((model, patterns, kernel))
    scores, active = np.zeros(patterns.beta.shape[1]), patterns.active
    slots = active.members[: active.counts[0].n_members].copy()
    for o in range(1 + n_optimize):
        for slot in slots:
            if active.place[slot] >= 0:
                process_old(model, patterns, kernel, order, slot, n, scores, o > 0)


@compiled
def _values(patterns, kernel, x, out):
    """Write the kernel values of rows x with all slots in use."""
    d, used = patterns.store.panels.shape[1], patterns.active.counts[0].n
    stores.values(kernel, patterns.store, x, np.int64(x.shape[0]), d, np.int64(0), used, out)


def emissions(patterns: KernelTokens, kernel: Any, x: np.ndarray) -> np.ndarray:
    """Return the scores of all labels but for moves, float64 (tokens, classes)."""
    used = int(patterns.active.counts[0].n)
    found = np.zeros((len(x), patterns.beta.shape[1]))
    out = np.zeros((BLOCK, patterns.label.size), np.float32)
    for begin in range(0, len(x) if used else 0, BLOCK):
        part = x[begin : begin + BLOCK]
        _values(patterns, kernel, part, out)
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
