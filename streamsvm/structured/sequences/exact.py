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
from streamsvm.structured.sequences.looks import look_at_sentence
from streamsvm.structured.sequences.model import (
    LARANK,
    PERCEPTRON,
    add_scores,
    mean_weights,
    note_pattern,
    note_step,
    square_of,
)
from streamsvm.structured.sequences.pairs import distance_of, loss_of, move_weights, rise_of
from streamsvm.structured.sequences.sentence_patterns import (
    NONE,
    drop_zeros,
    have_room,
    new_vector,
    offsets_of,
    release,
    remove,
    smallest,
)
from streamsvm.structured.sequences.viterbi import max_marginals, viterbi
from streamsvm.structured.sequences.worst_labels import best_labels, violation
from streamsvm.support import active_set, sparse_store
from streamsvm.support.draws import below
from streamsvm.support.rows import SparseRows


@compiled_inner
def _same(a, b):
    for t in range(a.size):
        if a[t] != b[t]:
            return False
    return True


@compiled_inner
def process_old(model, patterns, order, slot, n, scratch, only_vectors):
    """Make a PROCESSOLD or OPTIMIZE step, which may add a vector; return the gain in the dual."""
    store, offsets, head = patterns.store, offsets_of(patterns, slot), patterns.head[slot]
    columns, values, truth = store.columns, store.values, sequence_of(patterns.labels, head)
    cost, beta = patterns.cost[slot], patterns.beta
    # h of a sequence less h of the true one: 0 for that.
    up, down, lowest, highest = NONE, head, np.inf, 0.0
    if beta[head] < cost:
        up, lowest = head, 0.0
    v = patterns.next[head]
    while v != NONE:
        labels = sequence_of(patterns.labels, v)
        h = violation(model, order, columns, values, offsets, truth, labels)
        if h < lowest:
            up, lowest = v, h
        if h > highest:
            down, highest = v, h
        v = patterns.next[v]
    if not only_vectors:
        down, highest = _worst(model, patterns, order, slot, offsets, down, highest, n, scratch)
    model.info[0].n_steps += 1
    gain = 0.0
    if up != NONE and up != down and highest > lowest:
        truth = sequence_of(patterns.labels, head)
        high, low = sequence_of(patterns.labels, up), sequence_of(patterns.labels, down)
        square = distance_of(
            order, columns, values, offsets, high, low, scratch.spread, scratch.steps
        )
        most = (cost if up == head else 0.0) - beta[up]
        step = min((highest - lowest) / square, most) if square > 0.0 else 0.0
        if step > 0.0:
            model.info[0].n_moved += 1
            gain = step * (highest - lowest - 0.5 * step * square)
            loss = loss_of(model.cost, truth, low) - loss_of(model.cost, truth, high)
            note_step(model.info[0], loss - (highest - lowest), step, square)
            move_weights(
                model.weights, model.moves, order, columns, values, offsets, high, low, step
            )
            move(beta, head, cost, up, down, step)
    drop_zeros(patterns, slot)
    if beta[head] == 0.0:
        release(patterns, slot)
    return gain


@compiled_inner
def _worst(model, patterns, order, slot, offsets, down, highest, n, scratch):
    """Return the vector of the largest violation of all sequences, a new one if needed, and h."""
    store, head = patterns.store, patterns.head[slot]
    columns, values, truth = store.columns, store.values, sequence_of(patterns.labels, head)
    labels = best_labels(model, columns, values, offsets, truth, n, scratch)
    if _same(labels, sequence_of(patterns.labels, down)):
        return down, highest
    h = violation(model, order, columns, values, offsets, truth, labels)
    # By rounding, or since a vector is as good.
    if h <= highest:
        return down, highest
    return new_vector(patterns, labels, 0.0, head), h


@compiled_inner
def _note_pattern(model, order, values, offsets, truth, cost):
    """Take the bounds of a new pattern: at worst two sequences differ at all of its tokens."""
    length, loss = 0.0, 0.0
    for t in range(truth.size):
        length += np.sqrt(square_of(values, offsets[t], offsets[t + 1]) + order)
        loss += model.cost[truth[t]]
    note_pattern(model.info[0], cost, 2.0 * length * length, loss)


@compiled_inner
def _enter(model, patterns, schedule, x, begin, stop, number, truth, labels, cost, step, scratch):
    """Make a sentence a support pattern, with coefficients of the true labels and of others."""
    active = patterns.active
    if active.counts[0].n_members >= schedule.limit:
        remove(model, patterns, schedule.order, smallest(patterns), scratch)
        model.info[0].n_forgotten += 1
    slot = active_set.enter(active, number)
    ends = np.array([x.start[begin], x.start[stop]])
    sparse_store.put(patterns.store, slot, SparseRows(ends, x.columns, x.values, x.d))
    patterns.store.entered[slot] = number
    lengths = (x.start[begin + 1 : stop + 1] - x.start[begin:stop]).astype(np.int32)
    label_pool.put(patterns.lengths, slot, lengths)
    patterns.cost[slot] = cost
    patterns.head[slot] = new_vector(patterns, truth, step, np.int64(NONE))
    new_vector(patterns, labels, -step, patterns.head[slot])


@compiled_inner
def process_new(model, patterns, schedule, x, begin, stop, number, truth, cost, n, scratch):
    """Make a PROCESSNEW step on a fresh sentence, the tokens begin .. stop-1 of x."""
    order, offsets, info = schedule.order, x.start[begin : stop + 1], model.info[0]
    is_perceptron = schedule.method == PERCEPTRON
    columns, values = x.columns, x.values
    margin_of = truth[:0] if is_perceptron else truth
    labels = best_labels(model, columns, values, offsets, margin_of, n, scratch)
    info.n_steps += 1
    if _same(labels, truth):
        return
    rise, square = 0.0, 0.0
    if is_perceptron:
        step = cost
    else:
        rise = rise_of(model.weights, model.moves, order, columns, values, offsets, truth, labels)
        h = loss_of(model.cost, truth, labels) - rise
        square = distance_of(
            order, columns, values, offsets, truth, labels, scratch.spread, scratch.steps
        )
        step = min(h / square, cost) if square > 0.0 else 0.0
    if step <= 0.0:
        return
    info.n_moved += 1
    move_weights(model.weights, model.moves, order, columns, values, offsets, truth, labels, step)
    if model.late.shape[0] > 0:
        late = step * info.n_sentences
        move_weights(
            model.late, model.late_moves, order, columns, values, offsets, truth, labels, late
        )
    if schedule.method == LARANK:
        note_step(info, rise, step, square)
        _note_pattern(model, order, values, offsets, truth, cost)
        _enter(
            model, patterns, schedule, x, begin, stop, number, truth, labels, cost, step, scratch
        )


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
            process_new(
                model, patterns, schedule, x, begin, stop, active.counts[0].n_offered,
                labels[begin:stop], cost[i], n, scratch,
            )  # fmt: skip
        for _ in range(schedule.n_reprocess):
            for o in range(1 + schedule.n_optimize):
                if active.counts[0].n_members > 0:
                    slot = active.members[below(draws, active.counts[0].n_members)]
                    process_old(model, patterns, order, slot, n, scratch, o > 0)
        look_at_sentence(model, patterns, order, n, scratch)
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
