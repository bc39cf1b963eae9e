"""Rows with their labels, as they are handed from a batch to the solver and back to a monitor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.targets import Targets
from streamsvm.models.rows import NumberedRows
from streamsvm.support.rows import Rows, cut

Weights = float | Iterable[float]
"""One weight for all rows of a batch, or n: see `weights_of`."""

Ids = Iterable[int]
"""n positive whole numbers, which identify rows: see `numbers_of`."""


class LabelledRows(NamedTuple):
    """n rows over the features of a schema, and what is known of each."""

    x: Rows
    labels: LabelColumn
    w: np.ndarray  # float64 (n,): example weights
    numbers: np.ndarray  # int64 (n,): example numbers; 0: only predicted, as its label comes later
    diagonal: np.ndarray  # float32 (n,): k(x, x)

    def part(self, start: int, stop: int) -> LabelledRows:
        """Return the rows from `start` to before `stop`, as views."""
        x, *others = self
        facts: list[Any] = [*others]
        return LabelledRows(cut(x, start, stop), *(fact[start:stop] for fact in facts))

    def numbered_by(self, targets: Targets) -> NumberedRows:
        """Return them as models learn them, with what targets make of the labels."""
        y, bags = self.labels.numbers(targets.number_of), targets.in_bags(self.labels)
        return NumberedRows(self.x, y, self.w, self.numbers, self.diagonal, bags)
