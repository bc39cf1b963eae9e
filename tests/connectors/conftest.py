"""What the tests of the sources share."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def data_file() -> Callable[[str], Path]:
    """Path of a real data set, or a skip."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.is_file():
            pytest.skip(f"optional data set {name} is not beside the repository")
        return path

    return find


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write columns as a Parquet file below the test's folder."""

    def write_file(name: str, columns: Any, **options: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        pq.write_table(table, path, **options)
        return path

    return write_file


@pytest.fixture(scope="session")
def read_mixed() -> Callable[..., list[Any]]:
    """Read a source by turns one by one and in batches, as (x in order, y, position)."""

    def read(source: Any, turns: Any = ()) -> list[Any]:
        events: list[Any] = []
        for one_by_one, count in turns:
            if one_by_one:
                events += islice(source.events(), count)
            else:
                batch = next(source.batches(count), None)
                events += [] if batch is None else batch.events()
        events += source.events()
        return [(list(x.items()), y, position) for x, y, position in events]

    return read
