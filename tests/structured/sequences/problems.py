"""Small random sentences, and learners of the library fed with them."""

import numpy as np

from streamsvm.structured.sequences.inference import Batch, Greedy
from streamsvm.structured.sequences.model import LARANK, Schedule
from streamsvm.support.rows import sparse


def sentences(seed, n=12, labels=3, d=4, longest=4):
    """Return n pairs of tokens and labels; the label depends on token and label before."""
    random = np.random.default_rng(seed)
    pull, found = random.normal(size=(labels + 1, labels)), []
    centres = random.normal(size=(labels, d))
    for _ in range(n):
        length, y, x = random.integers(1, longest + 1), [], []
        for _ in range(length):
            y.append(int(np.argmax(pull[y[-1] + 1 if y else 0] + 2.0 * random.normal(size=labels))))
            x.append(centres[y[-1]] + random.normal(scale=0.8, size=d))
        found.append((np.array(x, np.float32), y))
    return found


class Stream:
    """The compiled solver, fed and grown as the learner does."""

    def __init__(self, kind, order, labels=3, d=4, seed=1, C=0.5, n_r=1, n_o=3, **more):
        limit, method = more.get("limit", 2**60), more.get("method", LARANK)
        schedule = Schedule(method, order, n_r, n_o, limit)
        self.solver = kind(schedule, window=more.get("window"), seed=seed)
        self.order, self.n, self.C = order, labels, C
        self.solver.grow(d, labels, d)
        if "cost" in more:
            self.model.cost[:labels] = more["cost"]

    model = property(lambda self: self.solver.model)
    patterns = property(lambda self: self.solver.patterns)

    def change(self, **schedule):
        self.solver.schedule = self.solver.schedule._replace(**schedule)

    def batch(self, pairs):
        x = sparse(np.concatenate([x for x, _ in pairs]))
        first = np.concatenate([[0], np.cumsum([len(y) for _, y in pairs])])
        labels = np.concatenate([y for _, y in pairs]).astype(np.int32)
        n = len(pairs)
        return Batch(x, first, labels, np.full(n, self.n), np.full(n, self.C))

    def learn(self, pairs):
        self.solver.learn(self.batch(pairs))

    def predict(self, pairs):
        batch = self.batch(pairs)
        none = np.zeros((0, 1))
        return self.solver.predict(batch.x, batch.first, self.n, none).tolist()

    def dual(self):
        m, n = self.model, self.n
        square = (m.weights.astype(float) ** 2).sum() + (m.moves.astype(float) ** 2).sum()
        assert not m.weights[:, n:].any() and not m.moves[:, :, n:].any()
        return self.solver.linear_part() - 0.5 * square

    def finish(self, pairs, wanted=1e-7, passes=400):
        """Return the gap over all sentences after so many passes at most."""
        batch, gap = self.batch(pairs), np.inf
        self.change(n_optimize=10)
        for _ in range(passes):
            self.solver.learn_again(batch, self.n)
            self.solver.improve(self.n)
            gap = self.gap(batch)
            if gap <= wanted:
                break
        return gap

    def gap(self, batch):
        return self.solver.kept_gap(self.n)[0] + self.solver.other_gap(batch, self.n)

    def betas(self):
        """Return {number of the example: its coefficients by label or by labels}."""
        p, found = self.patterns, {}
        for slot in p.active.members[: p.active.counts[0].n_members]:
            number = int(p.store.entered[slot])
            if isinstance(self.solver, Greedy):
                found[number] = {c: b for c, b in enumerate(p.beta[slot]) if b != 0.0}
            else:
                found[number], v = {}, p.head[slot]
                while v >= 0:
                    start = p.labels.start[v]
                    labels = p.labels.numbers[start : start + p.labels.length[v]]
                    found[number][tuple(labels.tolist())] = p.beta[v]
                    v = p.next[v]
        return found
