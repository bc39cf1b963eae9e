"""Algorithm 24 (OSPAS) in plain NumPy: scores anew before each prediction, pairs one by one."""

import numpy as np

from streamsvm.support.draws import below


def dual_step(W, x, bag, C):
    """Make the step of Algorithm 23 for a dense row x, in place; `bag` are labels."""
    n = W.shape[1]
    out = [y for y in range(n) if y not in bag]
    if not bag or not out:
        return
    score, u, loss = x @ W, np.zeros(n), 0.0
    for y in sorted(bag):
        for z in out:
            if score[z] > score[y] - 1.0:
                u[y] += 1.0 / (len(bag) * len(out))
                u[z] -= 1.0 / (len(bag) * len(out))
                loss += (1.0 - score[y] + score[z]) / (len(bag) * len(out))
    if loss > 0.0 and x.any():
        W += min(C, loss / ((x @ x) * (u @ u))) * np.outer(x, u)


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
            dual_step(W, X[t], {y for y in range(W.shape[1]) if counts[y] > 0}, C)
        else:
            return labels
        labels[t] = guess
        counts[guess] -= 1
        left.remove(t)
    return labels
