"""Algorithm 24 (OSPAS) in plain NumPy: scores anew before each prediction, pairs one by one."""

import numpy as np

from streamsvm.support.draws import below
from tests.reference.slow_ambiguous import dual_step


def learn_sentence(W, X, counts, C, exploration, draws):
    """Learn the words X, dense (words, features), from a bag; return the label of each, or -1."""
    n, counts, labels = len(X), list(counts), [-1] * len(X)
    left, after = list(range(n)), -1
    while left:
        tried = list(left)
        while tried:
            scores = X @ W
            if exploration == "random":
                j = int(below(draws, len(tried)))
            elif exploration == "left_to_right":
                j = next((i for i, t in enumerate(tried) if t > after), 0)
            else:
                j = int(np.argmax([scores[t].max() for t in tried]))
            t = after = tried.pop(j)
            guess = int(np.argmax(scores[t]))
            if counts[guess] > 0:
                break
            bag = {y for y in range(W.shape[1]) if counts[y] > 0}
            W += dual_step(X[t], X[t] @ W, bag, C)[0]
        else:
            return labels
        labels[t] = guess
        counts[guess] -= 1
        left.remove(t)
    return labels
