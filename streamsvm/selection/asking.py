"""When to ask for the label of an event that comes now, so that a given share is asked for.

Each strategy is told how uncertain the model is, as a number from 0 (two labels are equally likely)
to 1, and says at once whether to ask. "quantile" is the balanced incremental quantile filter of
Kottke, Krempl, Spiliopoulou (2015): an event is asked for if it is among the least certain ones of
the last `_WINDOW`, with a threshold that is moved while fewer or more were asked than the budget
allows. "uncertainty" is the variable randomised uncertainty of Zliobaite, Bifet, Pfahringer, Holmes
(2014): a threshold that falls by 1 % with each question and rises otherwise. "random" asks at
random.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Mapping
from typing import Any

from streamsvm._parameter_checks import check_number, check_seed, check_whole
from streamsvm.errors import ParameterError
from streamsvm.model_files.json_values import (
    as_json,
    checked,
    checked_number,
    checked_scalar,
    draws_as_json,
    set_draws,
)
from streamsvm.selection.strategies import MOST_CANDIDATES
from streamsvm.support.declaration import as_int
from streamsvm.support.locked import Locked, guarded, locked

STRATEGIES = ("quantile", "uncertainty", "random")

LEAST_BUDGET = 1e-6

_PARAMETERS = ("budget", "strategy", "candidates", "seed")
_COUNTED = ("n_seen", "n_asked", "n_answered")

_FIRST = 10
"""So many labels are asked for at first, and more until there are two classes."""

_MOST_FIRST = 50
"""After so many there may be no other class, or answers come late: it is asked for as usual."""

_WINDOW = 200
_TOLERANCE = 50.0
"""How many questions too few let the threshold of "quantile" rise by the range of its window."""

_MOST_AHEAD = 20.0
"""The largest overdraft of the budget, in questions; "random" has none."""

_STEP = 0.01
_MEMORY = 100.0
"""About so many of the last events are counted in the share that "uncertainty" has asked for."""


class Asking(Locked):
    """Decides for each event of a stream whether to ask for its label.

    Attributes
    ----------
    budget, strategy, candidates, seed
        The parameters of `ActiveLearner`.
    n_seen, n_asked, n_answered
        How many events came, how many of them were asked for, and how many answers were learnt.
    waiting
        The events that may be asked for later, oldest first: at most `candidates`.

    """

    def __init__(
        self,
        budget: float = 0.1,
        strategy: str = "quantile",
        candidates: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.budget = check_number("budget", budget, LEAST_BUDGET, 1.0)
        if strategy not in STRATEGIES:
            raise ParameterError(
                f"strategy={strategy!r}: use one of {', '.join(map(repr, STRATEGIES))}"
            )
        if candidates is not None:
            check_whole("candidates", candidates, 1, MOST_CANDIDATES, ", or None")
        self.strategy, self.candidates, self.seed = strategy, candidates, check_seed(seed)
        self.n_seen = self.n_asked = self.n_answered = 0
        self.waiting: list[dict[Any, Any]] = []
        self._labels: set[Any] = set()  # up to two that were learnt
        self._draws = random.Random(seed)
        self._last: deque[float] = deque(maxlen=_WINDOW)
        self._threshold, self._share = 1.0, 0.0

    def __repr__(self) -> str:
        values = f"{self.budget!r}, {self.strategy!r}, candidates={self.candidates}"
        return f"Asking({values}, seed={self.seed})"

    @property
    def is_new(self) -> bool:
        """Whether the model knows too little to be asked how certain it is."""
        n = self.n_asked
        return n < _FIRST or (len(self._labels) < 2 and n < _MOST_FIRST)

    @property
    def counts(self) -> dict[str, int]:
        """How many events came, labels were asked for, and answers learnt."""
        return {"events": self.n_seen, "asked": self.n_asked, "answered": self.n_answered}

    @guarded
    def wants(self, p: Mapping[Any, float]) -> bool:
        """Tell whether to ask for the next event, and count it; `p` are {label: probability}."""
        self.n_seen += 1
        distance = probability_margin(p)
        asks: bool = self.is_new or getattr(self, f"_by_{self.strategy}")(distance)
        self.n_asked += asks
        self._share += (asks - self._share) / _MEMORY
        return asks

    @guarded
    def answered(self, y: Any) -> None:
        """Count an answer that was learnt."""
        self.n_answered += 1
        if len(self._labels) < 2:
            self._labels.add(y)

    @guarded
    def hold(self, x: Mapping[Any, Any]) -> None:
        """Let an event wait; the oldest one leaves if there are more than `candidates`."""
        self.waiting = [*self.waiting, dict(x)][-(self.candidates or 1) :]

    @guarded
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

    # Files

    @locked
    def as_json(self) -> dict[str, Any]:
        """Return parameters and state as JSON values."""
        events = [
            [[as_json(name, "the name"), as_json(v, f"feature {name!r}")] for name, v in x.items()]
            for x in self.waiting
        ]
        content = {name: getattr(self, name) for name in (*_PARAMETERS, *_COUNTED)}
        return content | {
            "labels": [as_json(y, "the label") for y in self._labels],
            "last": list(self._last),
            "threshold": self._threshold,
            "asked_lately": self._share,
            "draws": draws_as_json(self._draws),
            "waiting": events,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Asking:
        """Return what `as_json` described; raise ValueError if that does not hold together."""
        asking = cls(**{name: checked_scalar(content.get(name), name) for name in _PARAMETERS})
        asking.read(content)
        return asking

    def read(self, content: dict[str, Any]) -> None:
        """Set the state that `as_json` described."""
        for name in _COUNTED:
            setattr(self, name, as_int(name, content.get(name), 0))
        if self.n_asked > self.n_seen:
            raise ValueError("more labels were asked for than events came")
        labels = checked(content.get("labels"), list, "labels")
        self._labels = {checked_scalar(y, "a label") for y in labels[:2]}
        last = [checked_number(d, "a distance") for d in checked(content.get("last"), list, "last")]
        self._last.extend(last)
        self._threshold = checked_number(content.get("threshold"), "threshold")
        self._share = checked_number(content.get("asked_lately"), "asked_lately")
        set_draws(self._draws, content.get("draws"))
        self.waiting = [
            {checked_scalar(name, "a name"): checked_scalar(v, "a feature") for name, v in x}
            for x in checked(content.get("waiting"), list, "waiting")
        ]
        if len(self.waiting) > (self.candidates or 0):
            raise ValueError("more events wait than may")


def probability_margin(p: Mapping[Any, float]) -> float:
    """Return how much more likely the best label is than the second best; 1 if there is one.

    0 if a probability is NaN.
    """
    ordered = sorted(p.values(), reverse=True)
    distance = ordered[0] - ordered[1] if len(ordered) > 1 else 1.0
    return distance if distance == distance else 0.0
