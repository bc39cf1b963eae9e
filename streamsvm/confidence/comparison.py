r"""Which of two models errs less, said at any moment of a stream, by counts of paired losses.

Problem. Two models a and b predict the same events before either learns them; event i costs them
losses :math:`l^a_i, l^b_i`, such as 1 for a wrong prediction and 0 for a right one. Let
:math:`d_i = E[l^a_i - l^b_i | past]`: it may change at any time, and depend on the past. "b is
better" after n events means that the mean of :math:`d_1 ... d_n` is above 0.

Method. A loss that is at most L makes :math:`x_i = (1 + (l^a_i - l^b_i) / L) / 2` a value in
[0, 1]: who doubts that its mean is at most 1/2 bets as in `streamsvm.confidence.sequence`. His
capital is an e-value against "b is not better". It ever is :math:`2 / (1 - level)` or more at an n
at which b is not better with probability at most (1 - level) / 2, and the same is true of a. So
who looks after each event, and stops or acts when he likes, is wrong with probability 1 - level at
most. As the interval of the difference comes from the same capital, it leaves out 0 exactly when
one of both is said to be better.

Where both models lose the same, nobody wins or loses a bet. All others together at most double the
capital each, so that nothing needs to be computed until as many came as could decide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsvm.confidence.sequence import (
    BETS,
    difference_interval,
    error_of,
    log_capital,
    log_evidence,
    lower_end,
)

NAMES = ("a", "b")

_LARGEST_LOG = 690.0
"""Above it, an e-value would be no finite number."""

_MOST_SAID = 1e9

_WORDS = ((1e6, "very strong"), (1e3, "strong"), (0.0, "clear"))
"""Of evidence that decides, by the e-value from which on it is called so."""


def decision_in_words(found: dict[str, Any]) -> str:
    """Say which model is better, and how strong the evidence is, by figures of a comparison."""
    value, needed = found["e_value"], found["needed"]
    said = "more than a billion" if value > _MOST_SAID else f"{value:.3g}"
    if found["decision"] is None:
        return f"not known yet which is better (evidence {said}, needed {needed:.3g})"
    strength = next(word for least, word in _WORDS if value >= least)
    return (
        f"{found['decision']} is better, {strength} evidence ({said}, needed {needed:.3g}), first "
        f"known after {found['first_known'][found['decision']]:,}"
    )


def difference_in_words(found: dict[str, Any]) -> str:
    """Say how much better b is, by figures of a comparison."""
    low, high, n = found["difference_low"], found["difference_high"], found["n"]
    if "only_b" in found:
        between = f"between {100 * low:+.2f} and {100 * high:+.2f} points of accuracy more than a"
    else:
        between = f"a mean loss that is lower by {low:.4g} to {high:.4g}"
    return f"b has {between}, of {n:,} events"


class Comparison:
    """The losses of two models, and what is known by them: see the module.

    Parameters
    ----------
    level
        The probability that all decisions hold, of both models and of all moments.
    largest_loss
        The largest loss; None: losses are 0 and 1, and only counted.
    warm_up
        So many first events are not compared.
    kept
        What a model around this one needs to be read from a file, as JSON values.

    Attributes
    ----------
    n_seen, n
        How many events there were, and how many of them were compared.
    only_a, only_b, both
        How many of these only a had right, only b, and both; 0 with a largest loss.
    loss_a, loss_b
        The sums of the losses.
    first
        {"a" or "b": after how many events compared it was first known to be better}.
    outcome
        The record of how the comparison ended; None: it goes on.

    """

    def __init__(
        self,
        level: float = 0.95,
        largest_loss: float | None = None,
        warm_up: int = 0,
        kept: dict[str, Any] | None = None,
    ) -> None:
        self.level, self.largest_loss, self.warm_up = level, largest_loss, warm_up
        self.kept = kept or {}
        self.n_seen = self.n = self.only_a = self.only_b = self.both = 0
        self.loss_a = self.loss_b = 0.0
        self.gains = None if largest_loss is None else np.zeros((2, len(BETS)))
        self.first: dict[str, int] = {}
        self.outcome: dict[str, Any] | None = None
        self._limit = -math.log(0.5 * error_of(level))
        self._left = 0

    def add(self, loss_a: float, loss_b: float) -> str | None:
        """Take the losses of an event; return which model is known now, for the first time."""
        self.n_seen += 1
        if self.n_seen <= self.warm_up:
            return None
        self.n += 1
        self.loss_a += loss_a
        self.loss_b += loss_b
        if self.gains is None:
            if loss_a == loss_b:
                self.both += not loss_a
                return None
            if loss_a:
                self.only_b += 1
            else:
                self.only_a += 1
        else:
            more = 0.5 * (1.0 + (loss_a - loss_b) / self.largest_loss)  # type: ignore[operator]
            self.gains += np.log1p(np.multiply.outer((1.0 - more, more), BETS))
        self._left -= 1
        return self._look() if self._left <= 0 else None

    def _look(self) -> str | None:
        """Look whether a model is known to be better now, and when to look next."""
        found, least = None, math.inf
        for name in NAMES:
            if name in self.first:
                continue
            missing = self._limit - self.log_evidence(name)
            if missing <= 0.0:
                self.first[name] = self.n
                found = name
            else:
                least = min(least, missing)
        # A bet at most doubles what was put on it.
        self._left = max(1, int(min(least / math.log(2.0), 2.0**60)))
        return found

    def log_evidence(self, name: str) -> float:
        """Return the log of the e-value against "the model of this name is not better"."""
        if self.gains is not None:
            return float(log_capital(self.gains[NAMES.index(name)], self.n, 0.5))
        more, less = (self.only_a, self.only_b) if name == "a" else (self.only_b, self.only_a)
        return log_evidence(more, less, self.n)

    @property
    def decision(self) -> str | None:
        """Which model is better by all events so far; None: not known yet."""
        return next((name for name in NAMES if self.log_evidence(name) >= self._limit), None)

    @property
    def needed(self) -> float:
        """The e-value that decides."""
        return math.exp(self._limit)

    def interval(self) -> tuple[float, float]:
        """Return the interval of how much more a loses than b, in the mean of an event."""
        if self.gains is None:
            return difference_interval(self.only_b, self.only_a, self.n, self.level)
        if not self.n:
            return -float(self.largest_loss or 0.0), float(self.largest_loss or 0.0)
        mean = 0.5 * (1.0 + self.difference / float(self.largest_loss or 1.0))
        highest = np.clip([1.0 - mean, mean], 0.0, 1.0)
        ends = lower_end(self.gains, np.full(2, self.n), highest, 0.5 * error_of(self.level))
        a, b = (2.0 * ends - 1.0) * float(self.largest_loss or 1.0)
        return float(b), -float(a)

    @property
    def difference(self) -> float:
        """How much more a lost than b, in the mean of the events compared."""
        return (self.loss_a - self.loss_b) / self.n if self.n else 0.0

    def figures(self) -> dict[str, Any]:
        """Return what is known now, as JSON values.

        `e_value` is that of the model that is ahead; `difference` is above 0 if b is better: with
        losses of 0 and 1, the accuracy of b less that of a.
        """
        evidence = max(self.log_evidence(name) for name in NAMES)
        low, high = self.interval()
        found: dict[str, Any] = {
            "decision": self.decision,
            "e_value": math.exp(min(evidence, _LARGEST_LOG)),
            "needed": self.needed,
            "difference": self.difference,
            "difference_low": low,
            "difference_high": high,
            "n": self.n,
            "n_seen": self.n_seen,
            "loss_a": self.loss_a / self.n if self.n else None,
            "loss_b": self.loss_b / self.n if self.n else None,
            "first_known": dict(self.first),
        }
        if self.gains is None:
            found |= {"both_right": self.both, "only_a": self.only_a, "only_b": self.only_b}
            found["both_wrong"] = self.n - self.both - self.only_a - self.only_b
        return found

    def numbers(self) -> dict[str, float]:
        """Return the figures of a monitor's record: see `streamsvm.monitor.figures`."""
        low, high = self.interval()
        is_in_use = self.outcome is not None and self.outcome["in_use"] == "b"
        return {
            "candidate_difference": self.difference,
            "candidate_difference_low": low,
            "candidate_difference_high": high,
            "candidate_log_evidence": self.log_evidence("b"),
            "candidate_in_use": float(is_in_use),
        }

    def in_words(self) -> str:
        """Return what is known now in a line."""
        found = self.figures()
        return f"{decision_in_words(found)}; {difference_in_words(found)}"

    # Files

    def settings(self) -> str:
        """Return the parameters as a text, which differs if they do."""
        found = {name: getattr(self, name) for name in ("level", "largest_loss", "warm_up")}
        return ", ".join(f"{name} {value}" for name, value in (found | self.kept).items())

    def as_json(self) -> dict[str, Any]:
        """Return parameters and state as JSON values."""
        found = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return found | {"gains": None if self.gains is None else self.gains.tolist()}
