"""The folder of a training: what is needed to continue after the coordinator was killed."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from connectors.parquet_files import ParquetPart
from streamsvm.errors import CheckpointError
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.model_files import container, replacing
from streamsvm.run.shards.exchange import Examples, Piece, Reading, Setting
from streamsvm.run.shards.report import ShardsReport
from streamsvm.support.rows import SparseRows, shape

_PLAN, _MODEL, _PLANES = "plan.json", "united.svm", "planes.npz"


class Folder:
    """Files, each written in one step; with None nothing is kept.

    Each tells of which plan it is. Raises CheckpointError for any that is not of this training.
    """

    def __init__(self, path: Path | None, plan: dict[str, Any]) -> None:
        self._path = path
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
        if changed:
            raise CheckpointError(
                f"{file.parent} is the folder of another training: {', '.join(changed)} changed; "
                "name another folder, or remove this one"
            )

    def sent(
        self, shard: int, pieces: list[Piece], setting: Setting
    ) -> tuple[Examples, float] | None:
        """Return what a shard sent when it had learnt alone, and its seconds; None: not yet."""
        name = _of_shard(shard)
        if (arrays := self._arrays(name)) is None:
            return None
        try:
            rows: Any = arrays["rows"] if "rows" in arrays else _sparse(arrays)
            own = Examples(arrays["numbers"], rows, arrays["codes"], arrays["weights"])
            _check_examples(own, pieces, setting)
            return own, float(arrays["seconds"])
        except (ValueError, KeyError, TypeError, IndexError) as error:
            assert self._path is not None
            raise _damaged(self._path / name) from error

    def keep_sent(self, shard: int, examples: Examples, seconds: float) -> None:
        """Keep what a shard has sent."""
        numbers, rows, codes, weights = examples
        content: dict[str, Any] = {"numbers": numbers, "codes": codes, "weights": weights}
        own = rows._asdict() if isinstance(rows, SparseRows) else {"rows": rows}
        self._keep_arrays(_of_shard(shard), {**content, **own, "seconds": np.float64(seconds)})

    def united(self) -> tuple[LASVMClassifier, ShardsReport, float] | None:
        """Return the model that was solved last, the rounds before, and its seconds; or None."""
        if self._path is None or not (path := self._path / _MODEL).exists():
            return None
        learner, about, _ = container.read(path)
        if about.get("plan") != self._digest or type(learner) is not LASVMClassifier:
            raise _foreign(path)
        return learner, ShardsReport.from_json(about["report"]), about["seconds"]

    def keep_united(self, learner: LASVMClassifier, report: ShardsReport, seconds: float) -> None:
        """Keep a model that was solved, the rounds before it, and its seconds."""
        if self._path is not None:
            about = {"report": report.as_json(), "seconds": seconds, "plan": self._digest}
            replacing.write(self._path / _MODEL, container.encoded(learner, about))

    def planes(self, d: int) -> dict[str, np.ndarray] | None:
        """Return the planes of a linear model of d weights, and what belongs to them; or None."""
        if (arrays := self._arrays(_PLANES)) is None:
            return None
        n = len(arrays.get("b", ()))
        shapes = {"best": (d,), "at": (d,), "a": (n, d), "b": (n,), "shares": (n,)}
        if "report" not in arrays or not all(
            name in arrays and arrays[name].shape == wanted and np.isfinite(arrays[name]).all()
            for name, wanted in shapes.items()
        ):
            assert self._path is not None
            raise _damaged(self._path / _PLANES)
        return arrays

    def keep_planes(self, arrays: dict[str, np.ndarray]) -> None:
        """Keep the planes of a linear model."""
        self._keep_arrays(_PLANES, arrays)

    def _arrays(self, name: str) -> dict[str, np.ndarray] | None:
        if self._path is None or not (path := self._path / name).exists():
            return None
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
                arrays = dict(kept)
        except Exception as error:
            # A damaged archive may cause any exception.
            raise _damaged(path) from error
        if str(arrays.pop("plan", "")) != f"{self._digest} {name}":
            raise _foreign(path)
        return arrays

    def _keep_arrays(self, name: str, arrays: dict[str, Any]) -> None:
        if self._path is not None:
            file = io.BytesIO()
            np.savez(file, **arrays, plan=np.array(f"{self._digest} {name}"))
            replacing.write(self._path / name, file.getvalue(), name)


def plan_of(
    files: list[ParquetPart], pieces: list[list[Piece]], reading: Reading, *steps: Any
) -> dict[str, Any]:
    """Return what must be the same when a training is continued."""
    return {
        "files": [list(file.identity) for file in files],
        "pieces": [[[p.file, p.first, p.stop, p.number] for p in own] for own in pieces],
        "target": reading.target,
        "options": repr(sorted(reading.options.items())),
        "model": [
            container.digest_of(container.encoded(step)) for step in steps if step is not None
        ],
    }


def _check_examples(examples: Examples, pieces: list[Piece], setting: Setting) -> None:
    """Raise ValueError for rows that a shard of these pieces cannot have sent."""
    numbers, rows, codes, weights = examples
    n, values = len(numbers), rows.values if isinstance(rows, SparseRows) else rows
    is_own = np.zeros(numbers.shape, bool)
    for p in pieces:
        is_own |= (numbers >= p.number) & (numbers < p.number + p.stop - p.first)
    if not (
        shape(rows) == (n, len(setting.names))
        and isinstance(rows, SparseRows) == setting.is_sparse
        and codes.shape == weights.shape == (n,)
        and is_own.all()
        and (np.diff(numbers) > 0).all()
        and ((codes >= 0) & (codes < len(setting.labels))).all()
        and np.isfinite(values).all()
        and ((weights >= 0.0) & np.isfinite(weights)).all()
    ):
        raise ValueError("these are no rows of this shard")
    if isinstance(rows, SparseRows):
        ends_right = rows.start[0] == 0 and rows.start[-1] == len(rows.values)
        is_within = ((rows.columns >= 0) & (rows.columns < rows.d)).all()
        if not (ends_right and is_within and (np.diff(rows.start) >= 0).all()):
            raise ValueError("these are no sparse rows")


def _of_shard(shard: int) -> str:
    return f"shard-{shard:05d}.npz"


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path} is damaged: remove it, and start again")


def _foreign(path: Path) -> CheckpointError:
    return CheckpointError(f"{path} is of another training: remove it, and start again")


def _sparse(arrays: Any) -> SparseRows:
    return SparseRows(arrays["start"], arrays["columns"], arrays["values"], int(arrays["d"]))
