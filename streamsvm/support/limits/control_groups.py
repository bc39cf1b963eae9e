"""Limits of the control groups of this process, of which containers are made (Linux)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

OWN, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""The file that names the groups of this process, and the folder that has the groups."""


def folders_of(kind: str, own: Path = OWN, groups: Path = GROUPS) -> Iterator[Path]:
    """Yield the folder of each group that limits a kind of resource: the limits of each hold.

    `own` is the file that names the groups of the process, a line each.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds == "" or kind in kinds.split(","):
                # In a container the path may be that of the host, and the group itself be the root.
                parts = [part for part in path.split("/") if part not in ("", "..")]
                root = groups if kinds == "" else groups / kind
                yield from (root.joinpath(*parts[:n]) for n in range(len(parts) + 1))
