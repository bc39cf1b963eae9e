"""Examples that were learnt, as a learner tells its monitor of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.support.rows import Rows


class Learnt(NamedTuple):
    """n examples; labels and margins were predicted before each was learnt."""

    x: Rows  # may be views of the caller's arrays
    classes: np.ndarray  # float64 (n,): their numbers; below 0 of bags
    labels: list[Any]
    predicted: list[Any]
    margins: np.ndarray  # float64 (n,), or (n, columns)
    weights: np.ndarray  # float64 (n,)
    numbers: np.ndarray  # int64 (n,)
    seconds: float  # that learning them took


def learnt_one(
    x: Rows,
    number: float,
    label: Any,
    predicted: Any,
    margin: Any,
    weight: float,
    n: int,
    seconds: float,
) -> Learnt:
    """Return example n, of the class with this number, as it was learnt."""
    margins, numbers = np.array([margin]), np.array([n])
    classes, weights = np.array([number]), np.array([float(weight)])
    return Learnt(x, classes, [label], [predicted], margins, weights, numbers, seconds)
