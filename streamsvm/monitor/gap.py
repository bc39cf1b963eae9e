"""The duality gap of a model: exact on the examples kept, estimated on those left out.

The part of the examples kept is measured by each solver (see `streamsvm.solvers.gap`). An example
that was left out has no coefficient: it adds its hinge loss. The sum of these is estimated from a
sample. Those that a learner still has in its reserve have most of it, and can be computed.
"""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import numpy as np

from streamsvm.monitor.sample import ReservoirSample
from streamsvm.monitor.watched import DualLearner, PrimalLearner

OF_STREAM = ("gap", "gap_kept", "gap_discarded", "gap_low", "gap_high")
GAPS = (*OF_STREAM, "kept_gap", "gap_share")
OBJECTIVES = ("objective", "objective_low", "objective_high")

_ROUNDING = 1e-9
"""An objective below this share of the sum of the C_i is rounding."""


class Discarded(NamedTuple):
    """The summed losses of examples, those left out for instance, estimated from a sample."""

    total: float
    low: float
    high: float
    cost: float  # the sum of the C_i of these examples


MOST_OF_RESERVE = 2000
"""Of a larger reserve so many rows are drawn: as many kernel rows cost a fraction of a second."""

_MORE_DOUBT = 1.5
"""Losses of the reserve are certain: for that, other examples may be as much less certain."""

NONE_DISCARDED = Discarded(0.0, 0.0, 0.0, 0.0)


def discarded(losses: np.ndarray, costs: np.ndarray, n: int) -> Discarded:
    """Estimate the sum of losses of n examples from a uniform sample of them.

    `losses` and `costs` are C_i max(0, 1 - y_i f(x_i)) and C_i of the sample, float64 (m,). The
    bounds are about 95 %: Student's interval of the sample with one more example of the largest
    loss, at least C, so that a sample without any loss does not claim certainty.
    """
    m = len(losses)
    if n == 0:
        return NONE_DISCARDED
    if m == 0:
        return Discarded(math.nan, 0.0, math.inf, math.nan)
    mean_cost = float(costs.mean())
    padded = np.append(losses, max(mean_cost, float(losses.max())))
    half = _t_quantile(m) * float(padded.std(ddof=1)) / math.sqrt(len(padded))
    mean = float(losses.mean())
    return Discarded(
        n * mean,
        n * max(0.0, min(mean, float(padded.mean()) - half)),
        n * (float(padded.mean()) + half),
        n * mean_cost,
    )


def _t_quantile(n: int) -> float:
    """Return the 97.5 % quantile of Student's t for n degrees of freedom, by its expansion."""
    z = 1.959964
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
    )
    return z + sum(term / n ** (i + 1) for i, term in enumerate(terms))


def measured(
    learner: DualLearner,
    sample: ReservoirSample | None,
    n_sampled: int,
    n_before: int = 0,
    draws: random.Random | None = None,
    n_of_reserve: int = 0,
) -> dict[str, float | None]:
    """Return `GAPS`: the normalised gap of a `DualLearner` and its parts.

    They are divided by the sum of the C_i, `kept_gap` by that of the examples kept; `gap_share` is
    the gap divided by the objective, the dual plus the gap (of a dual below 0, which a window may
    leave, its absolute value). None before the first example. At most
    `n_sampled` losses are computed of `sample`, which is of all examples
    (None: the learner keeps all that its problem is about), and `n_of_reserve` of the learner's
    reserve (0: it is sampled as all others). Of the `n_before` examples from before the sample,
    those that the learner does not keep are no part of the problem. `draws` chooses; None: a
    generator with seed 0.
    """
    if not learner.n_examples:
        return dict.fromkeys(GAPS)
    parts = []
    if sample is not None:
        parts = _left_out(learner, sample, n_sampled, n_before, draws, n_of_reserve)
    kept = learner.kept_gap()
    left_out = _summed(learner, parts)
    cost = kept.cost + left_out.cost
    if not cost > 0.0:
        return dict.fromkeys(GAPS)
    totals = (
        kept.total + left_out.total,
        kept.total,
        left_out.total,
        kept.total + left_out.low,
        kept.total + left_out.high,
    )
    gaps = {name: total / cost for name, total in zip(GAPS, totals, strict=False)}
    objective = max(abs(learner.dual) + totals[0], _ROUNDING * cost)
    return gaps | {
        "kept_gap": kept.normalised if kept.cost > 0.0 else None,
        "gap_share": totals[0] / objective,
    }


class _Drawn(NamedTuple):
    """Examples left out that were drawn, and how many they stand for."""

    classes: np.ndarray
    margins: np.ndarray
    costs: np.ndarray
    n: int


def _left_out(
    learner: DualLearner,
    sample: ReservoirSample,
    n_sampled: int,
    n_before: int,
    draws: random.Random | None,
    n_of_reserve: int,
) -> list[_Drawn]:
    """Draw from the examples that the problem is about and the model does not keep."""
    window = learner.window
    n_about = learner.n_examples - n_before
    if window is not None:
        n_about = min(window, n_about)
        sample.forget_old()
    kept, d = np.sort(learner.kept_numbers()), len(learner.feature_names)
    # Of rare classes older ones are kept, too: part of the problem, but not of the window.
    n_within = len(kept) if window is None else int((kept > learner.n_examples - n_about).sum())
    n_out = max(0, n_about - n_within)
    drawn = sample.draw(n_sampled, d, kept, draws)
    outside = None
    if n_of_reserve and hasattr(learner, "reserve_sample"):
        outside = learner.reserve_sample(n_of_reserve, n_before, draws or random.Random(0))
    if outside is not None:
        *of_reserve, numbers = outside
        others = sample.draw(n_sampled, d, np.union1d(kept, numbers), draws)
        n_others = max(0, n_out - len(numbers))
        # Few of the sample may be others. The choice must not depend on losses, or the interval
        # would not cover.
        uncertain, before = _doubt(n_others, len(others[1])), _doubt(n_out, len(drawn[1]))
        if len(numbers) and uncertain <= _MORE_DOUBT * before:
            parts = _drawn(learner, of_reserve, len(numbers)), _drawn(learner, others, n_others)
            return [part for part in parts if part.n]
    return [_drawn(learner, drawn, n_out)] if len(drawn[1]) and n_out else []


def _drawn(learner: DualLearner, examples: Any, n: int) -> _Drawn:
    x, classes, weights = examples
    return _Drawn(classes, learner.margins_of(x), learner.costs_now(classes, weights), n)


def _summed(learner: DualLearner, parts: list[_Drawn]) -> Discarded:
    """Return the summed losses of the examples that parts stand for."""
    sums: list[Discarded] = []
    most = cost = 0.0
    for part in parts:
        losses = part.costs * learner.losses_of(part.classes, part.margins)
        if len(losses):
            sums.append(_sum_of(losses, part.costs, part.n))
            cost = float(part.costs.mean())
            most = max(float(losses.max()), cost)
        else:
            # Each is assumed to lose at most as much as the worst of those before: the reserve.
            sums.append(Discarded(0.0, 0.0, part.n * most, part.n * cost))
    return (
        Discarded(*(float(sum(values)) for values in zip(*sums, strict=True)))
        if sums
        else NONE_DISCARDED
    )


def _doubt(n: int, m: int) -> float:
    """Return the upper bound of `discarded` for n examples, if m have no loss, and C is 1."""
    return n * min(1.0, (1.0 + _t_quantile(m)) / (m + 1)) if m else float(n)


def _sum_of(losses: np.ndarray, costs: np.ndarray, n: int) -> Discarded:
    """Return the sum of the losses of n examples, estimated if only some are given."""
    if len(losses) == n:
        total = float(losses.sum())
        return Discarded(total, total, total, float(costs.sum()))
    return discarded(losses, costs, n)


def sampled_objective(learner: PrimalLearner, sample: ReservoirSample) -> float | None:
    """Return the primal objective of a `PrimalLearner`, with the mean loss of a sample.

    None before the first example.
    """
    d = len(learner.feature_names)
    x, classes, weights = sample.draw(sample.size, d, np.zeros(0, np.int64), random.Random(0))
    return learner.objective_of(x, classes, weights) if len(classes) else None


def stream_objective(
    learner: DualLearner, sample: ReservoirSample, n_sampled: int, draws: random.Random
) -> dict[str, float | None]:
    """Return `OBJECTIVES` over all examples of a stream, divided by the sum of their C_i.

    For models of merged vectors, which are no examples: their dual is no bound for the stream. It
    is regularisation plus mean loss of up to `n_sampled` examples, and the sample's 95 % interval;
    None before its first example.
    """
    n = sample.seen
    if sample.window is not None:
        sample.forget_old()
        n = min(n, sample.window)
    x, classes, weights = sample.draw(
        n_sampled, len(learner.feature_names), np.zeros(0, np.int64), draws
    )
    costs = learner.costs_now(classes, weights)
    if not costs.sum() > 0.0:
        return dict.fromkeys(OBJECTIVES)
    loss = discarded(costs * learner.losses_of(classes, learner.margins_of(x)), costs, n)
    regularisation = learner.squared_norm / 2.0
    totals = (loss.total, loss.low, loss.high)
    return {
        name: float(regularisation + total) / loss.cost
        for name, total in zip(OBJECTIVES, totals, strict=True)
    }
