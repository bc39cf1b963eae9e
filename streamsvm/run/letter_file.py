"""The file of a run's dead letters: JSON lines that no other run writes to, or cuts off."""

import json
import logging
import os
import secrets
from pathlib import Path
from typing import IO, Any

from streamsvm.model_files.replacing import naming

_log = logging.getLogger(__name__)

DEFAULT_NAME = "dead_letters.jsonl"


class LetterFile:
    """Dead letters as JSON lines, each with the name of its run under ``run``.

    A new run makes a new file, when its first letter comes: if there is one of that name, a number
    is put before its ending (``letters.2.jsonl``). A run that continues from a checkpoint goes on
    with its own file, which it knows by the name of the run in the first line. A device or a pipe
    is written to as it is.

    `path` is the file in use; None: there is none yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.wanted = Path(path)
        self.path: Path | None = None
        self._run = secrets.token_hex(4)
        self._number = 1
        self._file: IO[bytes] | None = None

    def write(self, letter: dict[str, Any]) -> None:
        """Append a letter: JSON values by name."""
        if self._file is None:
            self._file = self._made() if self.path is None else self.path.open("ab")
        with naming(self.path or self.wanted):
            self._file.write(json.dumps(letter | {"run": self._run}).encode() + b"\n")

    def _made(self) -> IO[bytes]:
        """Make a new file, under the first free name."""
        if self.wanted.exists() and not self.wanted.is_file():
            self.path = self.wanted
            return self.path.open("ab")
        while True:
            self.path = self._numbered()
            try:
                file = self.path.open("xb")
            except FileExistsError:
                self._number += 1
            except OSError:
                self.path = None
                raise
            else:
                _log.info("dead letters go to %s", self.path)
                return file

    def _numbered(self) -> Path:
        if self._number == 1:
            return self.wanted
        return self.wanted.with_name(f"{self.wanted.stem}.{self._number}{self.wanted.suffix}")

    def settle(self) -> dict[str, Any]:
        """Write all letters to the disk; return JSON values for `resume`, for a checkpoint."""
        is_regular = self.path is not None and self.path.is_file()
        if self._file is not None:
            with naming(self.path or self.wanted):
                self._file.flush()
                if is_regular:
                    os.fsync(self._file.fileno())
        size = os.stat(self.path).st_size if self.path is not None and is_regular else 0
        return {"run": self._run, "number": self._number, "bytes": size}

    def restore(self, settled: dict[str, Any]) -> None:
        """Continue the file of a checkpoint; letters after it are removed, to be written again."""
        self._run, self._number = settled["run"], settled["number"]
        # Its first letter may have come after the checkpoint: then the number was not known yet.
        while (path := self._numbered()).exists() and not self._is_own(path):
            self._number += 1
        if not path.exists():
            return
        self.path = path
        if path.stat().st_size > settled["bytes"]:
            os.truncate(path, settled["bytes"])

    def _is_own(self, path: Path) -> bool:
        """Tell whether the first letter in a file is of this run."""
        if not path.is_file():
            return False
        with path.open("rb") as file:
            try:
                return bool(json.loads(file.readline())["run"] == self._run)
            except (ValueError, LookupError, TypeError):
                return False

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with naming(self.path or self.wanted):
                file.close()
