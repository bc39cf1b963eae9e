"""Roles of words for a relation: their features, and meanings put together from words and roles.

For each relation the surest word is its place. Each other word stands for its best symbol among
those that were seen as arguments of the relation; its role is predicted from the words and the
kinds of symbols around it, which side of the relation it is on, and how many symbols come before.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.structured.templates import mixed

NO_SYMBOL = -1

LABELLED = 1e6
"""Words that are labelled as arguments are the place of a relation if there are no others."""


@compiled
def places_of(scores, relations, is_argument, place, symbol):
    """Set the place of each relation, and the best argument at each other word.

    `scores` are float64 (words, symbols); `relations`, int64 (relations,), are symbols;
    `is_argument`, bool (relations, symbols). `place`, int64 (relations,), is the word where the
    relation's score is most above the others'; `symbol`, int64 (relations, words), is `NO_SYMBOL`
    there, and where none is known.
    """
    n, n_labels = scores.shape
    for q in range(relations.size):
        surest = -np.inf
        place[q] = 0
        for t in range(n):
            rival = 0
            for y in range(n_labels):
                if y != relations[q] and scores[t, y] > scores[t, rival]:
                    rival = y
            margin = scores[t, relations[q]] - scores[t, rival]
            if margin < 0.0 and is_argument[q, rival]:
                margin -= LABELLED
            # Of words where it lacks as much, the one whose own score is highest.
            margin += 1e-3 * scores[t, relations[q]]
            if margin > surest:
                surest = margin
                place[q] = t
        for t in range(n):
            symbol[q, t] = NO_SYMBOL
            for y in range(n_labels):
                if t != place[q] and is_argument[q, y]:
                    if symbol[q, t] == NO_SYMBOL or scores[t, y] > scores[t, symbol[q, t]]:
                        symbol[q, t] = y


def width_of(window: int) -> int:
    """Return how many features the role of a word has."""
    return 2 * (2 * window + 1) + 3


@compiled
def role_keys(words, labels, kinds, outside, number, relation, place, symbol, window, keys):
    """Set the keys of the features of all words for a relation, uint64 (words, width).

    `words` are keys; `labels` the symbols predicted, int64 (words,); `kinds`, uint64 (symbols,);
    `outside` is `templates.OUTSIDE`; `number` and `relation` are number and symbol of the relation;
    `symbol` is what each word would stand for.
    """
    n, far = words.size, outside.size // 2
    own = np.uint64(number)
    for i in range(n):
        if symbol[i] == NO_SYMBOL:
            continue
        at = 0
        for o in range(-window, window + 1):
            j = i + o
            if j < 0:
                word = kind = outside[-j - 1]
            elif j >= n:
                word = kind = outside[far + j - n]
            else:
                word = words[j]
                label = symbol[i] if j == i else relation if j == place else labels[j]
                kind = kinds[label]
            keys[i, at] = mixed(mixed(np.uint64(window + o), word), own)
            keys[i, at + 1] = mixed(mixed(np.uint64(1000 + window + o), kind), own)
            at += 2
        rank = 0
        for j in range(i):
            rank += j != place and labels[j] != 0
        keys[i, at] = mixed(mixed(np.uint64(2000), np.uint64(i < place)), own)
        keys[i, at + 1] = mixed(mixed(np.uint64(2001), np.uint64(rank)), own)
        keys[i, at + 2] = mixed(mixed(np.uint64(2002), np.uint64(symbol[i])), own)


@compiled
def assign(scores, roles, symbol, allowed, arity, words, total):
    """Choose the words of a relation's arguments, the surest pair of role and word first.

    `roles`, float64 (words, roles + 1), are scores of roles, the first that of none; `allowed`,
    bool (roles, symbols), which symbols were seen there; `arity` is how many arguments are wanted.
    `words`, int64 (arity,), gets their places. A pair costs what its symbol and its role lack to
    the best other choice. Return `total` minus the costs, or -inf if a role has no word.
    """
    n = symbol.size
    words[:arity] = -1
    for _ in range(arity):
        best, role, word = -np.inf, -1, -1
        for j in range(arity):
            for i in range(n):
                if words[j] >= 0 or symbol[i] == NO_SYMBOL or not allowed[j, symbol[i]]:
                    continue
                is_taken = False
                for k in range(arity):
                    is_taken |= words[k] == i
                if is_taken:
                    continue
                other = -np.inf
                for k in range(roles.shape[1]):
                    if k != j + 1:
                        other = max(other, roles[i, k])
                value = min(0.0, scores[i, symbol[i]] - scores[i, 0])
                # Of pairs that lack nothing, the one whose role has the highest score.
                value += min(0.0, roles[i, j + 1] - other) + 1e-3 * roles[i, j + 1]
                if value > best:
                    best, role, word = value, j, i
        if role < 0:
            return -np.inf
        words[role] = word
        total += 0.3 * min(0.0, best)
    return total
