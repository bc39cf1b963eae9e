"""Columns from folder names: ``year=2020/month=5/part.parquet``."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?[0-9]+")
_INT32 = range(-(2**31), 2**31)


def folder_columns(files: Sequence[str]) -> list[dict[str, pa.Scalar]]:
    """Return the values that the folders of each file give to columns.

    A column is int32 if all its values are whole numbers of that type, else text, as in pyarrow.

    Examples
    --------
    >>> folder_columns(["year=2020/land=it/a.parquet", "year=2021/land=%20/b.parquet"])[0]
    {'year': <pyarrow.Int32Scalar: 2020>, 'land': <pyarrow.StringScalar: 'it'>}

    """
    texts = [dict(_pairs(file)) for file in files]
    types: dict[str, pa.DataType] = {}
    for pairs in texts:
        for key, text in pairs.items():
            integer = text is None or (_INTEGER.fullmatch(text) and int(text) in _INT32)
            types[key] = types.get(key, pa.int32()) if integer else pa.string()
    return [{key: _scalar(text, types[key]) for key, text in pairs.items()} for pairs in texts]


def _pairs(file: str) -> list[tuple[str, str | None]]:
    folders = (part.split("=", 1) for part in PurePosixPath(file).parts[:-1] if "=" in part)
    return [(key, None if value == _NULL else unquote(value)) for key, value in folders]


def _scalar(text: str | None, type_: pa.DataType) -> pa.Scalar:
    value = int(text) if text is not None and pa.types.is_integer(type_) else text
    return pa.scalar(value, type_)
