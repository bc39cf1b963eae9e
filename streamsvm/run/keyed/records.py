"""What is written to the state of a key: data with checksums, never code.

A *generation* begins with a snapshot of the model, and goes on with the log of the events learnt
since. It is in one of two *slots*, ``a`` and ``b``, under these names:

    a      the record of the generation: JSON, see `Generation`
    a:0    the snapshot: a compressed model file, in parts below the limit of messages
    a.0    the log, in pages named by the number of their first event: lines of JSON
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from streamsvm.errors import NewerModelFileError

FORMAT = 1
PART_BYTES = 512 * 1024
"""Most bytes of a part of a snapshot: brokers take messages of 1 MB by default."""
PAGE_BYTES = 16 * 1024
"""Bytes beyond which a page of the log is not extended: each event copies it."""

_MARK = b"s"  # first: Quix Streams takes 8 bytes that begin with zeros for the time of an expiry
_CRC = slice(1, 5)
_BODY = slice(5, None)
_ID = slice(5, 13)
_ENTRIES = 8  # they begin behind the generation's id


class KeyState(Protocol):
    """The state of one key: bytes by name, written with the engine's next commit.

    `get` returns the very object that was set, until it is committed; then an equal one, but
    another object each time. So it can be told what a crash may still take back.
    """

    def get(self, name: str) -> bytes | None:
        """Return a value; None: there is none."""

    def set(self, name: str, value: bytes) -> None:
        """Set a value."""


@dataclass(frozen=True)
class Generation:
    """The record of a generation."""

    number: int
    base: int | None  # the generation in the other slot, committed before; None: there was none
    source: str  # the topic that offsets are of
    offset: int  # of the last event that the snapshot has learnt; -1: none
    n: int  # how many it has learnt
    common: str  # digest of the model that the key began with
    names: list[str]  # features of an event: those of the same are logged without names
    n_bytes: int = 0  # of the snapshot as it is written; 0: it is the common model
    parts: int = 0  # that it is in
    sha256: str = ""
    file: str | None = None  # the snapshot is there, in place of parts

    def written(self) -> bytes:
        """Return it as bytes."""
        return _sealed(json.dumps({"format": FORMAT, **asdict(self)}).encode())


def generation_of(record: bytes | None) -> Generation | None:
    """Return what a record says; None: there is none, or it is damaged.

    NewerModelFileError: it was written by a later release.
    """
    content = _unsealed(record)
    if content is None:
        return None
    found = json.loads(content)
    if (written := found.pop("format")) > FORMAT:
        raise NewerModelFileError(
            f"the state of a key was written in format {written}; this release reads up to "
            f"{FORMAT}: upgrade all workers"
        )
    return Generation(**found)


def id_of(record: bytes) -> bytes:
    """Return what the pages of a generation begin with, so that no others are taken for them."""
    return hashlib.sha256(record).digest()[:_ENTRIES]


def parts_of(snapshot: bytes) -> list[bytes]:
    """Return a snapshot in parts."""
    return [snapshot[i : i + PART_BYTES] for i in range(0, len(snapshot), PART_BYTES)]


# Pages of the log


def new_page(identity: bytes, entry: bytes) -> bytes:
    """Return a page with its first entry."""
    return _sealed(identity + entry + b"\n")


def extended(page: bytes, entry: bytes) -> bytes:
    """Return a page with one more entry."""
    added = entry + b"\n"
    crc = zlib.crc32(added, int.from_bytes(page[_CRC], "big"))
    return b"".join((_MARK, crc.to_bytes(4, "big"), page[_BODY], added))


def is_page_of(page: bytes | None, identity: bytes) -> bool:
    """Tell whether it is a page of a generation; the slot may have older ones."""
    return page is not None and page[_ID] == identity


def entries_of(page: bytes) -> list[bytes]:
    """Return the entries of a page; none if it is damaged."""
    content = _unsealed(page)
    return [] if content is None else content[_ENTRIES:].splitlines()


def entry_of(offset: int, x: dict[str, Any], y: Any, answer: Any, names: list[str]) -> bytes:
    """Return an event and what was predicted for it; values are JSON's."""
    features = list(x.values()) if list(x) == names else x
    return json.dumps([offset, features, y, answer], separators=(",", ":")).encode()


def read_entry(entry: bytes, names: list[str]) -> tuple[int, dict[str, Any], Any, Any]:
    """Return what `entry_of` was given."""
    offset, features, y, answer = json.loads(entry)
    x = dict(zip(names, features, strict=True)) if isinstance(features, list) else features
    return offset, x, y, answer


def _sealed(content: bytes) -> bytes:
    return b"".join((_MARK, zlib.crc32(content).to_bytes(4, "big"), content))


def _unsealed(record: bytes | None) -> bytes | None:
    if record is None or zlib.crc32(record[_BODY]).to_bytes(4, "big") != record[_CRC]:
        return None
    return record[_BODY]
