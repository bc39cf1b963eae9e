"""Output paths are tried before a run: hours of work must not end in one that is unwritable."""

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from streamsvm.errors import FeatureError, ParameterError
from streamsvm.model_files.replacing import naming, replacement, sweep

_INPUTS = ("file", "test", "template", "model", "ids", "keys")
_OUTPUTS = ("save", "output", "checkpoint", "dead_letters")


def check_distinct(options: argparse.Namespace) -> None:
    """Refuse to write two outputs to one file, or an output over an input.

    A model may be saved where it was read: it has learnt more.
    """
    named: dict[str, str] = {}
    for name in (*_INPUTS, *_OUTPUTS):
        value = getattr(options, name, None)
        if value is None:
            continue
        other = named.setdefault(os.path.realpath(value), name)
        if other != name and name in _OUTPUTS and (other, name) != ("model", "save"):
            what = {"file": "the input", "model": "the model"}.get(other, f"the file of --{other}")
            option = "--" + name.replace("_", "-")
            raise ParameterError(f"{option} {value} would replace {what}: name another file")


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse output paths of `replay` or `consume` that cannot be written."""
    check_distinct(options)
    for option, path in (("--save", options.save), ("--checkpoint", options.checkpoint)):
        if path is not None:
            check_file(option, path)
    if options.report is not None:
        folder = Path(options.report)
        if folder.exists() and not folder.is_dir():
            raise ParameterError(f"--report {folder}: a file of that name is there; name a folder")
        check_folder("--report", folder, folder if folder.is_dir() else folder.absolute().parent)
    # The default is written only if an example cannot be used: its folder may be read-only.
    if options.on_error == "dead-letter" and options.dead_letters is not None:
        letters = Path(options.dead_letters)
        if letters.is_dir():
            raise ParameterError(f"--dead-letters {letters} is a folder: name a file")
        if not letters.exists():
            check_folder("--dead-letters", letters, letters.absolute().parent)


def error_text(error: BaseException) -> str:
    """Return an error as a sentence: those of the system with the file, without their number."""
    is_named = isinstance(error, OSError) and error.filename
    return f"{error.filename}: {error.strerror}" if is_named else str(error)  # type: ignore[attr-defined]


def check_file(option: str, path: str) -> None:
    """Refuse a path at which no file can be written, or replaced; remove what a killed run left.

    `option` is that of the path, for the error message.
    """
    # The file that a symbolic link points to is the one that is replaced.
    file = Path(os.path.realpath(path))
    if file.is_dir():
        raise ParameterError(f"{option} {path} is a folder: name a file")
    if file.exists() and not file.is_file():
        # Renaming a new file to it would remove a device, such as /dev/null.
        raise ParameterError(f"{option} {path} is not a regular file: it cannot be replaced by one")
    check_folder(option, Path(path), file.parent)
    sweep(file)


def check_folder(option: str, path: Path, folder: Path) -> None:
    """Refuse a path, that of an option, in whose folder no file can be written."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{option}: the folder of {path} does not exist: make it first")
    try:
        # Permissions alone do not tell: think of /proc, full disks and read-only mounts.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"{option} {path}: cannot write in {folder}: {error.strerror}") from error


class _JSONLines:
    """Writes tables as JSON lines, as Arrow cannot."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        del schema
        self._file = file

    def write_table(self, table: pa.Table) -> None:
        """Write an object for each row; NaN as null, and times as texts."""
        for row in table.to_pylist():
            found = {name: None if value != value else value for name, value in row.items()}
            self._file.write(json.dumps(found, default=str).encode() + b"\n")

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


class _CSV:
    """Writes tables as CSV: of our own columns, lists as JSON, which Arrow would refuse."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        names = [name for name in ("prediction", "symbols", "set") if name in schema.names]
        self._lists = [name for name in names if pa.types.is_list(schema.field(name).type)]
        for name in self._lists:
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
        self._writer = pa_csv.CSVWriter(file, schema)

    def write_table(self, table: pa.Table) -> None:
        """Write a line for each row."""
        for name in self._lists:
            rows = table[name].to_pylist()
            texts = [None if row is None else json.dumps(row, default=str) for row in rows]
            i = table.schema.get_field_index(name)
            table = table.set_column(i, name, pa.array(texts, pa.string()))
        self._writer.write_table(table)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


_WRITERS: dict[str, Any] = {
    ".parquet": pq.ParquetWriter,
    ".csv": _CSV,
    ".jsonl": _JSONLines,
}


def check_ending(output: str) -> None:
    """Refuse an output path whose ending is of another format than those that are written."""
    if Path(output).suffix.lower() not in _WRITERS:
        raise ParameterError(f"--output {output}: the name must end in {', '.join(_WRITERS)}")


def write_tables(
    output: Path,
    tables: Iterable[pa.Table],
    name: str,
    stamp: Callable[[int, int], dict[str, str]] | None = None,
) -> tuple[int, int]:
    """Write tables of one schema about `name` to a file, which appears when it is complete.

    Returns how many rows there were, and how many of them without a prediction. From these numbers
    `stamp` makes the metadata of a Parquet file.
    """
    rows = unusable = 0
    writer: Any = None
    with naming(output), replacement(output) as file:
        try:
            for table in tables:
                try:
                    writer = writer or _WRITERS[output.suffix.lower()](file, table.schema)
                    writer.write_table(table)
                except pa.ArrowException as error:
                    raise ParameterError(
                        f"{output} cannot hold a column: {error}; .parquet and .jsonl can"
                    ) from error
                rows += len(table)
                unusable += table.column("prediction").null_count
        except BaseException:
            # A writer that is not closed would write to the closed file when it is deleted.
            with contextlib.suppress(Exception):
                writer.close()
            raise
        if writer is None:
            raise FeatureError(f"{name} has no rows")
        if stamp is not None:
            writer.add_key_value_metadata(stamp(rows, unusable))
        writer.close()
    return rows, unusable
