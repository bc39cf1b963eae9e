"""The statistics of one feature without its outliers, as `feature_scales` says it."""

from __future__ import annotations

import numpy as np

from tests.reference.slow_scaler import SlowFeature


class SlowScale:
    """Limits from the first values; what lies outside is left out, unless it is much of late."""

    def __init__(self, first):
        tail = (len(first) - 1) // 50
        inner = np.sort(first.astype(float))[tail : len(first) - tail]
        width = inner[-1] - inner[0]
        steps = np.sort(np.abs(np.diff(first.astype(float))))
        beyond = 10.0 * width if 30.0 * steps[len(steps) // 2] > width else np.inf
        self.low, self.high = inner[0] - beyond, inner[-1] + beyond
        self.n_far = 0.0
        self.feature = SlowFeature(10.0)

    def learn(self, value):
        if self.low <= value <= self.high:
            self.n_far = max(0.0, self.n_far - 0.25)
        else:
            self.n_far += 1.0
            if self.n_far < 8.0:
                return
            self.n_far = 7.0
            middle, half = (self.low + self.high) / 2.0, (self.high - self.low) / 2.0
            self.low, self.high = middle - 4.0 * half, middle + 4.0 * half
        self.feature.learn(value)

    @property
    def variance(self):
        return float(np.var(self.feature.counted))
