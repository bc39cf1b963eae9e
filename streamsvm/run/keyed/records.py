"""What is written to the state of a key: data with checksums, never code.

A *generation* begins with a snapshot of the model, and goes on with the log of the events learnt
since. It is in one of two *slots*. Those of the models named ``fraud`` are under these names:

    fraud/a     the record of the generation: JSON, see `Generation`
    fraud/a:0   the snapshot: a compressed model file, in parts below the limit of messages
    fraud/a.0   the log, in pages named by the number of their first event: lines of JSON

Engines write a value as a whole or not at all. So a value with a wrong checksum is damage; one that
is not there, or of another generation, is what a commit that came in part leaves.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

from streamsvm.errors import KeyedStateError, NewerModelFileError

FORMAT = 1
PART_BYTES = 512 * 1024
"""Most bytes of a part of a snapshot: brokers take messages of 1 MB by default."""
PAGE_BYTES = 16 * 1024
"""Bytes beyond which a page of the log is not extended: each event copies it."""
MOST_ENTRY_BYTES = 900_000
"""Most bytes of an event in the log: with a page, below what brokers take."""
_MOST_NAMES_BYTES = 100_000  # longer names of features are in each entry, not in the record, too

_MARK = b"s"  # first: Quix Streams takes 8 bytes that begin with zeros for the time of an expiry
_CRC = slice(1, 5)
_BODY = slice(5, None)
_ID_BYTES = 8  # parts and pages begin with the id of their generation

Position = tuple[int, int]
"""Of an event: the offset of its message, and its number among the events of that message."""


class KeyState(Protocol):
    """The state of one key: bytes by name, written with the engine's next commit.

    `get` returns the very object that was set, until it is committed; then an equal one, but
    another object each time. So it can be told what a crash may still take back: `is_pending`.
    """

    def get(self, name: str) -> bytes | None:
        """Return a value; None: there is none."""

    def set(self, name: str, value: bytes) -> None:
        """Set a value."""


def is_pending(state: KeyState, name: str, value: bytes | None) -> bool:
    """Tell whether a value that was got, or set, is not committed yet."""
    return value is not None and state.get(name) is value


def put(state: KeyState, name: str, value: bytes) -> None:
    """Set a value, and refuse a state of which `is_pending` cannot be asked."""
    state.set(name, value)
    if not is_pending(state, name, value):
        raise KeyedStateError(
            "the state does not give back what was set in this commit as it was: in Quix Streams "
            "ttl= for the state of any step of this stream does that, and lets models expire; "
            "leave it out, or give that step a stream (an application) of its own"
        )


@dataclass(frozen=True)
class Generation:
    """The record of a generation."""

    number: int
    base: int | None  # the generation in the other slot, committed before; None: there was none
    life: str  # drawn when the key began: no page of another beginning is taken for one of this
    source: str  # the topic that offsets are of
    offset: int  # of the last event that the snapshot has learnt; -1: none
    index: int  # of that event in its message
    n: int  # how many it has learnt
    common: str  # digest of the model that the key began with
    kind: str  # of that model: the names of its classes
    made_by: dict[str, Any]  # how events become rows: target, features, ...
    names: list[str]  # features of an event: those of the same are logged without names
    n_bytes: int = 0  # of the snapshot as it is written
    parts: int = 0  # that it is in; 0: it is the common model
    sha256: str = ""

    @property
    def position(self) -> Position:
        """That of the last event that the snapshot has learnt."""
        return self.offset, self.index

    def written(self) -> bytes:
        """Return it as bytes."""
        return sealed(_as_json({"format": FORMAT, **asdict(self)}))


def generation_of(record: bytes | None, name: str) -> Generation | None:
    """Return what a record says; None: there is none.

    KeyedStateError: it is damaged. NewerModelFileError: it was written by a later release.
    """
    if record is None:
        return None
    found = _of_json(unsealed(record, name))
    if (written := found.pop("format")) > FORMAT:
        raise NewerModelFileError(
            f"the state of a key was written in format {written}; this release reads up to "
            f"{FORMAT}: upgrade all workers"
        )
    return Generation(**found)


def damaged(what: str) -> KeyedStateError:
    """Return the error of a state that is damaged."""
    return KeyedStateError(
        f"{what}: remove the folder of the worker's state (state_dir), to have it from the "
        "changelog; if that is damaged, take another consumer group, to begin all keys anew"
    )


def id_of(record: bytes) -> bytes:
    """Return what parts and pages of a generation begin with; no others are taken for them."""
    return hashlib.sha256(record).digest()[:_ID_BYTES]


def content_at(state: KeyState, name: str, identity: bytes) -> bytes | None:
    """Return what a part or a page holds; None: there is none of this generation.

    KeyedStateError: it is damaged.
    """
    if (value := state.get(name)) is None:
        return None
    content = unsealed(value, name)
    return content[_ID_BYTES:] if content.startswith(identity) else None


def parts_of(snapshot: bytes) -> list[bytes]:
    """Return a snapshot in parts."""
    return [snapshot[i : i + PART_BYTES] for i in range(0, len(snapshot), PART_BYTES)]


# The log


class Entry(NamedTuple):
    """An event that was learnt, and what was predicted for it before: values are JSON's."""

    position: Position
    x: dict[str, Any]
    y: Any
    answer: Any

    def written(self, names: list[str]) -> bytes:
        """Return it as bytes, for a log whose record has some names of features."""
        features = list(self.x.values()) if list(self.x) == names else self.x
        return _as_json([*self.position, features, self.y, self.answer])


def read_entry(entry: bytes, names: list[str]) -> Entry:
    """Return what `Entry.written` was called of."""
    offset, index, features, y, answer = _of_json(entry)
    x = dict(zip(names, features, strict=True)) if isinstance(features, list) else features
    return Entry((offset, index), x, y, answer)


def names_of(x: dict[str, Any]) -> list[str]:
    """Return the names that a record has of its first event; none if they are very long."""
    names = list(x)
    return names if len(_as_json(names)) <= _MOST_NAMES_BYTES else []


def new_page(identity: bytes, entry: bytes) -> bytes:
    """Return a page of the log with its first entry."""
    return sealed(identity + entry + b"\n")


def extended(page: bytes, entry: bytes) -> bytes:
    """Return a page with one more entry."""
    added = entry + b"\n"
    crc = zlib.crc32(added, int.from_bytes(page[_CRC], "big"))
    return b"".join((_MARK, crc.to_bytes(4, "big"), page[_BODY], added))


def _as_json(value: Any) -> bytes:
    # Not escaped, which may make three bytes of one; halves of surrogate pairs stay what they are.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def _of_json(content: bytes) -> Any:
    return json.loads(content.decode(errors="surrogatepass"))


def sealed(content: bytes) -> bytes:
    """Return a value of the state, with a checksum; parts and pages begin with an identity."""
    return b"".join((_MARK, zlib.crc32(content).to_bytes(4, "big"), content))


def unsealed(value: bytes, name: str) -> bytes:
    """Return what `sealed` made a value of; KeyedStateError: it is damaged."""
    content = value[_BODY]
    if value[:1] != _MARK or zlib.crc32(content).to_bytes(4, "big") != value[_CRC]:
        raise damaged(f"the value {name!r} is damaged, its checksum does not match")
    return content
