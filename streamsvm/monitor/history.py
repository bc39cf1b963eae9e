"""The history of a monitor: its records in order, in bounded memory."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamsvm.support.kept import Kept

_LATEST = 200


class History(Kept):
    """A list of records of bounded length: when it is full, every second record is dropped.

    Parameters
    ----------
    most
        The largest number of records kept, at least 2.

    Attributes
    ----------
    kept_every
        How many added records there are to one kept record: 1 at first, then 2, 4, 8, ...

    Examples
    --------
    >>> from streamsvm.monitor.history import History
    >>> history = History(most=4)
    >>> for i in range(6):
    ...     history.add({"n_examples": 10 * i})
    >>> history.kept_every, history.to_arrow()["n_examples"].to_pylist()
    (2, [0, 20, 40])

    """

    kept = "_records", "_offered", "kept_every"

    def __init__(self, most: int = 2000) -> None:
        self.most = most
        self.kept_every = 1
        self._offered = 0
        self._records: list[dict[str, Any]] = []
        self._latest: deque[dict[str, Any]] = deque(maxlen=_LATEST)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return self._records[i]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records in order, as of one moment: a list of their own, while others are added."""
        return list(self._records)

    @property
    def latest(self) -> list[dict[str, Any]]:
        """The last 200 records added in this process, even those that were not kept."""
        return list(self._latest)

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record, or skip it: once the history was full, only each `kept_every`-th is kept.

        Parameters
        ----------
        record
            Values by name: numbers, texts or None.

        """
        self._latest.append(dict(record))
        if self._offered % self.kept_every == 0:
            if len(self._records) >= self.most:
                self._records = self._records[::2]
                self.kept_every *= 2
            if self._offered % self.kept_every == 0:
                self._records.append(self._latest[-1])
        self._offered += 1

    def conclude(self, record: Mapping[str, Any], name: str) -> None:
        """Add the last record of a run, even if others are skipped.

        Parameters
        ----------
        record
            Values by name.
        name
            If the last record has the same value of this name, it is replaced.

        """
        for records in (self._records, self._latest):
            if records and records[-1].get(name) == record[name]:
                records.pop()
            records.append(dict(record))

    def to_arrow(self) -> pa.Table:
        """Return the records as a table: a row a record, null where a record lacks a value.

        Returns
        -------
        pa.Table
            The table; its metadata has `kept_every`.

        """
        names = list(dict.fromkeys(name for record in self._records for name in record))
        columns = {name: [record.get(name) for record in self._records] for name in names}
        metadata = {"streamsvm.kept_every": str(self.kept_every)}
        return pa.table({k: _column(v) for k, v in columns.items()}).replace_schema_metadata(
            metadata
        )

    def write_parquet(self, path: str | Path) -> None:
        """Write the table to a Parquet file.

        Parameters
        ----------
        path
            The file; it is overwritten.

        """
        pq.write_table(self.to_arrow(), path)

    def write_json_lines(self, path: str | Path) -> None:
        """Write one JSON object a line.

        Parameters
        ----------
        path
            The file; it is overwritten.

        """
        with Path(path).open("w", encoding="utf-8") as file:
            for record in self._records:
                file.write(json.dumps(record) + "\n")

    def column(self, name: str) -> np.ndarray:
        """Return one column as float64; NaN where absent.

        Parameters
        ----------
        name
            The name of a value.

        Returns
        -------
        np.ndarray
            float64, one value a record; NaN where a record lacks it.

        """
        return column_of(self._records, name)


def column_of(records: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """Return one value of each record, float64 (n,); NaN where it is absent."""
    values = [record.get(name) for record in records]
    return np.array([np.nan if v is None else float(v) for v in values])


def _column(values: list[Any]) -> pa.Array:
    given = [value for value in values if value is not None]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in given) and given:
        return pa.array(values, pa.int64())
    if all(isinstance(value, (int, float)) for value in given):
        return pa.array(values, pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
