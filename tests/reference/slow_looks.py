"""Looks in plain Python: an example drawn in proportion to its C_i, and the sums of its Z."""

from __future__ import annotations

from streamsvm.support.looks import TRIES
from tests.reference.slow_tracking import SlowDraws


class SlowLooks:
    """The sums of looks, with the draws of the compiled code from a given word."""

    def __init__(self, word):
        self.draws = SlowDraws(word)
        self.n = 0  # examples with looks before those of the twin
        self.total = self.squares = self.most = 0.0

    def heavy(self, members, cost, largest):
        """Return one of the members, drawn in proportion to box[member]."""
        for _ in range(max(TRIES, len(members) // 8) if largest > 0.0 else 0):
            i = members[self.draws.below(len(members))]
            if cost[i] >= largest or self.draws.uniform() * largest < cost[i]:
                return i
        left = self.draws.uniform() * sum(cost[i] for i in members)
        for i in members:
            left -= cost[i]
            if left < 0.0:
                return i
        return members[-1]

    def record(self, z, bound, weight):
        self.total += weight * z
        self.squares += (weight * z) ** 2
        self.most = max(self.most, weight * bound)
