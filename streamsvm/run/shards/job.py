"""What both trainings share: files, shards, what all of them agree on, a folder, the report."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Generic

import numpy as np
from river import compose

from streamsvm.errors import LabelError, ParameterError
from streamsvm.model_files import container
from streamsvm.monitor.watched import Model
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.folder import Folder
from streamsvm.run.shards.problem import L, Setting
from streamsvm.run.shards.reading import planned
from streamsvm.run.shards.report import Round, ShardsReport
from streamsvm.run.shards.scale import learn_moments
from streamsvm.run.shards.shard import Summary
from streamsvm.run.shards.workers import LocalWorkers
from streamsvm.support.density import FEWEST_FEATURES, LARGEST_SHARE

_log = logging.getLogger(__name__)


class Training(Generic[L]):
    """The coordinator. What cannot be done is refused before a row is read.

    `rounds` is that of each kind; it makes rounds until the gap is as wanted, or says in the report
    why it is not.
    """

    def __init__(
        self,
        parts: tuple[StandardScaler | None, L],
        source: tuple[Path, str, dict[str, Any]],
        shards: int | None,
        workers: LocalWorkers | None,
        folder: str | PathLike[str] | None,
    ) -> None:
        scaler, learner = parts
        self._scaler = scaler
        self._learner: L = learner
        if not isinstance(workers, LocalWorkers | None):
            raise ParameterError(f"workers={workers!r}: use RayWorkers(n), LocalWorkers(), or None")
        if folder is not None and (not isinstance(folder, str | PathLike) or not str(folder)):
            raise ParameterError(f"folder={folder!r}: use a path, or None")
        if scaler is not None and scaler.reject is not None:
            raise ParameterError(
                "StandardScaler(reject=...): what is refused depends on the rows before, which "
                "shards do not share"
            )
        may_lack = scaler is not None or learner.missing == "zero"
        reading, files, pieces = planned(source, learner, may_lack, shards)
        models = [container.encoded(step) for step in parts if step is not None]
        plan = {
            "files": [list(file.identity) for file in files],
            "shards": [[[f.name, f.rows.start, f.rows.stop] for f in p.files] for p in pieces],
            "target": reading.target,
            "options": repr(sorted(reading.options.items())),
            "model": [container.digest_of(model) for model in models],
        }
        self._folder = Folder(None if folder is None else Path(folder), plan)
        self._reading, self._pieces, self._all = reading, pieces, range(len(pieces))
        self.workers = LocalWorkers() if workers is None else workers
        self.report = ShardsReport(sum(file.num_rows for file in files), len(pieces))
        self._setting: Setting[L]
        self._clock = time.perf_counter()

    def run(self, wanted: float, max_rounds: int) -> Iterator[Round]:
        """Make rounds until the gap is as wanted; yield each."""
        raise NotImplementedError

    def model(self) -> L:
        """Return the model, after the rounds, as one that has learnt all rows."""
        raise NotImplementedError

    def _ask(self, task: str, *given: Any) -> list[Any]:
        return list(self.workers.ask(task, self._all, *given))

    def _agree(self, C: float) -> None:
        """Let the shards read, and find what all agree on; C is that of a sum of losses."""
        self.workers.open(self._reading, self._pieces)
        learner, scaler = self._learner, self._scaler
        summaries: list[Summary] = self._ask("describe")
        names = list(dict.fromkeys(name for own in summaries for name in own.names))
        if scaler is not None:
            scaler = scaler.clone()
            learn_moments(scaler, names, self.report.rows, self._ask)
            self.report.clipped = {str(name): n for name, n in scaler.n_clipped.items()}
            if self.report.clipped:
                _log.warning("%s", self.report.far_values)
        counts, weighted = Counter[Any](), Counter[Any]()
        for own in summaries:
            for label, n, n_weighted in own.counts:
                counts[label] += n
                weighted[label] += n_weighted
        factors: dict[Any, float] = self._factors(counts, weighted)
        is_sparse = learner.sparse
        if is_sparse is None:
            share = sum(own.n_nonzero for own in summaries) / (self.report.rows * len(names) or 1)
            is_few = len(names) >= FEWEST_FEATURES and share <= LARGEST_SHARE
            is_sparse = any(own.is_sparse for own in summaries) or is_few
        weights = None if learner.class_weight is None else factors
        learner = learner.clone({"class_weight": weights, "sparse": is_sparse})
        costs = C * np.array([*factors.values()])
        self._setting = Setting(names, list(counts), costs, is_sparse, learner, scaler)

    def _factors(self, counts: Counter[Any], weighted: Counter[Any]) -> dict[Any, float]:
        """Return the factor of C of each label; refuse labels that cannot be learnt."""
        if len(counts) < 2:
            raise LabelError(f"all rows have one label: {list(counts)}")
        most = self._learner.most_classes
        if most is not None and len(counts) > most:
            raise LabelError(
                f"{len(counts):,} labels, and the model takes {most}: is the label a class? If so, "
                "raise max_classes"
            )
        weights = self._learner.class_weight
        if weights == "balanced":
            weights = {y: counts.total() / (len(counts) * n) for y, n in counts.items()}
        factors = {y: float((weights or {}).get(y, 1.0)) for y in counts}
        counting = [y for y, factor in factors.items() if factor and weighted[y]]
        if len(counting) < 2:
            raise LabelError(f"only rows of {counting} have a weight and a class weight above 0")
        return factors

    def _add_round(self, **figures: Any) -> Round:
        before, self._clock = self._clock, time.perf_counter()
        made = Round(**figures, seconds=self._clock - before)
        self.report.rounds.append(made)
        return made

    @property
    def interrupted(self) -> str:
        """What to say after Ctrl-C."""
        goes_on = "starts anew: give folder=" if self._folder.path is None else "goes on from there"
        return (
            f"train_on_shards was interrupted, rounds made: {len(self.report.rounds)}; the same "
            f"call {goes_on}"
        )

    def conclude(self, wanted: float) -> Model:
        """Return the model, behind its scaler; note whether the gap was reached."""
        model, report = self.model(), self.report
        if not report.reason and report.gap > wanted:
            report.reason = f"max_rounds={len(report.rounds)}: the gap is {report.gap:.2g}"
        if not report.reason and report.rounding > wanted:
            report.reason = (
                f"the rounding of kernel values is {report.rounding:.2g} of the dual: nobody can "
                f"tell whether the gap, {report.gap:.2g} as it was measured, is below that"
            )
        report.reached = not report.reason
        if report.reason:
            _log.warning("the gap wanted, %.2g, was not reached: %s", wanted, report.reason)
        scaler = self._setting.scaler
        return model if scaler is None else compose.Pipeline(scaler, model)
