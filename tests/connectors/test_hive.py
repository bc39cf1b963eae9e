"""Columns told by folder names, as pyarrow tells them."""

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from connectors.parquet_files import folder_columns


@pytest.mark.parametrize(
    "values",
    [
        ["1", "22"],
        ["01", "-2"],
        ["1", "3000000000"],
        ["-1", "+2"],
        ["1.5", "2"],
        ["1", "__HIVE_DEFAULT_PARTITION__"],
        ["a%20b", "c"],
        [" 1", "2"],
        ["1_0", "2"],
        ["a=b", "c"],
    ],
    ids=" ".join,
)
def test_same_types_and_values_as_pyarrow(tmp_path, values):
    for value in values:
        (tmp_path / f"k={value}").mkdir()
        pq.write_table(pa.table({"a": [1]}), tmp_path / f"k={value}" / "f.parquet")
    dataset = ds.dataset(tmp_path, partitioning="hive")
    expected = [ds.get_partition_keys(f.partition_expression) for f in dataset.get_fragments()]
    found = folder_columns([f"k={value}/f.parquet" for value in values])
    key = str
    assert sorted((columns["k"].as_py() for columns in found), key=key) == sorted(
        (columns["k"] for columns in expected), key=key
    )
    assert {columns["k"].type for columns in found} == {dataset.schema.field("k").type}


def test_other_folders_tell_nothing():
    assert folder_columns(["part/a.parquet", "b=1/c.parquet", "d=2.parquet"]) == [
        {},
        {"b": pa.scalar(1, pa.int32())},
        {},
    ]
