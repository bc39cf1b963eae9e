"""Damaged and encrypted files, and files that do not fit together."""

import base64

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from connectors import NotReadableError, ParquetSource, SchemaChangedError

GOOD = {"a": [1, 2], "y": [True, False]}


def test_damage_in_the_middle_is_an_error_where_it_is_met(write):
    path = write("a.parquet", {"a": list(range(10_000)), "y": list(range(10_000))})
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    source = ParquetSource(path, "y")
    with pytest.raises(NotReadableError, match="a.parquet` cannot be read to its end; it is damag"):
        list(source.events())
    assert source.snapshot()["row"] == 0


def test_zeroed_bytes_are_found_by_the_checksums_of_pages(write):
    columns = {"a": np.linspace(1.0, 2.0, 10_000), "y": [True, False] * 5_000}
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    path = write("a.parquet", columns, **plain)
    content = bytearray(path.read_bytes())
    content[40_000:48_500] = bytes(8_500)  # in the middle of the floats: zeros are valid numbers
    path.write_bytes(content)
    with pytest.raises(NotReadableError, match=r"a.parquet` cannot be read to its end.*checksum"):
        list(ParquetSource(path, "y").events())


class Keys(pe.KmsClient):
    """A key service that encrypts no key."""

    def __init__(self, connection):
        super().__init__()

    def wrap_key(self, key, master_key):
        return base64.b64encode(key)


@pytest.mark.parametrize("filters", [None, [("a", ">", 1)]])
@pytest.mark.parametrize("in_clear", [False, True])
def test_encrypted_files_are_called_so(tmp_path, in_clear, filters):
    configuration = pe.EncryptionConfiguration(
        footer_key="k", column_keys={"k": ["a"]}, plaintext_footer=in_clear, double_wrapping=False
    )
    properties = pe.CryptoFactory(Keys).file_encryption_properties(
        pe.KmsConnectionConfig(), configuration
    )
    path = tmp_path / "a.parquet"
    table = pa.table({**GOOD, "b": [1, 2]})
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    with pytest.raises(NotReadableError, match=r"a.parquet` (is an|has) encrypted .*: decrypt it"):
        list(ParquetSource(path, "y", filters=filters).events())
    if in_clear:
        found = list(ParquetSource(path, "y", columns=["b"]).events())
        assert [x for x, _, _ in found] == [{"b": 1.0}, {"b": 2.0}]


@pytest.mark.parametrize("name", "ay")
def test_a_column_that_changes_type_is_named_with_both_files(name, write, tmp_path):
    write("a.parquet", {"a": [1], "y": [1]})
    write("b.parquet", {"a": [1], "y": [1]} | {name: ["one"]})
    with pytest.raises(SchemaChangedError) as caught:
        ParquetSource(tmp_path, "y")
    assert str(caught.value) == (
        f"column `{name}` is int64 in `a.parquet` but string in `b.parquet`; "
        "convert one of the files, or leave the column out with exclude= (--exclude)"
    )


def test_only_columns_in_use_must_keep_their_type(write, tmp_path):
    write("a.parquet", {"a": [1], "b": [1], "y": [True]})
    write("b.parquet", {"a": ["x"], "b": [2], "y": [True]})
    assert len(list(ParquetSource(tmp_path, "y", columns=["b"]).events())) == 2
    with pytest.raises(SchemaChangedError, match="column `a` is int64"):
        ParquetSource(tmp_path, "y", columns=["b"], filters=[("a", ">", 0)])


def test_a_null_column_fits_any_kind(write, tmp_path):
    write("a.parquet", {"a": pa.nulls(1), "b": [1], "y": [True]})
    write("b.parquet", {"a": ["x"], "b": [1], "y": [True]})
    assert [x for x, _, _ in ParquetSource(tmp_path, "y").events()] == [
        {"b": 1.0},
        {"a=x": 1.0, "b": 1.0},
    ]
