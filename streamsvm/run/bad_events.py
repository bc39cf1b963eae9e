"""The policy for events that cannot be used: raise, skip, or keep them as dead letters.

Under each policy, a bad event never reaches the model, and is counted by its kind.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, TextIO

from streamsvm.errors import BadEventError, ParameterError

_LEAST_FOR_SHARE = 100
# Python refuses to write whole numbers of more than 4,300 digits.
_MOST_BITS = 10_000

OnError = str | Callable[[dict[str, Any]], None]


class EventLike(Protocol):
    """The interface of an event: features, label, position."""

    x: Mapping[str, Any]
    y: Any
    position: Any


class BadEvents:
    """Handles and counts the events that cannot be used.

    Parameters
    ----------
    on_error
        ``"raise"``: stop with a `BadEventError`; ``"skip"``: only count; ``"dead-letter"``: append
        to `path` as JSON lines; or a callable that is given each event as a dict with ``position``,
        ``reason``, ``x`` and ``y``.
    path
        The file of dead letters; it is made when the first one comes.
    most
        Stop with a `BadEventError` when more than this number of events are bad (an int of at least
        0), or more than this share of all events (a float between 0.0 and 1.0), from the 100th
        event on. At 0.0 the first bad event stops, at 1.0 none does. None: never.

    Raises
    ------
    ParameterError
        `on_error` or `most` is not one of these.

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
        is_share = isinstance(most, float) and 0.0 <= most <= 1.0
        is_number = isinstance(most, int) and not isinstance(most, bool) and most >= 0
        if not (most is None or is_share or is_number):
            raise ParameterError(
                f"most={most!r}: use a whole number of at least 0, a share as a float between 0.0 "
                "and 1.0, or None"
            )
        self.on_error, self.most = on_error, most
        self.path = Path(path)
        self.counts: Counter[str] = Counter()
        self.n_events = 0  # all events so far, good or bad; the `Run` keeps this up to date
        self._batch: list[tuple[Any, str, str]] | None = (
            None  # (position, kind, reason) of bad ones
        )
        self._reasons: dict[str, str] = {}  # of the first event of each kind in this process
        self._file: TextIO | None = None

    @property
    def total(self) -> int:
        """How many bad events there were."""
        return self.counts.total()

    @property
    def summary(self) -> str:
        """How many bad events of each kind there were, and what was wrong with the first."""
        kinds = []
        for kind, n in self.counts.most_common():
            reason = self._reasons.get(kind)
            kinds.append(f"{n:,} {kind}" + (f" (the first: {reason})" if reason else ""))
        return ", ".join(kinds)

    def take(self, event: EventLike, kind: str, reason: str) -> None:
        """Handle one bad event.

        Parameters
        ----------
        event
            The event as the source gave it.
        kind
            A few words under which it is counted.
        reason
            What is wrong with it.

        Raises
        ------
        BadEventError
            The policy is ``"raise"``, or there are more than `most` bad events.

        """
        self.counts[kind] += 1
        self._reasons.setdefault(kind, reason)
        self._keep(event, reason)
        if self._batch is not None:
            self._batch.append((event.position, kind, reason))
        elif isinstance(self.most, float):
            self._check_share([(self.n_events, event.position, kind, reason)])
        if isinstance(self.most, int) and self.total > self.most:
            self._stop(event.position, self.counts, str(self.most), reason)

    @contextmanager
    def in_order(self, batch: Any) -> Iterator[None]:
        """Return a context for the events of a batch, in which they may be taken in any order.

        Whether they are too large a share is decided at its end, in the order of the events:
        payloads that cannot be decoded are taken before the events between them are learnt.

        Parameters
        ----------
        batch
            The batch, with its `rejects`.

        Raises
        ------
        BadEventError
            There are more than `most` bad events.

        """
        before, self._batch = self.n_events, []
        try:
            yield
            found, self._batch = self._batch, None
        finally:
            self._batch = None
        if found and isinstance(self.most, float):
            number = _numbers_of(batch, before)
            last = before + len(number)
            numbered = [(number.get(at, last), at, kind, why) for at, kind, why in found]
            self._check_share(sorted(numbered, key=itemgetter(0)))

    def _check_share(self, bad: list[tuple[int, Any, str, str]]) -> None:
        """Stop if the latest bad events, with their numbers in the stream, are too many."""
        share = float(self.most or 0.0)
        counts = self.counts - Counter(kind for _, _, kind, _ in bad)
        for n, position, kind, reason in bad:
            counts[kind] += 1
            # Among the first events, a single bad one would be a large share.
            n = max(n, _LEAST_FOR_SHARE)
            if share < 1.0 and counts.total() > share * n:
                self._stop(position, counts, f"{share:.2%} of {n:,}", reason)

    def _stop(self, position: Any, counts: Counter[str], allowed: str, reason: str) -> None:
        found = ", ".join(f"{n:,} {kind}" for kind, n in counts.most_common())
        raise BadEventError(
            f"{position}: {counts.total():,} events could not be used ({found}), "
            f"{allowed} are allowed; the last one: {reason}"
        )

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
            "x": {str(_as_json(name)): _as_json(value) for name, value in event.x.items()},
            "y": _as_json(event.y),
        }
        if callable(self.on_error):
            self.on_error(letter)
            return
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(json.dumps(letter) + "\n")

    def settle(self) -> dict[str, Any]:
        """Flush the dead letters to the disk, or call the callable's `flush`; part of a checkpoint.

        Returns
        -------
        dict[str, Any]
            JSON values for `resume`: the counts, and the size of the file.

        """
        if hasattr(self.on_error, "flush"):
            self.on_error.flush()
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
        letters = self.on_error == "dead-letter" and self.path.exists()
        return {"counts": dict(self.counts), "bytes": self.path.stat().st_size if letters else 0}

    def resume(self, settled: dict[str, Any]) -> None:
        """Continue from what `settle` returned; dead letters written later are removed.

        The events that they are about are read again.

        Parameters
        ----------
        settled
            The return value of `settle`.

        """
        self.counts = Counter(settled["counts"])
        if self.on_error == "dead-letter" and self.path.exists():
            if self.path.stat().st_size > settled["bytes"]:
                os.truncate(self.path, settled["bytes"])

    def close(self) -> None:
        """Flush and close the file, or call the callable's `flush`."""
        if hasattr(self.on_error, "flush"):
            self.on_error.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


def _numbers_of(batch: Any, before: int) -> dict[Any, int]:
    """Return the number in the stream of each position of a batch, good or bad."""
    positions = [batch.position(i) for i in range(len(batch))]
    if rejects := getattr(batch, "rejects", ()):
        # Both are of one partition: their rows are in its order.
        positions = sorted([*positions, *(reject.position for reject in rejects)])
    return {position: before + i for i, position in enumerate(positions, 1)}


def _as_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if hasattr(value, "_asdict"):
        return {key: _as_json(item) for key, item in value._asdict().items()}
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a whole number of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    try:
        return str(value)
    except Exception as error:  # an object may refuse to be shown: the letter is written anyway
        return f"a {type(value).__name__} that cannot be shown: {type(error).__name__}"
