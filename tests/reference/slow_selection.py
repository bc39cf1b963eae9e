"""Selection of examples in plain Python, by what any classifier of this package has.

`model` has no selection of its own; it learns what is chosen, and `margins` asks it for each
candidate anew.
"""

import numpy as np

from streamsvm.selection.candidates import SEEDS


class SlowSelection:
    def __init__(self, model, rule, candidates, share=0.1, near=5):
        self.model, self.rule, self.most = model, rule, candidates
        self.share, self.near, self.n_came = share, near, 0
        self.waiting = []
        self.n_arrived = self.n_near = self.n_taken = 0
        self.taken_of = {}

    def margin(self, x):
        """Return the distance to the border, and the scores by label, or the signed margin."""
        found = self.model.decision_function_one(x)
        if not isinstance(found, dict):
            return abs(found), found
        scores = sorted(found.values())
        distance = scores[-1] - scores[-2] if len(scores) > 1 else np.inf
        if hasattr(self.model, "pair_margins_one"):
            best = max(found, key=found.get)
            margins = self.model.pair_margins_one(x).items()
            own = [m if a == best else -m for (a, b), m in margins if best in (a, b)]
            distance = max(0.0, min(own))
        return distance, found

    def correctness(self, x, y):
        found = self.margin(x)[1]
        if not isinstance(found, dict):
            return found if y == self.model.labels[1] else -found
        return found[y] - max(score for label, score in found.items() if label != y)

    def rank(self, place):
        x, y = self.waiting[place]
        if self.rule == "gradient":
            return self.correctness(x, y)
        return self.margin(x)[0]

    def learn_one(self, x, y):
        if self.taken_of.get(y, 0) < SEEDS:
            self.take(x, y)
            return
        is_near = self.margin(x)[0] < 1.0 + 0.5 * (self.model.delta or 0.0)
        self.waiting.append((x, y))
        self.waiting = self.waiting[-self.most :]
        self.n_arrived += 1
        self.n_came += 1
        self.n_near += is_near
        if self.rule == "autoactive":
            is_due = self.n_near >= self.near or self.n_arrived >= self.most
        else:
            is_due = int(self.n_came * self.share) > int((self.n_came - 1) * self.share)
        if is_due:
            self.n_arrived = self.n_near = 0
            ranks = [self.rank(place) for place in range(len(self.waiting))]
            self.take(*self.waiting.pop(int(np.argmin(ranks))))

    def take(self, x, y):
        self.taken_of[y] = self.taken_of.get(y, 0) + 1
        self.n_taken += 1
        self.model.learn_one(x, y)
