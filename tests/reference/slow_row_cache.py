"""The row cache as one would write it first: a list of (slot, length), newest first."""

from __future__ import annotations


class SlowRowCache:
    """Knows which slots have a line, how long it is, and which goes next; holds no values."""

    def __init__(self, n_lines):
        self.lines = [[None, 0] for _ in range(n_lines)]

    def _find(self, slot):
        return next((line for line in self.lines if line[0] == slot), None)

    def _move_to_front(self, line):
        self.lines = [line, *(other for other in self.lines if other is not line)]

    def length(self, slot):
        line = self._find(slot)
        return None if line is None else line[1]

    def slots(self):
        """Newest first, None for a line without a slot."""
        return [slot for slot, _ in self.lines]

    def keep(self, slot, n):
        line = self.lines[-1]
        line[:] = [slot, n]
        self._move_to_front(line)

    def kernel_row(self, slot, n):
        line = self._find(slot)
        if line is None:
            self.keep(slot, n)
        else:
            line[1] = max(line[1], n)
            self._move_to_front(line)

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

    def resized(self, n_lines, emptied):
        taken = [] if emptied else [line for line in self.lines if line[0] is not None]
        new = SlowRowCache(n_lines)
        new.lines[: len(taken)] = taken[:n_lines]
        new.lines = new.lines[:n_lines]
        return new
