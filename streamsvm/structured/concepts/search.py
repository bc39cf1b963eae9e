"""The greedy search that gives each word of a sentence a concept.

A state of the search is a sentence some of whose words have a concept. An action gives word i the
concept c; its score is <w, Phi(i, c)>. Features are 0 or 1, w words to each side count:

    word o places from i  x  what relation a relates c to
    word o places from i  x  whether relation a relates anything to c
    place of j  x  concept of word j  x  c                              if j has a concept
    place of j  x  word o places from i  x  pair (a, b)                 if a(c) = b(concept of j)

Relation 0 is the concept itself, so that "c is where j's concept is", "both are in one place" and
"c is held by it" are pairs (a, b), learnt once for all things. The score of a labelling, g of (C.4)
in the thesis, is the sum of those of its actions. The next action is the best of all words (free
order), or of the first word without a concept (left to right).

Predictions use the mean of the weights after each sentence, w - late / n: a change in sentence i is
in the weights of sentences i .. n, so `late` gets i - 1 times it. `mean` is 1 / n, or 0 for the
weights themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.structured.vocabulary import column_of
from streamsvm.support.assigning import assign

MOST_WINDOW = 12
MOST_RELATIONS = 8

UNARY, NEIGHBOUR, LINK, WORD = 1, 2, 3, 4
"""Kinds of contexts."""

_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(32)
_WIDE = 2 * MOST_WINDOW + 1


class Sentence(NamedTuple):
    """A sentence, what its words may mean, and what they mean if that is known."""

    words: np.ndarray  # uint64 (n,): keys
    related: np.ndarray  # int32 (relations, candidates): numbers of concepts; 0 is none
    used: np.ndarray  # int32 (relations - 1, candidates): 1 where anything is related to it
    target: np.ndarray  # int64 (n,): the candidate that each word means
    bag: np.ndarray  # int64 (candidates,): how many words mean each


class Search(NamedTuple):
    """How far a search is; and scratch of steps."""

    scores: np.ndarray  # float64 (n, candidates)
    best: np.ndarray  # int64 (n,): the best candidate of each word without a concept
    label: np.ndarray  # int64 (n,): the candidate given to each word, -1 for none
    left: np.ndarray  # int64 (candidates,): how often each may still be given
    progress: np.ndarray  # int64 (2,): words that have one; the word whose step is next
    entries: np.ndarray  # int32 (2, most, 3): table, row and column of features of two actions
    sizes: np.ndarray  # int64 (2,): how many they have


class Settings(NamedTuple):
    """How to search and to learn."""

    window: int  # w: words to each side
    is_free: bool  # the surest word first, not left to right
    C: float
    most: int  # rows of a table


def new_search(sentence: Sentence, window: int, is_learning: bool) -> Search:
    """Allocate a search; only to learn, it has room for features of actions."""
    n, (a, m) = sentence.words.size, sentence.related.shape
    wide = 2 * window + 1
    most = is_learning * ((2 * a - 1) * wide + 2 * window * (1 + a * a * wide))
    return Search(
        np.empty((n, m)),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(m, np.int64),
        np.zeros(2, np.int64),
        np.empty((2, most, 3), np.int32),
        np.zeros(2, np.int64),
    )


@compiled_within
def key_of(kind, first, place, other):
    """Return the key of a context: kind, two small numbers, and a word's key or a number."""
    own = np.uint64((kind * 64 + first) * _WIDE + place)
    h = (own ^ (np.uint64(other) * _M1)) * _M2
    return (h ^ (h >> _SHIFT)) * _M1


@compiled_within
def pair(a, b):
    """Return the column of two relations, which stays when there are more relations."""
    return b * b + a if a < b else a * a + a + b


@compiled_within
def _weight(table, row, column, mean):
    return table.weights[row, column] - mean * table.late[row, column]


@compiled_inner
def _word_scores(model, sentence, settings, mean, out):
    """Set out (n, candidates) to the scores before any word has a concept."""
    words, related, used = sentence.words, sentence.related, sentence.used
    table, n, w, n_related = model.concepts, words.size, settings.window, related.shape[0]
    width = table.weights.shape[1]
    sums = np.empty((n_related + used.shape[0], width))
    for i in range(n):
        sums[:] = 0.0
        for o in range(max(0, i - w), min(n, i + w + 1)):
            for a in range(sums.shape[0]):
                row = column_of(table.rows, key_of(UNARY, a, o - i + w, words[o]))
                if row >= 0:
                    for c in range(width if a < n_related else 2):
                        sums[a, c] += _weight(table, row, c, mean)
        for k in range(related.shape[1]):
            total = 0.0
            for a in range(n_related):
                if related[a, k] < width:
                    total += sums[a, related[a, k]]
            for a in range(used.shape[0]):
                total += sums[n_related + a, used[a, k]]
            out[i, k] = total


@compiled_inner
def _add_neighbour(model, sentence, settings, mean, i, j, meant, links, out):
    """Add to out (candidates,), the scores of word i, what the candidate `meant` of word j adds."""
    words, related, w = sentence.words, sentence.related, settings.window
    concept, table, n = related[0, meant], model.concepts, words.size
    if concept == 0:
        return
    row = column_of(table.rows, key_of(NEIGHBOUR, 0, j - i + w, concept))
    if row >= 0:
        for k in range(related.shape[1]):
            if related[0, k] < table.weights.shape[1]:
                out[k] += _weight(table, row, related[0, k], mean)
    links[:] = 0.0
    for o in range(max(0, i - w), min(n, i + w + 1)):
        row = column_of(model.links.rows, key_of(LINK, j - i + w, o - i + w, words[o]))
        if row >= 0:
            for p in range(links.size):
                links[p] += _weight(model.links, row, p, mean)
    for b in range(related.shape[0]):
        value = related[b, meant]
        for a in range(related.shape[0]):
            p = pair(a, b)
            if value == 0 or p >= links.size or links[p] == 0.0:
                continue
            for k in range(related.shape[1]):
                if related[a, k] == value:
                    out[k] += links[p]


@compiled
def start(model, sentence, settings, mean, search):
    """Set a search to its beginning."""
    _word_scores(model, sentence, settings, mean, search.scores)
    search.label[:] = -1
    assign(search.left, sentence.bag)
    search.progress[:] = 0
    for i in range(search.label.size):
        search.best[i] = np.argmax(search.scores[i])


@compiled_inner
def give(model, sentence, settings, mean, search, i, meant, links):
    """Give word i a concept, and change the scores of the words around it; links is scratch."""
    search.label[i] = meant
    search.progress[0] += 1
    search.left[meant] -= 1
    n, w = search.label.size, settings.window
    for other in range(max(0, i - w), min(n, i + w + 1)):
        if search.label[other] < 0:
            scores = search.scores[other]
            _add_neighbour(model, sentence, settings, mean, other, i, meant, links, scores)
            search.best[other] = np.argmax(scores)


@compiled_inner
def _surest(search, is_free):
    """Return the word whose best concept has the highest score, or the first without one."""
    found, most = -1, -np.inf
    for i in range(search.label.size):
        if search.label[i] < 0 and (found < 0 or search.scores[i, search.best[i]] > most):
            found, most = i, search.scores[i, search.best[i]]
            if not is_free:
                break
    return found


@compiled
def predict(model, sentence, settings, mean, search):
    """Give each word a concept: search.label."""
    model = borrowed(model)
    start(model, sentence, settings, mean, search)
    links = np.empty(model.links.weights.shape[1])
    while search.progress[0] < search.label.size:
        i = _surest(search, settings.is_free)
        give(model, sentence, settings, mean, search, i, search.best[i], links)
