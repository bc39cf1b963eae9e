"""What an exact learner tells of its examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.labels.label_column import Label


class Influence(NamedTuple):
    """What taking an example back would change.

    Attributes
    ----------
    label
        Its label.
    margin
        Its margin, positive on the right side of the border.
    margin_without
        The margin that it would have, estimated: without it, as far as no other example changes
        sides. Far below `margin`, the example holds the border where it is, alone.
    objective
        By how much the objective of the others would fall, estimated likewise.

    """

    label: Label
    margin: float
    margin_without: float
    objective: float


class LeaveOneOut(NamedTuple):
    """The errors on the examples kept, each predicted by the model of all others.

    Attributes
    ----------
    error
        The share of them that would be predicted wrong.
    ids
        int64 (n,): the numbers, or ids, of the examples.
    margins
        float64 (n,): their margins without them, positive on the right side.

    """

    error: float
    ids: np.ndarray
    margins: np.ndarray


class LeftOut(NamedTuple):
    """Predictions for the examples kept, each by the model of all others.

    Attributes
    ----------
    error
        The mean absolute error.
    ids
        int64 (n,): the numbers, or ids, of the examples.
    predictions
        float64 (n,): what would be predicted for each.

    """

    error: float
    ids: np.ndarray
    predictions: np.ndarray
