"""The policy for events that cannot be used: raise, skip, or keep them as dead letters.

Under each policy, a bad event never reaches the model, and is counted by its kind.
"""

import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from connectors.batch import Batch, Event, Position, Reject
from streamsvm.errors import BadEventError, ParameterError, StreamSVMError
from streamsvm.run.letter_file import DEFAULT_NAME, LetterFile

_log = logging.getLogger(__name__)

_LEAST_FOR_SHARE = 100
# Python refuses to write whole numbers of more than 4,300 digits.
_MOST_BITS = 10_000
_LEAST_FOR_HALF = 1000
_MOST_REASONS = 1000
_MOST_CHARACTERS = 2000  # of a reason: the name of a feature may be as long as a message


class Letter(dict[str, Any]):
    """A dead letter, of JSON values; `message` is what it came in, as it came, or None."""

    message: Any = None


OnError = str | Callable[[dict[str, Any]], None]


class RefusedEvent(NamedTuple):
    """An event that cannot be used, with the message that it was in, as that came."""

    x: dict[Any, float]
    y: Any
    position: Position
    message: Any
    w: float


EventLike = Event | RefusedEvent | Reject


class BadEvents:
    """Handles and counts the events that cannot be used.

    Parameters
    ----------
    on_error
        ``"raise"``: stop with a `BadEventError`; ``"skip"``: only count; ``"dead-letter"``: write
        to `path` as JSON lines; or a callable that is given each event as a dict with ``position``,
        ``reason``, ``x`` and ``y``, and ``payload`` if it came in a message, which is its attribute
        `message` then.
    path
        The file of dead letters, made when the first one comes; each run has its own, with a number
        in its name if there is one already: see `file`. None: ``dead_letters.jsonl``, in a run with
        a checkpoint the name of that file with ``.dead_letters.jsonl`` appended.
    most
        Stop with a `BadEventError` when more than this number of events are bad (an int of at least
        0), or more than this share of all events (a float between 0.0 and 1.0), from the 100th
        event on. At 0.0 the first bad event stops, at 1.0 none does. ``"half"``: more than half of
        all events, and more than 500, which means that something is wrong with the set-up. None:
        never.

    Raises
    ------
    ParameterError
        `on_error` or `most` is not one of these.

    """

    def __init__(
        self,
        on_error: OnError = "raise",
        path: str | Path | None = None,
        most: float | Literal["half"] | None = None,
    ) -> None:
        if not callable(on_error) and on_error not in ("raise", "skip", "dead-letter"):
            raise ParameterError(
                f"on_error={on_error!r}: use 'raise', 'skip', 'dead-letter' or a callable"
            )
        is_share = isinstance(most, float) and 0.0 <= most <= 1.0
        is_number = isinstance(most, int) and not isinstance(most, bool) and most >= 0
        if not (most is None or most == "half" or is_share or is_number):
            raise ParameterError(
                f"most={most!r}: use a whole number of at least 0, a share as a float between 0.0 "
                "and 1.0, 'half', or None"
            )
        self.on_error, self.most = on_error, most
        self._letters = LetterFile(DEFAULT_NAME if path is None else path)
        self._has_default_path = path is None
        self.unkept: str | None = None  # why dead letters are only counted, though asked for
        self.counts: Counter[str] = Counter()
        self.n_events = 0  # all events so far, good or bad; the `Run` keeps this up to date
        # (position, kind, reason) of the bad ones of a batch
        self._batch: list[tuple[Any, str, str]] | None = None
        self._reasons: dict[str, str] = {}  # of the first event of each kind in this process
        # How often each of the first reasons came in this process, and with which event first.
        self._often: Counter[str] = Counter()
        self._first: dict[str, Any] = {}

    @property
    def file(self) -> Path | None:
        """The file of this run's dead letters; None: there is none (yet)."""
        return self._letters.path

    def name_after(self, checkpoint: Path) -> None:
        """Name the file of dead letters after a checkpoint's path, unless it was given a path."""
        if self._has_default_path:
            self._letters = LetterFile(checkpoint.with_name(f"{checkpoint.name}.{DEFAULT_NAME}"))

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

    @property
    def most_frequent(self) -> str:
        """The most frequent reason in this process, how often it came, and where first."""
        return self._most_frequent(self._often)

    def _most_frequent(self, often: Counter[str]) -> str:
        if not often:
            return ""
        reason, n = often.most_common(1)[0]
        see = "" if self.file is None else f"; see {self.file}"
        return f"{reason} ({n:,} of them, first at {self._first[reason]}{see})"

    def _count(self, event: EventLike, kind: str, reason: str) -> None:
        self.counts[kind] += 1
        # Only the first of a kind is a warning: there may be millions.
        level = logging.DEBUG if kind in self._reasons else logging.WARNING
        _log.log(level, "%s cannot be used (%s): %s", event.position, kind, reason)
        self._reasons.setdefault(kind, reason)
        if reason not in self._first:
            if len(self._first) >= _MOST_REASONS:
                return
            self._first[reason] = event.position
        self._often[reason] += 1

    def take(self, event: EventLike, kind: str, reason: str) -> None:
        """Handle an event, as the source gave it; it is counted under `kind`, a few words.

        BadEventError: the policy is ``"raise"``, or there are more than `most` bad events.
        """
        if len(reason) > _MOST_CHARACTERS:
            reason = f"{reason[:_MOST_CHARACTERS]}... ({len(reason):,} characters)"
        self._count(event, kind, reason)
        self._keep(event, reason)
        if self._batch is not None:
            self._batch.append((event.position, kind, reason))
        elif not isinstance(self.most, int):
            self._check_share([(self.n_events, event.position, kind, reason)])
        if isinstance(self.most, int) and self.total > self.most:
            allowed = f"{self.most} are allowed"
            self._stop(event.position, self.counts, self._often, allowed, reason)

    @contextmanager
    def in_order(self, batch: Batch) -> Iterator[None]:
        """Return a context in which the bad events of a batch are taken in any order.

        Whether they are too large a share (BadEventError) is decided at its end, in the order of
        the events: payloads that cannot be decoded are taken before the events between them are
        learnt.
        """
        before, self._batch = self.n_events, []
        try:
            yield
            found, self._batch = self._batch, None
        finally:
            self._batch = None
        if found and isinstance(self.most, (float, str)):
            number = _numbers_of(batch, before)
            last = before + len(number)
            numbered = [(number.get(at, last), at, kind, why) for at, kind, why in found]
            self._check_share(sorted(numbered, key=itemgetter(0)))

    def _check_share(self, bad: list[tuple[int, Any, str, str]]) -> None:
        """Stop if the latest bad events, with their numbers in the stream, are too many."""
        # Events behind the one at which the stream stops may have been taken, too.
        counts = self.counts - Counter(kind for _, _, kind, _ in bad)
        often = self._often - Counter(reason for *_, reason in bad)
        for n, position, kind, reason in bad:
            counts[kind] += 1
            often.update([reason] if reason in self._first else [])
            if isinstance(self.most, float):
                # Among the first events, a single bad one would be a large share.
                base = max(n, _LEAST_FOR_SHARE)
                is_much = self.most < 1.0 and counts.total() > self.most * base
                allowed = f"{self.most:.2%} of {base:,} are allowed"
            else:
                is_much = self.most == "half" and 2 * counts.total() > max(n, _LEAST_FOR_HALF)
                allowed = (
                    f"more than half of {n:,} (to go on: --max-errors 100%, in Python most=1.0)"
                )
            if is_much:
                self._stop(position, counts, often, allowed, reason)

    def _stop(
        self, position: Any, counts: Counter[str], often: Counter[str], allowed: str, reason: str
    ) -> None:
        found = ", ".join(f"{n:,} {kind}" for kind, n in counts.most_common())
        raise BadEventError(
            f"{position}: {counts.total():,} events could not be used ({found}), {allowed}; "
            f"the last one: {reason}; most often: {self._most_frequent(often)}"
        )

    def _keep(self, event: EventLike, reason: str) -> None:
        if self.on_error == "raise":
            raise BadEventError(
                f"{event.position}: {reason} (on_error='skip' or 'dead-letter' goes on)"
            )
        if self.on_error == "skip":
            return
        letter = Letter()
        letter |= {
            "position": _as_json(event.position),
            "reason": reason,
            "x": {str(_as_json(name)): _as_json(value) for name, value in event.x.items()},
            "y": _as_json(event.y),
        }
        if (w := getattr(event, "w", 1.0)) != 1.0:
            letter["w"] = _as_json(w)
        letter.message = getattr(event, "message", None)
        if isinstance(event, RefusedEvent):
            letter["payload"] = _payload(getattr(event.message, "value", event.message))
        if callable(self.on_error):
            self.on_error(letter)
            return
        try:
            self._letters.write(letter)
        except OSError as error:
            if not self._has_default_path or self.file is not None:
                raise
            # Nobody asked for a file there: hours of work shall not end because there can be none.
            self.on_error, self.unkept = "skip", f"{error.filename}: {error.strerror}"
            _log.warning("dead letters cannot be kept (%s): they are only counted", self.unkept)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Flush the dead letters to the disk, or call the callable's `flush`, for a checkpoint.

        Returns JSON values for `restore`: the counts, and what tells the file of this run; there
        are no arrays.
        """
        self._flush()
        counts = {"n_events": self.n_events, "counts": dict(self.counts)}
        return counts | {"letters": self._letters.settle()}, {}

    def restore(self, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from what `state` returned; dead letters written later are removed.

        The events that they are about are read again.
        """
        self.n_events, self.counts = values["n_events"], Counter(values["counts"])
        if self.on_error == "dead-letter":
            self._letters.restore(values["letters"])

    def _flush(self) -> None:
        if callable(self.on_error) and (flush := getattr(self.on_error, "flush", None)):
            flush()

    def close(self) -> None:
        """Flush and close the file, or call the callable's `flush`."""
        self._flush()
        self._letters.close()


def _numbers_of(batch: Batch, before: int) -> dict[Any, int]:
    """Return the number in the stream of each position of a batch, good or bad."""
    positions = [batch.position(i) for i in range(len(batch))]
    if batch.rejects:
        # Both are of one partition: their rows are in its order.
        positions = sorted([*positions, *(reject.position for reject in batch.rejects)])
    return {position: before + i for i, position in enumerate(positions, 1)}


def fault_in(error: Exception) -> str:
    """Return why an event cannot be used; raise the error again if it is not about the event."""
    if isinstance(error, BadEventError):
        return str(error)
    if isinstance(error, (StreamSVMError, MemoryError)):
        raise error
    # A classifier of River may raise anything at an odd event.
    return f"{type(error).__name__}: {error}"


def _payload(value: Any) -> str:
    """Return a message as text: bytes beyond UTF-8 are escaped, values are written as JSON."""
    try:
        if isinstance(value, bytes):
            return value.decode("utf-8", "backslashreplace")
        return value if isinstance(value, str) else json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(_as_json(value))


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
