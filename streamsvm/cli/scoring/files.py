"""Scoring one file of a folder: what a result is the result of is kept in its footer."""

import argparse
import contextlib
import hashlib
import io
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from connectors import ParquetSource
from connectors.identity import identity_of
from connectors.kinds import plain_type
from connectors.parquet_files import ParquetPart, folder_columns, part_of
from streamsvm import __version__
from streamsvm.cli.evaluate import margins
from streamsvm.cli.outputs import error_text, write_tables
from streamsvm.cli.predictions import (
    check_keep,
    empty_table,
    learner_of,
    open_rows,
    tables_of_rows,
    with_known_kinds,
)
from streamsvm.errors import ParameterError
from streamsvm.model_files.container import decoded
from streamsvm.model_files.replacing import sweep
from streamsvm.run.sentence_feeder import are_sentences

_log = logging.getLogger(__name__)

_KEY = "streamsvm.predict"
_SETTINGS = (
    "columns",
    "parse_numbers",
    "keep",
    "probabilities",
    "allow_mismatch",
    "decimal",
    "missing_tokens",
)
_MOST_TRIED = 3


class Scored(NamedTuple):
    """What came of a file: rows, those without a prediction, what was said of it; or an error."""

    rows: int = 0
    unusable: int = 0
    notes: str = ""
    error: str = ""


class Scorer:
    """Scores the files of a folder, by their numbers, each into a file of its name.

    Parameters
    ----------
    options
        Those of the command.
    names
        The files below the folder.
    digest
        That of the model's file; another one is refused. None: any model.

    """

    def __init__(
        self, options: argparse.Namespace, names: Sequence[str], digest: str | None = None
    ) -> None:
        self.names, self._options, self._folders = names, options, folder_columns(names)
        content = Path(options.model).read_bytes()
        self.digest = hashlib.sha256(content).hexdigest()
        if digest not in (None, self.digest):
            raise ParameterError(f"{options.model} has changed since the command was started")
        # The same bytes: the file may be replaced at any moment.
        self._model = decoded(content, options.model)[0]
        if are_sentences(self._model):
            raise ParameterError("--output: of sentences a file is written, and no folder")
        self.learner = learner_of(self._model, options.model)
        check_keep(options, self.learner)

    def output(self, i: int) -> Path:
        """Return the path of the result of a file; refuse one that links lead elsewhere."""
        folder = Path(self._options.output)
        path = folder / self.names[i]
        for part in (path, *path.parents[: len(Path(self.names[i]).parts) - 1]):
            if part.is_symlink():
                raise ParameterError(f"{part} is a link: results are written into {folder} only")
        return path

    def sweep(self, i: int) -> None:
        """Remove what a killed process has left of the result of a file."""
        with contextlib.suppress(ParameterError):
            sweep(self.output(i))

    def done(self, i: int) -> Scored | None:
        """Return what came of a file earlier; None: there is no result, or it is of other things.

        That is of another model, release, content of the file, or of other options.
        """
        # No file, or one that is not of this command: the result is made, and takes its place.
        with contextlib.suppress(OSError, pa.ArrowException, ValueError, KeyError, TypeError):
            metadata = pq.read_metadata(self.output(i)).metadata or {}
            kept = json.loads(metadata[_KEY.encode()])
            if kept["of"] == self._of(i):
                return Scored(kept["rows"], kept["unusable"])
        return None

    def _of(self, i: int) -> dict[str, Any]:
        """Return what the result of a file is the result of, as JSON values."""
        # With their types, which depend on the names of all folders.
        told = {key: [v.as_py(), str(v.type)] for key, v in self._folders[i].items()}
        settings = {name: getattr(self._options, name) for name in _SETTINGS}
        path = Path(self._options.file, self.names[i])
        content = [*identity_of(path, self.names[i], None), path.stat().st_mtime_ns]
        made_by = {"release": __version__, "model": self.digest}
        return {**made_by, **settings, "content": content, "folders": told}

    def score(self, i: int) -> Scored:
        """Write the result of a file; an error is returned, and leaves no file."""
        with contextlib.redirect_stderr(io.StringIO()) as notes:
            try:
                rows, unusable = self._write(i)
            except Exception as error:
                # Whatever is wrong with a file, the others are scored.
                text = error_text(error) or type(error).__name__
                return Scored(error=text, notes=notes.getvalue())
        return Scored(rows, unusable, notes.getvalue())

    def _write(self, i: int) -> tuple[int, int]:
        # Before it is read: if it changes meanwhile, the result is not taken for one of the new.
        of, output = self._of(i), self.output(i)
        part, source = self._open(i)
        output.parent.mkdir(parents=True, exist_ok=True)
        are_asked = self._options.probabilities
        path = str(Path(self._options.file, self.names[i]))
        tables: Iterator[pa.Table] = tables_of_rows(
            self._model, self.learner, source, None, are_asked, path
        )
        if part.num_rows == 0:
            types = {field.name: plain_type(field.type) for field in part.fields}
            types |= dict.fromkeys(source.told_by_values, pa.string())
            kept = pa.schema([(name, types[name]) for name in source.keep])
            nothing = empty_table(self._model, self.learner, kept, part.name, are_asked)
            tables = chain(tables, [nothing])

        def stamp(rows: int, unusable: int) -> dict[str, str]:
            return {_KEY: json.dumps({"of": of, "rows": rows, "unusable": unusable})}

        return write_tables(output, tables, source.name, stamp)

    def _open(self, i: int) -> tuple[ParquetPart, Any]:
        path = Path(self._options.file, self.names[i])
        part = part_of(path, self.names[i], self._folders[i])
        part = replace(part, schema=with_known_kinds(self._model, part.schema))
        options = argparse.Namespace(**{**vars(self._options), "file": str(path)})
        opener = partial(ParquetSource, path, parts=[part])
        return part, open_rows(options, self._model, opener)

    def compile_for(self, due: Sequence[int]) -> None:
        """Predict the first rows of a file, so that only one process compiles what that needs."""
        for i in due[:_MOST_TRIED]:
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    for _ in margins(self._model, self._open(i)[1]):
                        return
            except Exception as error:
                # It is told when the file is scored.
                _log.debug("%s: nothing is compiled with it: %s", self.names[i], error)
