"""How much memory this process may use, as far as the system tells."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path

from streamsvm.support.limits.control_groups import GROUPS, OWN, folders_of

_UNKNOWN = 4_000_000_000
"""Where the system does not tell."""


@functools.cache
def usable_memory() -> int:
    """Return the bytes of the memory, or of the least limit of this process and of its container.

    It is read once: limits seldom change while a process runs.
    """
    return min([*_limits(), *_group_limits(OWN, GROUPS)], default=_UNKNOWN)


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
    """Yield the limits of the control groups of the process: see `control_groups`."""
    for folder in folders_of("memory", own, groups):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):
                # "max", no number, is no limit.
                yield int((folder / name).read_text())
