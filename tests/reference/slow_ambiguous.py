"""The ambiguous SVM in plain NumPy: the mean pairwise loss and its dual step, pair by pair."""

import numpy as np


def psi(x, scores, bag):
    """Return Delta and Psi, (features, labels), of the largest loss of an example."""
    n = len(scores)
    rest = [z for z in range(n) if z not in bag]
    delta, total = 0.0, np.zeros((len(x), n))
    for y in bag:
        for z in rest:
            if 1.0 - (scores[y] - scores[z]) > 0.0:
                delta += 1.0 / (len(bag) * len(rest))
                total[:, y] += x / (len(bag) * len(rest))
                total[:, z] -= x / (len(bag) * len(rest))
    return delta, total


def pairwise_loss(scores, bag):
    """Return the mean pairwise hinge loss; 0 of an empty bag and of one with all labels."""
    rest = [z for z in range(len(scores)) if z not in bag]
    pairs = [max(0.0, 1.0 - scores[y] + scores[z]) for y in bag for z in rest]
    return float(np.mean(pairs)) if pairs else 0.0


class SlowAmbiguous:
    """AMBIGSVMDUALSTEP over dense rows; `dual` is the dual so far, `losses` the sum of losses."""

    def __init__(self, n_features, n_labels, C):
        self.w, self.C = np.zeros((n_features, n_labels)), C
        self.dual = self.losses = 0.0

    def learn(self, x, bag):
        scores = x @ self.w
        loss = pairwise_loss(scores, bag)
        delta, along = psi(x, scores, bag)
        alpha = 0.0
        if loss > 0.0:
            square = (along**2).sum()
            alpha = min(self.C, loss / square) if square > 0.0 else self.C
            self.w = self.w + alpha * along
            self.dual += alpha * delta
        self.losses += loss
        return loss, alpha

    def dual_value(self):
        """Return the dual: the sum of alpha Delta less |w|^2 / 2."""
        return self.dual - 0.5 * (self.w**2).sum()
