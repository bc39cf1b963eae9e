"""Learning of concept labels: early updates with ranking constraints (thesis, appendix C).

Along the search (`search`), each choice of an action is one or several terms of

    minimise  |w|^2 / 2 + C sum_t max(0, 1 - <w, Phi(good_t) - Phi(wrong_t)>)

If the action chosen is wrong, the constraints are (C.6): the good action of each word without a
concept, against the one chosen; and the sentence ends there. Else it is the action chosen, against
the best wrong one. Each gets a step of dual coordinate ascent, which is the passive-aggressive one:
alpha = min(C, loss / |dPhi|^2), with the loss of the weights at that moment. The search goes on
with the scores that it has: those of words are from before the sentence.

`dual`, the sum of alpha - |w|^2 / 2, is the dual objective: a lower bound of the primal of any w
on the constraints met. A step of loss l raises it by at least min(C, l / R^2) l / 2, where R is the
largest |dPhi|: so the sum of these over all steps is below the primal of the best w, too.

Bags. A bag says which concepts the words mean, but not which word means which. It is aligned first:
n(v, c) counts how often word v meant concept c. For the words and the concepts of the bag, shares
n(v, c) / sum_c n(v, c) are balanced so that each concept is meant by one word, and each word means
one (Sinkhorn); they are added to the counts. Then the search, among what is in the bag, with scores
+ `PRIOR` times the shares, gives each word its concept, and these are learnt. (With the constraints
C.7 alone, which ask that what is in the bag is above what is not, a linear model finds the right
bags, but gives, for example, the concept of a name to the word before it.)
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.structured.concepts.search import (
    LINK,
    NEIGHBOUR,
    UNARY,
    WORD,
    give,
    key_of,
    pair,
    start,
)
from streamsvm.structured.vocabulary import column_of, entered

PRIOR = 10.0
_SMALL = 0.01
_SWEEPS = 3


@compiled_within
def _add_entry(table, which, key, column, settings, info, entries, n):
    row = entered(table.rows, key, settings.most)
    if row < 0:
        info[0].n_ignored += 1
        return n
    entries[n, 0], entries[n, 1], entries[n, 2] = which, row, column
    return n + 1


@compiled_inner
def _list_entries(model, sentence, settings, search, i, k, side):
    """List the features of an action; contexts that are new get rows."""
    words, related, used, info = sentence.words, sentence.related, sentence.used, model.info
    entries, n, w, n_related = search.entries[side], 0, settings.window, related.shape[0]
    first, stop = max(0, i - w), min(words.size, i + w + 1)
    for o in range(first, stop):
        for a in range(n_related + used.shape[0]):
            key = key_of(UNARY, a, o - i + w, words[o])
            column = related[a, k] if a < n_related else used[a - n_related, k]
            n = _add_entry(model.concepts, 0, key, column, settings, info, entries, n)
    for j in range(first, stop):
        meant = search.label[j]
        if meant < 0 or related[0, meant] == 0:
            continue
        key = key_of(NEIGHBOUR, 0, j - i + w, related[0, meant])
        n = _add_entry(model.concepts, 0, key, related[0, k], settings, info, entries, n)
        for b in range(n_related):
            for a in range(n_related):
                if related[b, meant] == 0 or related[b, meant] != related[a, k]:
                    continue
                for o in range(first, stop):
                    key = key_of(LINK, j - i + w, o - i + w, words[o])
                    n = _add_entry(model.links, 1, key, pair(a, b), settings, info, entries, n)
    search.sizes[side] = n


@compiled_within
def _difference(of_concepts, of_links, search):
    """Return the sum over the features of action 0 less that of action 1."""
    total = 0.0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        for e in range(search.sizes[side]):
            which, row, column = search.entries[side, e]
            total += sign * (of_links[row, column] if which else of_concepts[row, column])
    return total


@compiled_within
def _apply(table, row, column, alpha, before):
    """Add the change of a weight, once."""
    change = alpha * table.change[row, column]
    table.weights[row, column] += change
    table.late[row, column] += before * change
    table.change[row, column] = 0


@compiled_inner
def step(model, sentence, settings, search, good, wrong):
    """Take the step of one constraint: actions (word, candidate) that is good, and that is not."""
    _list_entries(model, sentence, settings, search, good[0], good[1], 0)
    _list_entries(model, sentence, settings, search, wrong[0], wrong[1], 1)
    a, b, info = model.concepts, model.links, model.info
    margin = _difference(a.weights, b.weights, search)
    if margin >= 1.0:
        return
    for side in range(2):
        for e in range(search.sizes[side]):
            which, row, column = search.entries[side, e]
            if which:
                b.change[row, column] += 1 - 2 * side
            else:
                a.change[row, column] += 1 - 2 * side
    square = _difference(a.change, b.change, search)
    alpha = min(settings.C, (1.0 - margin) / square) if square > 0.0 else 0.0
    before = np.float64(info[0].n_sentences)
    for side in range(2):
        for e in range(search.sizes[side]):
            which, row, column = search.entries[side, e]
            if which:
                _apply(b, row, column, alpha, before)
            else:
                _apply(a, row, column, alpha, before)
    info[0].n_steps += alpha > 0.0
    info[0].dual += alpha * (1.0 - margin) - 0.5 * alpha * alpha * square


@compiled_inner
def _best_actions(sentence, settings, search):
    """Return the best good action, and the best wrong one; a word is -1 if there is none."""
    good, right, most, wrong, bad, most_wrong = -1, -1, -np.inf, -1, -1, -np.inf
    for i in range(search.label.size):
        if search.label[i] >= 0:
            continue
        for k in range(search.scores.shape[1]):
            score = search.scores[i, k]
            if sentence.target[i] == k:
                if score > most:
                    good, right, most = i, k, score
            elif score > most_wrong:
                wrong, bad, most_wrong = i, k, score
        if not settings.is_free:
            break
    return (good, right), (wrong, bad), most - most_wrong


@compiled_within
def _holds(rows, more, most):
    return rows.known.size >= min(rows.counts[0] + more, most)


@compiled_within
def _has_room(model, sentence, settings):
    """Tell whether there is room for all contexts of two more actions."""
    wide = 2 * settings.window + 1
    of_words = (sentence.related.shape[0] + sentence.used.shape[0] + 1) * wide
    a, b = model.concepts.rows, model.links.rows
    return _holds(a, 2 * of_words, settings.most) and _holds(b, 2 * wide * wide, settings.most)


@compiled_inner
def _rank_all(model, sentence, settings, search, wrong):
    """Take the steps of a wrong choice; return whether there was room for all of them."""
    while search.progress[1] < search.label.size:
        i = search.progress[1]
        # Left to right, there is one word to choose a concept for.
        if search.label[i] < 0 and (settings.is_free or i == wrong[0]):
            if not _has_room(model, sentence, settings):
                return False
            step(model, sentence, settings, search, (i, sentence.target[i]), wrong)
        search.progress[1] = i + 1
    return True


@compiled
def learn(model, sentence, settings, search):
    """Learn a sentence whose search was started; return whether it is done.

    If not, the tables are too full: call it again after they have grown.
    """
    model = borrowed(model)
    links, info = np.empty(model.links.weights.shape[1]), model.info
    while search.progress[0] < search.label.size:
        good, wrong, gap = _best_actions(sentence, settings, search)
        if gap <= 0.0:
            if not _rank_all(model, sentence, settings, search, wrong):
                return False
            info[0].n_wrong += 1
            break
        if gap < 1.0:
            if not _has_room(model, sentence, settings):
                return False
            step(model, sentence, settings, search, good, wrong)
        give(model, sentence, settings, 0.0, search, good[0], good[1], links)
    info[0].n_sentences += 1
    info[0].n_words += search.label.size
    return True


# Bags


@compiled_inner
def shares_of(model, sentence, most):
    """Return how likely each word means each thing of the bag, (words, things), and count it.

    Things are candidates, in order, each as often as it is in the bag. There is room for the words.
    """
    words, bag, table = sentence.words, sentence.bag, model.meanings
    n, concept = words.size, np.empty(words.size, np.int64)
    j = 0
    for k in range(bag.size):
        for _ in range(bag[k]):
            concept[j] = sentence.related[0, k]
            j += 1
    shares = np.empty((n, n))
    for i in range(n):
        row = entered(table.rows, key_of(WORD, 0, 0, words[i]), most)
        total = 1.0 if row < 0 else 1.0 + table.weights[row].sum()
        for j in range(n):
            count = 0.0 if row < 0 else table.weights[row, concept[j]]
            shares[i, j] = (count + _SMALL) / total
    for _ in range(_SWEEPS):
        for j in range(n):
            shares[:, j] /= shares[:, j].sum()
        for i in range(n):
            shares[i] /= shares[i].sum()
    for i in range(n):
        row = column_of(table.rows, key_of(WORD, 0, 0, words[i]))
        for j in range(n):
            if row >= 0:
                table.weights[row, concept[j]] += shares[i, j]
    return shares


@compiled
def align(model, sentence, settings, search):
    """Set the target of a sentence with a bag, whose search was started; restart the search."""
    model = borrowed(model)
    shares = shares_of(model, sentence, settings.most)
    links, n = np.empty(model.links.weights.shape[1]), sentence.words.size
    first, j = np.empty(sentence.bag.size, np.int64), 0
    for k in range(sentence.bag.size):
        first[k] = j
        j += sentence.bag[k]
    while search.progress[0] < n:
        word, meant, most = -1, -1, -np.inf
        for i in range(n):
            for k in range(search.left.size):
                if search.label[i] < 0 and search.left[k] > 0:
                    score = search.scores[i, k] + PRIOR * shares[i, first[k]]
                    if score > most:
                        word, meant, most = i, k, score
        sentence.target[word] = meant
        give(model, sentence, settings, 0.0, search, word, meant, links)
    start(model, sentence, settings, 0.0, search)
