"""LaRank for exact inference: the best sequence of labels is found by Viterbi (thesis, 5.3).

Problem (5.11), over sentences i with labels y_i; Delta is the Hamming loss, and the classes are all
sequences of labels y:

    max  -sum_{i, y} Delta(y, y_i) beta_i^y - 1/2 |w|^2,    w = sum_{i, y} beta_i^y Phi_e(x_i, y)
    with  beta_i^y <= C_i if y = y_i, else <= 0;  sum_y beta_i^y = 0

A step (Algorithm 17) moves coefficient from labels y- to y+ of one sentence, by

    lambda = min((h(y-) - h(y+)) / |Phi_e(x_i, y+) - Phi_e(x_i, y-)|^2,
                 C_i [y+ = y_i] - beta_i^{y+}),       h(y) = score(y) + Delta(y, y_i)

PROCESSNEW, PROCESSOLD and OPTIMIZE (Algorithms 18-20) choose sentence and labels. With class
weights a wrong label costs the weight of the true one.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.structured.sequences import label_pool
from streamsvm.structured.sequences.greedy import move
from streamsvm.structured.sequences.label_pool import sequence_of
from streamsvm.structured.sequences.model import (
    LARANK,
    PERCEPTRON,
    add_scores,
    drawn_pattern,
    mean_weights,
    note_look,
    note_pattern,
    note_step,
    square_of,
)
from streamsvm.structured.sequences.pairs import (
    best_labels,
    distance_of,
    loss_of,
    max_marginals,
    move_weights,
    rise_of,
    violation,
    viterbi,
)
from streamsvm.structured.sequences.sentence_patterns import (
    NONE,
    drop_zeros,
    have_room,
    new_vector,
    release,
    remove,
    smallest,
    tokens_of,
)
from streamsvm.support import active_set, sparse_store
from streamsvm.support.draws import below
from streamsvm.support.rows import SparseRows, part


@compiled_inner
def _same(a, b):
    for t in range(a.size):
        if a[t] != b[t]:
            return False
    return True


@compiled_inner
def process_old(model, patterns, order, slot, n, scratch, only_vectors):
    """Make a PROCESSOLD or OPTIMIZE step, which may add a vector; return the gain in the dual."""
    rows, head = tokens_of(patterns, slot), patterns.head[slot]
    truth = sequence_of(patterns.labels, head)
    cost, beta = patterns.cost[slot], patterns.beta
    # h of a sequence less h of the true one: 0 for that.
    up, down, lowest, highest = NONE, head, np.inf, 0.0
    if beta[head] < cost:
        up, lowest = head, 0.0
    v = patterns.next[head]
    while v != NONE:
        labels = sequence_of(patterns.labels, v)
        h = violation(model, order, rows, truth, labels)
        if h < lowest:
            up, lowest = v, h
        if h > highest:
            down, highest = v, h
        v = patterns.next[v]
    if not only_vectors:
        down, highest = _worst(model, patterns, order, slot, rows, down, highest, n, scratch)
    model.info[0].n_steps += 1
    gain = 0.0
    if up != NONE and up != down and highest > lowest:
        truth = sequence_of(patterns.labels, head)
        high, low = sequence_of(patterns.labels, up), sequence_of(patterns.labels, down)
        square = distance_of(order, rows, high, low, scratch)
        most = (cost if up == head else 0.0) - beta[up]
        step = min((highest - lowest) / square, most) if square > 0.0 else 0.0
        if step > 0.0:
            model.info[0].n_moved += 1
            gain = step * (highest - lowest - 0.5 * step * square)
            loss = loss_of(model.cost, truth, low) - loss_of(model.cost, truth, high)
            note_step(model.info[0], loss - (highest - lowest), step, square)
            move_weights(model.weights, model.moves, order, rows, high, low, step)
            move(beta, head, cost, up, down, step)
    drop_zeros(patterns, slot)
    if beta[head] == 0.0:
        release(patterns, slot)
    return gain


@compiled_inner
def _worst(model, patterns, order, slot, rows, down, highest, n, scratch):
    """Return the vector of the largest violation of all sequences, a new one if needed, and h."""
    head = patterns.head[slot]
    truth = sequence_of(patterns.labels, head)
    labels = best_labels(model, rows, truth, n, scratch)
    if _same(labels, sequence_of(patterns.labels, down)):
        return down, highest
    h = violation(model, order, rows, truth, labels)
    # By rounding, or since a vector is as good.
    if h <= highest:
        return down, highest
    return new_vector(patterns, labels, 0.0, head), h


@compiled_inner
def _note_pattern(model, order, rows, truth, cost):
    """Take the bounds of a new pattern: at worst two sequences differ at all of its tokens."""
    length, loss = 0.0, 0.0
    for t in range(truth.size):
        length += np.sqrt(square_of(rows.values, rows.start[t], rows.start[t + 1]) + order)
        loss += model.cost[truth[t]]
    note_pattern(model.info[0], cost, 2.0 * length * length, loss)


@compiled_inner
def _enter(model, patterns, schedule, rows, number, truth, labels, cost, step, scratch):
    """Make a sentence a support pattern, with coefficients of the true labels and of others."""
    active = patterns.active
    if active.counts[0].n_members >= schedule.limit:
        remove(model, patterns, schedule.order, smallest(patterns), scratch)
        model.info[0].n_forgotten += 1
    slot = active_set.enter(active, number)
    start = rows.start
    ends = np.array([start[0], start[start.size - 1]])
    sparse_store.put(patterns.store, slot, SparseRows(ends, rows.columns, rows.values, rows.d))
    patterns.store.entered[slot] = number
    label_pool.put(patterns.lengths, slot, (start[1:] - start[:-1]).astype(np.int32))
    patterns.cost[slot] = cost
    patterns.head[slot] = new_vector(patterns, truth, step, np.int64(NONE))
    new_vector(patterns, labels, -step, patterns.head[slot])


@compiled_inner
def process_new(model, patterns, schedule, rows, number, truth, cost, n, scratch):
    """Make a PROCESSNEW step on a fresh sentence."""
    order, info = schedule.order, model.info[0]
    is_perceptron = schedule.method == PERCEPTRON
    labels = best_labels(model, rows, truth[:0] if is_perceptron else truth, n, scratch)
    info.n_steps += 1
    if _same(labels, truth):
        return
    rise, square = 0.0, 0.0
    if is_perceptron:
        step = cost
    else:
        rise = rise_of(model, order, rows, truth, labels)
        h = loss_of(model.cost, truth, labels) - rise
        square = distance_of(order, rows, truth, labels, scratch)
        step = min(h / square, cost) if square > 0.0 else 0.0
    if step <= 0.0:
        return
    info.n_moved += 1
    move_weights(model.weights, model.moves, order, rows, truth, labels, step)
    if model.late.shape[0] > 0:
        late = step * info.n_sentences
        move_weights(model.late, model.late_moves, order, rows, truth, labels, late)
    if schedule.method == LARANK:
        note_step(info, rise, step, square)
        _note_pattern(model, order, rows, truth, cost)
        _enter(model, patterns, schedule, rows, number, truth, labels, cost, step, scratch)


@compiled_inner
def part_of_pattern(model, patterns, order, slot, n, scratch):
    """Return the part of a sentence among the patterns."""
    rows, head = tokens_of(patterns, slot), patterns.head[slot]
    truth = sequence_of(patterns.labels, head)
    worst = best_labels(model, rows, truth, n, scratch)
    h = violation(model, order, rows, truth, worst)
    part = patterns.cost[slot] * max(0.0, h)
    v = patterns.next[head]
    while v != NONE:
        labels = sequence_of(patterns.labels, v)
        h = violation(model, order, rows, truth, labels)
        part += patterns.beta[v] * h
        v = patterns.next[v]
    return part


@compiled_inner
def _look(model, patterns, order, n, scratch):
    """Look at one of the patterns, if there are any."""
    slot = drawn_pattern(model, patterns)
    if slot >= 0:
        part = part_of_pattern(model, patterns, order, slot, n, scratch)
        note_look(model.info[0], part / patterns.cost[slot])


@compiled
def learn(model, patterns, schedule, x, first, labels, known, cost, draws, done, scratch):
    """Learn sentences in order; return how many are learnt, fewer than all if room is short.

    The parameters are those of `greedy.learn`, and `scratch` for the longest sentence.
    """
    model, patterns, x, scratch = (
        borrowed(model), borrowed(patterns), borrowed(x), borrowed(scratch),
    )  # fmt: skip
    active, info, order = patterns.active, model.info[0], schedule.order
    # Each PROCESSOLD may add a support vector.
    n_vectors = 2 + schedule.n_reprocess
    for i in range(done, first.size - 1):
        begin, stop, n = first[i], first[i + 1], known[i]
        n_entries = x.start[stop] - x.start[begin]
        longest = max(stop - begin, scratch.scores.shape[0])
        if not have_room(patterns, longest, n_entries, n_vectors):
            return i
        active.counts[0].n_offered += 1
        old = active_set.expired(active)
        if old >= 0:
            remove(model, patterns, order, old, scratch)
            info.n_forgotten += 1
        if stop > begin:
            rows, truth = part(x, begin, stop), labels[begin:stop]
            number = active.counts[0].n_offered
            process_new(model, patterns, schedule, rows, number, truth, cost[i], n, scratch)
        for _ in range(schedule.n_reprocess):
            for o in range(1 + schedule.n_optimize):
                if active.counts[0].n_members > 0:
                    slot = active.members[below(draws, active.counts[0].n_members)]
                    process_old(model, patterns, order, slot, n, scratch, o > 0)
        _look(model, patterns, order, n, scratch)
        info.n_sentences += 1
        info.n_tokens += stop - begin
    return first.size - 1


@compiled
def predict(model, order, x, first, n, labels, margins, scratch):
    """Set the best labels of sentences, and the scores of the best sequence with each label.

    The parameters are those of `greedy.predict`, and `scratch` for the longest sentence.
    """
    n_examples = np.float32(max(1, model.info[0].n_sentences))
    moves = model.moves[0].copy()
    if model.late.shape[0] > 0 and order > 0:
        moves -= model.late_moves[0] / n_examples
    for i in range(first.size - 1):
        begin, stop = first[i], first[i + 1]
        if stop == begin:
            continue
        scores = scratch.scores[: stop - begin]
        scores[:] = 0.0
        for t in range(begin, stop):
            a, b = x.start[t], x.start[t + 1]
            if model.late.shape[0] > 0:
                mean_weights(
                    model.weights, model.late, n_examples, x.columns, x.values, a, b,
                    scores[t - begin],
                )  # fmt: skip
            else:
                add_scores(model.weights, x.columns, x.values, a, b, scores[t - begin])
        viterbi(scores, moves, n, scratch.best, scratch.back, labels[begin:stop])
        if margins.shape[0] > 0:
            max_marginals(scores, moves, n, scratch.best, scratch.back, margins[begin:stop])


# The duality gap of problem (5.11), and passes over all examples until it is small


@compiled
def kept_gap(model, patterns, order, n, scratch):
    """Return the gap over the support patterns, and the sum of their C_i."""
    model, patterns, scratch = borrowed((model, patterns, scratch))
    active, gap, costs = patterns.active, 0.0, 0.0
    for m in range(active.counts[0].n_members):
        slot = active.members[m]
        gap += part_of_pattern(model, patterns, order, slot, n, scratch)
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
        rows, truth = part(x, begin, stop), labels[begin:stop]
        worst = best_labels(model, rows, truth, n, scratch)
        h = violation(model, order, rows, truth, worst)
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
            rows, truth = part(x, begin, stop), labels[begin:stop]
            process_new(model, patterns, schedule, rows, i + 1, truth, cost[i], n, scratch)
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
