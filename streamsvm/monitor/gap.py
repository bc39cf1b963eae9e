"""The part of the duality gap of examples that were left out.

They have no coefficient: each adds its hinge loss, estimated from a sample. The gap on the examples
kept is measured beside each solver, see `streamsvm.solvers.gap`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Discarded(NamedTuple):
    """The hinge losses of examples that were left out, estimated from a sample of them."""

    total: float
    low: float
    high: float
    box: float  # sum of their C_i


NONE_DISCARDED = Discarded(0.0, 0.0, 0.0, 0.0)


def discarded(losses: np.ndarray, boxes: np.ndarray, n: int) -> Discarded:
    """Estimate the sum of losses of n examples from a uniform sample of them.

    Parameters
    ----------
    losses
        float64 (m,): C_i max(0, 1 - y_i f(x_i)) of the sample.
    boxes
        float64 (m,): their C_i.
    n
        How many examples the sample stands for.

    Returns
    -------
    The estimate, and about 95 % bounds: the normal interval of the sample with one more example of
    loss C, so that a sample without any loss does not claim certainty.

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
