"""OSPAS: the words of a sentence labelled from a bag of labels without alignment.

Algorithm 24 of Bordes' thesis (2010), section 6.2.1. A word is chosen and its label predicted. If
the bag has the label, the label leaves the bag and the word is done; else the word is learnt with
the set of labels that are left in the bag (Algorithm 23), and another one is tried. It ends when
none of the words that are left can be labelled from the bag.

The scores of all words are computed once; after a step only those of words that share features with
the word learnt are corrected: else a long sentence would take the cube of its length.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled, compiled_inner, compiled_within
from streamsvm.solvers.ambiguous.step import coefficients, step_length
from streamsvm.structured.sequences.model import square_of
from streamsvm.support.assigning import assign
from streamsvm.support.draws import below
from streamsvm.support.rows import part

RANDOM, LEFT_TO_RIGHT, ORDER_FREE = 0, 1, 2

EXPLORATIONS = {"random": RANDOM, "left_to_right": LEFT_TO_RIGHT, "order_free": ORDER_FREE}


@compiled
def row_scores(weights, late, share, rows, n_labels, out):
    """Write the scores of n labels for all rows into `out`, float64 (rows, labels).

    Weights are `weights` - `share` * `late`: with share 1 / (n + 1) their mean over n examples; at
    share 0 `late` is not read.
    """
    for t in range(rows.start.size - 1):
        out[t, :n_labels] = 0.0
        for k in range(rows.start[t], rows.start[t + 1]):
            c, value = rows.columns[k], np.float64(rows.values[k])
            if share == 0.0:
                for y in range(n_labels):
                    out[t, y] += value * weights[c, y]
            else:
                for y in range(n_labels):
                    out[t, y] += value * (weights[c, y] - share * late[c, y])


@compiled_within
def best_label(out, n_labels):
    """Return the label with the highest score: of equal ones the first, which is the empty one."""
    found = 0
    for y in range(1, n_labels):
        if out[y] > out[found]:
            found = y
    return found


@compiled_within
def add_step(weights, late, now, rows, t, alpha, u, n_labels):
    """Add alpha u x to the weights, for row t; `now` is the number of the example, for the mean."""
    for k in range(rows.start[t], rows.start[t + 1]):
        c, value = rows.columns[k], alpha * np.float64(rows.values[k])
        for y in range(n_labels):
            weights[c, y] += value * u[y]
        if late.shape[0] > 1:
            for y in range(n_labels):
                late[c, y] += now * (value * u[y])


@compiled_inner
def learn_row(weights, late, now, rows, t, in_bag, n_labels, C, out, u, sums):
    """Make the step of Algorithm 23 for row t, whose scores are `out`; return alpha.

    `sums`, float64 (4,), counts the steps and adds up losses and gains of the dual; the last is the
    largest |x|^2.
    """
    loss, square = coefficients(out, in_bag, n_labels, u)
    length = square_of(rows.values, rows.start[t], rows.start[t + 1])
    alpha, gain = step_length(loss, square * length, C)
    if alpha > 0.0:
        add_step(weights, late, now, rows, t, alpha, u, n_labels)
    sums[0] += 1.0
    sums[1] += loss
    sums[2] += gain
    sums[3] = max(sums[3], length)
    return alpha


@compiled
def learn_rows(weights, late, now, rows, bags, n_labels, C, sums):
    """Learn rows in order, each with its bag, bool (rows, labels), by Algorithm 23."""
    out, u = np.empty((1, n_labels)), np.empty(n_labels)
    for t in range(rows.start.size - 1):
        row_scores(weights, late, 0.0, part(rows, t, t + 1), n_labels, out)
        learn_row(weights, late, now, rows, t, bags[t], n_labels, C, out[0], u, sums)


@compiled_within
def next_word(exploration, words, n, after, best, draws):
    """Return which of words[:n] is next, as an index of `words`, which are in ascending order.

    `after` is the word labelled last, for left to right, which begins again behind the last word;
    `best`, float64 (all words,), the score of the label predicted for each word; of equal ones the
    first is taken. `draws` are those of `new_draws`.
    """
    if exploration == RANDOM:
        return below(draws, n)
    found = 0
    if exploration == LEFT_TO_RIGHT:
        while found < n and words[found] <= after:
            found += 1
        return found % n
    for j in range(1, n):
        if best[words[j]] > best[words[found]]:
            found = j
    return found


@compiled
def learn_sentence(weights, late, now, rows, counts, n_labels, C, exploration, draws, labels, sums):
    """Learn the words of a sentence from a bag (Algorithm 24).

    `counts`, int64 (labels,), says how often the bag has each label; what is left of it remains
    there. `labels`, int64 (words,), gets the label that each word was given, or -1.
    """
    n = rows.start.size - 1
    out, u, in_bag = np.empty((n, n_labels)), np.empty(n_labels), np.empty(n_labels, np.bool_)
    row_scores(weights, late, 0.0, rows, n_labels, out)
    best, guess = np.empty(n), np.empty(n, np.int64)
    for t in range(n):
        guess[t] = best_label(out[t], n_labels)
        best[t] = out[t, guess[t]]
        labels[t] = -1
    word_of, order = _by_column(rows)
    left, tried, n_left, after = np.arange(n), np.empty(n, np.int64), n, -1
    while n_left > 0:
        assign(tried, left[:n_left])
        n_tried, found = n_left, -1
        while n_tried > 0:
            j = next_word(exploration, tried, n_tried, after, best, draws)
            t = tried[j]
            if counts[guess[t]] > 0:
                found = t
                break
            for y in range(n_labels):
                in_bag[y] = counts[y] > 0
            alpha = learn_row(weights, late, now, rows, t, in_bag, n_labels, C, out[t], u, sums)
            if alpha > 0.0:
                _correct(rows, t, alpha, u, n_labels, word_of, order, out, best, guess)
            n_tried = _without(tried, n_tried, j)
            # From left to right, the next one to try is the word behind this one.
            after = t
        if found < 0:
            break
        labels[found] = guess[found]
        counts[guess[found]] -= 1
        after = found
        n_left = _without(left, n_left, np.searchsorted(left[:n_left], found))


@compiled_within
def _without(words, n, j):
    """Remove word j of words[:n], which stay in order; return how many are left."""
    for i in range(j + 1, n):
        words[i - 1] = words[i]
    return n - 1


@compiled_inner
def _by_column(rows):
    """Return the word of each entry, and the entries in the order of their columns."""
    word_of = np.empty(rows.columns.size, np.int64)
    for t in range(rows.start.size - 1):
        for k in range(rows.start[t], rows.start[t + 1]):
            word_of[k] = t
    return word_of, np.argsort(rows.columns, kind="mergesort")


@compiled_inner
def _correct(rows, t, alpha, u, n_labels, word_of, order, out, best, guess):
    """Correct the scores of all words that have features in common with word t."""
    for k in range(rows.start[t], rows.start[t + 1]):
        c, value = rows.columns[k], alpha * np.float64(rows.values[k])
        low, high = 0, order.size
        while low < high:
            middle = (low + high) // 2
            if rows.columns[order[middle]] < c:
                low = middle + 1
            else:
                high = middle
        while low < order.size and rows.columns[order[low]] == c:
            entry = order[low]
            other = word_of[entry]
            factor = value * np.float64(rows.values[entry])
            for y in range(n_labels):
                out[other, y] += factor * u[y]
            guess[other] = best_label(out[other], n_labels)
            best[other] = out[other, guess[other]]
            low += 1
