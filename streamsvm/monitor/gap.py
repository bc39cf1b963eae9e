"""The duality gap of a model: exact on the examples kept, estimated on those left out.

The part of the examples kept is measured by each solver (see `streamsvm.solvers.gap`). An example
that was left out has no coefficient: it adds its hinge loss, which is estimated from a sample.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamsvm.monitor.sample import PassedBy

GAPS = ("gap", "gap_kept", "gap_discarded", "gap_low", "gap_high")


class Discarded(NamedTuple):
    """The summed hinge losses of the examples left out, estimated from a sample of them."""

    total: float
    low: float
    high: float
    box: float  # the sum of the C_i of these examples


NONE_DISCARDED = Discarded(0.0, 0.0, 0.0, 0.0)


def discarded(losses: np.ndarray, boxes: np.ndarray, n: int) -> Discarded:
    """Estimate the sum of losses of n examples from a uniform sample of them.

    Parameters
    ----------
    losses
        float64 (m,): C_i max(0, 1 - y_i f(x_i)) of each example in the sample.
    boxes
        float64 (m,): C_i of each example in the sample.
    n
        How many examples the sample stands for.

    Returns
    -------
    Discarded
        The estimate, and about 95 % bounds: the normal interval of the sample with one more example
        of loss C, so that a sample without any loss does not claim certainty.

    """
    m = len(losses)
    if n == 0:
        return NONE_DISCARDED
    if m == 0:
        return Discarded(math.nan, 0.0, math.inf, math.nan)
    mean_box = float(boxes.mean())
    padded = np.append(losses, mean_box)
    half = 1.96 * float(padded.std()) / math.sqrt(len(padded))
    mean = float(losses.mean())
    return Discarded(
        n * mean,
        n * max(0.0, min(mean, float(padded.mean()) - half)),
        n * (float(padded.mean()) + half),
        n * mean_box,
    )


def measured(learner: Any, sample: PassedBy | None, n_sampled: int) -> dict[str, float | None]:
    """Return the normalised gap of a learner and its parts.

    Parameters
    ----------
    learner
        A `DualLearner`.
    sample
        A sample of all examples; None: the learner keeps all examples that its problem is about.
    n_sampled
        How many examples of the sample to compute the loss of, at most.

    Returns
    -------
    dict[str, float | None]
        The values of `GAPS`, divided by the sum of the C_i; None before the first example.

    """
    if not learner.n_examples:
        return dict.fromkeys(GAPS)
    kept = learner.kept_gap()
    left_out = (
        NONE_DISCARDED if sample is None else _left_out(learner, sample, kept.shift, n_sampled)
    )
    box = kept.box + left_out.box
    if not box > 0.0:
        return dict.fromkeys(GAPS)
    totals = (
        kept.total + left_out.total,
        kept.total,
        left_out.total,
        kept.total + left_out.low,
        kept.total + left_out.high,
    )
    return {name: total / box for name, total in zip(GAPS, totals, strict=True)}


def _left_out(learner: Any, sample: PassedBy, shift: float, n_sampled: int) -> Discarded:
    """Estimate the losses of the examples that the problem is about and the model does not keep."""
    window = learner.window
    n_about = learner.n_examples if window is None else min(window, learner.n_examples)
    if window is not None:
        sample.forget_old()
    kept = np.sort(learner.kept_numbers())
    x, signs, weights = sample.draw(n_sampled, len(learner.feature_names), kept)
    if not len(signs):
        return NONE_DISCARDED
    boxes = learner.boxes_now(signs, weights)
    margins = learner.margins_of(x) + shift
    losses = boxes * learner.losses_of(signs, margins)
    return discarded(losses, boxes, max(0, n_about - len(kept)))


def sampled_objective(learner: Any, sample: PassedBy) -> float | None:
    """Return the primal objective, with the mean loss of a uniform sample of all examples.

    Parameters
    ----------
    learner
        A `PrimalLearner`.
    sample
        A sample of all examples.

    Returns
    -------
    float | None
        The objective; None before the first example.

    """
    d = len(learner.feature_names)
    x, signs, weights = sample.draw(sample.size, d, np.zeros(0, np.int64))
    return learner.objective_of(x, signs, weights) if len(signs) else None
