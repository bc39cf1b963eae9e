"""The reserve: rows that a model passed by, or may remove later, kept to be looked at again.

A row is offered when it has been learnt, with its margin from before. It is kept if y f(x) is
small: it may become a support vector of the final model although it was none when it came, or was
removed. How small is not known beforehand, least of all with large C: while there is room, all rows
are kept. When the reserve is full, the rows with the largest margins leave. Each stretch of the
stream has the same share of it, since margins of early rows are those of a model that knew little.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from streamsvm._parameter_checks import check_number
from streamsvm.errors import ParameterError
from streamsvm.model_files.json_values import Content, Json
from streamsvm.models.rows import scaled_rows
from streamsvm.support.declaration import FINITE, NOT_NEGATIVE, NamedArrays, as_float, as_int
from streamsvm.support.row_blocks import RowBlocks, bytes_of
from streamsvm.support.rows import Rows, SparseRows, taken

MOST_BYTES = 64_000_000
"""The size of a reserve without a given number of rows."""

LARGE_MARGIN = 2.5
"""Without a given number of rows, those with a larger y f(x) leave before all others."""

STRETCHES = 8
"""Of the stream: each has the same share of a full reserve."""

FACTS = np.dtype(
    [
        ("number", np.int64),  # the example's
        ("arrived", np.int64),  # how many examples had come with it
        ("class", np.float64),  # its number
        ("weight", np.float64),  # the example weight
        ("margin", np.float64),  # y f(x) when it came; the least one if there are several problems
    ]
)
"""What is known of a row."""

_OF_FACTS = FACTS.itemsize
_RANGES = {"class": NOT_NEGATIVE, "weight": NOT_NEGATIVE, "margin": FINITE}
_THRESHOLD = "reserve_threshold"


class Reserve(RowBlocks):
    """Rows in the order in which they came, with what is known of them.

    It holds `most` rows, or if that is None as many as fit into `MOST_BYTES`; those older than
    `window` examples leave.
    """

    def __init__(self, most: int | None, window: int | None = None) -> None:
        super().__init__(FACTS, "reserve_")
        self.most, self.window = most, window
        # Rows with a smaller margin are kept.
        self.threshold = -np.inf if most == 0 else np.inf
        # How many examples have come, for the window.
        self.now = 0
        # For how many more rows, or bytes, there is room.
        self._room = MOST_BYTES if most is None else most

    def add(self, x: Rows, facts: np.ndarray) -> None:
        """Offer n rows of the stream, in their order; `facts` is FACTS (n,)."""
        wanted = np.flatnonzero((facts["margin"] < self.threshold) & (facts["weight"] > 0.0))
        while wanted.size:
            self.now = int(facts["arrived"][wanted[0]])
            self._settle()
            n = self._n_fitting(x, wanted)
            if n <= 0 and self._n:
                self._make_room()
                wanted = wanted[facts["margin"][wanted] < self.threshold]
                continue
            # With a window, rows leave between any two that come.
            n = max(1, n) if self.window is None or n == wanted.size else 1
            some, wanted = wanted[:n], wanted[n:]
            self._append(taken(x, some), facts[some])
        if len(facts):
            self.now = int(facts["arrived"][-1])
        self._settle()

    def add_one(self, x: Rows, fact: tuple[float, ...]) -> None:
        """Add one row with a margin below the threshold and a weight above 0: a faster `add`."""
        room = self._room - (bytes_of(x) + _OF_FACTS if self.most is None else 1)
        if room < 0:
            self.add(x, np.array([fact], FACTS))
            return
        self._room = room
        super().add_one(x, fact)

    def _settle(self) -> None:
        """Put rows of single events into a block, and let those leave that are too old."""
        super()._settle()
        while self.window is not None and self._n:
            arrived = self._blocks[0][1]["arrived"]
            n_old = int(np.searchsorted(arrived, self.now - self.window, side="right"))
            if n_old == 0:
                break
            self._forget(n_old)
        self._room = MOST_BYTES - self._bytes if self.most is None else self.most - self._n

    def _n_fitting(self, x: Rows, wanted: np.ndarray) -> int:
        """Return how many of the wanted rows there is room for."""
        if self.most is not None:
            return min(self._room, wanted.size)
        if isinstance(x, SparseRows):
            sizes = 8 * (np.diff(x.start)[wanted] + 1) + _OF_FACTS
            return int(np.searchsorted(np.cumsum(sizes), self._room, side="right"))
        return min(self._room // (4 * x.shape[1] + _OF_FACTS), wanted.size)

    def _make_room(self) -> None:
        """Let an eighth of the rows leave."""
        facts = self.facts()
        first = 1 if self.window is None else max(1, self.now - self.window)
        stretch = (facts["arrived"] - first) * STRETCHES // max(1, self.now - first)
        # The rank of each row within its stretch: those with the smallest margins come first.
        order = np.lexsort((facts["arrived"], facts["margin"], stretch))
        rank = np.empty(len(facts), np.int64)
        rank[order] = np.arange(len(facts)) - np.searchsorted(stretch[order], stretch[order])
        # Without a given number, the shares are those of rows without a large margin.
        margin = facts["margin"] if self.most is None else np.zeros(len(facts))
        margin = np.maximum(margin, LARGE_MARGIN)
        n_kept = len(facts) - max(1, len(facts) // 8)
        kept = np.sort(np.lexsort((-facts["arrived"], rank, margin))[:n_kept])
        if self.most is None:
            # Others like those that leave would be the next to do so: they are not copied at all.
            self.threshold = float(margin[kept].max())
        self.keep(kept)

    def rows(self) -> tuple[Rows, np.ndarray]:
        """Return the rows, and FACTS of them; of each example the last time that it came."""
        x, facts = self.joined()
        # Examples come again where they have ids.
        _, last = np.unique(facts["number"][::-1], return_index=True)
        kept = np.sort(len(facts) - 1 - last)
        return (x, facts) if len(kept) == len(facts) else (taken(x, kept), facts[kept])

    def rescaled(self, ratio: np.ndarray) -> Self:
        """Return the same rows with each feature multiplied by its ratio."""
        return self.mapped(lambda x, facts: (scaled_rows(x, ratio), facts))

    # Files

    def as_file(self) -> Content:
        """Return the reserve as JSON values and arrays."""
        arrays = self.as_arrays()
        # Not of a reserve that was never full, or keeps no rows.
        content: Json = {_THRESHOLD: self.threshold} if np.isfinite(self.threshold) else {}
        if arrays:
            content["reserve"] = {"rows": self.n_rows, "features": self.width}
        return content, arrays

    def read(self, content: Json, arrays: NamedArrays, n_features: int, n_classes: int) -> None:
        """Take over what `as_file` returned.

        The file is not trusted: ValueError if a value does not fit.
        """
        if self.most is None and _THRESHOLD in content:
            self.threshold = as_float(_THRESHOLD, content[_THRESHOLD])
        if "reserve" not in content:
            return
        sizes = content["reserve"]
        if not isinstance(sizes, dict) or set(sizes) != {"rows", "features"}:
            raise ValueError("reserve: no JSON object of rows and features")
        n = as_int("reserve.rows", sizes["rows"], 1)
        d = as_int("reserve.features", sizes["features"], 0, n_features)
        facts = self.read_rows(arrays, n, d, _RANGES)
        is_class = np.isin(facts["class"], range(n_classes))
        if (np.diff(facts["arrived"]) < 0).any() or not is_class.all():
            raise ValueError("reserve: the examples are not in their order, or have no class")
        self.now = int(facts["arrived"][-1])
        self._settle()


def new_reserve(
    reserve: int | None, window: int | None, max_support_vectors: int | None
) -> Reserve:
    """Return an empty reserve of `reserve` rows, which is checked; the bounds have been checked."""
    most = None if reserve is None else int(check_number("reserve", reserve, 0))
    if max_support_vectors is not None:
        if most:
            raise ParameterError(
                f"reserve={reserve!r} with max_support_vectors={max_support_vectors!r}: examples "
                "that were merged or left out to keep within the limit would be learnt again; "
                "leave one of them out, or give reserve=0"
            )
        most = 0
    return Reserve(most, window)
