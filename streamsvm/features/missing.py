"""Missing values: what takes their place in dense rows, and how often they came.

None, NaN, a null and a feature that an event lacks are the same. In rows NaN marks them until
`MissingValues` puts a number there: the mean of the feature's values so far, if it is usually there
and not always 1; else 0, as features that seldom come are one-hot, words, or counts. Sparse rows
list nonzero features only: there a missing value is 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.features.names import Name
from streamsvm.support.assigning import assign
from streamsvm.support.rows import LARGEST, Rows, SparseRows

POLICIES = ("mean", "zero", "reject")
MEAN, ZERO, REJECT = range(3)

SUM, PRESENT, EVENTS, VARIED = range(4)
"""The rows of statistics, float64 (4, features): the sum of a feature's values, and how many there
were; the examples since its first one; 1 if one of its values was not 1, as a 0 that is given says
that the feature is no one-hot one, which is left out where it is 0."""
N_ROWS = 4

ENOUGH = 4
"""A feature is usually there if it had so many values, in half of the examples since its first."""


@compiled
def is_usual(statistics, c):
    """Tell whether feature c is usually there, and not always 1."""
    present = statistics[PRESENT, c]
    is_there = present >= ENOUGH and 2.0 * present >= statistics[EVENTS, c]
    return is_there and statistics[VARIED, c] > 0.0


@compiled_inner
def fill(given, row, statistics, policy):
    """Copy a row, and put numbers in the place of missing values; return -1.

    Or return a feature whose value is beyond single precision, or missing and refused. `given`,
    float32 or float64 (d,), has NaN where a value is missing; `row`, float32 (d,), is written;
    `statistics` are float64 (N_ROWS, at least d); `policy` is `MEAN`, `ZERO` or `REJECT`.
    """
    usable, whole = True, True
    for c in range(given.size):
        row[c] = given[c]
        usable &= not abs(given[c]) > LARGEST
        whole &= given[c] == given[c]
    if usable and whole:
        return -1
    for c in range(given.size):
        if abs(given[c]) > LARGEST:
            return c
        if given[c] == given[c]:
            continue
        row[c] = 0.0
        if policy != ZERO and is_usual(statistics, c):
            if policy == REJECT:
                return c
            row[c] = statistics[SUM, c] / statistics[PRESENT, c]
    return -1


@compiled_inner
def note(given, statistics):
    """Count the values of a row that is learnt, NaN where one is missing."""
    sums, present, events = statistics[SUM], statistics[PRESENT], statistics[EVENTS]
    varied = statistics[VARIED]
    for c in range(given.size):
        value = np.float64(np.float32(given[c]))
        is_there = value == value
        sums[c] += value if is_there else 0.0
        present[c] += 1.0 if is_there else 0.0
        events[c] += 1.0 if present[c] > 0.0 else 0.0
        varied[c] = 1.0 if is_there and value != 1.0 else varied[c]


@compiled_inner
def _note_whole(row, statistics, are_varied):
    """Add the values of a row without missing ones, but do not count them; return `are_varied`."""
    sums, varied = statistics[SUM], statistics[VARIED]
    for c in range(row.size):
        sums[c] += np.float64(row[c])
    if are_varied:
        return True
    are_varied = True
    for c in range(row.size):
        value = np.float64(row[c])
        varied[c] = 1.0 if value != 1.0 else varied[c]
        are_varied &= varied[c] > 0.0
    return are_varied


@compiled_inner
def _count_whole(n, statistics, d):
    """Count n rows without missing values."""
    for c in range(d):
        statistics[PRESENT, c] += n
        statistics[EVENTS, c] += n


@compiled
def _fill_rows(x, statistics, learnt, policy):
    """Fill rows, float32 (n, d), one after the other; count those of `learnt`, bool (n,).

    Return -1, or r * d + c of the first value that is refused.
    """
    n, d = x.shape
    n_whole, are_varied, filled = 0, False, np.empty(d, np.float32)
    for r in range(n):
        whole = True
        for c in range(d):
            whole &= x[r, c] == x[r, c]
        if whole:
            if learnt[r]:
                are_varied = _note_whole(x[r], statistics, are_varied)
                n_whole += 1
            continue
        _count_whole(n_whole, statistics, d)
        n_whole = 0
        refused = fill(x[r], filled, statistics, policy)
        if refused >= 0:
            return r * d + refused
        if learnt[r]:
            note(x[r], statistics)
        assign(x[r], filled)
    _count_whole(n_whole, statistics, d)
    return -1


def are_possible(statistics: np.ndarray) -> bool:
    """Tell whether statistics from a file, all finite, may be those of some rows."""
    sums, present, events, varied = statistics
    sizes_fit = (np.abs(sums) <= present * LARGEST).all()
    return bool(sizes_fit and (present <= events).all() and np.isin(varied, (0.0, 1.0)).all())


def absence(row: int, name: Name) -> str:
    """Return why a row is refused that lacks a value."""
    return (
        f"row {row}: feature {name!r} is missing, which most examples have: "
        "missing='mean' takes the mean of its values so far, missing='zero' takes 0"
    )


class MissingValues:
    """Fills the missing values of dense rows.

    `policy` is ``"mean"``, ``"zero"`` or ``"reject"``: see `LASVMClassifier`; else a
    ParameterError. `statistics`, float64 (N_ROWS, room), are counted in place, see `SUM`; `reserve`
    may replace them.
    """

    def __init__(self, policy: Any = "zero") -> None:
        if policy not in POLICIES:
            raise ParameterError(f"missing={policy!r}: use 'mean', 'zero' or 'reject'")
        self.policy: str = policy
        self.code = POLICIES.index(policy)
        self.statistics = np.zeros((N_ROWS, 0))

    def reserve(self, d: int) -> np.ndarray:
        """Return the statistics, with room for at least d features."""
        missing = d - self.statistics.shape[1]
        if missing > 0:
            self.statistics = np.pad(self.statistics, ((0, 0), (0, missing)))
        return self.statistics

    def filled(
        self, x: Rows, names: Sequence[Name], learnt: Any = False
    ) -> tuple[Any, np.ndarray | None]:
        """Return rows without missing values, and the statistics after them, for `keep`.

        Dense rows, float32 (n, d), are changed in place if a value is missing; `names` are those of
        their columns, `learnt` says which rows are learnt, bool (n,), or for all. FeatureError: a
        value is missing that must not be.
        """
        if isinstance(x, SparseRows):
            return x, None
        n, d = x.shape
        if not d:
            return x, None
        room = max(d, self.statistics.shape[1])
        statistics = np.zeros((len(self.statistics), room))
        statistics[:, : self.statistics.shape[1]] = self.statistics
        refused = _fill_rows(x, statistics, np.full(n, learnt), self.code)
        if refused >= 0:
            r, c = divmod(refused, d)
            raise FeatureError(absence(r, names[c]))
        return x, statistics

    @property
    def requires_some(self) -> bool:
        """Whether features may have to be there, though rows are sparse: they were dense before."""
        return self.code == REJECT and self.n_examples > 0

    def required(self, d: int) -> list[int]:
        """Return which of the first d features must be there, though rows are sparse.

        Of sparse rows nothing is counted: usually there is what was so before rows became sparse.
        """
        if not self.requires_some:
            return []
        often = np.flatnonzero(self.statistics[PRESENT, :d] >= ENOUGH)
        return [c for c in often.tolist() if is_usual(self.statistics, c)]

    def refuse_missing(self, x: np.ndarray, names: Sequence[Name]) -> None:
        """Raise FeatureError if rows, float32 (n, d), lack a value that is required."""
        for c in self.required(x.shape[1]):
            rows = np.flatnonzero(np.isnan(x[:, c]))
            if len(rows):
                raise FeatureError(absence(int(rows[0]), names[c]))

    def keep(self, statistics: np.ndarray | None) -> None:
        """Go on from statistics that `filled` returned: the rows are learnt."""
        if statistics is not None:
            self.reserve(statistics.shape[1])[:] = statistics

    def counts(self, names: Sequence[Name]) -> dict[Name, int]:
        """Return how often a value of each feature was missing, without those that are always 1."""
        # The means, which come first, may be too large for whole numbers.
        present, events, varied = self.statistics[1:, : len(names)].astype(np.int64)
        found = zip(names, (varied * (events - present)).tolist(), strict=False)
        return {name: n for name, n in found if n > 0}

    @property
    def n_examples(self) -> int:
        """In how many examples it was counted."""
        return int(self.statistics[EVENTS].max(initial=0.0))

    def means(self, names: Sequence[Name]) -> dict[Name, float]:
        """Return the means that missing values count as, of features of which some were missing."""
        found: dict[Name, float] = {}
        if self.policy != "mean":
            return found
        for c, name in enumerate(names[: self.statistics.shape[1]]):
            total, present, events, _ = self.statistics[:, c]
            if is_usual(self.statistics, c) and present < events:
                found[name] = float(total / present)
        return found
