"""The row cache as one would write it first: two lists of (slot, length), newest first."""

from __future__ import annotations


class SlowRowCache:
    """Knows which slots have a line, how long it is, and which goes next; holds no values."""

    def __init__(self, n_lines, at_once, most_on_trial=64):
        self.admitted: list[list] = []
        self.on_trial: list[list] = []
        self.n_unused, self.at_once = n_lines, min(n_lines, at_once)
        self.n_lines, self.most_on_trial = n_lines, min(most_on_trial, self.at_once // 2)
        self.newest: list | None = None

    @property
    def lines(self):
        return self.admitted + self.on_trial

    def _find(self, slot):
        return next((line for line in self.lines if line[0] == slot), None)

    def _touch(self, line):
        """Move an admitted line to the front; admit one on trial unless it is the newest."""
        for lines in (self.admitted, self.on_trial):
            for at, other in enumerate(lines):
                if other is line and not (lines is self.on_trial and line is self.newest):
                    del lines[at]
                    self.admitted.insert(0, line)
                    return

    def length(self, slot):
        line = self._find(slot)
        return None if line is None else line[1]

    def slots(self):
        """Newest first, None for a line without a slot: those admitted, then those on trial."""
        return [slot for slot, _ in self.admitted], [slot for slot, _ in self.on_trial]

    def keep(self, slot, n):
        if len(self.on_trial) < self.most_on_trial:
            if self.n_lines - self.n_unused < self.at_once:
                self.n_unused -= 1
            else:
                self.admitted.pop()
        else:
            self.on_trial.pop()
        self.newest = [slot, n]
        self.on_trial.insert(0, self.newest)

    def kernel_row(self, slot, n):
        line = self._find(slot)
        if line is not None:
            line[1] = max(line[1], n)
            self._touch(line)
            return
        if self.n_unused:
            self.n_unused -= 1
        else:
            self.admitted.pop()
        self.admitted.insert(0, [slot, n])

    def free(self, slot):
        line = self._find(slot)
        if line is not None:
            line[:] = [None, 0]

    def reorder(self, order):
        """Let slot order[s] become slot s."""
        for line in self.lines:
            slot, length = line
            if slot is None or slot not in order:
                line[:] = [None, 0]
                continue
            known = 0
            while known < len(order) and order[known] < length:
                known += 1
            line[:] = [order.index(slot), known]

    def resized(self, n_lines, at_once, emptied):
        taken = [] if emptied else [line for line in self.admitted if line[0] is not None]
        new = SlowRowCache(n_lines, at_once)
        new.admitted = taken[:n_lines]
        new.n_unused -= len(new.admitted)
        return new
