"""A store of rows that wait for their labels, in Arrow columns: far smaller than dicts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.source import Batch


@dataclass(slots=True)
class _Part:
    """Rows of one batch: their columns, their row numbers in the file, and their own numbers."""

    features: pa.RecordBatch
    rows: npt.NDArray[np.int64]
    file: str | None
    numbers: npt.NDArray[np.int64]  # by which `HeldRows` knows them; increasing
    alive: npt.NDArray[np.bool_]  # False: the row was taken or dropped
    n_alive: int
    weights: npt.NDArray[np.float64] | None

    def living(self) -> _Part:
        """Return a part that has only the rows still alive."""
        if self.n_alive == len(self.numbers):
            return self
        alive = self.alive
        features = self.features.take(pa.array(np.flatnonzero(alive)))
        weights = None if self.weights is None else self.weights[alive]
        return _part(features, self.rows[alive], self.file, self.numbers[alive], weights)


def _part(
    features: pa.RecordBatch, rows: Any, file: str | None, numbers: Any, weights: Any
) -> _Part:
    n = len(numbers)
    return _Part(features, rows, file, numbers, np.ones(n, bool), n, weights)


class HeldRows:
    """A store of rows; each is known by a number, counted in the order of arrival.

    Examples
    --------
    >>> from connectors import MemorySource
    >>> from streamsvm.run.held_rows import HeldRows
    >>> held = HeldRows()
    >>> batch = next(MemorySource([({"a": 1.0}, None), ({"a": 2.0}, None)]).batches())
    >>> held.add(batch, [0, 1])
    range(0, 2)
    >>> [batch.features.to_pylist() for batch, _ in held.take([1])]
    [[{'a': 2.0}]]
    >>> len(held)
    1

    """

    def __init__(self) -> None:
        self._firsts: list[int] = []  # the first number of each part, increasing
        self._parts: dict[int, _Part] = {}  # by their first number
        self._n = 0
        self._next = 0

    def __len__(self) -> int:
        """Return how many rows are held."""
        return self._n

    @property
    def next_number(self) -> int:
        """The number that the next row will get."""
        return self._next

    def add(
        self,
        batch: Batch,
        kept: Sequence[int] | npt.NDArray[np.int64],
        wait: npt.NDArray[np.bool_] | None = None,
    ) -> range:
        """Add rows of a batch.

        Parameters
        ----------
        batch
            The batch.
        kept
            Which rows of it, from 0.
        wait
            Which of these to store; the others only get their numbers. None: all.

        Returns
        -------
        range
            The numbers of the rows.

        """
        numbers = range(self._next, self._next + len(kept))
        places, stored = np.asarray(kept, np.int64), np.arange(numbers.start, numbers.stop)
        if wait is not None:
            places, stored = places[wait], stored[wait]
        if len(places):
            # A copy: a slice would keep the whole batch in memory.
            features = batch.features.take(pa.array(places))
            first = int(stored[0])
            self._firsts.append(first)
            weights = None if batch.weights is None else batch.weights[places]
            self._parts[first] = _part(features, batch.rows[places], batch.file, stored, weights)
            self._n += len(places)
        self._next = numbers.stop
        return numbers

    def take(self, numbers: Sequence[int]) -> Iterator[tuple[Batch, slice]]:
        """Yield rows and remove them.

        Parameters
        ----------
        numbers
            The rows, in any order.

        Yields
        ------
        tuple[Batch, slice]
            Batches without labels, in the order of `numbers`, and the slice of `numbers` that each
            batch holds.

        """
        parts = [self._parts[self._first_of(n)] for n in numbers]
        start = 0
        for _, group in groupby(parts, key=_columns_of):
            run = list(group)
            stop = start + len(run)
            yield _gathered(run, numbers[start:stop]), slice(start, stop)
            start = stop
        self.drop(numbers)

    def drop(self, numbers: Sequence[int]) -> None:
        """Remove rows.

        Parameters
        ----------
        numbers
            The rows.

        """
        for number in numbers:
            first = self._first_of(number)
            part = self._parts[first]
            part.alive[np.searchsorted(part.numbers, number)] = False
            part.n_alive -= 1
            self._n -= 1
            if part.n_alive == 0:
                del self._parts[first]
                del self._firsts[bisect_left(self._firsts, first)]
            elif 2 * part.n_alive < len(part.numbers):
                # More than half of the memory is of removed rows: copy the others.
                self._parts[first] = part.living()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the rows as JSON values and arrays, for `resume`.

        Returns
        -------
        tuple[dict[str, Any], dict[str, np.ndarray]]
            JSON values, and arrays by name.

        """
        arrays: dict[str, np.ndarray] = {}
        files = []
        for first in self._firsts:
            part = self._parts[first].living()
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.features.schema) as writer:
                writer.write_batch(part.features)
            arrays[f"{first}.features"] = np.frombuffer(sink.getvalue(), np.uint8)
            arrays[f"{first}.rows"], arrays[f"{first}.numbers"] = part.rows, part.numbers
            if part.weights is not None:
                arrays[f"{first}.weights"] = part.weights
            files.append(part.file)
        return {"files": files, "firsts": list(self._firsts), "next": self._next}, arrays

    def resume(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the rows by those that another store had when its `state` was called.

        Parameters
        ----------
        state, arrays
            The return value of `state`.

        """
        self._firsts, self._parts, self._next = state["firsts"], {}, state["next"]
        for file, first in zip(state["files"], self._firsts, strict=True):
            with pa.ipc.open_stream(pa.py_buffer(arrays[f"{first}.features"])) as reader:
                features = reader.read_next_batch()
            features.validate(full=True)
            rows, numbers = arrays[f"{first}.rows"], arrays[f"{first}.numbers"]
            weights = arrays.get(f"{first}.weights")
            self._parts[first] = _part(features, rows, file, numbers, weights)
        self._n = sum(part.n_alive for part in self._parts.values())

    def _first_of(self, number: int) -> int:
        """Return the first number of the part that holds a row."""
        return self._firsts[bisect_right(self._firsts, number) - 1]


def _columns_of(part: _Part) -> bytes:
    """Return the schema, serialised: rows of parts with equal ones can share a batch."""
    schema: bytes = part.features.schema.serialize().to_pybytes()
    return schema


def _gathered(parts: list[_Part], numbers: Sequence[int]) -> Batch:
    """Return rows of parts with the same columns as one batch, in the order of the numbers."""
    unique = list({id(part): part for part in parts}.values())
    offsets = np.cumsum([0, *(len(part.numbers) for part in unique)])
    offset_of = {id(part): int(at) for part, at in zip(unique, offsets, strict=False)}
    places = np.array(
        [
            offset_of[id(part)] + int(np.searchsorted(part.numbers, number))
            for part, number in zip(parts, numbers, strict=True)
        ],
        np.int64,
    )
    features = pa.concat_batches([part.features for part in unique]).take(pa.array(places))
    rows = np.concatenate([part.rows for part in unique])[places]
    files = [part.file for part in parts]
    weights = [part.weights for part in unique if part.weights is not None]
    w = np.concatenate(weights)[places] if weights else None
    return Batch(features, pa.nulls(len(rows)), rows, None, files=files, weights=w)
