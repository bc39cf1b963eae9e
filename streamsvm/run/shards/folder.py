"""The folder of a training: what is needed to continue after the coordinator was killed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from connectors.parquet_files import ParquetPart
from streamsvm.errors import CheckpointError
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.model_files import container, replacing
from streamsvm.run.shards.exchange import Examples, Piece, Reading
from streamsvm.run.shards.report import ShardsReport
from streamsvm.support.rows import SparseRows

_PLAN, _MODEL = "plan.json", "united.svm"


class Folder:
    """Files, each written in one step; with None nothing is kept."""

    def __init__(self, path: str | Path | None, plan: dict[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        self._path.mkdir(parents=True, exist_ok=True)
        file = self._path / _PLAN
        text = json.dumps(plan, indent=1, sort_keys=True)
        if file.exists():
            self._check(file, json.loads(text))
        else:
            replacing.write(file, text.encode(), "the plan")

    def _check(self, file: Path, plan: dict[str, Any]) -> None:
        kept = json.loads(file.read_text())
        changed = [name for name in plan if kept.get(name) != plan[name]]
        if changed:
            raise CheckpointError(
                f"{file.parent} is the folder of another training: {', '.join(changed)} changed; "
                "name another folder, or remove this one"
            )

    def sent(self, shard: int) -> tuple[Examples, float] | None:
        """Return what a shard sent when it had learnt alone, and its seconds; None: not yet."""
        if self._path is None or not (path := self._of_shard(shard)).exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as arrays:
                rows: Any = arrays["rows"] if "rows" in arrays else _sparse(arrays)
                own = Examples(arrays["numbers"], rows, arrays["codes"], arrays["weights"])
                return own, float(arrays["seconds"])
        except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path} is damaged: remove it, and start again") from error

    def keep_sent(self, shard: int, examples: Examples, seconds: float) -> None:
        """Keep what a shard has sent."""
        if self._path is None:
            return
        numbers, rows, codes, weights = examples
        content: dict[str, Any] = {"numbers": numbers, "codes": codes, "weights": weights}
        own = rows._asdict() if isinstance(rows, SparseRows) else {"rows": rows}
        file = io.BytesIO()
        np.savez(file, **content, **own, seconds=np.float64(seconds))
        replacing.write(self._of_shard(shard), file.getvalue(), "a shard")

    def _of_shard(self, shard: int) -> Path:
        assert self._path is not None
        return self._path / f"shard-{shard:05d}.npz"

    def united(self) -> tuple[LASVMClassifier, ShardsReport, float] | None:
        """Return the model that was solved last, the rounds before, and its seconds; or None."""
        if self._path is None or not (path := self._path / _MODEL).exists():
            return None
        learner, about, _ = container.read(path)
        return learner, ShardsReport.from_json(about["report"]), about["seconds"]

    def keep_united(self, learner: LASVMClassifier, report: ShardsReport, seconds: float) -> None:
        """Keep a model that was solved, the rounds before it, and its seconds."""
        if self._path is not None:
            about = {"report": report.as_json(), "seconds": seconds}
            replacing.write(self._path / _MODEL, container.encoded(learner, about))

    def further(self, name: str) -> Any:
        """Return the arrays of another file, by name; None: it is not there."""
        if self._path is None or not (path := self._path / name).exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path} is damaged: remove it, and start again") from error

    def keep_further(self, name: str, content: bytes) -> None:
        """Keep another file."""
        if self._path is not None:
            replacing.write(self._path / name, content, "the planes")


def plan_of(
    files: list[ParquetPart], pieces: list[list[Piece]], reading: Reading, *steps: Any
) -> dict[str, Any]:
    """Return what must be the same when a training is continued."""
    parameters = [None if step is None else sorted(step._get_params().items()) for step in steps]
    return {
        "files": [list(file.identity) for file in files],
        "pieces": [[tuple(piece) for piece in own] for own in pieces],
        "target": reading.target,
        "options": repr(sorted(reading.options.items())),
        "model": repr(parameters),
    }


def _sparse(arrays: Any) -> SparseRows:
    return SparseRows(arrays["start"], arrays["columns"], arrays["values"], int(arrays["d"]))
