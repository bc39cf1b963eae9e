"""The lock that keeps a second process away from a checkpoint."""

import os
from pathlib import Path
from typing import IO

from streamsvm.errors import CheckpointError
from streamsvm.model_files.replacing import is_at, is_lockable


class CheckpointLock:
    """Two locked files: an empty one beside the checkpoint, and the checkpoint itself.

    The first is there before there is a checkpoint. If somebody deletes it, a second process makes
    and locks a new one; but then it finds the checkpoint locked. The system releases both locks
    however the process ends. On Windows a second process is not detected.
    """

    def __init__(self, path: Path) -> None:
        self._shown = path
        # Of a symbolic link the file that it points to: there may be several links.
        self._path = Path(os.path.realpath(path))
        self._beside = self._path.with_name(self._path.name + ".lock")
        self._held: dict[Path, IO[bytes]] = {}

    def take(self) -> None:
        """Lock the two files as they are now; called again whenever one may be a new one.

        CheckpointError: another process has locked one of them, or the lock cannot be made.
        """
        self._lock(self._beside, "ab")
        if self._path.exists():
            self._lock(self._path, "r+b")

    def release(self) -> None:
        """Release what is locked."""
        for file in self._held.values():
            file.close()
        self._held.clear()

    def _lock(self, path: Path, mode: str) -> None:
        held = self._held.get(path)
        if held is not None and is_at(held, path):
            return
        try:
            file: IO[bytes] = path.open(mode)  # type: ignore[assignment]
        except OSError as error:
            raise CheckpointError(f"cannot use {self._shown}: {error.strerror}: {path}") from error
        # If it is not there any more, another process has replaced it meanwhile.
        if not is_lockable(file) or not is_at(file, path):
            file.close()
            raise CheckpointError(
                f"{self._shown} is in use by another process: end that one, or use another file"
            )
        self._held[path] = file
        if held is not None:
            held.close()
