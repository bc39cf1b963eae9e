"""Small random sentences, and learners of the library fed with them."""

import numpy as np

from streamsvm.solvers.sequences import inference
from streamsvm.solvers.sequences.inference import Batch
from streamsvm.solvers.sequences.model import LANES, LARANK, Model, Schedule
from streamsvm.support import states
from streamsvm.support.draws import new_draws
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

    def __init__(self, solver, order, labels=3, d=4, seed=1, C=0.5, n_r=1, n_o=3, **more):
        self.solver, self.order, self.n, self.C = solver, order, labels, C
        classes, orders = LANES, max(1, order)
        sizes = {"features": d, "classes": classes, "orders": orders, "pasts": classes + 1}
        self.model = states.new(Model, sizes | {"late_features": 0, "late_orders": 0})
        if "cost" in more:
            self.model.cost[:labels] = more["cost"]
        self.patterns = solver.new_patterns(order, classes, more.get("window", 0))
        self.schedule = Schedule(
            more.get("method", LARANK), order, n_r, n_o, more.get("limit", 2**60)
        )
        self.draws = new_draws(seed)

    def batch(self, pairs):
        x = sparse(np.concatenate([x for x, _ in pairs]))
        first = np.concatenate([[0], np.cumsum([len(y) for _, y in pairs])])
        labels = np.concatenate([y for _, y in pairs]).astype(np.int32)
        n = len(pairs)
        return Batch(x, first, labels, np.full(n, self.n), np.full(n, self.C))

    def keep(self, patterns):
        self.patterns = patterns

    def learn(self, pairs):
        self.solver.learn(
            self.model, self.patterns, self.schedule, self.batch(pairs), self.draws, self.keep
        )

    def predict(self, pairs):
        batch = self.batch(pairs)
        none = np.zeros((0, 1))
        return self.solver.predict(
            self.model, self.order, batch.x, batch.first, self.n, none
        ).tolist()

    def dual(self):
        m, n = self.model, self.n
        square = (m.weights.astype(float) ** 2).sum() + (m.moves.astype(float) ** 2).sum()
        assert not m.weights[:, n:].any() and not m.moves[:, :, n:].any()
        return self.solver.linear_part(self.patterns, m.cost) - 0.5 * square

    def finish(self, pairs, wanted=1e-7, passes=400):
        """Return the gap over all sentences after so many passes at most."""
        batch, gap = self.batch(pairs), np.inf
        for _ in range(passes):
            slots = inference.slots_of(self.patterns, self.solver.numbers_in(batch.first))
            self.solver.learn_again(
                self.model, self.patterns, self.schedule, batch, slots, self.n, self.keep
            )
            self.solver.improve(self.model, self.patterns, self.order, self.n, 10, self.keep)
            gap = self.gap(batch)
            if gap <= wanted:
                break
        return gap

    def gap(self, batch):
        kept, _ = self.solver.kept_gap(self.model, self.patterns, self.order, self.n)
        slots = inference.slots_of(self.patterns, self.solver.numbers_in(batch.first))
        return kept + self.solver.other_gap(
            self.model, self.patterns, self.order, batch, slots, self.n
        )

    def betas(self):
        """Return {number of the example: its coefficients by label or by labels}."""
        p, found = self.patterns, {}
        for slot in p.active.members[: p.active.counts[0].n_members]:
            number = int(p.store.entered[slot])
            if self.solver is inference.Greedy:
                found[number] = {c: b for c, b in enumerate(p.beta[slot]) if b != 0.0}
            else:
                found[number], v = {}, p.head[slot]
                while v >= 0:
                    start = p.labels.start[v]
                    labels = p.labels.numbers[start : start + p.labels.length[v]]
                    found[number][tuple(labels.tolist())] = p.beta[v]
                    v = p.next[v]
        return found
