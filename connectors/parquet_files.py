"""The files of a Parquet source: they are found, and the schemas in their footers compared."""

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.errors import NotReadableError, SchemaChangedError, SourceNotFoundError
from connectors.identity import FileIdentity, identity_of
from connectors.kinds import kind_of

_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?[0-9]+")
_ONE_WAY = re.compile("0|-?[1-9][0-9]*")
_INT32 = range(-(2**31), 2**31)
_TAIL = 8  # after the footer: its length, and the magic bytes


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """One file: path, name, rows to read, schema, identity, and what its folders' names tell.

    `folders` are the values of columns, `texts` how they are written.

    `rows` are all of the file, unless `replace` gives less of them: ``range(1000, 2000)``.
    """

    path: Path
    name: str
    rows: range
    schema: pa.Schema
    identity: FileIdentity
    folders: dict[str, pa.Scalar]
    texts: dict[str, str | None] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """The number of rows to read."""
        return len(self.rows)

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of the file, then those of its folders (a stored column wins)."""
        told = [pa.field(key, value.type) for key, value in self.folders.items()]
        stored = set(self.schema.names) if told else ()
        return [*self.schema, *(one for one in told if one.name not in stored)]


def find_parts(path: Path) -> list[ParquetPart]:
    """Read the footers of a file, or of all ``*.parquet`` files below a folder in sorted order.

    Files and folders whose names start with ``_`` or ``.`` are left out: they hold metadata.
    """
    if path.is_file():
        return [part_of(path, path.name)]
    if not path.is_dir():
        raise SourceNotFoundError(f"`{path}` does not exist; give a Parquet file or a folder")
    names = names_below(path)
    folders = folder_columns(names)
    return [part_of(path / n, n, told) for n, told in zip(names, folders, strict=True)]


def names_below(path: Path) -> list[str]:
    """Return the names of the files below a folder that `find_parts` reads."""
    names = sorted(
        name.as_posix()
        for name in (file.relative_to(path) for file in path.rglob("*.parquet") if file.is_file())
        if not any(map(_is_hidden, name.parts))
    )
    if not names:
        raise SourceNotFoundError(
            f"folder `{path}` has no file named *.parquet (names starting with _ or . are ignored)"
        )
    return names


def links_left_out(path: Path) -> list[str]:
    """Return the links below a folder to folders, which are not followed, and those to nothing."""
    found = []
    for where, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        found += [at for at in _paths(where, folders) if os.path.islink(at)]
        files = [name for name in names if name.endswith(".parquet") and not _is_hidden(name)]
        found += [at for at in _paths(where, files) if not os.path.exists(at)]
    return sorted(found)


def _paths(folder: str, names: Sequence[str]) -> list[str]:
    return [os.path.join(folder, name) for name in names]


def _is_hidden(name: str) -> bool:
    """Tell whether a file or folder holds metadata, by its name."""
    return name.startswith(("_", "."))


def merged_schema(parts: Sequence[ParquetPart], used: Collection[str | None] | None) -> pa.Schema:
    """Return all columns of all files, in order of first appearance.

    In files that lack a column, its values are missing. Of the columns that are `used` (None: all),
    the type may change from file to file only between kinds of numbers.
    """
    fields: dict[str, tuple[pa.Field, ParquetPart]] = {}
    repeated: list[pa.Field] = []
    for part in parts:
        seen: set[str] = set()
        for one in part.fields:
            if one.name in seen:
                repeated.append(one)
            seen.add(one.name)
            first, where = fields.setdefault(one.name, (one, part))
            if pa.types.is_null(first.type):
                fields[one.name] = (one, part)
            elif used is None or one.name in used:
                _compare(first, where, one, part)
    # Names that a file has twice are kept twice: the source refuses those that it would use.
    return pa.schema([one for one, _ in fields.values()] + repeated)


def _compare(first: pa.Field, where: ParquetPart, field: pa.Field, part: ParquetPart) -> None:
    if not pa.types.is_null(field.type) and kind_of(first.type) != kind_of(field.type):
        raise SchemaChangedError(
            f"column `{field.name}` is {first.type} in `{where.name}` but {field.type} in "
            f"`{part.name}`; convert one of the files, or leave the column out with exclude= "
            "(--exclude)"
        )


def part_of(path: Path, name: str, folders: dict[str, pa.Scalar] | None = None) -> ParquetPart:
    """Read the footer of a file; `folders` are the values of its folders' columns."""
    try:
        with pq.ParquetFile(path) as file:
            n_rows, footer = file.metadata.num_rows, file.metadata.serialized_size + _TAIL
            identity = identity_of(path, name, n_rows, footer)
            schema, told = file.schema_arrow, folders or {}
            return ParquetPart(path, name, range(n_rows), schema, identity, told, texts_in(name))
    except PermissionError as error:
        raise NotReadableError(f"`{path}` may not be read by this user (permissions)") from error
    except (pa.ArrowException, OSError) as error:
        raise NotReadableError(_diagnosis(path, error)) from error


def _diagnosis(path: Path, error: Exception) -> str:
    """Say what is wrong with a file whose footer cannot be read."""
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
        size = file.seek(0, 2)
        file.seek(max(0, size - len(_MAGIC)))
        end = file.read()
    if not size:
        return f"`{path}` is empty (0 bytes)"
    if start == _ENCRYPTED_MAGIC:
        return f"`{path}` is an encrypted Parquet file: decrypt it first"
    if start != _MAGIC:
        return f"`{path}` is not a Parquet file (it does not start with PAR1)"
    if end != _MAGIC:
        return f"`{path}` is truncated: it starts as a Parquet file but has no end; copy it again"
    return f"`{path}` is a damaged Parquet file: {error}"


def reading_error(path: Path, error: Exception) -> NotReadableError:
    """Return the error for a file whose rows cannot be read, though its footer could."""
    # Single columns may be encrypted; Arrow has no error class of its own for that.
    if "decrypt" in str(error).lower():
        return NotReadableError(
            f"`{path}` has encrypted columns: decrypt it first, or leave them out with columns= "
            "(--columns)"
        )
    return NotReadableError(
        f"`{path}` cannot be read to its end; it is damaged or was changed meanwhile: {error}"
    )


def texts_in(file: str) -> dict[str, str | None]:
    """Return the texts that the folders of a file give to columns."""
    told = (part.split("=", 1) for part in PurePosixPath(file).parts[:-1] if "=" in part)
    return {key: None if v == _NO_VALUE else unquote(v) for key, v in told}


def with_texts(parts: Sequence[ParquetPart], names: Collection[str]) -> list[ParquetPart]:
    """Return files in which the named columns of folders are texts, as they are written."""
    return [
        replace(
            part,
            folders={
                key: pa.scalar(part.texts.get(key), pa.string()) if key in names else value
                for key, value in part.folders.items()
            },
        )
        for part in parts
    ]


def is_whole(text: str | None) -> bool:
    """Tell whether a text is a whole number that is written in one way only, or none at all."""
    return text is None or bool(_ONE_WAY.fullmatch(text))


def folder_columns(files: Sequence[str]) -> list[dict[str, pa.Scalar]]:
    """Return the values that the folders of each file give to columns.

    A column is int32 if all its values are whole numbers of that type, else text, as in pyarrow.
    """
    texts = [texts_in(file) for file in files]
    types: dict[str, pa.DataType] = {}
    for pairs in texts:
        for key, text in pairs.items():
            integer = text is None or (_INTEGER.fullmatch(text) and int(text) in _INT32)
            types[key] = types.get(key, pa.int32()) if integer else pa.string()
    return [{key: _scalar(text, types[key]) for key, text in pairs.items()} for pairs in texts]


def _scalar(text: str | None, type_: pa.DataType) -> pa.Scalar:
    value = int(text) if text is not None and pa.types.is_integer(type_) else text
    return pa.scalar(value, type_)
