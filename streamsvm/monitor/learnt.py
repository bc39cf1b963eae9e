"""Examples that were learnt, as a learner tells its monitor of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.support.rows import Rows


class Learnt(NamedTuple):
    """n examples; labels and margins were predicted before each was learnt."""

    x: Rows  # may be views of the caller's arrays
    signs: np.ndarray  # float64 (n,): +1 or -1, or the numbers of classes
    labels: list[Any]
    predicted: list[Any]
    margins: np.ndarray  # float64 (n,), or (n, columns)
    weights: np.ndarray  # float64 (n,)
    numbers: np.ndarray  # int64 (n,)
    seconds: float  # that learning them took


def learnt_one(
    x: Rows,
    sign: float,
    label: Any,
    predicted: Any,
    margin: Any,
    weight: float,
    number: int,
    seconds: float,
) -> Learnt:
    """Return one example that was learnt."""
    margins, numbers = np.array([margin]), np.array([number])
    signs, weights = np.array([sign]), np.array([float(weight)])
    return Learnt(x, signs, [label], [predicted], margins, weights, numbers, seconds)
