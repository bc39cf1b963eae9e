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


def dual_step(x, scores, bag, C):
    """Return AMBIGSVMDUALSTEP: the change of the weights, the loss before, alpha and Delta."""
    loss = pairwise_loss(scores, bag)
    delta, along = psi(x, scores, bag)
    square = (along**2).sum()
    alpha = 0.0
    if loss > 0.0:
        alpha = min(C, loss / square) if square > 0.0 else C
    return alpha * along, loss, alpha, delta


class SlowAmbiguous:
    """AMBIGSVMDUALSTEP over dense rows; `dual` is the dual so far, `losses` the sum of losses.

    `mean` is that of the weights after each example. The last row of weights is that of a feature
    which is always the root of `bias_rate`.
    """

    def __init__(self, n_features, n_labels, C, bias_rate=0.0):
        self.constant = np.sqrt(bias_rate)
        self.w, self.C = np.zeros((n_features + 1, n_labels)), C
        self.dual = self.losses = 0.0
        self.after = []

    def scores(self, x, w):
        return x @ w[:-1] + self.constant * w[-1]

    def learn(self, x, bag):
        scores = self.scores(x, self.w)
        change, loss, alpha, delta = dual_step(np.append(x, self.constant), scores, bag, self.C)
        self.w = self.w + change
        self.dual += alpha * delta
        self.losses += loss
        self.after.append(self.w)
        return loss, alpha

    @property
    def mean(self):
        return np.mean(self.after, axis=0)

    def dual_value(self):
        """Return the dual: the sum of alpha Delta less |w|^2 / 2."""
        return self.dual - 0.5 * (self.w**2).sum()


class SlowBlocks:
    """Steps on blocks: of each example kept Psi and Delta of its coefficients, w in the open.

    At most `limit` examples are kept.
    """

    def __init__(self, n_features, C, limit=np.inf):
        self.w, self.C, self.limit = np.zeros((n_features, 0)), C, limit
        self.examples = []  # [x, bag, beta, delta, number of labels of its loss, C_i]
        self.summed = []  # (x, bag, number of labels, loss) of each loss that the dual bounds

    def scores(self, x):
        return x @ self.w

    def know(self, n_labels):
        self.w = np.pad(self.w, ((0, 0), (0, n_labels - self.w.shape[1])))

    def add(self, x, bag):
        """Learn an example; return its loss before."""
        k = self.w.shape[1]
        loss = pairwise_loss(self.scores(x), bag)
        self.summed.append((x, bag, k, loss))
        if loss > 0.0:
            at = len(self.examples) if len(self.examples) < self.limit else self.make_room()
            self.examples[at : at + 1] = [[x, bag, np.zeros(k), 0.0, k, self.C]]
            self.step(at)
        return loss

    def make_room(self):
        """Project the example with the smallest coefficients on another; return its place."""
        sizes = [x @ x * (beta**2).sum() for x, _, beta, _, _, _ in self.examples]
        at = int(np.argmin(sizes))
        x, bag, beta, delta, known, C = self.examples[at]
        self.w[:, : len(beta)] -= np.outer(x, beta)
        near = [
            (x @ other[0], -i)
            for i, other in enumerate(self.examples)
            if i != at and other[1] == bag and other[4] == known and x @ other[0] > 0.0
        ]
        if near:
            value, i = max(near)
            other = self.examples[-i]
            k, share = self.w.shape[1], min(1.0, value / (other[0] @ other[0]))
            other[2] = np.pad(other[2], (0, k - len(other[2])))
            other[2][: len(beta)] += share * beta
            other[3], other[5] = other[3] + share * delta, other[5] + C
            self.w[:, : len(beta)] += share * np.outer(other[0], beta)
        return at

    def step(self, i):
        x, bag, beta, delta, known, C = self.examples[i]
        k = self.w.shape[1]
        factor = (known - len(bag)) / (k - len(bag))
        now = np.pad(beta, (0, k - len(beta)))
        self.w = self.w + np.outer(x, (factor - 1.0) * now)
        beta, delta = factor * now, factor * delta
        if known < k:
            self.summed.append((x, bag, k, pairwise_loss(self.scores(x), bag)))
        # Of a row that is 1 in one place, Psi has the coefficients.
        wanted_delta, along = psi(np.ones(1), self.scores(x), bag)
        wanted, wanted_delta = C * along[0], C * wanted_delta
        gap = wanted_delta - delta - (wanted - beta) @ self.scores(x)
        square = (x @ x) * ((wanted - beta) ** 2).sum()
        t = min(1.0, gap / square) if gap > 1e-12 * C else 0.0
        self.w = self.w + np.outer(x, t * (wanted - beta))
        beta, delta = beta + t * (wanted - beta), delta + t * (wanted_delta - delta)
        self.examples[i] = [x, bag, beta, delta, k, C]

    def dual(self):
        return sum(example[3] for example in self.examples) - 0.5 * (self.w**2).sum()

    def primal_of_summed(self, w):
        """Return |w|^2 / 2 + C times the losses at w of all that were summed."""
        losses = [pairwise_loss((x @ w)[:k], bag) for x, bag, k, _ in self.summed]
        return 0.5 * (w**2).sum() + self.C * sum(losses)

    def primal(self):
        losses = [
            C * pairwise_loss(self.scores(x)[:k], bag) for x, bag, _, _, k, C in self.examples
        ]
        return 0.5 * (self.w**2).sum() + sum(losses)
