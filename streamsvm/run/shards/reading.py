"""How files are divided into shards, and how a shard reads its rows."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from connectors.errors import MissingColumnError, SourceChangedError
from connectors.kinds import kind_of
from connectors.parquet import ParquetSource
from connectors.parquet_files import ParquetPart, part_of
from connectors.tabular import TabularOptions
from streamsvm._parameter_checks import check_size
from streamsvm.errors import BadEventError, FeatureError, LabelError, ParameterError
from streamsvm.features.matrices import SparseMatrix, are_usable, bad_value
from streamsvm.labels.label_column import MISSING, LabelColumn
from streamsvm.learners.bases.learner import Learner
from streamsvm.run import parts
from streamsvm.run.shards.exchange import Piece, Reading
from streamsvm.support.rows import LARGEST

_log = logging.getLogger(__name__)

_OPTIONS = sorted(TabularOptions.__annotations__.keys() - {"shuffle_buffer", "seed"})

_OF_COLUMNS = "columns", "exclude", "keep", "parse_numbers"
"""Those that list columns, some of which a file may lack."""

_MISSING = (
    "is missing: what it counts as depends on the rows before, which shards do not share; fill it "
    'in, let it count as 0, missing="zero", or put StandardScaler in front'
)


class Read(NamedTuple):
    """The rows of a shard as they came."""

    matrices: list[Any]
    labels: LabelColumn
    weights: np.ndarray


def divided(found: list[ParquetPart], n: int | None) -> list[list[Piece]]:
    """Return the pieces of each shard: a file each, or `n` shards of as many rows."""
    starts = np.cumsum([0, *(part.num_rows for part in found)]).tolist()
    n_rows = starts[-1]
    ends = starts if check_size("shards", n) is None else [n_rows * k // n for k in range(n + 1)]  # type: ignore[operator]
    return [_pieces(found, starts, first, stop) for first, stop in pairwise(ends)]


def _pieces(found: list[ParquetPart], starts: list[int], first: int, stop: int) -> list[Piece]:
    """Return rows first .. stop-1 of all files as pieces of those that have them."""
    pieces = []
    for i in range(bisect_right(starts, first) - 1, bisect_left(starts, stop)):
        part, at = found[i], starts[i]
        rows = range(max(0, first - at), min(part.num_rows, stop - at))
        if rows:
            number = at + rows.start + 1
            pieces.append(
                Piece(part.name, rows.start, rows.stop, number, part.identity, part.folders)
            )
    return pieces


def check_files(reading: Reading, found: list[ParquetPart]) -> None:
    """Refuse what one source of all files would refuse: options, and columns that differ."""
    if wrong := sorted(reading.options.keys() - {*_OPTIONS}):
        raise ParameterError(f"{wrong[0]}= is no option here: use {', '.join(_OPTIONS)}")
    for part in found:
        columns = [field.name for field in part.fields]
        if part.num_rows and reading.target not in columns:
            raise MissingColumnError(reading.target, columns, part.name, "target")
    with ParquetSource(reading.path, reading.target, parts=found, **reading.options) as source:
        numbers = [n for n in source.features if source.kinds[n] not in (None, "text")]
    lacking = {}
    for part in found:
        types = {field.name: field.type for field in part.fields}
        names = [n for n in numbers if kind_of(types.get(n, pa.null())) == "null"]
        if not part.num_rows or not names:
            continue
        if not reading.may_lack:
            raise FeatureError(f"{part.name}: {names[0]!r} {_MISSING}")
        lacking[part.name] = names
    if lacking:
        first = next(iter(lacking))
        _log.warning(
            "of %d files, %d lack columns of others, which are missing in all of their rows: "
            "%s lacks %s",
            *(len(found), len(lacking), first, ", ".join(lacking[first][:5])),
        )


def read(reading: Reading, pieces: list[Piece], learner: Learner) -> Read:
    """Read the rows of a shard; a `BadEventError` names the first that cannot be used."""
    matrices, labels, weights = [], [LabelColumn(np.zeros(0, np.int64), [])], [np.zeros(0)]
    for piece in pieces:
        for batch in _batches(reading, piece):
            column = LabelColumn.of(batch.labels)
            matrix = parts.matrix_of(learner, batch.features, len(batch))
            _check(batch, matrix, column, reading.may_lack)
            matrices.append(matrix)
            labels.append(column)
            weights.append(np.ones(len(batch)) * parts.weights_of(batch))
    return Read(matrices, LabelColumn.joined(labels), np.concatenate(weights))


def _batches(reading: Reading, piece: Piece) -> Any:
    path = Path(reading.path)
    whole = path / piece.file if path.is_dir() else path
    if not whole.is_file():
        raise SourceChangedError(f"`{whole}`, which the training needs, is not on this machine")
    part = part_of(whole, piece.file, piece.folders)
    if part.identity != piece.identity:
        raise SourceChangedError(
            f"`{piece.file}` is not what it was when the training began: {piece.identity} then, "
            f"{part.identity} now; put it back, or start anew"
        )
    names, options = {field.name for field in part.fields}, dict(reading.options)
    for option in _OF_COLUMNS:
        if options.get(option) is not None:
            options[option] = [name for name in options[option] if name in names]
    part = replace(part, rows=range(piece.first, piece.stop))
    with ParquetSource(path, reading.target, parts=[part], **options) as source:
        for batch in source.batches():
            if batch.rejects:
                reject = batch.rejects[0]
                raise BadEventError(f"{reject.position}: {reject.reason}")
            yield batch


def _check(batch: Any, matrix: Any, labels: LabelColumn, may_lack: bool) -> None:
    """Refuse what cannot be learnt: each row counts in the gap, so that none is left out."""
    missing = np.flatnonzero(labels.codes == MISSING)
    if len(missing):
        raise LabelError(f"{batch.position(int(missing[0]))}: the label is missing")
    weights = np.flatnonzero(~(np.ones(len(batch), bool) & parts.are_weights(batch)))
    if len(weights):
        row = int(weights[0])
        raise BadEventError(f"{batch.position(row)}: {parts.weight_fault(batch.weights[row])}")
    bad = np.flatnonzero(~are_usable(matrix, LARGEST))
    if len(bad):
        row = int(bad[0])
        raise FeatureError(f"{batch.position(row)}: feature {bad_value(matrix, row, LARGEST)}")
    if isinstance(matrix, SparseMatrix) or may_lack:
        return
    for c, name in enumerate(matrix.names):
        # Of texts, named column=value, each row has one only.
        absent = np.flatnonzero(np.isnan(matrix.values[:, c]))
        if len(absent) and "=" not in str(name):
            raise FeatureError(f"{batch.position(int(absent[0]))}: {name!r} {_MISSING}")
