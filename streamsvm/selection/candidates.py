"""The candidates of a learner that chooses its examples: those that wait, and what was chosen."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from streamsvm._parameter_checks import LARGEST_FACTOR
from streamsvm.model_files.json_values import checked
from streamsvm.selection.strategies import Counts, Selection
from streamsvm.support.declaration import (
    COUNT,
    Field,
    NamedArrays,
    Range,
    as_int,
    rows_as_arrays,
)
from streamsvm.support.draws import new_draws
from streamsvm.support.kernel_rows.kernel_diagonal import LARGEST_DIAGONAL
from streamsvm.support.rows import (
    Columns,
    Rows,
    SparseRows,
    columns_of,
    cut,
    joined,
    shape,
    sparse,
    taken,
)

SEEDS = 20
"""So many examples of each class are learnt as they come (thesis, Algorithm 14, line 1: "a few").

With 5 the first candidates are chosen by a border, and a width, that are far from right.
"""

FACTS = np.dtype(
    [
        ("class", np.int64),  # the index of its label in those seen
        ("weight", np.float64),  # the example weight
        ("id", np.int64),  # what the user gave; 0: nothing
        ("diagonal", np.float32),  # k(x, x)
        ("arrived", np.int64),  # how many candidates had come with it
    ]
)
"""What is known of a candidate."""

_RANGES = {"weight": Range(0, LARGEST_FACTOR), "diagonal": Range(0, LARGEST_DIAGONAL)}
_MOST = 2**53
_COUNTED = ("n_seen", "n_taken")


class Chosen(NamedTuple):
    """The candidate that is learnt now."""

    x: Rows
    fact: np.void


class Candidates:
    """Examples that wait until a learner learns them, or until there are too many.

    Attributes
    ----------
    selection
        The rule by which one is chosen.
    n_seen, n_taken
        How many examples came, and how many of them were learnt.
    counts
        How many of them waited, and how many since the last choice.
    facts
        FACTS (n,): of those waiting, in the order of their rows, which has no meaning.
    values, scratch
        What the learner knows of them: float32, a row for each, which moves with it; and an object.

    """

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.n_seen = self.n_taken = 0
        self.counts = Counts()
        self.n_seeds = np.zeros(0, np.int64)  # of each class, at most SEEDS
        seed = getattr(selection, "seed", 0)
        self._seed = int(new_draws(None)[0] >> np.uint64(2)) if seed is None else seed
        self._ids: set[int] = set()  # of examples that were learnt
        self.last_id = 0  # of the last one; 0: it had none
        self._n, self._rows = 0, np.zeros((selection.candidates, 0), np.float32)
        self._listed: Any = None  # a list in place of `_rows`, if rows are sparse
        self._facts = np.zeros(selection.candidates, FACTS)
        self.scratch: Any = None
        self.values = np.zeros((selection.candidates, 0), np.float32)

    def __len__(self) -> int:
        return self._n

    @property
    def facts(self) -> np.ndarray:
        """What is known of each candidate."""
        return self._facts[: self._n]

    @property
    def nbytes(self) -> int:
        """Bytes of rows and facts."""
        listed = sum(part.nbytes for x in self._listed or () for part in x[:3])
        return self._rows.nbytes + listed + self.values.nbytes + 64 * len(self._ids)

    @property
    def in_words(self) -> str:
        """How many examples were chosen to be learnt, of how many, and how."""
        return f"{self.n_taken:,} of {self.n_seen:,} examples were learnt: {self.selection!r}"

    @property
    def draw(self) -> tuple[int, int]:
        """The seed of the next choice."""
        return self._seed, self.n_taken

    def is_seed(self, label_index: int) -> bool:
        """Tell whether the next example of a class is learnt as it comes."""
        return label_index >= self.n_seeds.size or self.n_seeds[label_index] < SEEDS

    def note_taken(self, label_index: int, number: int) -> None:
        """Take note that an example of this class, and with this id if not 0, was learnt.

        A candidate with the id waits no more.
        """
        if label_index >= self.n_seeds.size:
            more = np.zeros(label_index + 1 - self.n_seeds.size, np.int64)
            self.n_seeds = np.concatenate([self.n_seeds, more])
        self.n_seeds[label_index] = min(SEEDS, self.n_seeds[label_index] + 1)
        self.n_taken += 1
        self.last_id = number
        if number:
            self._ids.add(number)
            for place in np.flatnonzero(self.facts["id"] == number).tolist():
                self.remove(place)

    def are_new(self, ids: np.ndarray) -> np.ndarray:
        """Return which ids, bool (n,), are not of examples that were learnt; 0 is always new."""
        if not self._ids or not ids.any():
            return np.ones(len(ids), bool)
        return np.array([number not in self._ids for number in ids.tolist()], bool)

    # Rows

    def rows(self, d: int) -> Rows:
        """Return the rows over d features; they may be views."""
        if self._listed is not None:
            return joined([*self._listed], d)
        if self._rows.shape[1] != d:
            wider = np.zeros((len(self._rows), d), np.float32)
            wider[: self._n, : self._rows.shape[1]] = self._rows[: self._n]
            self._rows = wider
        return self._rows[: self._n]

    def add(self, x: Rows, facts: np.ndarray, values: np.ndarray) -> None:
        """Add rows, not more than `selection.candidates`, after the oldest have made room.

        Of several rows with one id, also among those that wait, the last one stays. `values`,
        float32 (n, ...), are what `values` shall have of them, or nothing.
        """
        if facts["id"].any():
            x, facts, values = self._without_repeated(x, facts, values)
        n, d = len(facts), shape(x)[1]
        places = self._free(n)
        if isinstance(x, SparseRows) or self._listed is not None:
            self._list(d)
            for r, place in enumerate(places.tolist()):
                self._listed[place : place + 1] = [_sparse(taken(x, np.array([r])))]
        else:
            self.rows(d)
            self._rows[places] = x
        self._facts[places] = facts
        if values.shape[1]:
            self.values[places] = values
        self._n = max(self._n, int(places[-1]) + 1)

    def _without_repeated(self, x: Rows, facts: np.ndarray, values: np.ndarray) -> Any:
        """Remove candidates with the ids of rows that come; return each of these once."""
        ids = facts["id"]
        given = ids[ids > 0].tolist()
        distinct = set(given)
        if len(distinct) == len(given) and distinct.isdisjoint(self.facts["id"].tolist()):
            return x, facts, values
        for number in ids[np.isin(ids, self.facts["id"]) & (ids > 0)].tolist():
            for place in np.flatnonzero(self.facts["id"] == number).tolist():
                self.remove(place)
        last = len(ids) - 1 - np.unique(ids[::-1], return_index=True)[1]
        kept = np.union1d(last, np.flatnonzero(ids == 0))
        return taken(x, kept), facts[kept], values[kept]

    def _free(self, n: int) -> np.ndarray:
        """Return n places for new rows, which ascend: those after the last, and of the oldest."""
        most = self.selection.candidates
        n_old = max(0, self._n + n - most)
        after = np.arange(self._n, self._n + n - n_old)
        if not n_old:
            return after
        oldest = np.sort(self.facts["arrived"].argsort()[:n_old])
        return np.concatenate([oldest, after])

    def _list(self, d: int) -> None:
        """Keep rows as sparse ones from now on."""
        if self._listed is None:
            rows = self.rows(d)
            self._listed = [_sparse(cut(rows, r, r + 1)) for r in range(self._n)]
            self._rows = self._rows[:0]

    def get(self, place: int) -> Chosen:
        """Return a copy of a candidate."""
        own = self._listed[place] if self._listed is not None else self._rows[place][None].copy()
        return Chosen(own, self._facts[place].copy())

    def remove(self, place: int) -> None:
        """Remove a candidate; the last one takes its place."""
        last = self._n - 1
        if self._listed is not None:
            self._listed[place] = self._listed[last]
            self._listed.pop()
        else:
            self._rows[place] = self._rows[last]
        if place < last:
            self._facts[place], self.values[place] = self._facts[last], self.values[last]
        self._n = last

    def without(self, numbers: np.ndarray, columns: Columns) -> Candidates:
        """Return a copy over some columns that has forgotten these ids: see `forget`."""
        new = copy.copy(self)
        # Kernel values are computed anew, by what learns then.
        new.scratch, new.values = None, np.zeros((len(self.values), 0), np.float32)
        new = copy.deepcopy(new)
        new.forget(numbers.tolist())
        new.take_columns(columns)
        return new

    def forget(self, numbers: list[int]) -> None:
        """Remove candidates by their ids; what was learnt with these may be learnt again."""
        self._ids.difference_update(numbers)
        self.last_id = 0 if self.last_id in numbers else self.last_id
        for number in numbers:
            for place in np.flatnonzero(self.facts["id"] == number).tolist():
                self.remove(place)
        # What removed rows have left behind all others.
        self._facts[self._n :] = 0
        self._rows[self._n :] = 0.0

    def take_columns(self, columns: Columns) -> None:
        """Drop the other columns."""
        self._rows = np.asarray(columns_of(self._rows, columns))
        if self._listed is not None:
            self._listed = [columns_of(x, columns) for x in self._listed]

    def knows(self, numbers: np.ndarray) -> np.ndarray:
        """Return which ids, bool (n,), wait or were learnt."""
        waits = np.isin(numbers, self.facts["id"])
        return waits | ~self.are_new(numbers)

    # Files

    def as_file(self, d: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return counts, and arrays of those waiting over d features, oldest first."""
        counts = {name: getattr(self, name) for name in _COUNTED} | {"seed": self._seed}
        counts |= self.counts._asdict()
        order = self.facts["arrived"].argsort()
        arrays = {name: np.ascontiguousarray(self.facts[name][order]) for name in FACTS.names or ()}
        arrays = arrays | rows_as_arrays(taken(self.rows(d), order)) if self._n else {}
        arrays |= {"seeds": self.n_seeds, "ids": np.array(sorted(self._ids), np.int64)}
        return {"chosen": counts}, {f"candidate_{name}": arrays[name] for name in arrays}

    def read(self, content: dict[str, Any], arrays: NamedArrays, d: int, n_classes: int) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit."""
        counts = checked(content.get("chosen"), dict, "chosen")
        for name in _COUNTED:
            setattr(self, name, as_int(name, counts.get(name), 0, _MOST))
        self.counts = Counts(*(as_int(name, counts.get(name), 0, _MOST) for name in Counts._fields))
        if self.counts.n_near >= getattr(self.selection, "near", _MOST):
            raise ValueError("more candidates are near than there may be before a choice")
        self._seed = as_int("seed", counts.get("seed"), 0)
        n_seeds = arrays.length_of("candidate_seeds", 0)
        self.n_seeds = arrays.take("candidate_seeds", Field((n_seeds,), np.int64, range=COUNT), {})
        n_ids = arrays.length_of("candidate_ids", 0)
        ids = arrays.take("candidate_ids", Field((n_ids,), np.int64, range=COUNT), {})
        self._ids = set(ids.tolist())
        if n_seeds > n_classes or "candidate_class" not in arrays:
            if n_seeds > n_classes:
                raise ValueError("more classes were learnt than there are")
            return
        n = arrays.length_of("candidate_class", 0)
        if n > self.selection.candidates:
            raise ValueError("there are more candidates than there may be")
        facts = np.zeros(n, FACTS)
        for name in FACTS.names or ():
            ranges = _RANGES | {"class": Range(0, n_classes - 1)}
            declared = Field((n,), FACTS[name], range=ranges.get(name, COUNT))
            facts[name] = arrays.take(f"candidate_{name}", declared, {})
        self.add(arrays.take_rows(n, d, "candidate_"), facts, np.zeros((n, 0), np.float32))


def _sparse(x: Rows) -> SparseRows:
    """Return one row as a block of its own without other entries."""
    listed = sparse(x)
    return taken(listed, np.zeros(1, np.int64))
