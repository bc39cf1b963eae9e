"""Which examples a window by class may hold, from lists of all numbers by class."""

from streamsvm.solvers.bounds import RARE


class SlowWindow:
    """Told of each example that counts, in their order."""

    def __init__(self, window, rare=RARE):
        self.window, self.rare = window, rare
        self.generations = {}

    def note(self, c, number, n_classes):
        """Add an example of class c, one of `n_classes` then."""
        own = self.generations.setdefault(c, [[]])
        if len(own[-1]) >= max(1, int(self.window * self.rare / n_classes)):
            own.append([])
        own[-1].append(number)

    def holds(self, c, number, now):
        """Tell whether example `number`, of class c, is held when `now` is the last one."""
        if number > now - self.window:
            return True
        # Nothing of the first two generations is too old.
        own = self.generations.get(c, [[]])[-2:]
        return self.rare > 0.0 and number >= (own[0][0] if len(own) == 2 else 0)
