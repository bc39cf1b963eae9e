"""The folder of a training: what is needed to continue after the coordinator was killed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import CheckpointError, ModelFileError
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files import container, replacing

_PLAN = "plan.json"


class Kept(NamedTuple):
    """What a file holds: a model, JSON values, and arrays."""

    model: Learner
    about: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Folder:
    """Model files, each written in one step; with None nothing is kept.

    `plan`, JSON values by name, is what must be the same when a training is continued; each file
    tells of which plan it is. CheckpointError: one is damaged, or of another training.
    """

    def __init__(self, path: Path | None, plan: dict[str, Any]) -> None:
        self.path = path
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
            kept = dict(json.loads(file.read_bytes()).items())
        except (ValueError, OSError, AttributeError) as error:
            raise _damaged(file) from error
        changed = [name for name in plan if kept.get(name) != plan[name]]
        if "files" in changed:  # and so their division into shards, if it did
            changed = [name for name in changed if name != "shards"]
        if changed:
            raise CheckpointError(
                f"{file.parent} is the folder of another training: {', '.join(changed)} changed; "
                "name another folder, or remove this one"
            )

    def read(self, name: str) -> Kept | None:
        """Return what a file holds; None: it was not written yet."""
        if self.path is None or not (path := self.path / name).exists():
            return None
        try:
            kept = Kept(*container.read(path))
        except (ModelFileError, OSError) as error:
            raise _damaged(path) from error
        if (kept.about.pop("plan", None), kept.about.pop("file", None)) != (self._digest, name):
            raise CheckpointError(f"{path} is of another training: remove it, and start again")
        return kept

    def write(self, name: str, kept: Kept) -> None:
        """Write a file, in place of what it held."""
        if self.path is not None:
            about = {**kept.about, "plan": self._digest, "file": name}
            content = container.encoded(kept.model, about, kept.arrays)
            replacing.write(self.path / name, content)


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path} is damaged: remove it, and start again")
