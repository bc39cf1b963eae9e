"""Write bananas.parquet from the data set inside River."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from river import datasets


def main() -> None:
    rows = [{"x1": x["1"], "x2": x["2"], "label": y} for x, y in datasets.Bananas()]
    pq.write_table(pa.Table.from_pylist(rows), Path(__file__).with_name("bananas.parquet"))


if __name__ == "__main__":
    main()
