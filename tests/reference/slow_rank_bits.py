"""Bits of one feature's ranks as the docstring of `RankBits` says it: all values are kept."""

from __future__ import annotations

import numpy as np

LAST = 2048


class SlowFeature:
    """Its bits, by quantiles that are computed anew for each value."""

    def __init__(self, n_bits):
        self.n_bits, self.values = n_bits, []

    def learn(self, value):
        self.values.append(np.float32(value))

    def edges(self):
        """Of the first 1, 2, 4, ..., 2,048 values, the largest such number that there are."""
        n = 1
        while 2 * n <= min(len(self.values), LAST):
            n *= 2
        first = np.sort(np.array(self.values[:n], np.float64))
        # Linear between the values at whole steps.
        steps = (n - 1) * np.arange(1, self.n_bits + 1) / (self.n_bits + 1)
        found = np.interp(steps, np.arange(n), first)
        smaller = first[first < first[-1]]
        return np.minimum(found, smaller[-1]) if len(smaller) else found

    def bits(self, value):
        """None where the feature was never learnt."""
        return (np.float32(value) > self.edges()).astype(float) if self.values else None
