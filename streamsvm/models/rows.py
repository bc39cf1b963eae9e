"""Rows of numbers as models learn them: some are learnt, the others only predicted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.support.rows import Rows, cut, taken


class NumberedRows(NamedTuple):
    """n rows over the features seen, and what is known of each."""

    x: Rows
    y: np.ndarray  # float64 (n,): numbers of classes; below 0 of bags
    w: np.ndarray  # float64 (n,): example weights
    numbers: np.ndarray  # int64 (n,): example numbers; 0: only predicted, as its label comes later
    diagonal: np.ndarray  # float32 (n,): k(x, x)
    bags: np.ndarray | None = None  # float64 (n, classes): 1 for candidates of bags; None: no bags

    def part(self, start: int, stop: int) -> NumberedRows:
        """Return the rows from `start` to before `stop`, as views."""
        bags = None if self.bags is None else self.bags[start:stop]
        facts = (self.y, self.w, self.numbers, self.diagonal)
        y, w, numbers, diagonal = (fact[start:stop] for fact in facts)
        return NumberedRows(cut(self.x, start, stop), y, w, numbers, diagonal, bags)


def row_after(numbers: np.ndarray, start: int, n: int) -> int:
    """Return the row after the n-th example from row `start` on; the end, if there are fewer.

    `numbers`, int64 (rows,), is 0 for rows that are only predicted; n is at least 1.
    """
    if len(numbers) - start < n:
        return len(numbers)
    if numbers[start : start + n].all():
        return start + n
    examples = np.flatnonzero(numbers[start:])
    return start + int(examples[n - 1]) + 1 if len(examples) >= n else len(numbers)


def rows_where(x: Rows, wanted: np.ndarray) -> Rows:
    """Return the rows for which `wanted`, bool (n,), is True; all of them without a copy."""
    return x if wanted.all() else taken(x, np.flatnonzero(wanted))
