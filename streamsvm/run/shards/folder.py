"""The folder of a training: what is needed to continue after the coordinator was killed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm.errors import CheckpointError
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.model_files import container, replacing
from streamsvm.run.shards.exchange import Examples
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


def _sparse(arrays: Any) -> SparseRows:
    return SparseRows(arrays["start"], arrays["columns"], arrays["values"], int(arrays["d"]))
