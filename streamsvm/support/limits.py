"""What this process may use of the machine, as far as the system and the user tell.

Limits are those of the process and of its control groups, of which containers are made (Linux).
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path

_OWN, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""The file that names the groups of this process, and the folder that has the groups."""

_VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
"""What users of numerical libraries limit threads by."""

_UNKNOWN = 4_000_000_000
"""The memory, where the system does not tell."""


def usable_cores() -> int:
    """Return the number of cores, or the least limit of this process and of its container."""
    return max(1, min([_own_cores(), *_asked_for(), *_quotas(_OWN, _GROUPS)]))


def _own_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _asked_for() -> Iterator[int]:
    for name in _VARIABLES:
        # That of OpenMP may be a list, a number for each depth of nesting.
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            yield int(first)


def _quotas(own: Path, groups: Path) -> Iterator[int]:
    """Yield how many cores the quota of each control group is worth, rounded up."""
    for folder in _folders_of("cpu", own, groups):
        with contextlib.suppress(OSError, ValueError):
            # "max 100000", which is no number, is no limit.
            quota, period = map(int, (folder / "cpu.max").read_text().split())
            yield math.ceil(quota / period)
        with contextlib.suppress(OSError, ValueError):
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            period = int((folder / "cpu.cfs_period_us").read_text())
            # -1 is no limit.
            if quota > 0:
                yield math.ceil(quota / period)


@functools.cache
def usable_memory() -> int:
    """Return the bytes of the memory, or of the least limit of this process and of its container.

    It is read once: limits seldom change while a process runs.
    """
    return min([*_limits(), *_group_limits(_OWN, _GROUPS)], default=_UNKNOWN)


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
    """Yield the limits of the control groups of the process."""
    for folder in _folders_of("memory", own, groups):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):
                # "max", no number, is no limit.
                yield int((folder / name).read_text())


def _folders_of(kind: str, own: Path, groups: Path) -> Iterator[Path]:
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
