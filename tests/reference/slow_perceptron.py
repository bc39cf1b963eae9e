"""The perceptron family in plain NumPy: every model after every example, nothing postponed.

A model is a list of rows with their coefficients, and beside each coefficient the sum of what it
was in all models so far. Pegasos shrinks its coefficients at each example, as the paper writes it.
Slots are named as in the compiled code, and draws are the same.
"""

from __future__ import annotations

import numpy as np

from tests.reference.slow_tracking import SlowDraws

CANDIDATES = 4


class SlowPerceptron:
    """`rule` is "perceptron", "PA", "PA-I", "PA-II" or "pegasos"; `gamma` is that of an RBF."""

    def __init__(
        self,
        rule,
        gamma,
        margin=1.0,
        l2=0.0,
        averaged=False,
        limit=np.inf,
        budget=None,
        word=1,
        voted=False,
    ):
        self.rule, self.gamma, self.margin, self.l2 = rule, gamma, margin, l2
        self.averaged, self.limit, self.budget = averaged, limit, budget
        self.draws = SlowDraws(word)
        self.rows, self.a, self.total, self.entered = [], [], [], []
        self.t = self.mass = self.mistakes = self.counted = 0
        self.has_merged = False
        # Voted: all models so far, each after one example.
        self.voted, self.models = voted, []
        # The smallest distance of a decision from its threshold.
        self.closest = np.inf

    def kernel(self, x, z):
        return np.exp(-self.gamma * ((x - z) ** 2).sum())

    def row(self, x):
        return np.array([self.kernel(x, z) for z in self.rows])

    def learn(self, x, y, C, number):
        """Return the margin that predicts x, then learn it."""
        k = self.row(x)
        f = float(k @ np.array(self.a)) if self.a else 0.0
        predicted = f
        if self.averaged:
            predicted = float(k @ np.array(self.total)) / self.mass if self.a else 0.0
        if self.voted:
            predicted = self.vote(k)
        if C <= 0.0:
            return predicted
        self.t += 1
        if self.has_merged and self.counted >= max(400, 4 * self.limit):
            # All models so far count half from now on, rounded so that they are a whole number.
            share = (self.counted // 2) / self.counted
            self.total, self.mass = [share * s for s in self.total], share * self.mass
            self.counted //= 2
        if self.rule == "pegasos":
            self.a = [a * (1.0 - 1.0 / self.t) for a in self.a]
        if self.a:
            self.closest = min(self.closest, abs(y * f - self.margin))
        if y * f < self.margin or (self.rule == "perceptron" and y * f == self.margin):
            self.mistakes += 1
            self.update(x, y, f, k, C, number)
        weight = self.t if self.rule == "pegasos" else 1
        self.mass += weight
        self.counted += 1
        self.total = [s + weight * a for s, a in zip(self.total, self.a, strict=True)]
        if self.voted:
            self.models.append(np.array(self.a))
        return predicted

    def vote(self, k):
        """Return the mean of the votes of all models on a row with these kernel values."""
        says = np.array([k[: len(a)] @ a for a in self.models])
        return float(np.sign(says).mean()) if self.models else 0.0

    def step(self, y, f, square, C):
        if self.rule == "perceptron":
            return y * C
        if self.rule == "pegasos":
            return y * C / (self.l2 * self.t)
        loss = 1.0 - y * f
        if self.rule == "PA-II":
            return y * loss / (square + 0.5 / C)
        return y * (min(C, loss / square) if self.rule == "PA-I" else loss / square)

    def update(self, x, y, f, k, C, number):
        if number in self.entered and not self.voted:
            self.a[self.entered.index(number)] += self.step(y, f, 1.0, C)
            return
        if self.budget == "project" and self.rows:
            gram = np.array([self.row(z) for z in self.rows])
            along = np.linalg.solve(gram, k)
            inside = float(along @ k)
            if len(self.rows) == self.limit or 1.0 - inside <= 1e-3:
                step = self.step(y, f, inside, C)
                self.a = [a + step * part for a, part in zip(self.a, along, strict=True)]
                return
        slot = len(self.rows)
        if slot == self.limit:
            slot = self.room()
        else:
            for kept in (self.rows, self.a, self.total, self.entered):
                kept.append(None)
        self.rows[slot], self.entered[slot] = x, number
        self.a[slot], self.total[slot] = self.step(y, f, 1.0, C), 0.0

    def room(self):
        """Return the slot that the next row takes, all of which are in use."""
        if self.budget == "remove":
            a, gram = np.array(self.a), np.array([self.row(z) for z in self.rows])
            return int(np.argmax(np.sign(a) * (gram @ a - a)))
        return self.merge()

    def merge(self):
        self.has_merged = True
        a, gram = np.array(self.a), np.array([self.row(z) for z in self.rows])
        first, best = int(np.argmin(np.abs(a))), (np.inf, None, None)
        for c in range(CANDIDATES + 1):
            i = first if c == 0 else self.draws.below(len(a))
            for j in range(len(a)):
                if j != i and a[i] * a[j] > 0.0:
                    cost = min(a[i] ** 2, a[j] ** 2) * (1.0 - gram[i, j] ** 2)
                    best = min(best, (cost, i, j), key=lambda found: found[0])
        _, i, j = best
        if i is None:
            return first
        h = np.linspace(0.0, 1.0, 20001)
        worth = abs(a[i]) * gram[i, j] ** ((1 - h) ** 2) + abs(a[j]) * gram[i, j] ** (h**2)
        h = h[np.argmax(worth)]
        z = h * self.rows[i] + (1.0 - h) * self.rows[j]
        k_i, k_j = self.kernel(self.rows[i], z), self.kernel(self.rows[j], z)
        for kept in (self.a, self.total):
            kept[j] = k_i * kept[i] + k_j * kept[j]
        self.rows[j], self.entered[j] = z, -max(abs(self.entered[i]), abs(self.entered[j]))
        return i

    def expansion(self):
        """Return rows and coefficients of what predicts."""
        factor = 1.0 / self.mass if self.averaged else 1.0
        return np.array(self.rows), factor * np.array(self.total if self.averaged else self.a)
