r"""Confidence sequences: intervals of a mean that hold at all moments of a stream at once.

Problem. Values :math:`x_1, x_2, ...` in [0, 1] come one at a time, such as 1 for a right prediction
and 0 for a wrong one. Let :math:`\mu_i = E[x_i | x_1 ... x_{i-1}]`: it may change at any time, and
depend on the past. Wanted is an interval of the mean :math:`m_n = (\mu_1 + ... + \mu_n) / n` so
that, with probability `level`, all intervals of all n hold: who looks after each event, and stops
when he likes what he sees, is not deceived.

Method. A bet :math:`\beta > 0` that values are larger than :math:`m` multiplies a capital by
:math:`(1 + \beta x_i) / (1 + \beta \mu_i)` at each value: a martingale, for any :math:`\mu_i`. As
the logarithm is concave, :math:`\prod (1 + \beta \mu_i) \le (1 + \beta m_n)^n`, so that

.. math:: W_n(m) = \sum_k p_k \prod_{i \le n} (1 + \beta_k x_i) / (1 + \beta_k m)^n

is at :math:`m = m_n` at most the capital of somebody who spread his money over several bets by
fixed shares :math:`p_k`. By Ville's inequality that ever reaches :math:`1 / a` with probability at
most a. The lower end is where :math:`W_n` is :math:`2 / (1 - level)`, the upper end that of
:math:`1 - x_i`. For values 0 and 1 their numbers are all that has to be kept.

Waudby-Smith, Ramdas, Estimating Means of Bounded Random Variables by Betting, JRSS B 86 (2024);
Howard, Ramdas, McAuliffe, Sekhon, Time-Uniform Confidence Sequences, Ann. Statistics 49 (2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import ParameterError

BETS: np.ndarray = np.geomspace(1e-4, 1e4, 71)
"""The bets: a factor of 1.3 from each to the next."""


def _log_shares() -> np.ndarray:
    """Return the logarithms of the shares of the capital, one for each bet.

    After n values of standard deviation s the best bet is about 3 / (s sqrt(n)): .02 to .6 where
    hundreds to 100,000 values were seen and s is .1 to .5. Bets within that range have equal
    shares; so many more of them would only make intervals wider. The others have shares that fall
    by the square of the logarithm, so that intervals still shrink down to a
    half-width of 1.25e-5, after some 10^10 values.
    """
    beyond = np.maximum(0.0, np.abs(np.log(BETS / 0.095)) - 1.9)
    shares = 1.0 / (1.0 + (beyond / 0.25) ** 2)
    return np.asarray(np.log(shares / shares.sum()))


LOG_SHARES: np.ndarray = _log_shares()

_MOST_STEPS = 60
"""Newton's method takes some 6 steps; from a bad start, or near 0, up to 20."""


def log_gains(counts: Any, values: Any) -> np.ndarray:
    """Return the log of what each bet multiplied its capital by, before dividing by what was due.

    Parameters
    ----------
    counts
        Whole numbers, shape (..., v): how often each value came.
    values
        Shape (v,), between 0 and 1.

    Returns
    -------
    Shape (..., b), one for each of `BETS`.

    """
    return np.asarray(np.asarray(counts, float) @ np.log1p(np.multiply.outer(values, BETS)))


def log_capital(gains: np.ndarray, n: Any, mean: Any) -> np.ndarray:
    """Return the log of the capital W_n at a mean: how much speaks for the mean being above it.

    Parameters
    ----------
    gains
        Shape (..., b), by `log_gains`, or summed up over values.
    n, mean
        Shape (...): number of values; the mean that is doubted, between 0 and 1.

    Returns
    -------
    Shape (...). At the true mean it ever reaches log(1 / a) with probability at most a.

    """
    due = np.asarray(n, float)[..., None] * np.log1p(np.multiply.outer(mean, BETS))
    logs = LOG_SHARES + gains - due
    top = logs.max(axis=-1)
    return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))


def lower_end(gains: np.ndarray, n: Any, highest: Any, error: Any) -> np.ndarray:
    """Return the smallest mean that is not refuted: below it, the capital reaches 1 / error.

    Parameters
    ----------
    gains, n
        As in `log_capital`.
    highest
        Shape (...): the mean of the values, which is never refuted.
    error
        The probability that one of all n is too high, between 0 and 1: a number, or shape (...).

    Returns
    -------
    Shape (...): 0 where nothing is refuted.

    """
    total, mean = np.asarray(n, float), np.asarray(highest, float)
    limit = -np.log(error)
    # The log of the capital falls with the mean, and is convex: Newton's steps end left of the
    # crossing from wherever they start, and go up to it from there.
    spread = mean * (1.0 - mean) + 1.0 / np.maximum(total, 1.0)
    end = np.maximum(0.0, mean - np.sqrt(2.0 * limit * spread / np.maximum(total, 1.0)))
    start = LOG_SHARES + gains
    for _ in range(_MOST_STEPS):
        factors = 1.0 + np.multiply.outer(end, BETS)
        logs = start - total[..., None] * np.log(factors)
        top = logs.max(axis=-1)
        weights = np.exp(logs - top[..., None])
        capital = weights.sum(axis=-1)
        falls = total * (weights * (BETS / factors)).sum(axis=-1) / capital
        above = top + np.log(capital) - limit
        step = np.where(falls > 0.0, above / np.where(falls > 0.0, falls, 1.0), 0.0)
        end, before = np.clip(end + step, 0.0, mean), end
        if np.abs(end - before).max(initial=0.0) < 1e-10:
            break
    return end


def error_of(level: Any) -> Any:
    """Return 1 - level, the probability that a statement is wrong; check the level."""
    if not np.all((np.asarray(level) > 0.0) & (np.asarray(level) < 1.0)):
        raise ParameterError(f"level={level!r}: use a number between 0 and 1, such as 0.95")
    return 1.0 - level


def share_interval(n_hits: Any, n: Any, level: Any = 0.95) -> tuple[Any, Any]:
    """Return the interval of a share, such as an accuracy, that holds at all moments at once.

    Parameters
    ----------
    n_hits, n
        Numbers, or arrays of one shape: how many of n values were 1, the others 0. With n = 0, the
        interval is from 0 to 1.
    level
        The probability that all intervals, of all n, hold: between 0 and 1. A number, or one for
        each share.

    Returns
    -------
    Lower and upper ends: numbers, or arrays of the same shape.

    """
    error = 0.5 * error_of(level)
    hits, total = np.asarray(n_hits, float), np.asarray(n, float)
    if not np.all((hits >= 0.0) & (hits <= total) & (total < np.inf)):
        raise ParameterError(f"n_hits={n_hits!r:.40}, n={n!r:.40}: use at most n hits, at least 0")
    # The upper end of a share is 1 less the lower end of the others.
    counts = np.stack([hits, total - hits])
    gains = np.multiply.outer(counts, np.log1p(BETS))
    low, rest = lower_end(
        gains, np.stack([total, total]), counts / np.maximum(total, 1.0), np.asarray(error)
    )
    return (float(low), float(1.0 - rest)) if np.ndim(n) == 0 else (low, 1.0 - rest)


def difference_interval(
    n_more: int, n_less: int, n: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of the mean difference of paired values, at all moments at once.

    Parameters
    ----------
    n_more, n_less, n
        In how many of n pairs the first was 1 and the second 0, or the other way round; in the
        others both were equal.
    level
        As in `share_interval`.

    Returns
    -------
    Lower and upper ends, between -1 and 1.

    """
    error = 0.5 * error_of(level)
    ends = []
    for more, less in ((n_more, n_less), (n_less, n_more)):
        # A difference d is the value (d + 1) / 2 in [0, 1].
        gains = log_gains([more, less, n - more - less], _OF_PAIRS)
        middle = 0.5 * (1.0 + (more - less) / max(n, 1))
        ends.append(2.0 * float(lower_end(gains, n, middle if n else 0.0, error)) - 1.0)
    return ends[0], -ends[1]


def log_evidence(n_more: int, n_less: int, n: int) -> float:
    """Return the log of the e-value against "the first is at most as large as the second".

    If that is true of the means, it ever reaches log(1 / a) with probability at most a: an
    e-process, valid whenever one stops. Parameters as in `difference_interval`.
    """
    gains = log_gains([n_more, n_less, n - n_more - n_less], _OF_PAIRS)
    return float(log_capital(gains, n, 0.5))


_OF_PAIRS = (1.0, 0.0, 0.5)
"""The values of a pair: the first is larger, the second is larger, both are equal."""
