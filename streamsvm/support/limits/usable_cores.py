"""How many cores this process may use, as far as the system and the user tell."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

from streamsvm.support.limits.control_groups import GROUPS, OWN, folders_of

_VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
"""What users of numerical libraries limit threads by."""


def usable_cores() -> int:
    """Return the number of cores, or the least limit of this process and of its container."""
    return max(1, min([_own_cores(), *_asked_for(), *_quotas(OWN, GROUPS)]))


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
    for folder in folders_of("cpu", own, groups):
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
