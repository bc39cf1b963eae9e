"""Rows that wait for their labels, in Arrow columns: far smaller than dicts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.batch import Batch


@dataclass(slots=True, eq=False)
class _Part:
    """Rows of one batch, which may be taken or dropped one by one."""

    batch: Batch
    numbers: npt.NDArray[np.int64]  # by which `HeldRows` knows them; increasing
    n_held: int  # the others were taken or dropped
    schema: bytes  # serialised: rows of parts with equal ones can share a batch


class HeldRows:
    """A store of rows; each is known by a number, counted in the order of arrival."""

    def __init__(self) -> None:
        self._part_of: dict[int, _Part] = {}  # by the numbers of the rows held
        self.next_number = 0

    def __len__(self) -> int:
        """Return how many rows are held."""
        return len(self._part_of)

    def add(self, batch: Batch, kept: npt.NDArray[np.int64]) -> list[int]:
        """Store some rows of a batch; return their numbers. The other rows are numbered, too."""
        numbers = self.next_number + kept
        self.next_number += len(batch)
        needed = replace(
            batch, labels=pa.nulls(len(batch)), timestamps=None, keys=None, payloads=None
        )
        # A copy: a slice would keep the whole batch in memory.
        return self._put(needed.take(kept), numbers)

    def _put(self, batch: Batch, numbers: npt.NDArray[np.int64]) -> list[int]:
        schema, names = batch.features.schema.serialize().to_pybytes(), numbers.tolist()
        part = _Part(batch, numbers, len(numbers), schema)
        self._part_of.update(dict.fromkeys(names, part))
        return names

    def take(self, numbers: Sequence[int]) -> Iterator[tuple[Batch, slice]]:
        """Yield rows, in any order, and remove them.

        They come as batches without labels, in the order of `numbers`, each with the slice of
        `numbers` that it holds.
        """
        runs = [(part, [*run]) for part, run in groupby(numbers, self._part_of.__getitem__)]
        start = 0
        for _, same in groupby(runs, lambda run: run[0].schema):
            batch = _gathered([*same])
            yield batch, slice(start, start + len(batch))
            start += len(batch)
        self.drop(numbers)

    def drop(self, numbers: Sequence[int]) -> None:
        """Remove rows."""
        for number in numbers:
            part = self._part_of.pop(number)
            part.n_held -= 1
            if part.n_held and 2 * part.n_held < len(part.numbers):
                # More than half of the memory is of removed rows: copy the others.
                self._shrink(part)

    def _shrink(self, part: _Part) -> None:
        """Leave only those rows in a part that are held."""
        if part.n_held == len(part.numbers):
            return
        held = np.flatnonzero([n in self._part_of for n in part.numbers.tolist()])
        part.batch, part.numbers = part.batch.take(held), part.numbers[held]

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the rows as JSON values, and arrays by name, for `resume`."""
        arrays: dict[str, np.ndarray] = {}
        files: list[Any] = []
        firsts = []
        for part in dict.fromkeys(self._part_of.values()):
            self._shrink(part)
            first = int(part.numbers[0])
            firsts.append(first)
            files.append(part.batch.files or part.batch.file)
            own = part.batch.to_arrays() | {"numbers": part.numbers}
            arrays |= {f"{first}.{name}": array for name, array in own.items()}
        return {"files": files, "firsts": firsts, "next": self.next_number}, arrays

    def restore(self, state: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the rows by those that another store had when its `state` was called."""
        self._part_of, self.next_number = {}, state["next"]
        own: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            first, _, short = name.partition(".")
            own.setdefault(first, {})[short] = array
        for file, number in zip(state["files"], state["firsts"], strict=True):
            where = {"files" if isinstance(file, list) else "file": file}
            of_part = own[str(number)]
            self._put(replace(Batch.from_arrays(of_part), **where), of_part["numbers"])


def _gathered(runs: list[tuple[_Part, list[int]]]) -> Batch:
    """Return rows of parts of one schema as a batch; a run has the numbers of rows of a part."""
    parts = list(dict.fromkeys(part for part, _ in runs))
    firsts = np.cumsum([0, *(len(part.numbers) for part in parts)]).tolist()
    first_of = dict(zip(parts, firsts, strict=False))
    places = [first_of[part] + np.searchsorted(part.numbers, run) for part, run in runs]
    return Batch.concat([part.batch for part in parts]).take(np.concatenate(places))
