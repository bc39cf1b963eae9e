"""One scaled feature as the docstring of the scaler says it: all values are kept."""

from __future__ import annotations

import numpy as np

ENOUGH = 20


class SlowFeature:
    """Mean and variance of one feature, computed anew from lists."""

    def __init__(self, clip):
        self.clip = clip
        self.counted, self.recent = [], []
        self.n_clipped = 0

    def distance(self, value):
        """In standard deviations; None while it is unknown."""
        if len(self.counted) < ENOUGH or np.std(self.counted) == 0.0:
            return None
        return (value - np.mean(self.counted)) / np.std(self.counted)

    def learn(self, value):
        distance = self.distance(value)
        counted = value
        if distance is not None and abs(distance) > self.clip:
            self.n_clipped += 1
            most = min(abs(distance), 2.0 * self.clip)
            counted = np.mean(self.counted) + np.sign(distance) * most * np.std(self.counted)
        self.counted.append(counted)
        self.recent.append(value)
        if len(self.recent) >= max(ENOUGH, len(self.counted) / 4):
            share = 0.1 if len(self.recent) >= 100 else 0.01
            if 0.0 < np.std(self.recent) < share * np.std(self.counted):
                self.counted = self.recent
            self.recent = []

    def scaled(self, value):
        spread = np.std(self.counted) if self.counted else 0.0
        if spread == 0.0:
            return 0.0
        return float(np.clip((value - np.mean(self.counted)) / spread, -self.clip, self.clip))
