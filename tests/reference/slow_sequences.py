"""LaRank for label sequences in plain NumPy, as the thesis writes it (5.3, Algorithms 17-20).

Weights are recomputed from the coefficients for every score; the best sequence of labels is found
by trying all of them. The random draws are those of the library.
"""

from itertools import product

import numpy as np

from streamsvm.support.draws import below
from tests.reference.slow_tracking import drop


class SlowSequences:
    """What both have: `examples` and their coefficients `beta`, and which have any."""

    def __init__(self, n_labels, order, C, reprocess, optimize, draws, cost=None):
        self.L, self.k, self.C = n_labels, order, C
        self.reprocess, self.optimize, self.draws = reprocess, optimize, draws
        self.cost = np.ones(n_labels) if cost is None else cost
        self.examples, self.beta, self.members = [], [], []
        self.steps = []  # the gains in the dual

    def list_or_drop(self, i, is_pattern):
        if is_pattern and i not in self.members:
            self.members.append(i)
        elif i in self.members and not is_pattern:
            drop(self.members, i)


class SlowGreedy(SlowSequences):
    """Problem (5.12): the patterns are tokens, the past labels are the true ones.

    Examples are (x, past, y), their coefficients an array over the labels.
    """

    def phi(self, x, past, c):
        """Return Phi_g: features and past labels, in the block of label c."""
        parts = [np.zeros((self.L, x.size)), np.zeros((self.k, self.L, self.L + 1))]
        parts[0][c] = x
        for s in range(self.k):
            parts[1][s, c, past[s]] = 1.0
        return np.concatenate([part.ravel() for part in parts])

    def w(self):
        total = 0.0
        for (x, past, _), beta in zip(self.examples, self.beta, strict=True):
            for c in np.flatnonzero(beta):
                total = total + beta[c] * self.phi(x, past, c)
        return total

    def score(self, x, past, c):
        w = self.w()
        return 0.0 if np.isscalar(w) else float(w @ self.phi(x, past, c))

    def dual(self):
        w = self.w()
        wrong = sum(b.sum() - b[y] for (_, _, y), b in zip(self.examples, self.beta, strict=True))
        return -wrong - 0.5 * float(np.dot(w, w))

    def gradient(self, i, c):
        x, past, y = self.examples[i]
        return -(c != y) - self.score(x, past, c)

    def step(self, i, up, down):
        x, past, y = self.examples[i]
        difference = self.phi(x, past, up) - self.phi(x, past, down)
        if not difference.any():
            self.steps.append(0.0)
            return
        best = (self.gradient(i, up) - self.gradient(i, down)) / (difference @ difference)
        room = self.C * self.cost[y] * (up == y) - self.beta[i][up]
        size = max(0.0, min(best, room))
        before = self.dual()
        self.beta[i][up] += size
        self.beta[i][down] -= size
        self.beta[i][np.abs(self.beta[i]) < 1e-9 * self.C] = 0.0
        self.steps.append(self.dual() - before)
        self.list_or_drop(i, bool(self.beta[i].any()))

    def process_old(self, i, only_vectors):
        y = self.examples[i][2]
        labels = [c for c in range(self.L) if not only_vectors or c == y or self.beta[i][c] != 0.0]
        g = {c: self.gradient(i, c) for c in labels}
        bound = self.C * self.cost[y]
        free = [c for c in labels if self.beta[i][c] < (bound if c == y else 0.0)]
        if free:
            self.step(i, max(free, key=g.get), min(labels, key=g.get))

    def learn(self, x, y):
        for t in range(len(y)):
            past = [y[t - 1 - s] + 1 if t - 1 - s >= 0 else 0 for s in range(self.k)]
            i = len(self.examples)
            self.examples.append((x[t], past, y[t]))
            self.beta.append(np.zeros(self.L))
            g = [self.gradient(i, c) for c in range(self.L)]
            self.step(i, y[t], int(np.argmin(g)))
            for _ in range(self.reprocess if self.members else 0):
                n = len(self.members)
                # All are drawn before the first step.
                drawn = [self.members[below(self.draws, n)] for _ in range(1 + self.optimize)]
                for o, j in enumerate(drawn):
                    if j in self.members:
                        self.process_old(j, o > 0)

    def predict(self, x):
        labels = []
        for t in range(len(x)):
            past = [labels[t - 1 - s] + 1 if t - 1 - s >= 0 else 0 for s in range(self.k)]
            labels.append(int(np.argmax([self.score(x[t], past, c) for c in range(self.L)])))
        return labels


class SlowExact(SlowSequences):
    """Problem (5.11): the patterns are sentences, the classes all sequences of labels.

    Examples are (x, y), their coefficients {labels: coefficient}.
    """

    def phi(self, x, labels):
        features = np.zeros((self.L, x.shape[1]))
        moves = np.zeros((self.L, self.L + 1))
        for t, c in enumerate(labels):
            features[c] += x[t]
            moves[c, labels[t - 1] + 1 if t else 0] += self.k
        return np.concatenate([features.ravel(), moves.ravel()])

    def w(self):
        total = 0.0
        for (x, _), betas in zip(self.examples, self.beta, strict=True):
            for labels, beta in betas.items():
                total = total + beta * self.phi(x, labels)
        return total

    def loss(self, y, labels):
        return sum(self.cost[a] for a, b in zip(y, labels, strict=True) if a != b)

    def dual(self):
        w = self.w()
        wrong = sum(
            beta * self.loss(y, labels)
            for (_, y), betas in zip(self.examples, self.beta, strict=True)
            for labels, beta in betas.items()
        )
        return -wrong - 0.5 * float(np.dot(w, w))

    def all_labels(self, n):
        # Of equally good sequences Viterbi takes the one whose last labels are smallest.
        return [labels[::-1] for labels in product(range(self.L), repeat=n)]

    def violations(self, x, y, candidates):
        w = self.w()
        scores = [0.0 if np.isscalar(w) else float(w @ self.phi(x, c)) for c in candidates]
        return [s + self.loss(y, c) for s, c in zip(scores, candidates, strict=True)]

    def step(self, i, up, down):
        x, y = self.examples[i]
        difference = self.phi(x, up) - self.phi(x, down)
        low, high = self.violations(x, y, [up, down])
        room = self.C * (up == y) - self.beta[i].get(up, 0.0)
        square = float(difference @ difference)
        size = max(0.0, min((high - low) / square, room)) if square else 0.0
        before = self.dual()
        for labels, change in ((up, size), (down, -size)):
            self.beta[i][labels] = self.beta[i].get(labels, 0.0) + change
        for labels in [c for c, b in self.beta[i].items() if abs(b) < 1e-9 * self.C]:
            del self.beta[i][labels]
        self.steps.append(self.dual() - before)
        self.list_or_drop(i, bool(self.beta[i]))

    def process_old(self, i, only_vectors):
        x, y = self.examples[i]
        # The latest ones first, as in the library's lists.
        vectors = [y, *(c for c in reversed(self.beta[i]) if c != y)]
        candidates = vectors if only_vectors else [*vectors, *self.all_labels(len(y))]
        h = self.violations(x, y, candidates)
        free = [
            (v, c)
            for v, c in zip(h, candidates, strict=True)
            if self.beta[i].get(c, 0.0) < self.C * (c == y)
        ]
        if free:
            worst = candidates[int(np.argmax(np.round(h, 12)))]
            self.step(i, min(free, key=lambda pair: pair[0])[1], worst)

    def learn(self, x, y):
        i, y = len(self.examples), tuple(y)
        self.examples.append((x, y))
        self.beta.append({})
        candidates = self.all_labels(len(y))
        self.step(i, y, candidates[int(np.argmax(self.violations(x, y, candidates)))])
        for _ in range(self.reprocess):
            for o in range(1 + self.optimize):
                if self.members:
                    j = self.members[below(self.draws, len(self.members))]
                    self.process_old(j, o > 0)

    def predict(self, x):
        candidates, w = self.all_labels(len(x)), self.w()
        return list(candidates[int(np.argmax([w @ self.phi(x, c) for c in candidates]))])
