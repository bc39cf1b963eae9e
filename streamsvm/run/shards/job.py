"""What both trainings share: arguments that are checked, files, pieces, a folder, the report."""

from __future__ import annotations

import logging
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from river import compose

from connectors.parquet_files import find_parts
from streamsvm._parameter_checks import LARGEST_SIZE, check_positive, check_whole
from streamsvm.errors import ParameterError
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.agreement import setting_of
from streamsvm.run.shards.exchange import Reading, Setting
from streamsvm.run.shards.far_values import Limits, limit_far_values
from streamsvm.run.shards.folder import Folder, plan_of
from streamsvm.run.shards.reading import check_files, divided
from streamsvm.run.shards.report import ShardsReport
from streamsvm.run.shards.workers import LocalWorkers, Workers

_log = logging.getLogger(__name__)


class Training:
    """The coordinator: who has the shards, what all agree on, and the report.

    What cannot be done is refused before a row is read. `begin` and `run` are those of each kind.
    """

    def __init__(
        self,
        parts: tuple[StandardScaler | None, Any],
        reading: Reading,
        shards: int | None,
        workers: Any,
        folder: str | PathLike[str] | None,
    ) -> None:
        self._scaler, self._learner = scaler, learner = parts
        wanted = "open", "ask", "close"
        if workers is not None and not all(hasattr(workers, name) for name in wanted):
            raise ParameterError(f"workers={workers!r}: use RayWorkers(n), LocalWorkers(), or None")
        if folder is not None and (not isinstance(folder, str | PathLike) or not str(folder)):
            raise ParameterError(f"folder={folder!r}: use a path, or None")
        if scaler is not None and scaler.reject is not None:
            raise ParameterError(
                "StandardScaler(reject=...): what is refused depends on the rows before, which "
                "shards do not share"
            )
        reading = reading._replace(may_lack=scaler is not None or learner.missing == "zero")
        files = find_parts(Path(reading.path))
        check_files(reading, files)
        pieces = divided(files, shards)
        told = plan_of(files, pieces, reading, scaler, learner)
        self._folder = Folder(None if folder is None else Path(folder), told, learner)
        self._reading = reading._replace(path=str(Path(reading.path).resolve()))
        self._pieces, self._all = pieces, range(len(pieces))
        self.workers: Workers = LocalWorkers() if workers is None else workers
        self.report = ShardsReport(rows=sum(file.num_rows for file in files), shards=len(pieces))
        self._setting: Setting

    def _agree(self, C: float) -> None:
        """Let the shards read, and find what all agree on."""
        self.workers.open(self._reading, self._pieces)
        self.report.workers = self.workers.n
        asked = self.workers.ask("describe", self._all, self._learner, self._scaler)
        answers = list(asked)
        self.report.read_seconds = [answer.seconds for answer in answers]
        summaries = [answer.content for answer in answers]
        self._setting = setting_of(summaries, self._learner, self._scaler, C)
        if (scaler := self._setting.scaler) is not None:
            limit_far_values(scaler, self._ask_values)
            self.report.clipped = {str(name): n for name, n in scaler.n_clipped.items()}
            if self.report.clipped:
                _log.warning("values %s", self.report.far_values)

    def _ask_values(self, task: str, limits: Limits) -> list[np.ndarray]:
        """Return the moments, or middles, of each shard's values."""
        answers = list(self.workers.ask(task, self._all, self._learner, limits))
        for answer in answers:
            self.report.read_seconds[answer.shard] += answer.seconds
        return [answer.content for answer in answers]

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        return (
            f"train_on_shards was interrupted, rounds made: {len(self.report.rounds)}; the same "
            f"call {'goes on from there' if self._folder.is_there else 'starts anew: give folder='}"
        )

    def _conclude(self, wanted: float) -> None:
        """Note whether the gap was reached: there is no reason why not."""
        self.report.reached = not self.report.reason
        if self.report.reason:
            _log.warning("the gap wanted, %.2g, was not reached: %s", wanted, self.report.reason)

    def _behind_scaler(self, learner: Any) -> Any:
        """Return a model of the kind that was given."""
        scaler = self._setting.scaler
        return learner if scaler is None else compose.Pipeline(scaler, learner)


def check_ends(gap: Any, max_rounds: Any, on_round: Any) -> tuple[float, int]:
    """Return when the rounds end, by their gap and number; check what is called after each."""
    if not callable(on_round):
        raise ParameterError(f"on_round={on_round!r}: use a function of a Round")
    return check_positive("gap", gap), check_whole("max_rounds", max_rounds, 1, LARGEST_SIZE)
