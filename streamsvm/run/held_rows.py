"""A store of rows that wait for their labels, in Arrow columns: far smaller than dicts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.source import Batch


@dataclass(slots=True, eq=False)
class _Part:
    """Rows of one batch: their columns, their row numbers in the file, and their own numbers."""

    features: pa.RecordBatch
    rows: npt.NDArray[np.int64]
    file: str | None
    numbers: npt.NDArray[np.int64]  # by which `HeldRows` knows them; increasing
    weights: npt.NDArray[np.float64] | None
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
        # A copy: a slice would keep the whole batch in memory.
        features = batch.features.take(pa.array(kept))
        weights = None if batch.weights is None else batch.weights[kept]
        return self._put(features, batch.rows[kept], batch.file, numbers, weights)

    def _put(
        self,
        features: pa.RecordBatch,
        rows: np.ndarray,
        file: str | None,
        numbers: np.ndarray,
        weights: np.ndarray | None,
    ) -> list[int]:
        schema, names = features.schema.serialize().to_pybytes(), numbers.tolist()
        part = _Part(features, rows, file, numbers, weights, len(numbers), schema)
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
        held = np.array([n in self._part_of for n in part.numbers.tolist()])
        part.features = part.features.take(pa.array(np.flatnonzero(held)))
        part.rows, part.numbers = part.rows[held], part.numbers[held]
        part.weights = None if part.weights is None else part.weights[held]

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the rows as JSON values, and arrays by name, for `resume`."""
        arrays: dict[str, np.ndarray] = {}
        parts = list(dict.fromkeys(self._part_of.values()))
        firsts = []
        for part in parts:
            self._shrink(part)
            first = int(part.numbers[0])
            firsts.append(first)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.features.schema) as writer:
                writer.write_batch(part.features)
            arrays[f"{first}.features"] = np.frombuffer(sink.getvalue(), np.uint8)
            arrays[f"{first}.rows"], arrays[f"{first}.numbers"] = part.rows, part.numbers
            if part.weights is not None:
                arrays[f"{first}.weights"] = part.weights
        files = [part.file for part in parts]
        return {"files": files, "firsts": firsts, "next": self.next_number}, arrays

    def resume(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the rows by those that another store had when its `state` was called."""
        self._part_of, self.next_number = {}, state["next"]
        for file, first in zip(state["files"], state["firsts"], strict=True):
            with pa.ipc.open_stream(pa.py_buffer(arrays[f"{first}.features"])) as reader:
                features = reader.read_next_batch()
            features.validate(full=True)
            rows, numbers = arrays[f"{first}.rows"], arrays[f"{first}.numbers"]
            self._put(features, rows, file, numbers, arrays.get(f"{first}.weights"))


def _gathered(runs: list[tuple[_Part, list[int]]]) -> Batch:
    """Return rows of parts of one schema as a batch; a run has the numbers of rows of a part."""
    parts = list(dict.fromkeys(part for part, _ in runs))
    firsts = np.cumsum([0, *(len(part.numbers) for part in parts)]).tolist()
    first_of = dict(zip(parts, firsts, strict=False))
    found = [first_of[part] + np.searchsorted(part.numbers, run) for part, run in runs]
    places = np.concatenate(found)
    features = pa.concat_batches([part.features for part in parts]).take(pa.array(places))
    rows = np.concatenate([part.rows for part in parts])[places]
    files = [part.file for part, run in runs for _ in run]
    weights = [part.weights for part in parts if part.weights is not None]
    w = np.concatenate(weights)[places] if weights else None
    return Batch(features, pa.nulls(len(rows)), rows, None, files=files, weights=w)
