"""The gap of a model over rows, from their margins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.run.shards.exchange import REST, Examples, Expansion, Setting


class Measured(NamedTuple):
    """Sums over rows and problems, and figures of each row.

    The gap is the sum of ``C_i max(0, 1 - y_i f_i) - |a_i| (1 - y_i f_i)``, no term of which is
    below 0: nothing cancels.
    """

    sums: np.ndarray  # float64: gap, loss, sum of |a_i|, of a_i (f_i - b), of C_i
    gaps: np.ndarray  # float64 (n,): the part of each row
    short: np.ndarray  # float64 (n,): what its margin lacks to 1, at most over its problems
    is_kept: np.ndarray  # bool (n,): the model has it


def measured(setting: Setting, model: Expansion, examples: Examples, f: np.ndarray) -> Measured:
    """Return the figures of rows, given their f(x), float64 (n, problems)."""
    n = len(examples.numbers)
    place = np.searchsorted(model.numbers, examples.numbers) % max(1, len(model.numbers))
    is_kept = np.zeros(n, bool)
    if len(model.numbers):
        is_kept = model.numbers[place] == examples.numbers
    costs = setting.costs[examples.codes] * examples.weights
    sums, gaps, lacks = np.zeros(5), np.zeros(n), np.full(n, -np.inf)
    for p, (positive, negative) in enumerate(model.problems.tolist()):
        is_own = examples.codes == positive
        about = np.flatnonzero(is_own | (examples.codes == negative) | (negative == REST))
        y, own = np.where(is_own[about], 1.0, -1.0), f[about, p]
        a = np.zeros(len(about))
        kept = is_kept[about]
        a[kept] = model.coefficients[place[about[kept]], p]
        short = 1.0 - y * own
        loss = costs[about] * np.maximum(0.0, short)
        gap = loss - a * y * short
        norm = a * (own - model.biases[p])
        sums += gap.sum(), loss.sum(), (a * y).sum(), norm.sum(), costs[about].sum()
        gaps[about] += gap
        lacks[about] = np.maximum(lacks[about], short)
    return Measured(sums, gaps, lacks, is_kept)
