"""The folder of a training: what is needed to continue after the coordinator was killed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors.parquet_files import ParquetPart
from streamsvm.errors import CheckpointError, ModelFileError
from streamsvm.model_files import container, replacing
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.exchange import Examples, Piece, Reading
from streamsvm.run.shards.report import ShardsReport
from streamsvm.support.rows import SparseRows

_PLAN, _MODEL, _PLANES = "plan.json", "united.svm", "planes.svm"


class Kept(NamedTuple):
    """What a file holds."""

    learner: Any
    about: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Folder:
    """Model files, each written in one step; with None nothing is kept.

    Each tells of which plan it is; those without a model of their own hold the `template`. Raises
    CheckpointError for any that is damaged, or of another training.
    """

    def __init__(self, path: Path | None, plan: dict[str, Any], template: Any) -> None:
        self._path, self._template = path, template
        text = json.dumps(plan, indent=1, sort_keys=True)
        self._digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
            others = sorted(f.name for f in path.iterdir() if not f.name.startswith("."))
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be a folder: {error.strerror or error}"
            ) from error
        if _PLAN in others:
            self._check(path / _PLAN, json.loads(text))
        elif others:
            raise CheckpointError(
                f"{path} has no {_PLAN}, but {others[0]}: name an empty folder, or a training's"
            )
        else:
            replacing.write(path / _PLAN, text.encode(), "the plan")

    def _check(self, file: Path, plan: dict[str, Any]) -> None:
        try:
            kept = json.loads(file.read_bytes())
        except (ValueError, OSError) as error:
            raise _damaged(file) from error
        if not isinstance(kept, dict):
            raise _damaged(file)
        changed = [name for name in plan if kept.get(name) != plan[name]]
        if "files" in changed:  # and so their division, if it did
            changed = [name for name in changed if name != "pieces"]
        changed = ["shards" if name == "pieces" else name for name in changed]
        if changed:
            raise CheckpointError(
                f"{file.parent} is the folder of another training: {', '.join(changed)} changed; "
                "name another folder, or remove this one"
            )

    @property
    def is_there(self) -> bool:
        """Whether anything is kept."""
        return self._path is not None

    def sent(self, shard: int) -> tuple[Examples, float] | None:
        """Return what a shard sent when it had learnt alone, and its seconds; None: not yet."""
        if (kept := self._read(_of_shard(shard))) is None:
            return None
        of, about = kept.arrays, kept.about
        rows: Any = of.get("rows")
        if rows is None:
            rows = SparseRows(of["start"], of["columns"], of["values"], about["d"])
        return Examples(of["numbers"], rows, of["codes"], of["weights"]), about["seconds"]

    def keep_sent(self, shard: int, examples: Examples, seconds: float) -> None:
        """Keep what a shard has sent."""
        arrays: dict[str, Any] = examples._asdict()
        about: dict[str, Any] = {"seconds": seconds}
        if isinstance(examples.rows, SparseRows):
            arrays |= arrays.pop("rows")._asdict()
            about["d"] = arrays.pop("d")
        self._keep(_of_shard(shard), self._template, about, arrays)

    def united(self) -> tuple[Any, ShardsReport, float] | None:
        """Return the model that was solved last, the rounds before, and its seconds; or None."""
        if (kept := self._read(_MODEL)) is None:
            return None
        return kept.learner, ShardsReport.from_json(kept.about["report"]), kept.about["seconds"]

    def keep_united(self, learner: Any, report: ShardsReport, seconds: float) -> None:
        """Keep a model that was solved, the rounds before it, and its seconds."""
        self._keep(_MODEL, learner, {"report": report.as_json(), "seconds": seconds}, {})

    def planes(self) -> tuple[dict[str, np.ndarray], ShardsReport] | None:
        """Return the planes of a linear model, and the rounds so far; or None."""
        if (kept := self._read(_PLANES)) is None:
            return None
        return kept.arrays, ShardsReport.from_json(kept.about["report"])

    def keep_planes(self, arrays: dict[str, np.ndarray], report: ShardsReport) -> None:
        """Keep the planes of a linear model, and the rounds so far."""
        self._keep(_PLANES, self._template, {"report": report.as_json()}, arrays)

    def _read(self, name: str) -> Kept | None:
        if self._path is None or not (path := self._path / name).exists():
            return None
        try:
            kept = Kept(*container.read(path))
        except (ModelFileError, OSError) as error:
            raise _damaged(path) from error
        if (kept.about.get("plan"), kept.about.get("file", name)) != (self._digest, name):
            raise CheckpointError(f"{path} is of another training: remove it, and start again")
        return kept

    def _keep(
        self, name: str, learner: Any, about: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> None:
        if self._path is not None:
            told = {**about, "plan": self._digest, "file": name}
            replacing.write(self._path / name, container.encoded(learner, told, arrays))


def plan_of(
    files: list[ParquetPart], pieces: list[list[Piece]], reading: Reading, *steps: Any
) -> dict[str, Any]:
    """Return what must be the same when a training is continued."""
    scalers = [step for step in steps if isinstance(step, StandardScaler)]
    # Trainings of before had the plain moments: what they have kept is of other rows.
    scale = {"scale": "far values count less"} if any(s.clip for s in scalers) else {}
    return {
        **scale,
        "files": [list(file.identity) for file in files],
        "pieces": [[[p.file, p.first, p.stop, p.number] for p in own] for own in pieces],
        "target": reading.target,
        "options": repr(sorted(reading.options.items())),
        "model": [
            container.digest_of(container.encoded(step)) for step in steps if step is not None
        ],
    }


def _of_shard(shard: int) -> str:
    return f"shard-{shard:05d}.svm"


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path} is damaged: remove it, and start again")
