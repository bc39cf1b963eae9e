"""The certificate of averaged tracking: a bound on the mean gap that costs nothing.

For the averaged classifiers of Algorithms 1 and 2, K uniform steps after each of T examples
(Usunier, Bordes, Bottou 2010, Theorems 2 and 3)::

    E[ mean_t (P_t(w_t) - P_t*) / (C n_t) ]  <=  mu(E[gain] / (K T)),   mu(x) = sqrt(2 R2 x) + x / C

`gain` is what the uniform steps added to the dual: D_T - delta_T + rho_T, with D_T the dual now,
delta_T the part that PROCESS added, and rho_T the part that was lost when examples were removed.
The papers use the optimum D_T* instead of D_T; as D_T <= D_T*, this bound is sharper. The papers
also assume R2 = 1 (their kernels are at most 1) and equal C_i.

With unequal C_i the two cases of the lemma give, example by example,
``gap_i <= C_i sqrt(2 R2 Delta_i) + Delta_i``; by Cauchy and Schwarz, for uniform draws::

    gap / sum_i C_i  <=  sqrt(2 W mean Delta_i) + mean Delta_i / mean C_i,
    W = R2 mean(C_i^2) / mean(C_i)^2

and again by Cauchy and Schwarz for the mean over t. So a state sums, over t, the width W, the mean
gain of the steps, and that gain over mean C_i; with equal C_i and one R2 this is mu.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from streamsvm.errors import ParameterError


class Certificate(NamedTuple):
    """A bound on the mean normalised gap over the stream so far, or why there is none."""

    value: float | None
    reason: str
    """What the bound assumes and covers; without a value, why there is none."""


def mu(x: float, r2: float, C: float) -> float:
    """Return sqrt(2 R2 x) + x / C: the gap that a mean dual increase of x allows (Lemma 1).

    Parameters
    ----------
    x
        Mean dual increase of a step, at least 0.
    r2
        R2, a bound on the kernel values k(x, x), above 0.
    C
        The bound of each coefficient, above 0.

    Returns
    -------
    float
        The bound on the mean gap.

    Examples
    --------
    >>> from streamsvm.monitor.certificate import mu
    >>> mu(0.02, r2=1.0, C=1.0)
    0.22

    """
    return math.sqrt(2.0 * r2 * x) + x / C


def nu(x: float, rho2: float, C: float) -> float:
    """Return sqrt(2 rho2 x) + 2 x / C: the bound `mu`, for block steps over several classes.

    Parameters
    ----------
    x
        Mean dual increase of a step, at least 0.
    rho2
        A bound on the squared distance of two feature vectors of one example: 2 R2 for the joint
        kernel of several classes.
    C
        The bound of each coefficient, above 0.

    Returns
    -------
    float
        The bound on the mean gap.

    """
    return math.sqrt(2.0 * rho2 * x) + 2.0 * x / C


def steps_for(epsilon: float, C: float, r2: float) -> int:
    """Return the K that keeps the mean gap below epsilon in the worst case (Corollary 4).

    K = ceil(8 C R2 / epsilon^2), or 2 / epsilon if that is more (epsilon > 4 C R2). In practice the
    gap falls like 1 / K, so that this K is generous.

    Parameters
    ----------
    epsilon
        The mean gap asked for, above 0.
    C
        The bound of each coefficient, above 0.
    r2
        R2, a bound on the kernel values k(x, x), at least 0.

    Returns
    -------
    int
        K, the steps after each example.

    Raises
    ------
    ParameterError
        `epsilon` is not above 0, or infinite.

    """
    if not 0.0 < epsilon < math.inf:
        raise ParameterError(f"epsilon={epsilon!r}: use a number above 0")
    return math.ceil(max(8.0 * C * r2 / epsilon**2, 2.0 / epsilon))


def tracking_bound(info: Any, *, blocks: bool = False) -> float | None:
    """Return the certificate of a state, None before the first example.

    Parameters
    ----------
    info
        The record of a state: `n_seen` = T, and the sums over t `mean_gain`, `scaled_gain`,
        `width`.
    blocks
        Whether steps are block steps over several classes (then `nu` is used instead of `mu`).

    Returns
    -------
    float | None
        The bound on the mean normalised gap.

    """
    T = int(info.n_seen)
    if T == 0:
        return None
    x, width = max(0.0, float(info.mean_gain)) / T, float(info.width) / T
    return math.sqrt(2.0 * width * x) + (2.0 if blocks else 1.0) * float(info.scaled_gain) / T


def papers_bound(info: Any, primal: float, steps: float, C: float) -> float | None:
    """Return the bound with an upper bound of the optimum instead of the dual (the papers' form).

    ``mu((P_T - delta_T) / (K T))``; above `tracking_bound`, and equal to it as the gap closes.

    Parameters
    ----------
    info
        The record of a state.
    primal
        P_T, an upper bound of D_T*.
    steps
        K.
    C
        The mean C_i.

    Returns
    -------
    float | None
        The bound on the mean normalised gap, None before the first example.

    """
    T = int(info.n_seen)
    if T == 0:
        return None
    gain = primal - float(info.process_gain) + float(info.lost)
    return mu(max(0.0, gain) / (steps * T), float(info.width) / T, C)
