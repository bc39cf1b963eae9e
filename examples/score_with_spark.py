"""You learn to score Parquet files with Spark: executors load the model, and predict batches.

Needs pyspark 3.5 or later, and Java 17. `mapInArrow` gives a function the batches of a partition as
they are; with `mapInPandas` it would be the same with frames. A model file is data, not code, so
that it can be sent to all executors; they need this package.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import streamsvm
from connectors import ParquetSource
from streamsvm import LASVMClassifier, Run, StandardScaler

BANANAS = Path(__file__).parent / "data" / "bananas.parquet"


def score(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Predict the rows of one partition."""
    from pyspark import SparkFiles

    model = streamsvm.load(SparkFiles.get("model.svm"))
    for batch in batches:
        labels = predicted(model, batch.select(["x1", "x2"]))
        yield pa.RecordBatch.from_arrays([batch["id"], labels], ["id", "prediction"])


def predicted(model: Any, rows: pa.RecordBatch) -> pa.Array:
    """Predict rows; null where a value is infinite, as `streamsvm predict` does."""
    values = np.column_stack(
        [rows[name].to_numpy(zero_copy_only=False) for name in rows.schema.names]
    )
    usable = pa.array(~(np.abs(values) > np.finfo(np.float32).max).any(axis=1))
    labels = model.predict_many(rows.filter(usable))
    return pc.replace_with_mask(pa.nulls(len(rows), labels.type), usable, labels)


def main() -> None:
    """Train, score a folder of four files with Spark, and compare with the model's own answers."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model = StandardScaler() | LASVMClassifier(seed=1)
        with ParquetSource(BANANAS, target="label") as source:
            Run(source, model).execute()
        streamsvm.save(model, folder / "model.svm")
        table = pq.read_table(BANANAS, columns=["x1", "x2"])
        table = table.append_column("id", pa.array(range(len(table))))
        (folder / "events").mkdir()
        # One infinite value, which would be refused with its whole batch.
        infinite = pa.scalar(float("inf"))
        table = table.set_column(
            0, "x1", pc.if_else(pc.equal(table["id"], 7), infinite, table["x1"])
        )
        for i in range(4):
            part = table.slice(i * len(table) // 4, len(table) // 4)
            pq.write_table(part, folder / "events" / f"{i}.parquet")

        # The executors' Python, which needs this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        try:
            spark.sparkContext.addFile(str(folder / "model.svm"))
            events = spark.read.parquet(str(folder / "events"))
            scored = events.mapInArrow(score, "id long, prediction boolean")
            scored.write.parquet(str(folder / "scores"))
        finally:
            spark.stop()

        found = pq.read_table(folder / "scores").sort_by("id")
        own = predicted(model, table.select(["x1", "x2"]).combine_chunks().to_batches()[0])
        assert found["prediction"].to_pylist() == own.to_pylist() and own[7].as_py() is None
        print(f"{len(found):,} rows, predicted as by the model here")


if __name__ == "__main__":
    main()
