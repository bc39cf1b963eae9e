"""What a run tells while it goes on, and at its end."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from typing import Any

from streamsvm.monitor.history import History


def peak_memory() -> int | None:
    """Return the most bytes of memory that this process had at a time, None where unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    # macOS counts bytes, others kilobytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _rate(rows: int, seconds: float) -> float:
    return rows / seconds if seconds > 0.0 else 0.0


@dataclass
class Progress:
    """Where a run is; also what its history is made of."""

    phase: str  # "learning" or "finishing"
    epoch: int  # from 1
    rows: int  # read in all epochs
    seconds: float
    accuracy: float
    balanced_accuracy: float
    n_support_vectors: int | None  # None: the learner has none
    delta: float | None
    dual: float | None
    n_bad: int
    gap: float | None = None  # of the monitor's last record, as are the next two
    averaged_gap: float | None = None
    certificate: float | None = None
    compile_seconds: float = 0.0  # of `seconds`

    @property
    def rows_per_second(self) -> float:
        """Rows a second since the start, without the time in which code was compiled."""
        return _rate(self.rows, self.seconds - self.compile_seconds)


@dataclass
class RunReport:
    """What a run did and learnt."""

    rows: int = 0
    learnt: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)  # what became of events held for labels
    epochs: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0  # of `seconds`: code was compiled, once for this machine
    finish_seconds: float = 0.0
    finished: bool = False
    interrupted: bool = False
    accuracy: float = 0.0
    balanced_accuracy: float = 0.0
    labels: dict[str, int] = field(default_factory=dict)
    n_support_vectors: int | None = None
    delta: float | None = None
    dual: float | None = None
    memory_bytes: int = 0
    memory_parts: dict[str, int] = field(default_factory=dict)  # of the model, in bytes
    peak_bytes: int | None = None  # of the whole process so far; None where it is not known
    counters: dict[str, int] = field(default_factory=dict)
    monitor: dict[str, Any] = field(default_factory=dict)  # its last record, and why no certificate
    history: History = field(default_factory=History, repr=False)

    @property
    def rows_per_second(self) -> float:
        """Rows a second, without the time in which code was compiled."""
        return _rate(self.rows, self.seconds - self.compile_seconds)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, without the history."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "history"}
