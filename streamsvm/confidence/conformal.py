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
:math:`-g (1 - a)`, so that M may be larger by the number of those. If something is hit at minus
infinity (an exact prediction of a number, a number that was no number), the level does not rise
further, and M may be smaller. It is the first T events: of any T in a row the number may be off by
up to 13 either way, as much as levels can differ.

Late labels. Where d sets wait for their labels, a step is made up for d times before it is seen to
have been enough: thresholds swing between all and nothing. So the quantile is not at
:math:`l_t` but at :math:`a + b (l_t - a)`, with :math:`b = 1 / (1 + (d' - 3) g / .3)`, of
d' = 1.1 times the most that waited of late: what is wrong is mended by less than a third while d
labels come (1 / e is where such a loop begins to swing). At :math:`l_t \le a - a / b` nothing is
missed but events whose sets were given before, at most d: a level is above
:math:`a - a / b - g (1 - a) (d + 1)`, and :math:`M - a T < 5 + d (1 + 4 a)`. From below it is
9 + 8 a d. While no labels come at all, b falls, so that the quantile nears that at a, as it should.
If they then come all at once, without a set given in between, those misses do not move the level
further below :math:`a - a / b` than it is, and are counted as `forgiven`: M may be larger by
them, and `too_many` says so.

Many labels. Of more than 50, b is a quarter from the start (times what late labels need): sets of
all labels cost much then, and are rarer with smaller steps. M - a T is below 17, and above -33.

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

import copy
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

RECENT = 500
"""So many of the last scores are kept, and the threshold is one of them; rare misses need more."""

SCORES_OF_A_MISS, MOST_COVERAGE = 5.0, 0.9995
"""Scores are kept for so many misses; a higher coverage would need more than 10,000 of them."""

STEPS = 4.0
STEPS_OF_TOKENS = 16.0
"""How many steps down, each after a miss, are the share of misses: a / g."""

AT_ONCE = 3
"""Up to so many labels that are waited for change nothing."""

CALM = 0.3
"""What labels that are waited for may change the level by, as a share of what is wrong with it."""

MANY, OF_MANY = 50, 0.25
"""Of more labels steps are smaller by this factor: sets of all of them cost much."""

_LARGEST = 3.0

TOO_MANY, TOO_FEW = 5, 9
"""Misses are fewer than these above, or below, their share of the events."""


class Threshold:
    """The threshold of the next score: see the module.

    Attributes
    ----------
    value
        The next score is missed if it is larger; infinite, or minus infinity, as said above.
    delay
        How many events late labels are taken to come.
    level
        The quantile that it is, counted from above, if no labels are waited for.
    deepest
        The lowest level so far, if it is below the one that labels in time can reach.
    forgiven
        Misses that did not move the level, as their labels came with many others.
    scores
        The last scores, oldest first.

    """

    __slots__ = (
        "_down", "_highest", "_is_crowd", "_is_damped", "_least", "_lowest", "_miss_rate", "_most",
        "_ordered", "_part", "_room", "_step", "_up", "deepest", "delay", "forgiven", "level",
        "scores", "value",
    )  # fmt: skip

    def __init__(
        self,
        miss_rate: float,
        level: float | None = None,
        scores: Iterable[float] = (),
        deepest: float = 0.0,
        forgiven: float = 0.0,
        steps: float = STEPS,
    ) -> None:
        self._miss_rate = miss_rate
        self.level = miss_rate if level is None else level
        self._step = miss_rate / steps
        self._up, self._down = self._step * miss_rate, self._step * (miss_rate - 1.0)
        self._most = min(1.0, _LARGEST * miss_rate)
        self._lowest = -self._step * (1.0 - miss_rate)
        self.deepest = min(deepest, self._lowest)
        self.forgiven = forgiven
        self._room = max(RECENT, math.ceil(SCORES_OF_A_MISS / miss_rate - 1e-6))
        self.scores = deque(scores, maxlen=self._room)
        self._ordered = sorted(self.scores)
        self.damp(0.0)

    @property
    def too_many(self) -> float:
        """How many misses there are at most above their share, but for labels not met before.

        Less than `TOO_MANY`, if no label came late, with as many steps as there are by default.
        """
        return (self._miss_rate - self.deepest) / self._step + self.forgiven

    def damp(self, delay: float, part: float = 1.0, is_crowd: bool = False) -> None:
        """Take that labels come so many events late, and that steps are smaller by a factor.

        `is_crowd`: the next label comes with others, without a set between.
        """
        a, self.delay, self._is_crowd = self._miss_rate, delay, is_crowd
        if delay > AT_ONCE:
            part /= 1.0 + part * self._step / CALM * (delay - AT_ONCE)
        self._part, self._is_damped = part, part < 1.0
        self._least = self._lowest + (a - a / part)
        self._highest = self._most + self._step * a + (self._most - a) * (1.0 / part - 1.0)
        self.value = self._quantile(self._used())

    def at_rest(self) -> Threshold:
        """Return one whose value is the quantile at the share of misses itself; not to learn."""
        found = copy.copy(self)
        found.level = self._miss_rate
        found.damp(0.0)
        return found

    def learn(self, score: float, is_missed: bool, is_new: bool = False) -> None:
        """Take the score of an event, no NaN, whether it was missed, and its label never met."""
        # Called for each event: comparisons take a third of the time of min and max.
        level = self.level + (self._down if is_missed else self._up)
        if level < self._lowest:
            level = self._limited(level, is_new)
        elif level > self._highest:
            level = self._highest
        self.level = level
        scores, ordered = self.scores, self._ordered
        if len(scores) == self._room:
            del ordered[bisect_left(ordered, scores[0])]
        scores.append(score)
        insort(ordered, score)
        if self._is_damped:
            self.value = self._quantile(self._used())
            return
        # As `_quantile`, without a call.
        n = len(ordered)
        above = int((n + 1) * level)
        if 0 < above and level < self._most:
            self.value = ordered[n - above]
        else:
            self.value = self._quantile(level)

    def _limited(self, level: float, is_new: bool) -> float:
        """Return a level that is lower than those of labels in time, or what it may be."""
        if (is_new or self._is_crowd) and level < self._least:
            least = max(level, min(self.level, self._least))
            if not is_new:
                self.forgiven += (least - level) / self._step
            level = least
        self.deepest = min(self.deepest, level)
        return level

    def _used(self) -> float:
        """Return the level of the threshold: nearer to the share of misses if labels are late."""
        a = self._miss_rate
        return a + self._part * (self.level - a) if self._is_damped else self.level

    def _quantile(self, level: float) -> float:
        """Return the threshold at a level."""
        n = len(self._ordered)
        above = int((n + 1) * level)
        if level >= self._most:
            return -math.inf
        return self._ordered[n - above] if above > 0 else math.inf


def least_ambiguous(p: Mapping[Any, float]) -> dict[Any, float]:
    """Return the score 1 - p of each label: sets are the smallest in the mean.

    Sadinle, Lei, Wasserman, Least Ambiguous Set-Valued Classifiers, JASA 114 (2019).
    """
    return {y: 1.0 - probability(one) for y, one in p.items()}


def adaptive(p: Mapping[Any, float]) -> dict[Any, float]:
    """Return for each label the sum of the probabilities of the labels that are more likely.

    Sets are larger where the model is less sure. Romano, Sesia, Candes, Classification with Valid
    and Adaptive Coverage, NeurIPS (2020), without their random part.
    """
    found, above = {}, 0.0
    for y in sorted(p, key=lambda y: -probability(p[y])):
        found[y] = above
        above += probability(p[y])
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


def probability(p: float) -> float:
    """Return a probability, whatever a model says: no number is 0."""
    if 0.0 <= p <= 1.0:
        return p
    return 1.0 if p > 1.0 else 0.0
