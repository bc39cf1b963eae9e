"""How files are divided into shards, and how a shard reads its rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors.errors import SourceChangedError
from connectors.kinds import kind_of
from connectors.parquet import ParquetSource
from connectors.parquet_files import ParquetPart, find_parts, merged_schema, part_of
from connectors.tabular import TabularOptions
from streamsvm._parameter_checks import check_size
from streamsvm.errors import BadEventError, FeatureError, LabelError, ParameterError
from streamsvm.features.matrices import SparseMatrix, are_usable, bad_value
from streamsvm.labels.label_column import MISSING, LabelColumn
from streamsvm.learners.bases.learner import Learner
from streamsvm.run import parts
from streamsvm.support.rows import LARGEST

_OPTIONS = sorted(TabularOptions.__annotations__.keys() - {"shuffle_buffer", "seed"})

_MISSING = (
    "is missing: what it counts as depends on the rows before, which shards do not share; fill it "
    'in, let it count as 0, missing="zero", or put StandardScaler in front'
)


class Reading(NamedTuple):
    """How files are read."""

    path: Path
    target: str
    options: dict[str, Any]  # of `ParquetSource`
    learner: Learner  # which reads features
    may_lack: bool  # missing numbers count as 0
    columns: ParquetPart  # without rows, with the columns of all files


class Piece(NamedTuple):
    """The rows of a shard: parts of files, which follow one another."""

    first: int  # the number of the first one, counted from 1 over all the data
    files: list[ParquetPart]


class Read(NamedTuple):
    """The rows of a shard as they came."""

    matrices: list[Any]
    labels: LabelColumn
    weights: np.ndarray


def planned(
    source: tuple[Path, str, dict[str, Any]], learner: Learner, may_lack: bool, n: int | None
) -> tuple[Reading, list[ParquetPart], list[Piece]]:
    """Return how rows are read, all files, and each shard: a file, or `n` of as many rows.

    What one source of all files would refuse is refused.
    """
    path, target, options = source
    if wrong := sorted(options.keys() - {*_OPTIONS}):
        raise ParameterError(f"{wrong[0]}= is no option here: use {', '.join(_OPTIONS)}")
    n = check_size("shards", n)
    files = find_parts(path.absolute())
    with ParquetSource(path, target, parts=files, **options) as whole:
        if not may_lack:
            _check_columns(files, whole)
    stored = merged_schema([replace(file, folders={}) for file in files], ())
    folders = {key: value for file in files for key, value in file.folders.items()}
    columns = replace(files[0], name="", rows=range(0), schema=stored, folders=folders)
    starts = np.cumsum([0, *(file.num_rows for file in files)]).tolist()
    if n is not None and n > max(1, starts[-1]):
        raise ParameterError(f"shards={n}: there are {starts[-1]:,} rows; use at most as many")
    ends = starts if n is None else [starts[-1] * k // n for k in range(n + 1)]
    pieces = []
    for first, stop in pairwise(ends):
        own = []
        for i in range(bisect_right(starts, first) - 1, bisect_left(starts, stop)):
            rows = range(max(0, first - starts[i]), min(files[i].num_rows, stop - starts[i]))
            if rows:
                own.append(replace(files[i], rows=rows))
        pieces.append(Piece(first + 1, own))
    return Reading(path, target, options, learner, may_lack, columns), files, pieces


def _check_columns(files: list[ParquetPart], source: ParquetSource) -> None:
    """Refuse files that lack columns of numbers."""
    numbers = [n for n in source.features if source.kinds[n] not in (None, "text")]
    for file in files:
        known = {field.name for field in file.fields if kind_of(field.type) != "null"}
        names = [name for name in numbers if name not in known]
        if names and file.num_rows:
            raise FeatureError(f"{file.name}: {names[0]!r} {_MISSING}")


def read(reading: Reading, piece: Piece) -> Read:
    """Read the rows of a shard; the error of one that cannot be used names file and row."""
    matrices, labels, weights = [], [LabelColumn(np.zeros(0, np.int64), [])], [np.zeros(0)]
    for file in piece.files:
        _check_file(file)
    given = [reading.columns, *piece.files]
    with ParquetSource(reading.path, reading.target, parts=given, **reading.options) as source:
        for batch in source.batches():
            for reject in batch.rejects:
                raise BadEventError(f"{reject.position}: {reject.reason}")
            column = LabelColumn.of(batch.labels)
            matrix = parts.matrix_of(reading.learner, batch.features, len(batch))
            for i, error, why in _faults(batch, matrix, column, reading.may_lack):
                raise error(f"{batch.position(i)}: {why}")
            matrices.append(matrix)
            labels.append(column)
            weights.append(np.ones(len(batch)) * parts.weights_of(batch))
    return Read(matrices, LabelColumn.joined(labels), np.concatenate(weights))


def _check_file(file: ParquetPart) -> None:
    """Refuse a file that is not what it was when the training began."""
    if not file.path.is_file():
        raise SourceChangedError(f"`{file.path}`, which the training needs, is not on this machine")
    now = part_of(file.path, file.name).identity
    if now != file.identity:
        raise SourceChangedError(
            f"`{file.name}` is not what it was when the training began: {file.identity} then, "
            f"{now} now; put it back, or start anew"
        )


def _faults(
    batch: Any, matrix: Any, labels: LabelColumn, may_lack: bool
) -> Iterator[tuple[int, type[Exception], str]]:
    """Yield rows that cannot be learnt: each counts in the gap, so that none is left out."""
    for i in np.flatnonzero(labels.codes == MISSING).tolist():
        yield i, LabelError, "the label is missing"
    for i in np.flatnonzero(~(np.ones(len(batch), bool) & parts.are_weights(batch))).tolist():
        yield i, BadEventError, str(parts.weight_fault(batch.weights[i]))
    for i in np.flatnonzero(~are_usable(matrix, LARGEST)).tolist():
        yield i, FeatureError, f"feature {bad_value(matrix, i, LARGEST)}"
    if isinstance(matrix, SparseMatrix) or may_lack:
        return
    # Of texts, named column=value, each row has one only.
    numbers = [c for c, name in enumerate(matrix.names) if "=" not in str(name)]
    for i, c in np.argwhere(np.isnan(matrix.values[:, numbers])).tolist():
        yield i, FeatureError, f"{matrix.names[numbers[c]]!r} {_MISSING}"
