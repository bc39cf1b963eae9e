"""LaRank for greedy inference: labels are predicted from left to right (thesis, 5.3).

Problem (5.12), over tokens i with label y_i; the labels before token i are the true ones:

    max  -sum_{i, c != y_i} beta_i^c - 1/2 |w|^2,    w = sum_{i, c} beta_i^c Phi_g(i, c)
    with  beta_i^c <= C_i if c = y_i, else <= 0;  sum_c beta_i^c = 0

A step (Algorithm 17) moves coefficient from label c- to c+ of one token. With the violation
h(c) = score(c) + 1 (c != y), and |Phi_g(i, c+) - Phi_g(i, c-)|^2 = 2 (|x_i|^2 + k), it is

    lambda = min((h(c-) - h(c+)) / (2 (|x_i|^2 + k)), C_i [c+ = y_i] - beta_i^{c+})

PROCESSNEW, PROCESSOLD and OPTIMIZE (Algorithms 18-20) choose the token and the labels. With no
reprocessing it is the passive-aggressive algorithm, which keeps no patterns. The perceptron
(Algorithm 6) makes steps of size 1 when the label of the largest score is wrong.

A look at a random pattern (see `support.looks`) follows each sentence; it makes no step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import (
    borrowed,
    chosen_by,
    compiled,
    compiled_inner,
    compiled_within,
    nothing,
)
from streamsvm.structured.sequences import kernel_tokens, token_patterns
from streamsvm.structured.sequences.kernel_tokens import KernelTokens
from streamsvm.structured.sequences.model import (
    LARANK,
    PERCEPTRON,
    add_moves,
    add_scores,
    change,
    change_moves,
    drawn_pattern,
    mean_weights,
    note_look,
    note_pattern,
    note_step,
    shift,
    square_of,
)
from streamsvm.structured.sequences.token_patterns import TokenPatterns
from streamsvm.support import active_set, sparse_store
from streamsvm.support.assigning import assign
from streamsvm.support.draws import below
from streamsvm.support.rows import part

_TINY = 1e-12
"""A coefficient smaller than this share of C is 0 but for rounding."""


def _of_patterns(argument: int, by_weights: Any, by_kernel: Any) -> Any:
    """Return the function for patterns of either kind, by the type of an argument."""
    return chosen_by(argument, {TokenPatterns: by_weights, KernelTokens: by_kernel})


scores_of = _of_patterns(1, token_patterns.scores_of, kernel_tokens.scores_of)
shift_scores = _of_patterns(1, token_patterns.shift_scores, kernel_tokens.shift_scores)
square_of_pattern = _of_patterns(
    0, token_patterns.square_of_pattern, kernel_tokens.square_of_pattern
)
have_room = _of_patterns(0, token_patterns.have_room, kernel_tokens.have_room)
new_scores = _of_patterns(0, token_patterns.new_scores, kernel_tokens.new_scores)
release = _of_patterns(0, token_patterns.release, kernel_tokens.release)
# With a kernel a step takes longer than the memory that it needs takes to arrive.
fetch = _of_patterns(0, token_patterns.fetch, nothing)
fetch_weights = _of_patterns(1, token_patterns.fetch_weights, nothing)


@compiled_within
def choose_step(scores, beta, label, cost, n, square, only_vectors):
    """Choose labels c+ and c-; return them and lambda, which is 0 if no step helps.

    `scores` are float32 (>= n,), of n labels, `beta` float64 (>= n,) the coefficients of the token,
    `label` its label, `cost` C_i, and `square` |Phi_g(i, c+) - Phi_g(i, c-)|^2. With `only_vectors`
    only labels with a coefficient are considered, as OPTIMIZE does.
    """
    up, down = -1, -1
    lowest, highest = np.inf, -np.inf
    for c in range(n):
        if only_vectors and c != label and beta[c] == 0.0:
            continue
        violation = np.float64(scores[c]) + (0.0 if c == label else 1.0)
        if violation > highest:
            highest, down = violation, c
        if violation < lowest and beta[c] < (cost if c == label else 0.0):
            lowest, up = violation, c
    if up < 0 or not highest > lowest or square <= 0.0:
        return up, down, 0.0
    most = (cost if up == label else 0.0) - beta[up]
    return up, down, min((highest - lowest) / square, most)


@compiled_within
def move(beta, label, cost, up, down, step):
    """Move a coefficient; what is at a bound but for rounding is set to it."""
    beta[up] += step
    beta[down] -= step
    bound = cost if up == label else 0.0
    if abs(beta[up] - bound) <= _TINY * cost:
        beta[up] = bound
    if abs(beta[down]) <= _TINY * cost:
        beta[down] = 0.0


@compiled_within
def process_old(model, patterns, kernel, order, slot, n, scores, only_vectors):
    """Make a PROCESSOLD or OPTIMIZE step on a pattern; return the gain in the dual."""
    scores_of(model, patterns, order, slot, scores)
    square = 2.0 * (square_of_pattern(patterns, slot) + order)
    beta, label, cost = patterns.beta[slot], patterns.label[slot], patterns.cost[slot]
    up, down, step = choose_step(scores, beta, label, cost, n, square, only_vectors)
    model.info[0].n_steps += 1
    if step <= 0.0:
        return 0.0
    model.info[0].n_moved += 1
    rise = np.float64(scores[up]) - np.float64(scores[down])
    note_step(model.info[0], rise, step, square)
    loss = (0.0 if down == label else 1.0) - (0.0 if up == label else 1.0)
    move(beta, label, cost, up, down, step)
    shift_scores(model, patterns, kernel, order, slot, up, down, step)
    if beta[label] == 0.0:
        release(patterns, slot)
    return step * (loss - rise - 0.5 * step * square)


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


@compiled_inner
def remove(model, patterns, kernel, order, slot):
    """Remove a pattern, and what it gave to the scores."""
    label, scores = patterns.label[slot], np.zeros(patterns.beta.shape[1])
    square = 2.0 * (square_of_pattern(patterns, slot) + order)
    for c in range(scores.size):
        step = patterns.beta[slot, c]
        if c != label and step != 0.0:
            scores_of(model, patterns, order, slot, scores)
            # Its coefficient is negative: this takes from the label what it gave.
            note_step(model.info[0], scores[label] - scores[c], step, square)
            shift_scores(model, patterns, kernel, order, slot, label, c, step)
    release(patterns, slot)


@compiled_inner
def _make_room(model, patterns, kernel, schedule):
    """Remove a pattern if there are as many as are kept."""
    if patterns.active.counts[0].n_members >= schedule.limit:
        remove(model, patterns, kernel, schedule.order, smallest(patterns))
        model.info[0].n_forgotten += 1


@compiled_inner
def _reprocess(model, patterns, kernel, schedule, n, draws, picks, scores):
    """Make one PROCESSOLD and some OPTIMIZE steps on random support patterns."""
    active, order = patterns.active, schedule.order
    if active.counts[0].n_members == 0:
        return
    # Drawn in advance, so that what they need can be on its way.
    for o in range(1 + schedule.n_optimize):
        picks[o] = active.members[below(draws, active.counts[0].n_members)]
        fetch(patterns, picks[o], n)
    for o in range(1 + schedule.n_optimize):
        if o < schedule.n_optimize:
            fetch_weights(model, patterns, picks[o + 1])
        # A pattern may have left in the meantime.
        if active.place[picks[o]] >= 0:
            process_old(model, patterns, kernel, order, picks[o], n, scores, o > 0)


@compiled_inner
def _enter(model, patterns, schedule, x, t, number, label, past, cost, beta):
    """Make a token a support pattern; tokens are numbered from 1."""
    _make_room(model, patterns, None, schedule)
    slot = active_set.enter(patterns.active, number)
    sparse_store.put(patterns.store, slot, part(x, t, t + 1))
    patterns.store.entered[slot] = number
    patterns.label[slot] = label
    for s in range(schedule.order):
        patterns.past[slot, s] = past[s]
    assign(patterns.beta[slot], beta)
    patterns.cost[slot] = cost


@compiled_inner
def _process_by_weights(
    model, patterns, schedule, kernel, x, t, number, label, past, cost, n, scores, beta
):
    """Make a PROCESSNEW step on a fresh token; `past` are the labels before, `beta` is scratch."""
    order, begin, stop = schedule.order, x.start[t], x.start[t + 1]
    scores[:] = 0.0
    add_scores(model.weights, x.columns, x.values, begin, stop, scores)
    add_moves(model.moves, order, past, scores)
    beta[:] = 0.0
    info = model.info[0]
    if schedule.method == PERCEPTRON:
        guess = np.int64(np.argmax(scores[:n]))
        up, down, step = np.int64(label), guess, 0.0 if guess == label else cost
    else:
        square = 2.0 * (square_of(x.values, begin, stop) + order)
        up, down, step = choose_step(scores, beta, label, cost, n, square, np.bool_(False))
    info.n_steps += 1
    if step <= 0.0:
        return
    info.n_moved += 1
    change(model.weights, x.columns, x.values, begin, stop, up, down, step)
    change_moves(model.moves, order, past, up, down, step)
    if model.late.shape[0] > 0:
        late = step * info.n_sentences
        change(model.late, x.columns, x.values, begin, stop, up, down, late)
        change_moves(model.late_moves, order, past, up, down, late)
    if schedule.method == LARANK:
        square = 2.0 * (square_of(x.values, begin, stop) + order)
        note_step(info, np.float64(scores[up]) - np.float64(scores[down]), step, square)
        note_pattern(info, cost, square, 1.0)
        move(beta, label, cost, up, down, step)
        _enter(model, patterns, schedule, x, t, number, label, past, cost, beta)


@compiled_inner
def _process_by_kernel(
    model, patterns, schedule, kernel, x, t, number, label, past, cost, n, scores, beta
):
    """Make a PROCESSNEW step on a fresh token, row t of x; as `_process_by_weights`."""
    order, info, x = schedule.order, model.info[0], x[t : t + 1]
    kernel_tokens.start_scores(model, patterns, kernel, order, x, past, scores)
    beta[:] = 0.0
    # With any positive square it tells whether there is a step.
    _, _, step = choose_step(scores, beta, label, cost, n, 1.0, np.bool_(False))
    info.n_steps += 1
    if step <= 0.0:
        return
    _make_room(model, patterns, kernel, schedule)
    slot = kernel_tokens.entered(patterns, kernel, x, number, scores)
    patterns.label[slot], patterns.cost[slot] = label, cost
    for s in range(order):
        patterns.past[slot, s] = past[s]
    # Once more, as another pattern may have left.
    scores_of(model, patterns, order, slot, scores)
    square, own = 2.0 * (patterns.diagonal[slot] + order), patterns.beta[slot]
    up, down, step = choose_step(scores, own, label, cost, n, square, np.bool_(False))
    if step <= 0.0:
        release(patterns, slot)
        return
    info.n_moved += 1
    note_step(info, scores[up] - scores[down], step, square)
    note_pattern(info, cost, square, 1.0)
    move(own, label, cost, up, down, step)
    shift_scores(model, patterns, kernel, order, slot, up, down, step)


process_new = _of_patterns(1, _process_by_weights, _process_by_kernel)


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
def part_of_pattern(model, patterns, order, slot, n, scores):
    """Return the part of a token among the patterns; `scores` is scratch."""
    scores_of(model, patterns, order, slot, scores)
    return part_of(scores, patterns.label[slot], patterns.cost[slot], patterns.beta[slot], n)


@compiled_inner
def _look(model, patterns, order, n, scores):
    """Look at one of the patterns, if there are any."""
    slot = drawn_pattern(model, patterns)
    if slot >= 0:
        part = part_of_pattern(model, patterns, order, slot, n, scores)
        note_look(model.info[0], part / patterns.cost[slot])


@compiled
def learn(model, patterns, schedule, kernel, x, first, labels, known, cost, draws, done):
    """Learn sentences in order; return how many are learnt, fewer than all if room is short.

    x: SparseRows, a row for each token; first: int64 (sentences + 1,), the first token of each;
    labels: int32 (tokens,); known: int64 (sentences,), how many labels were seen, that of the
    sentence included; cost: float64 (sentences,), C times the weight; done: how many are learnt
    already. There is room for all features and labels of x.
    """
    model, patterns, kernel, x = borrowed((model, patterns, kernel, x))
    scores = new_scores(patterns)
    beta = np.zeros(scores.size)
    past = np.zeros(max(1, schedule.order), np.int32)
    picks = np.zeros(1 + schedule.n_optimize, np.int64)
    active, info = patterns.active, model.info[0]
    for i in range(done, first.size - 1):
        begin, stop = first[i], first[i + 1]
        if not have_room(patterns, x, begin, stop):
            return i
        past[:] = 0
        for t in range(begin, stop):
            active.counts[0].n_offered += 1
            old = active_set.expired(active)
            if old >= 0:
                remove(model, patterns, kernel, schedule.order, old)
                info.n_forgotten += 1
            c = cost[i] * model.cost[labels[t]]
            process_new(
                model, patterns, schedule, kernel, x, t, active.counts[0].n_offered, labels[t],
                past, c, known[i], scores, beta,
            )  # fmt: skip
            for _ in range(schedule.n_reprocess):
                _reprocess(model, patterns, kernel, schedule, known[i], draws, picks, scores)
            shift(past, labels[t])
        _look(model, patterns, schedule.order, known[i], scores)
        info.n_sentences += 1
        info.n_tokens += stop - begin
    return first.size - 1


@compiled
def predict(model, order, x, first, n, labels, margins):
    """Set the labels of sentences, predicted from left to right, and the scores of all n labels.

    labels: int32 (tokens,); margins: float64 (tokens, n), the scores after the labels predicted
    before, or (0, n) for none; n is at least 1.
    """
    scores = np.zeros(model.weights.shape[1], np.float32)
    past = np.zeros(max(1, order), np.int32)
    n_examples = np.float32(max(1, model.info[0].n_sentences))
    for i in range(first.size - 1):
        past[:] = 0
        for t in range(first[i], first[i + 1]):
            scores[:] = 0.0
            begin, stop = x.start[t], x.start[t + 1]
            if model.late.shape[0] > 0:
                mean_weights(
                    model.weights, model.late, n_examples, x.columns, x.values, begin, stop, scores
                )
                for s in range(order):
                    late = model.late_moves[s, past[s]]
                    scores += model.moves[s, past[s]] - late / n_examples
            else:
                add_scores(model.weights, x.columns, x.values, begin, stop, scores)
                add_moves(model.moves, order, past, scores)
            labels[t] = np.argmax(scores[:n])
            if margins.shape[0] > 0:
                assign(margins[t], scores[:n])
            shift(past, labels[t])


# The duality gap of problem (5.12), and passes over all examples until it is small


@compiled
def kept_gap(model, patterns, order, n):
    """Return the gap over the support patterns, and the sum of their C_i."""
    model, patterns = borrowed((model, patterns))
    scores = new_scores(patterns)
    active, gap, costs = patterns.active, 0.0, 0.0
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        gap += part_of_pattern(model, patterns, order, slot, n, scores)
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
        if not have_room(patterns, x, first[i], first[i + 1]):
            return i
        for t in range(first[i], first[i + 1]):
            slot = slots[t]
            if slot >= 0 and active.place[slot] >= 0 and store.entered[slot] == t + 1:
                process_old(model, patterns, None, schedule.order, slot, n, scores, np.bool_(False))
                continue
            _past_of(labels, first[i], t, past)
            c = cost[i] * model.cost[labels[t]]
            process_new(
                model, patterns, schedule, None, x, t, t + 1, labels[t], past, c, n, scores, beta
            )
    return first.size - 1


@compiled
def improve(model, patterns, kernel, order, n, n_optimize):
    """Make PROCESSOLD and then OPTIMIZE steps on each support pattern."""
    model, patterns, kernel = borrowed((model, patterns, kernel))
    scores, active = new_scores(patterns), patterns.active
    slots = active.members[: active.counts[0].n_members].copy()
    for o in range(1 + n_optimize):
        for slot in slots:
            if active.place[slot] >= 0:
                process_old(model, patterns, kernel, order, slot, n, scores, o > 0)
