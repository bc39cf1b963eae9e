"""What both trainings begin with: arguments that are checked, files, pieces, and a folder."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from streamsvm._parameter_checks import LARGEST_SIZE, check_positive, check_whole
from streamsvm.errors import ParameterError
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.exchange import Piece, Reading
from streamsvm.run.shards.folder import Folder, plan_of
from streamsvm.run.shards.reading import check_files, divided, files_of
from streamsvm.run.shards.workers import LocalWorkers, Workers


class Job(NamedTuple):
    """Rows that are divided, who works on them, and where what they return is kept."""

    reading: Reading
    pieces: list[list[Piece]]
    n_rows: int
    workers: Workers
    folder: Folder


def job_of(
    reading: Reading,
    scaler: StandardScaler | None,
    learner: Any,
    shards: int | None,
    workers: Any,
    folder: str | PathLike[str] | None,
) -> Job:
    """Return the job of a training; what cannot be done is refused before a row is read."""
    if workers is not None and not all(hasattr(workers, name) for name in ("open", "ask", "close")):
        raise ParameterError(f"workers={workers!r}: use RayWorkers(n), LocalWorkers(), or None")
    if folder is not None and (not isinstance(folder, str | PathLike) or not str(folder)):
        raise ParameterError(f"folder={folder!r}: use a path, or None")
    if scaler is not None and scaler.reject is not None:
        raise ParameterError(
            "StandardScaler(reject=...): what is refused depends on the rows before, which shards "
            "do not share"
        )
    reading = reading._replace(may_lack=scaler is not None or learner.missing == "zero")
    files = files_of(reading.path)
    check_files(reading, files)
    pieces = divided(files, shards)
    told = plan_of(files, pieces, reading, scaler, learner)
    kept = Folder(None if folder is None else Path(folder), told)
    n_rows = sum(file.num_rows for file in files)
    reading = reading._replace(path=str(Path(reading.path).resolve()))
    return Job(reading, pieces, n_rows, LocalWorkers() if workers is None else workers, kept)


def check_ends(gap: Any, max_rounds: Any, on_round: Any) -> tuple[float, int]:
    """Return when the rounds end, by their gap and number; check what is called after each."""
    if not callable(on_round):
        raise ParameterError(f"on_round={on_round!r}: use a function of a Round")
    return check_positive("gap", gap), check_whole("max_rounds", max_rounds, 1, LARGEST_SIZE)
