r"""When to answer: few errors among the answers, on any stream, and most of what can be answered.

Problem. Before each event there is a prediction with a confidence; it is given as the answer, or
the event is left to somebody else. Of the answers whose labels came, :math:`N` in number,
:math:`E` are wrong. Wanted is :math:`E \le e N`, and many answers.

Two parts decide, and an answer needs both.

*Evidence* says above which confidence answers are good enough. For each of some thresholds it
counts, of the labelled events whose confidence is at least as high, how many there were and how
many would have been wrong, in windows of the last 10 to 20, 40 to 80 and 160 to 320 events per
error wanted (divided by :math:`e`; at the start, all so far). Answers are given above the lowest
threshold at which, in some window, the upper end of the confidence sequence of the error
(`confidence.sequence`) is at most :math:`e`, at the level asked for, shared by all thresholds and
kinds of windows, while no window shows, with 95 %, that it is above :math:`e`. While the errors
are not yet two below :math:`e N`, the share of wrong ones must also be at most :math:`e` in all
windows.

*A guard* holds answers back where one more error would be too many. It is open while
:math:`E + 1 - e (N + 1) \le 2 (1 + R)`. Else it closes, and counts the events that would have been
answered: :math:`e` more for each, and 1 less for each that is wrong, but never below 0. At
:math:`2^R` it opens again, and :math:`R`, 0 at the start, is 1 more.

Bound, with nothing assumed. On any stream, at all moments, after T labelled events,

.. math:: E \le e N + 2 (1 + R), \quad R \le \log_2(1 + e T),

if the label of each event comes before the next one. Proof: an answer is only given while the
guard is open, so that the first holds even if it is wrong; R and N never fall. Before the k-th
opening (from 0) the guard has counted at least :math:`2^k / e` events, and
:math:`\sum_{k < R} 2^k / e = (2^R - 1) / e \le T`. If up to D answers wait for their labels at a
time, add :math:`(D - 1) (1 - e)`: so many labels may still come when the guard closes. Of these the
figure `most_wrong` adds those that came, :math:`1 - e` for each. Answers whose labels have not come
are not counted, neither in N nor in E.

What needs an assumption: that :math:`E` is below :math:`e N` by the end, and stays so, needs a
future that is like one of the windows. For the events of a window that begins at a given moment the
upper end holds at all later moments with the level asked for, whatever the stream does: it is about
the mean of their own probabilities of being wrong, not about events to come. A window that begins
later has the same level for itself: with many windows, more of them err.

If labels come for events without an answer only, E and N are unknown. Then a random share of all
events, drawn apart from anything else (`audit`), is given no answer, and evidence and guard count
these only: E and N are of those that would have been answered. What is answered is drawn from the
same events, so that its expected errors are known from theirs, but no bound holds for it surely.

Waudby-Smith, Ramdas, Estimating Means of Bounded Random Variables by Betting, JRSS B 86 (2024);
El-Yaniv, Wiener, On the Foundations of Noise-free Selective Classification, JMLR 11 (2010).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from streamsvm.confidence.sequence import BETS, log_capital

DOUBTS: tuple[float, ...] = (
    0.0, 1e-8, 1e-6, 1e-5, 1e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1,
    0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0,
)  # fmt: skip
"""The thresholds: 1 less the probability of the most likely label is at most one of these."""

_WINDOWS = (10, 40, 160)
"""Events of a block, per error wanted; a window has one to two blocks."""

_FEWEST = 60
_EVERY = 20
"""The thresholds are looked at after so many events; blocks are multiples of it."""

_REFUTED = math.log(1.0 / 0.05)
_RESERVE = 2.0

SLACK = 2.0
"""So many errors above their share are allowed, once more after each time that the guard opens."""


@lru_cache(maxsize=16)
def _limits(error: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return by the number of wrong ones how many events show enough, int64 (w,) each.

    The least number that shows that the error is at most `error`, and the largest one that shows
    that it is above. The last elements stand for all larger numbers of wrong ones.
    """
    most = 2 * max(_FEWEST, math.ceil(_WINDOWS[-1] / error))
    n_wrong = np.arange(math.ceil(2.5 * error * most) + 2)
    wanted = math.log(len(DOUBTS) * len(_WINDOWS) / (1.0 - level))

    def shows_it(n: np.ndarray) -> np.ndarray:
        gains = np.multiply.outer(n - n_wrong, np.log1p(BETS))
        return log_capital(gains, n, np.full(len(n), 1.0 - error)) >= wanted

    def refutes_it(n: np.ndarray) -> np.ndarray:
        gains = np.multiply.outer(n_wrong, np.log1p(BETS))
        return log_capital(gains, n, np.full(len(n), error)) >= _REFUTED

    least = _least(n_wrong, 4 * most, shows_it)
    return least, _least(n_wrong, 4 * most, lambda n: ~refutes_it(n)) - 1


def _least(low: np.ndarray, high: int, holds: Any) -> np.ndarray:
    """Return the least numbers from `low` on from which on something holds; or `high`."""
    below, above = low - 1, np.full(len(low), high)
    while (above - below > 1).any():
        middle = np.maximum(low, (below + above) // 2)
        is_true = holds(middle)
        above = np.where(is_true, middle, above)
        below = np.where(is_true, below, middle)
    return above


class Evidence:
    """Counts of labelled events by their doubt, and which threshold follows from them.

    Attributes
    ----------
    usual, careful
        An event may be answered if its place in `DOUBTS` is at most this one; -1: none. `careful`
        is for the time when errors are near their share.

    """

    def __init__(self, error: float, level: float) -> None:
        self._error = error
        self._limits = _limits(error, level)
        blocks = [max(_FEWEST, math.ceil(n / error)) for n in _WINDOWS]
        self.sizes = [-(-n // _EVERY) * _EVERY for n in blocks]
        # By window, its present and its last block, the place, and whether right or wrong.
        self.counts = np.zeros((len(_WINDOWS), 2, len(DOUBTS), 2), np.int64)
        self.filled = [0] * len(_WINDOWS)
        self.new: list[int] = []
        self.usual = self.careful = -1

    def learn(self, place: int, is_wrong: bool) -> None:
        """Count a labelled event."""
        self.new.append(2 * place + is_wrong)
        if len(self.new) >= _EVERY:
            self._look()

    def error_of_all(self) -> float | None:
        """Return the share of wrong ones if all were answered, in the longest window, or None."""
        right, wrong = self.counts[-1].sum(axis=(0, 1)).tolist()
        return wrong / (right + wrong) if right + wrong else None

    def _look(self) -> None:
        counts, places = self.counts, len(DOUBTS)
        counts[:, 0] += np.bincount(self.new, minlength=2 * places).reshape(places, 2)
        self.new = []
        totals = counts.sum(axis=1).cumsum(axis=1)
        wrong = totals[:, :, 1]
        n = totals.sum(axis=2)
        least, most = self._limits
        row = np.minimum(wrong, len(least) - 1)
        is_good = (n >= least[row]).any(axis=0) & ~(n <= most[row]).any(axis=0)
        self.usual = _last(is_good)
        self.careful = _last(is_good & (wrong <= self._error * n).all(axis=0))
        for w, size in enumerate(self.sizes):
            self.filled[w] += _EVERY
            if self.filled[w] >= size:
                self.filled[w] = 0
                counts[w, 1] = counts[w, 0]
                counts[w, 0] = 0


def _last(wanted: np.ndarray) -> int:
    """Return the last place that is wanted, or -1."""
    found = np.flatnonzero(wanted)
    return int(found[-1]) if len(found) else -1


class Guard:
    """Holds answers back where one more error would be too many: see the module.

    Attributes
    ----------
    n, n_wrong
        The answers whose labels came, and how many of these were wrong.
    n_openings
        How often it opened again.
    is_closed
        Whether answers are held back now.
    credit
        How much speaks for opening it again.
    n_late
        Of the answers, those whose labels came after it had closed, since it closed last.

    """

    def __init__(self, error: float) -> None:
        self._error = error
        self.n = self.n_wrong = self.n_openings = self.n_late = 0
        self.credit = 0.0
        self.is_closed = False

    @property
    def most_wrong(self) -> float:
        """How many of the answers whose labels came can be wrong at most, on any stream."""
        return self._most() + (1.0 - self._error) * self.n_late

    def _most(self) -> float:
        return self._error * self.n + SLACK * (1 + self.n_openings)

    @property
    def has_reserve(self) -> bool:
        """Whether the errors are at least two below their share."""
        return self._error * self.n - self.n_wrong >= _RESERVE

    def learn(self, is_wrong: bool) -> None:
        """Count an answer whose label came."""
        self.n += 1
        self.n_wrong += is_wrong
        self.n_late += self.is_closed
        self._close()

    def learn_held(self, is_wrong: bool) -> None:
        """Count an event that would have been answered while the guard was closed."""
        if not self.is_closed:
            return
        self.credit = max(0.0, self.credit + self._error - is_wrong)
        if self.credit >= 2.0**self.n_openings:
            self.n_openings += 1
            self.is_closed = False
            self._close()
            if not self.is_closed:
                self.n_late = 0

    def _close(self) -> None:
        if not self.is_closed and self.n_wrong + 1.0 - self._error > self._most():
            self.is_closed = True
            self.credit = 0.0
