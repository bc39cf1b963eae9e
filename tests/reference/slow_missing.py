"""Missing values filled in plain Python, event by event."""

import numpy as np


class SlowMissing:
    """The means of features so far; `filled` returns an event of all features known."""

    def __init__(self):
        self.values, self.since = {}, {}

    def is_usual(self, name):
        """Tell whether a feature is usually there, and not always 1."""
        values = self.values[name]
        is_there = len(values) >= 4 and 2 * len(values) >= self.since[name]
        return is_there and any(v != 1.0 for v in values)

    def filled(self, x):
        """Return float32 values of the features that had one before, or have one now."""
        present = {n: float(np.float32(v)) for n, v in x.items() if v is not None and v == v}
        means = {n: sum(v) / len(v) if self.is_usual(n) else 0.0 for n, v in self.values.items()}
        return {n: float(np.float32(v)) for n, v in (means | present).items()}

    def learn(self, x):
        """Count the values of an event."""
        for name, value in x.items():
            if value is not None and value == value:
                self.values.setdefault(name, []).append(float(np.float32(value)))
                self.since.setdefault(name, 0)
        for name in self.since:
            self.since[name] += 1

    def counts(self):
        """Return how often each feature was missing since its first value."""
        varied = [n for n, values in self.values.items() if set(values) != {1.0}]
        found = {name: self.since[name] - len(self.values[name]) for name in varied}
        return {name: n for name, n in found.items() if n}
