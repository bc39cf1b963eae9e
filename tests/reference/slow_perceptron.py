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
        mistake=0.0,
    ):
        self.rule, self.gamma, self.margin, self.l2 = rule, gamma, margin, l2
        self.averaged, self.limit, self.budget = averaged, limit, budget
        self.draws = SlowDraws(word)
        self.rows, self.a, self.total, self.entered = [], [], [], []
        self.t = self.mass = self.mistakes = self.counted = 0
        self.has_merged = False
        self.damage = 0.0
        # Voted: all models so far, each after one example. Projectron++: up to which margin an
        # example is a mistake, and the largest distance of one that was projected.
        self.voted, self.models = voted, []
        self.mistake, self.eta = mistake, 0.0
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
        thresholds = (self.margin, self.mistake) if self.budget == "project++" else (self.margin,)
        if self.a:
            self.closest = min(self.closest, *(abs(y * f - at) for at in thresholds))
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
        is_plus = self.budget == "project++"
        if is_plus and y * f > self.mistake:
            self.learn_within(y, f, k, C)
            return
        if number in self.entered and not self.voted:
            self.a[self.entered.index(number)] += self.step(y, f, 1.0, C)
            return
        if (self.budget == "project" or is_plus) and self.rows:
            gram = np.array([self.row(z) for z in self.rows])
            along = np.linalg.solve(gram, k)
            inside = float(along @ k)
            if len(self.rows) == self.limit or 1.0 - inside <= 1e-3:
                self.eta = max(self.eta, np.sqrt(max(0.0, 1.0 - inside)))
                step = self.step(y, f, inside, C)
                self.a = [a + step * part for a, part in zip(self.a, along, strict=True)]
                return
        step, slot, a, total = self.step(y, f, 1.0, C), len(self.rows), 0.0, 0.0
        if slot == self.limit:
            slot, step, a, total = self.room(x, y, f, k, step, C)
        else:
            for kept in (self.rows, self.a, self.total, self.entered):
                kept.append(None)
        self.rows[slot], self.entered[slot] = x, number
        self.a[slot], self.total[slot] = a + step, total

    def learn_within(self, y, f, k, C):
        """Learn an example within the margin, if that is sure to bring w nearer to a good one."""
        gram = np.array([self.row(z) for z in self.rows])
        along = np.linalg.solve(gram, k)
        inside, loss = float(along @ k), 1.0 - y * f
        far = np.sqrt(max(0.0, 1.0 - inside)) / max(self.eta, np.sqrt(1e-3))
        self.closest = min(self.closest, abs(loss - far))
        if loss <= far or inside <= 1e-6:
            self.mistakes -= 1
            return
        step = y * min(loss / inside, 2.0 * (loss - far) / inside, C)
        self.a = [a + step * part for a, part in zip(self.a, along, strict=True)]

    def room(self, x, y, f, k, step, C):
        a = np.array(self.a)
        if self.budget == "smallest":
            return int(np.argmin(np.abs(a))), step, 0.0, 0.0
        if self.budget == "random":
            return self.draws.below(len(a)), step, 0.0, 0.0
        if self.budget == "remove":
            gram = np.array([self.row(z) for z in self.rows])
            return int(np.argmax(np.sign(a) * (gram @ a - a))), step, 0.0, 0.0
        if self.budget == "bpa-s":
            costs = [self.cost_of_replacing(r, y, f, k, C) for r in range(len(a))]
            r = int(np.argmin([cost for cost, _ in costs]))
            return r, costs[r][1] - k[r] * a[r], k[r] * a[r], k[r] * self.total[r]
        if self.budget == "forget":
            return self.forget(k, step)
        return self.merge(), step, 0.0, 0.0

    def cost_of_replacing(self, r, y, f, k, C):
        """Return the least 1/2 |w' - w|^2 + C loss without row r, and the coefficient of x then."""
        a = self.a[r]

        def cost(b):
            loss = max(0.0, 1.0 - y * (f - a * k[r] + b))
            return 0.5 * (a * a - 2.0 * a * b * k[r] + b * b) + C * loss

        kink = y - f + a * k[r]
        ways = [a * k[r], a * k[r] + y * C, kink]
        return min((cost(b), b) for b in ways)

    def forget(self, k, step):
        a = np.array(self.a)
        r = int(np.argmin(self.entered))
        sigma = abs(a[r])
        mu = np.sign(a[r]) * (self.row(self.rows[r]) @ a + step * k[r])

        def psi(phi):
            return (sigma * phi) ** 2 + 2 * sigma * phi - 2 * sigma * phi * phi * mu

        allowed = 15 / 32 * self.mistakes - self.damage
        phi = 1.0
        if psi(1.0) > allowed:
            roots = np.roots([sigma**2 - 2 * sigma * mu, 2 * sigma, -allowed])
            phi = max(z.real for z in roots if abs(z.imag) < 1e-12 and 0.0 < z.real < 1.0)
        self.damage += psi(phi)
        self.a = list(phi * a)
        return r, phi * step, 0.0, 0.0

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
