"""How much memory this process may use, as far as the system tells."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path

_UNKNOWN = 4_000_000_000
"""Where the system does not tell."""

_GROUPS = Path("/sys/fs/cgroup")


@functools.cache
def usable_memory() -> int:
    """Return the bytes of the memory, or of the least limit of this process and of its container.

    It is read once: limits seldom change while a process runs.
    """
    return min([*_limits(), *_group_limits(Path("/proc/self/cgroup"), _GROUPS)], default=_UNKNOWN)


def _limits() -> Iterator[int]:
    """Yield the size of the memory, and the limits of the process."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(ImportError):
        import resource

        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            soft = resource.getrlimit(kind)[0]
            if soft != resource.RLIM_INFINITY:
                yield soft


def _group_limits(own: Path, groups: Path) -> Iterator[int]:
    """Yield the limits of the control groups of the process, of which containers are made (Linux).

    `own` is the file that names them, a line each; `groups` is the folder that has them.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds == "" or "memory" in kinds.split(","):
                yield from _limits_in(groups if kinds == "" else groups / "memory", path)


def _limits_in(root: Path, path: str) -> Iterator[int]:
    """Yield the limits of a group and of those that it is in: each holds."""
    # In a container the path may be that of the host, and the group itself be the root.
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for n in range(len(parts) + 1):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):
                # "max", no number, is no limit.
                yield int(root.joinpath(*parts[:n], name).read_text())
