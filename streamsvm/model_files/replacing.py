"""Files that take the place of older ones in one step: written beside them, synced, renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from streamsvm.errors import UnwritableModelFileError

try:
    import fcntl
except ImportError:  # Windows: no file is locked there
    fcntl = None  # type: ignore[assignment]

_ENDING, _LONGEST_NAME = ".partial", 200


def write(path: Path, content: bytes, what: str = "the model") -> None:
    """Write a file in one step; an older one is replaced as in `replacement`.

    Raises UnwritableModelFileError if the operating system refuses, or there is no regular file;
    what was there is unchanged.
    """
    try:
        with replacement(path) as file:
            file.write(content)
    except OSError as error:
        raise UnwritableModelFileError(
            f"cannot save {what} to {path}: {error.strerror or error}; "
            "a file that was there before is unchanged"
        ) from error


@contextlib.contextmanager
def replacement(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file, which gets the path once it is complete and on the disk.

    The older file's permissions are kept, and a symbolic link stays one: the file that it points to
    is replaced. Temporary files of processes that were killed are removed, and so is this one if
    the body raises. Raises OSError if it cannot be written, or a device, a folder or the like is at
    the path.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A device such as /dev/null would be gone.
        raise OSError(f"{path} is not a regular file: name another one")
    sweep(target)
    file = _temporary(target)
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.chmod(file.name, _mode_for(target))
        if fcntl is None:
            file.close()  # Windows renames no open file
        rename(file.name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(file.name)
        raise
    finally:
        # After an error its buffer may be full still: writing that fails again.
        with contextlib.suppress(OSError):
            file.close()


def rename(old: str | Path, new: str | Path) -> None:
    """Give a file another path, also after a power cut; what was there is replaced."""
    target = Path(os.path.realpath(new))
    os.replace(old, target)
    _settle(target.parent)


def sweep(path: str | Path) -> None:
    """Remove temporary files of writers of a path that were killed."""
    target = Path(os.path.realpath(path))
    name = re.compile(rf"{re.escape(_beginning(target))}[a-z0-9_]{{8}}{re.escape(_ENDING)}")
    if fcntl is None or not target.parent.is_dir():
        return
    for entry in os.scandir(target.parent):
        if name.fullmatch(entry.name):
            with contextlib.suppress(OSError), open(entry.path, "r+b") as file:
                # A living writer has it locked.
                if is_lockable(file):
                    os.unlink(entry.path)


def is_lockable(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; return False if another process has it locked."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_at(file: IO[bytes], path: str | Path) -> bool:
    """Tell whether an open file is the one at a path, which may have been deleted or replaced."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


@contextlib.contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Give errors of the operating system that do not say which file they are about its name."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or isinstance(error, UnwritableModelFileError):
            raise
        number = error.errno or 0
        said = os.strerror(number) if number else str(error)
        raise OSError(number, f"cannot be written: {said}", str(path)) from error


def _beginning(target: Path) -> str:
    """Return how names of temporary files begin; of a long name its digest, as file systems ask."""
    name = os.fsencode(target.name)
    short = hashlib.sha256(name).hexdigest() if len(name) > _LONGEST_NAME else target.name
    return f".{short}."


def _temporary(target: Path) -> IO[bytes]:
    """Make a temporary file beside another one, and lock it."""
    while True:
        handle, name = tempfile.mkstemp(_ENDING, _beginning(target), target.parent)
        os.close(handle)
        # Another writer may sweep it away before it is locked.
        with contextlib.suppress(FileNotFoundError):
            file = open(name, "r+b")
            if is_lockable(file) and is_at(file, name):
                return file
            file.close()


def _mode_for(target: Path) -> int:
    """Return the permissions of a file, or those of new files if there is none."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _settle(folder: Path) -> None:
    """Make a renaming survive a power cut, where the system can synchronise folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
