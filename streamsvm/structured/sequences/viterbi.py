"""The best sequence of labels of a chain of order 1, by the Viterbi algorithm, and max-marginals.

A sequence y of T labels has the score sum_t (scores[t, y_t] + moves[y_{t-1} + 1, y_t]); row 0 of
`moves` is for the first token, which has no label before it.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner


@compiled_inner
def _forward(scores, moves, n, best, back):
    """Set best[t, c] to the best score of labels 0 .. t that end in c, back[t, c] to its label t-1.

    Of equally good labels the first is taken.
    """
    for c in range(n):
        best[0, c] = scores[0, c] + moves[0, c]
        back[0, c] = 0
    for t in range(1, scores.shape[0]):
        before, now, came = best[t - 1], best[t], back[t]
        for c in range(n):
            now[c] = before[0] + moves[1, c]
            came[c] = 0
        for p in range(1, n):
            score = before[p]
            for c in range(n):
                # Two selections and no branch, so that the loop is vectorised.
                along = score + moves[p + 1, c]
                better = along > now[c]
                now[c] = along if better else now[c]
                came[c] = p if better else came[c]
        for c in range(n):
            now[c] += scores[t, c]


@compiled_inner
def viterbi(scores, moves, n, best, back, labels):
    """Set `labels` to the best sequence of labels below n.

    Parameters
    ----------
    scores
        float32 (T, >= n): the score of each label at each token; T is at least 1.
    moves
        float32 (> n, >= n): the score of a label after another one.
    n
        Number of labels, at least 1.
    best, back
        Scratch: float32 and int32 (T, >= n).
    labels
        int32 (T,): the result.

    """
    _forward(scores, moves, n, best, back)
    last = scores.shape[0] - 1
    c = 0
    for other in range(1, n):
        if best[last, other] > best[last, c]:
            c = other
    for t in range(last, -1, -1):
        labels[t] = c
        c = back[t, c]


@compiled_inner
def max_marginals(scores, moves, n, best, back, margins):
    """Set margins[t, c] to the score of the best sequence that has label c at token t.

    Parameters
    ----------
    scores, moves, n, best, back
        As for `viterbi`.
    margins
        float64 (T, n): the result.

    """
    _forward(scores, moves, n, best, back)
    after, later = np.zeros(n), np.zeros(n)
    for t in range(scores.shape[0] - 1, -1, -1):
        for c in range(n):
            margins[t, c] = best[t, c] + after[c]
            later[c] = after[c] + scores[t, c]
        for p in range(n):
            after[p] = later[0] + moves[p + 1, 0]
            for c in range(1, n):
                after[p] = max(after[p], later[c] + moves[p + 1, c])
