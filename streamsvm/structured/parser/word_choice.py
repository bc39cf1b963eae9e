"""Which word of a sentence is labelled next: at random, from left to right, or the surest one."""

from __future__ import annotations

from streamsvm._compile import compiled_within
from streamsvm.support.draws import below

RANDOM, LEFT_TO_RIGHT, ORDER_FREE = 0, 1, 2

EXPLORATIONS = {"random": RANDOM, "left_to_right": LEFT_TO_RIGHT, "order_free": ORDER_FREE}


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
