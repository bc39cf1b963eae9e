"""The reserve: rows that a learner passed by, or may remove later, kept to be looked at again.

A row is offered when it has been learnt, with its margin from before. It is kept if y f(x) is
small: it may become a support vector of the final model although it was none when it came, or was
removed. How small is not known beforehand, least of all with large C: while there is room, all rows
are kept. When the reserve is full, the rows with the largest margins leave. Each stretch of the
stream has the same share of it, since margins of early rows are those of a model that knew little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streamsvm.learners.bases.scaled_rows import scaled_rows
from streamsvm.support.declaration import (
    COUNT,
    FINITE,
    NOT_NEGATIVE,
    Field,
    NamedArrays,
    as_float,
    as_int,
    rows_as_arrays,
)
from streamsvm.support.rows import Rows, SparseRows, cut, joined, shape, taken

MOST_BYTES = 64_000_000
"""The size of a reserve without a given number of rows."""

LARGE_MARGIN = 2.5
"""Without a given number of rows, those with a larger y f(x) leave before all others."""

STRETCHES = 8
"""Of the stream: each has the same share of a full reserve."""

_STEP = 1024
"""Number of rows that are put together in one block."""

FACTS = np.dtype(
    [
        ("number", np.int64),  # the example's
        ("arrived", np.int64),  # how many examples had come with it
        ("sign", np.float64),  # +1 or -1; for several classes the number of its class
        ("weight", np.float64),  # the example weight
        ("margin", np.float64),  # y f(x) when it came; the least one if there are several problems
    ]
)
"""What is known of a row."""

_RANGES = {"sign": FINITE, "weight": NOT_NEGATIVE, "margin": FINITE}
_FILE = "reserve_"
_THRESHOLD = "reserve_threshold"


class Reserve:
    """Rows in the order in which they came, with what is known of them.

    It holds `most` rows, or if that is None as many as fit into `MOST_BYTES`; those older than
    `window` examples leave.
    """

    def __init__(self, most: int | None, window: int | None = None) -> None:
        self.most, self.window = most, window
        # Rows with a smaller margin are kept.
        self.threshold = -np.inf if most == 0 else np.inf
        self._blocks: list[tuple[Rows, np.ndarray]] = []
        self._n, self._bytes = 0, 0
        # The number of rows in the last, small blocks.
        self._n_last = 0
        # Rows of single events, which are put into a block later, counted in the numbers above.
        self._single: list[tuple[Rows, tuple[Any, ...]]] = []
        # How many examples have come, for the window.
        self.now = 0

    def __len__(self) -> int:
        self._settle()
        return self._n

    def add(self, x: Rows, facts: np.ndarray) -> None:
        """Offer n rows of the stream, in their order; `facts` is FACTS (n,)."""
        self._settle()
        wanted = np.flatnonzero((facts["margin"] < self.threshold) & (facts["weight"] > 0.0))
        while wanted.size:
            now = int(facts["arrived"][wanted[0]])
            self._forget(now)
            n = self._n_fitting(x, wanted)
            if n == 0 and self._n:
                self._make_room(now)
                wanted = wanted[facts["margin"][wanted] < self.threshold]
                continue
            # With a window, rows leave between any two that come.
            n = max(1, n) if self.window is None or n == wanted.size else 1
            some, wanted = wanted[:n], wanted[n:]
            self.append(taken(x, some), facts[some])
        if len(facts):
            self.now = int(facts["arrived"][-1])

    def add_one(self, x: Rows, fact: tuple[Any, ...]) -> None:
        """Add one row with a margin below the threshold and a weight above 0: a faster `add`."""
        n_values = 2 * (len(x.values) + 1) if isinstance(x, SparseRows) else x.size
        n_bytes = self._bytes + 4 * n_values + FACTS.itemsize
        has_room = n_bytes <= MOST_BYTES if self.most is None else self._n < self.most
        if not has_room:
            self.add(x, np.array([fact], FACTS))
            return
        self._single.append((x, fact))
        self._n += 1
        self._bytes = n_bytes
        if len(self._single) == _STEP:
            self._settle()

    def _settle(self) -> None:
        """Put rows of single events into a block, and let those leave that are too old."""
        if self._single:
            rows = [x for x, _ in self._single]
            facts = np.array([fact for _, fact in self._single], FACTS)
            self._n -= len(rows)
            self._bytes -= sum(_n_bytes(x, facts[:1]) for x in rows)
            self._single = []
            self.append(joined(rows, max(shape(x)[1] for x in rows)), facts)
        self._forget(self.now)

    def _n_fitting(self, x: Rows, wanted: np.ndarray) -> int:
        """Return how many of the wanted rows there is room for."""
        if self.most is not None:
            return min(self.most - self._n, wanted.size)
        left = MOST_BYTES - self._bytes
        if isinstance(x, SparseRows):
            sizes = 8 * (np.diff(x.start)[wanted] + 1) + FACTS.itemsize
            return int(np.searchsorted(np.cumsum(sizes), left, side="right"))
        return min(left // (4 * x.shape[1] + FACTS.itemsize), wanted.size)

    def append(self, x: Rows, facts: np.ndarray) -> None:
        """Put rows into a block of their own, whether there is room or not."""
        self._blocks.append((x, facts))
        self._n += len(facts)
        self._bytes += _n_bytes(x, facts)
        self._n_last = self._n_last + len(facts) if len(facts) < _STEP else 0
        if self._n_last >= _STEP:
            # The small blocks at the end make one.
            first = len(self._blocks)
            while first > 0 and len(self._blocks[first - 1][1]) < _STEP:
                first -= 1
            self._blocks[first:] = [_joined(self._blocks[first:])]
            self._n_last = 0

    def _forget(self, now: int) -> None:
        """Let rows leave that are older than the window, after `now` examples."""
        while self.window is not None and self._n:
            x, facts = self._blocks[0]
            n_old = int(np.searchsorted(facts["arrived"], now - self.window, side="right"))
            if n_old == 0:
                return
            n, left = len(facts), (cut(x, n_old, len(facts)), facts[n_old:])
            self._blocks[:1] = [left] if n_old < n else []
            self._n -= n_old
            self._bytes -= _n_bytes(x, facts) - (_n_bytes(*left) if n_old < n else 0)
            self._n_last = min(self._n_last, self._n)

    def _make_room(self, now: int) -> None:
        """Let an eighth of the rows leave, before example `now`."""
        x, facts = _joined(self._blocks)
        first = 1 if self.window is None else max(1, now - self.window)
        stretch = (facts["arrived"] - first) * STRETCHES // max(1, now - first)
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
        self._set(x, facts, kept)

    def _set(self, x: Rows, facts: np.ndarray, kept: np.ndarray) -> None:
        """Hold the rows with these indices, and no others."""
        self._blocks, self._n, self._bytes, self._n_last = [], 0, 0, 0
        for i in range(0, len(kept), _STEP):
            self.append(taken(x, kept[i : i + _STEP]), facts[kept[i : i + _STEP]])

    def rows(self) -> tuple[Rows, np.ndarray]:
        """Return the rows, and FACTS of them; of each example the last time that it came.

        They must not be changed.
        """
        self._settle()
        if not self._blocks:
            return np.zeros((0, 0), np.float32), np.zeros(0, FACTS)
        x, facts = _joined(self._blocks)
        # Examples come again where they have ids.
        _, last = np.unique(facts["number"][::-1], return_index=True)
        kept = np.sort(len(facts) - 1 - last)
        return (x, facts) if len(kept) == len(facts) else (taken(x, kept), facts[kept])

    def _empty(self) -> Reserve:
        """Return a reserve without rows that goes on as this one."""
        new = Reserve(self.most, self.window)
        new.now, new.threshold = self.now, self.threshold
        return new

    def with_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> Reserve:
        """Return the same rows with the signs that a function returns for theirs."""
        self._settle()
        new = self._empty()
        for x, facts in self._blocks:
            changed = facts.copy()
            changed["sign"] = change(facts["sign"])
            new.append(x, changed)
        return new

    def rescaled(self, ratio: np.ndarray) -> Reserve:
        """Return the same rows with each feature multiplied by its ratio."""
        self._settle()
        new = self._empty()
        for x, facts in self._blocks:
            new.append(scaled_rows(x, ratio), facts)
        return new

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of what is known of them."""
        self._settle()
        return self._bytes

    # Files

    def as_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the reserve as JSON values and arrays."""
        self._settle()
        # Not of a reserve that was never full, or keeps no rows.
        content: dict[str, Any] = (
            {_THRESHOLD: self.threshold} if np.isfinite(self.threshold) else {}
        )
        if not self._blocks:
            return content, {}
        x, facts = _joined(self._blocks)
        arrays = {_FILE + name: np.ascontiguousarray(facts[name]) for name in FACTS.names or ()}
        arrays |= {_FILE + name: array for name, array in rows_as_arrays(x).items()}
        return content | {"reserve": {"rows": len(facts), "features": shape(x)[1]}}, arrays

    def read(
        self, content: dict[str, Any], arrays: NamedArrays, n_features: int, signs: Sequence[float]
    ) -> None:
        """Take over what `as_file` returned; an older file has nothing.

        The file is not trusted: ValueError if a value does not fit. `signs` are those of the
        learner's labels, or the numbers of its classes.
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
        facts = np.empty(n, FACTS)
        for name in FACTS.names or ():
            declared = Field((n,), FACTS[name], range=_RANGES.get(name, COUNT))
            facts[name] = arrays.take(_FILE + name, declared, {})
        if (np.diff(facts["arrived"]) < 0).any() or not np.isin(facts["sign"], signs).all():
            raise ValueError("reserve: the examples are not in their order, or have no sign")
        self._set(arrays.take_rows(n, d, _FILE), facts, np.arange(n))
        self.now = int(facts["arrived"][-1])


def _n_bytes(x: Rows, facts: np.ndarray) -> int:
    if isinstance(x, SparseRows):
        return 8 * int(x.start[-1] - x.start[0] + len(facts)) + facts.nbytes
    return x.nbytes + facts.nbytes


def _joined(blocks: list[tuple[Rows, np.ndarray]]) -> tuple[Rows, np.ndarray]:
    rows = [taken(x, np.arange(len(f))) if isinstance(x, SparseRows) else x for x, f in blocks]
    if len(blocks) == 1:
        return rows[0], blocks[0][1]
    return joined(rows, max(shape(x)[1] for x in rows)), np.concatenate([f for _, f in blocks])
