r"""A threshold of scores that a given share of a stream exceeds, whatever the stream does.

Problem. Before each event a threshold :math:`q_t` is chosen; then comes a score :math:`s_t`, which
tells how badly the event fitted the prediction. The event is missed, :math:`m_t = 1`, if
:math:`s_t > q_t`, else :math:`m_t = 0`. Wanted is that a share :math:`a` of all events is missed,
with nothing assumed: scores may drift, and an adversary may choose them.

Method. A level :math:`l_t` says which quantile of the last scores is the threshold. It begins at a
and moves after each event by :math:`l_{t+1} = l_t + g (a - m_t)`, with :math:`g = a / 4`: down
after a miss, so that the next sets are larger (Gibbs and Candes 2021; there levels go up to 1). Of
the last n scores, at most 500, the threshold is the k-th smallest,
:math:`k = n + 1 - \lfloor (n + 1) l_t \rfloor`. It is infinite if k > n or :math:`l_t \le 0`, so
that nothing is missed then, and minus infinity if :math:`l_t \ge u`, with
:math:`u = \min(1, 3 a)`, so that all is missed.

Bound. For any scores, and at every T, the number M of misses among the first T events fulfils

.. math:: a T - 9 < M < a T + 5.

Proof. A level that is at most 0 never falls, as nothing is missed at it; so all levels are above
:math:`-g (1 - a)`. In the same way one that is at least u never rises, and all are below
:math:`u + g a`. The steps add up to :math:`M - a T = (a - l_{T+1}) / g`, which is thus less than
:math:`a / g + 1 - a < 5`, and more than :math:`(a - u) / g - a \ge -8 - a > -9`.

A label that nobody had met is missed whatever the threshold. It moves no level below
:math:`-g (1 - a)`, so that M may be larger by the number of those. Labels that come up to d events
late let d more events be missed before the level that follows from them is used: levels may be
lower then, and M larger by d. If something is hit at minus infinity (an exact prediction of a
number, a late label), the level does not rise further, and M may be smaller.

Tokens of a sentence are events whose sets are made together, before any of its labels comes: d is
its length less 1. With g = a / 4 a few misses in one sentence would put all labels into the sets of
the next ones; so g is a / 16 there, and M is less than a T + 17 + d.

The step is the one of several that measured best, and u = 3 a makes the bound small: with u = 1
levels wander off while a model is perfect, and come back too late. Tried were also fixed and
decaying steps of the threshold itself, several steps combined, and betting on it: the page "How far
to trust it" has their figures.

Gibbs, Candes, Adaptive Conformal Inference Under Distribution Shift, NeurIPS (2021); Gibbs, Candes,
Conformal Inference for Online Prediction with Arbitrary Distribution Shifts, JMLR 25 (2024);
Angelopoulos, Barber, Bates, Online Conformal Prediction with Decaying Step Sizes, ICML (2024);
Podkopaev, Xu, Lee, Adaptive Conformal Inference by Betting, ICML (2024).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

RECENT = 500
"""So many of the last scores are kept, and the threshold is one of them."""

STEPS = 4.0
STEPS_OF_TOKENS = 16.0
"""How many steps down, each after a miss, are the share of misses: a / g."""

_LARGEST = 3.0

TOO_MANY, TOO_FEW = 5, 9
"""Misses are fewer than these above, or below, their share of the events."""


class Threshold:
    """The threshold of the next score: see the module.

    Attributes
    ----------
    value
        The next score is missed if it is larger; infinite, or minus infinity, as said above.
    level
        The quantile that it is, counted from above.
    deepest
        The lowest level so far, if it is below the one that labels in time can reach.
    scores
        The last scores, oldest first.

    """

    __slots__ = (
        "_down", "_highest", "_lowest", "_miss_rate", "_most", "_ordered", "_step", "_up",
        "deepest", "level", "scores", "value",
    )  # fmt: skip

    def __init__(
        self,
        miss_rate: float,
        level: float | None = None,
        scores: Iterable[float] = (),
        deepest: float = 0.0,
        steps: float = STEPS,
    ) -> None:
        self._miss_rate = miss_rate
        self.level = miss_rate if level is None else level
        self._step = miss_rate / steps
        self._up, self._down = self._step * miss_rate, self._step * (miss_rate - 1.0)
        self._most = min(1.0, _LARGEST * miss_rate)
        self._lowest = -self._step * (1.0 - miss_rate)
        self.deepest = min(deepest, self._lowest)
        self._highest = self._most + self._step * miss_rate
        self.scores = deque(scores, maxlen=RECENT)
        self._ordered = sorted(self.scores)
        self.value = self._quantile()

    @property
    def too_many(self) -> float:
        """How many misses there are at most above their share, but for labels not met before.

        Less than `TOO_MANY`, if no label came late, with as many steps as there are by default.
        """
        return (self._miss_rate - self.deepest) / self._step

    def learn(self, score: float, is_missed: bool, is_new: bool = False) -> None:
        """Take the score of an event, no NaN, whether it was missed, and its label never met."""
        # Called for each event: comparisons take a third of the time of min and max.
        level = self.level + (self._down if is_missed else self._up)
        if level < self._lowest:
            if is_new:
                level = max(level, min(self.level, self._lowest))
            if level < self.deepest:
                self.deepest = level
        elif level > self._highest:
            level = self._highest
        self.level = level
        scores, ordered = self.scores, self._ordered
        if len(scores) == RECENT:
            del ordered[bisect_left(ordered, scores[0])]
        scores.append(score)
        insort(ordered, score)
        # As `_quantile`, without a call.
        n = len(ordered)
        above = int((n + 1) * level)
        if 0 < above and level < self._most:
            self.value = ordered[n - above]
        else:
            self.value = self._quantile()

    def _quantile(self) -> float:
        """Return the threshold at the level."""
        n = len(self._ordered)
        above = int((n + 1) * self.level)
        if self.level >= self._most:
            return -math.inf
        return self._ordered[n - above] if above > 0 else math.inf


def least_ambiguous(p: Mapping[Any, float]) -> dict[Any, float]:
    """Return the score 1 - p of each label: sets are the smallest in the mean.

    Sadinle, Lei, Wasserman, Least Ambiguous Set-Valued Classifiers, JASA 114 (2019).
    """
    return {y: _number(1.0 - one) for y, one in p.items()}


def adaptive(p: Mapping[Any, float]) -> dict[Any, float]:
    """Return for each label the sum of the probabilities of the labels that are more likely.

    Sets are larger where the model is less sure. Romano, Sesia, Candes, Classification with Valid
    and Adaptive Coverage, NeurIPS (2020), without their random part.
    """
    found, above = {}, 0.0
    for y in sorted(p, key=lambda y: -_number(p[y], 0.0)):
        found[y] = above
        above += _number(p[y], 0.0)
    return found


def margins(scores: np.ndarray) -> np.ndarray:
    """Return by how much each score of a row is below the best other one, float64 (rows, labels).

    Only the best score has one below 0: sets are empty where it is least ahead of the second.
    """
    if scores.shape[1] < 2:
        return np.zeros(scores.shape)
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    found: np.ndarray = best[:, None] - scores
    found[np.arange(len(scores)), scores.argmax(axis=1)] = second - best
    return found


def _number(value: float, instead: float = 1.0) -> float:
    """Return a number, or `instead` of NaN."""
    return value if value == value else instead
