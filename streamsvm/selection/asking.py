"""When to ask for the label of an event that comes now, so that a given share is asked for.

Each strategy is told how uncertain the model is, as a number from 0 (two labels are equally likely)
to 1, and says at once whether to ask. "quantile" is the balanced incremental quantile filter of
Kottke, Krempl, Spiliopoulou (2015): an event is asked for if it is among the least certain ones of
the last `_WINDOW`, with a threshold that is moved while fewer or more were asked than the budget
allows. "uncertainty" is the variable randomised uncertainty of Zliobaite, Bifet, Pfahringer, Holmes
(2014): a threshold that falls by 1 % with each question, and rises else. "random" asks at random.
"""

from __future__ import annotations

import math
import random
from collections import deque

from streamsvm._parameter_checks import check_number, check_seed
from streamsvm.errors import ParameterError

STRATEGIES = ("quantile", "uncertainty", "random")

LEAST_BUDGET = 1e-6

_WINDOW = 200
_TOLERANCE = 50.0
"""How many questions too few let the threshold of "quantile" rise by the range of its window."""

_MOST_AHEAD = 20.0
"""So many questions more than the budget allows are asked at most, but at random."""

_STEP = 0.01
_MEMORY = 100.0
"""About so many of the last events are counted in the share that "uncertainty" has asked for."""


class Asking:
    """Decides for each event of a stream whether to ask for its label.

    Attributes
    ----------
    budget, strategy
        The share of events to ask for, and one of `STRATEGIES`.
    n_seen, n_asked
        How many events came, and how many of them were asked for.

    """

    def __init__(
        self, budget: float = 0.1, strategy: str = "quantile", seed: int | None = None
    ) -> None:
        self.budget = check_number("budget", budget, LEAST_BUDGET, 1.0)
        if strategy not in STRATEGIES:
            raise ParameterError(
                f"strategy={strategy!r}: use one of {', '.join(map(repr, STRATEGIES))}"
            )
        self.strategy, self.seed = strategy, check_seed(seed)
        self.n_seen = self.n_asked = 0
        self._draws = random.Random(seed)
        self._last: deque[float] = deque(maxlen=_WINDOW)
        self._threshold, self._share = 1.0, 0.0

    def wants(self, distance: float, is_new: bool = False) -> bool:
        """Tell whether to ask for the next event, and count it.

        Parameters
        ----------
        distance
            From 0 to 1: how much more likely the best label is than the second best.
        is_new
            Whether the model knows too little to be asked: then the answer is yes.

        """
        self.n_seen += 1
        # Of what is no number nothing is known.
        distance = distance if distance == distance else 0.0
        asks: bool = is_new or getattr(self, f"_by_{self.strategy}")(distance)
        self.n_asked += asks
        self._share += (asks - self._share) / _MEMORY
        return asks

    def is_due(self) -> bool:
        """Tell whether the budget allows to ask for one of the events so far; count the next."""
        self.n_seen += 1
        is_due = self.n_asked + 1 <= self.budget * self.n_seen
        self.n_asked += is_due
        return is_due

    def _by_random(self, distance: float) -> bool:
        # As many as the budget allows, whatever was asked for at first.
        owed = self.budget * self.n_seen - self.n_asked
        return self._draws.random() < min(1.0, max(0.0, self.budget + owed / _TOLERANCE))

    def _by_quantile(self, distance: float) -> bool:
        self._last.append(distance)
        ordered = sorted(self._last)
        place = min(len(ordered) - 1, math.ceil(self.budget * len(ordered)) - 1)
        owed = self.budget * self.n_seen - self.n_asked
        spread = ordered[-1] - ordered[0]
        return owed > -_MOST_AHEAD and distance <= ordered[place] + spread * owed / _TOLERANCE

    def _by_uncertainty(self, distance: float) -> bool:
        owed = self.budget * self.n_seen - self.n_asked
        if owed <= -_MOST_AHEAD or self._share >= self.budget < 1.0:
            return False
        asks = distance < self._threshold * self._draws.gauss(1.0, 1.0)
        self._threshold *= 1.0 - _STEP if asks else 1.0 + _STEP
        self._threshold = min(1e6, max(1e-12, self._threshold))
        return asks
