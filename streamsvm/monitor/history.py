"""What a monitor recorded, moment by moment, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


class History:
    """Records of moments; every second one is dropped when there are too many.

    Parameters
    ----------
    most
        Most records kept, at least 2.

    Attributes
    ----------
    kept_every
        1 while all records are kept; 2, 4, 8, ... when only every so many-th is.

    Examples
    --------
    >>> from streamsvm.monitor.history import History
    >>> history = History(most=4)
    >>> for i in range(6):
    ...     history.add({"n_examples": 10 * i})
    >>> history.kept_every, history.to_arrow()["n_examples"].to_pylist()
    (2, [0, 20, 40])

    """

    def __init__(self, most: int = 2000) -> None:
        self.most = most
        self.kept_every = 1
        self._offered = 0
        self._records: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return self._records[i]

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record, if its turn has come."""
        if self._offered % self.kept_every == 0:
            if len(self._records) >= self.most:
                self._records = self._records[::2]
                self.kept_every *= 2
            if self._offered % self.kept_every == 0:
                self._records.append(dict(record))
        self._offered += 1

    def state(self) -> list[Any]:
        """Return all that it knows, as JSON values."""
        return [self._records, self._offered, self.kept_every]

    def resume(self, state: list[Any]) -> None:
        """Go on from a `state`."""
        self._records, self._offered, self.kept_every = state

    def to_arrow(self) -> pa.Table:
        """Return a table with a row a record; what is absent is null."""
        names = list(dict.fromkeys(name for record in self._records for name in record))
        columns = {name: [record.get(name) for record in self._records] for name in names}
        metadata = {"streamsvm.kept_every": str(self.kept_every)}
        return pa.table({k: _column(v) for k, v in columns.items()}).replace_schema_metadata(
            metadata
        )

    def write_parquet(self, path: str | Path) -> None:
        """Write the table to a Parquet file."""
        pq.write_table(self.to_arrow(), path)

    def write_json_lines(self, path: str | Path) -> None:
        """Write one JSON object a line."""
        with Path(path).open("w", encoding="utf-8") as file:
            for record in self._records:
                file.write(json.dumps(record) + "\n")

    def column(self, name: str) -> np.ndarray:
        """Return one column as float64; NaN where absent."""
        values = [record.get(name) for record in self._records]
        return np.array([np.nan if v is None else float(v) for v in values])


def _column(values: list[Any]) -> pa.Array:
    given = [value for value in values if value is not None]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in given) and given:
        return pa.array(values, pa.int64())
    if all(isinstance(value, (int, float)) for value in given):
        return pa.array(values, pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
