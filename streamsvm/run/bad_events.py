"""What happens to events that cannot be used: raise, skip, or keep as dead letters.

Whatever the policy, a bad event never reaches the model, and is counted by its reason.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TextIO

from streamsvm.errors import BadEventError, ParameterError

_FEW = 100

OnError = str | Callable[[dict[str, Any]], None]


class EventLike(Protocol):
    """An event of a source: features, label, position."""

    x: Mapping[str, Any]
    y: Any
    position: Any


class BadEvents:
    """Takes the events that cannot be used.

    Parameters
    ----------
    on_error
        ``"raise"``: stop with a `BadEventError`; ``"skip"``: count only; ``"dead-letter"``: append
        to `path` as JSON lines; or a callable that is given each as a dict with ``position``,
        ``reason``, ``x`` and ``y``.
    path
        The file of dead letters; made when the first one comes.
    most
        Stop with a `BadEventError` when there are more than so many; if below 1, when they are more
        than this share of all events, from the 100th event on. None: however many there are.

    Raises
    ------
    ParameterError
        `on_error` or `most` is none of these.

    """

    def __init__(
        self,
        on_error: OnError = "raise",
        path: str | Path = "dead_letters.jsonl",
        most: float | None = None,
    ) -> None:
        if not callable(on_error) and on_error not in ("raise", "skip", "dead-letter"):
            raise ParameterError(
                f"on_error={on_error!r}: use 'raise', 'skip', 'dead-letter' or a callable"
            )
        is_share = isinstance(most, float) and 0.0 < most < 1.0
        is_number = isinstance(most, int) and not isinstance(most, bool) and most >= 0
        if not (most is None or is_share or is_number):
            raise ParameterError(
                f"most={most!r}: use a whole number of at least 0, a share below 1, or None"
            )
        self.on_error, self.most = on_error, most
        self.path = Path(path)
        self.counts: Counter[str] = Counter()
        self.n_events = 0  # good or bad, so far: whoever reads the source counts them here
        self._file: TextIO | None = None

    @property
    def total(self) -> int:
        """How many there were."""
        return self.counts.total()

    def take(self, event: EventLike, kind: str, reason: str) -> None:
        """Handle one bad event.

        Parameters
        ----------
        event
            The event as the source gave it.
        kind
            A few words to count it under.
        reason
            What is wrong with it.

        """
        self.counts[kind] += 1
        self._keep(event, reason)
        if self.most is not None and self._are_too_many(self.most):
            found = ", ".join(f"{n:,} {kind}" for kind, n in self.counts.most_common())
            allowed = f"{self.most:.2%} of {self.n_events:,}" if 0 < self.most < 1 else self.most
            raise BadEventError(
                f"{event.position}: {self.total:,} events could not be used ({found}), "
                f"{allowed} are allowed; the last one: {reason}"
            )

    def _are_too_many(self, most: float) -> bool:
        if not 0 < most < 1:
            return self.total > most
        # Of the first events a single one would be a large share.
        return self.total > most * max(self.n_events, _FEW)

    def _keep(self, event: EventLike, reason: str) -> None:
        if self.on_error == "raise":
            raise BadEventError(
                f"{event.position}: {reason} (on_error='skip' or 'dead-letter' goes on)"
            )
        if self.on_error == "skip":
            return
        letter = {
            "position": _as_json(event.position),
            "reason": reason,
            "x": {str(name): _as_json(value) for name, value in event.x.items()},
            "y": _as_json(event.y),
        }
        if callable(self.on_error):
            self.on_error(letter)
            return
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(json.dumps(letter) + "\n")

    def settle(self) -> dict[str, Any]:
        """Bring the dead letters to safety; return what `resume` needs, as JSON values.

        A callable that has a method ``flush`` is told to by it.
        """
        if hasattr(self.on_error, "flush"):
            self.on_error.flush()
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
        letters = self.on_error == "dead-letter" and self.path.exists()
        return {"counts": dict(self.counts), "bytes": self.path.stat().st_size if letters else 0}

    def resume(self, settled: dict[str, Any]) -> None:
        """Go on from where `settle` was called: letters from later are taken back.

        The events that they were about come again.
        """
        self.counts = Counter(settled["counts"])
        if self.on_error == "dead-letter" and self.path.exists():
            if self.path.stat().st_size > settled["bytes"]:
                os.truncate(self.path, settled["bytes"])

    def close(self) -> None:
        """Write what is buffered."""
        if hasattr(self.on_error, "flush"):
            self.on_error.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


def _as_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if hasattr(value, "_asdict"):
        return {key: _as_json(item) for key, item in value._asdict().items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
