"""What a snapshot is a snapshot of: files by their content, settings by their values.

A name does not say what a file holds. A snapshot therefore keeps the size, the number of rows and a
digest of each file that was read, and the settings that decide what its rows mean.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from connectors.errors import SnapshotError

_ENDS = 65_536


class FileIdentity(NamedTuple):
    """A file by its content; as a JSON list in snapshots."""

    name: str
    size: int  # bytes
    rows: int | None  # None: only known at the end of the file
    digest: str

    def __str__(self) -> str:
        """Return the words for a message."""
        rows = "" if self.rows is None else f"{self.rows:,} rows, "
        return f"{rows}{self.size:,} bytes, digest {self.digest}"


def identity_of(path: Path, name: str, rows: int | None, end: int = _ENDS) -> FileIdentity:
    """Return the identity of a file, by its first bytes and the `end` last ones.

    The first ones are part of it in any case: Parquet footers without statistics do not depend on
    the rows.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        content = hashlib.sha256(file.read(_ENDS))
        file.seek(max(0, size - end))
        content.update(file.read())
    return FileIdentity(name, size, rows, content.hexdigest()[:16])


def check_file(kept: Sequence[Any] | None, own: FileIdentity) -> None:
    """Refuse a file whose content is not what it was; None where nothing was kept of it."""
    if kept is None or (then := FileIdentity(*kept)) == own:
        return
    raise SnapshotError(
        f"`{own.name}` is not the file that the snapshot is of: {then} then, {own} now; give it "
        "that file again, or start anew"
    )


def check_row(row: int, n_rows: int | None, name: str) -> None:
    """Refuse a position beyond the last row, if their number is known."""
    if n_rows is not None and not 0 <= row <= n_rows:
        raise SnapshotError(
            f"the snapshot continues at row {row} of `{name}`, which has {n_rows} rows: the data "
            "have changed"
        )


def check_settings(kept: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Refuse a snapshot of a source with other settings."""
    for setting, value in own.items():
        then = kept.get(setting, value)  # a consumer may be subscribed by other code
        if then != value:
            raise SnapshotError(
                f"the snapshot was taken with {setting}={then!r}, this source "
                f"has {setting}={value!r}: give it the same {setting}, or start anew"
            )


def check_ids(kept: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Refuse a snapshot of another cluster, or of a topic that was made anew under its name."""
    for what, then in kept.items():
        if (now := own.get(what, then)) != then:
            raise SnapshotError(
                f"{what} has the id {now} now, and had {then} when it was read: the same offsets "
                "are other messages there; give it the one of then, or start anew"
            )
