"""What the state of a key holds: the last snapshot, and the log of the events learnt since.

Whatever part of the writes of a commit is there after a crash, in whatever order they came, and
whenever they appear, the model is restored as it was at some event not before the last commit; the
events after it come again:

* A snapshot goes to the other slot if its base, the generation in use, is committed. If not, all of
  that is of this commit, and it is overwritten: the base in the other slot is never touched.
* Pages of the log only become longer. Each names its generation, and what the log holds is settled
  by the stream alone: a page of a commit that was lost in part is true, too.
* Restored is the generation whose snapshot and log reach furthest. It may be the older one: a
  snapshot of a commit that was lost may appear in the changelog when later offsets are committed,
  and the log of its base has gone on meanwhile.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from streamsvm.errors import KeyedStateError, UnwritableModelFileError
from streamsvm.model_files import replacing
from streamsvm.run.keyed import records
from streamsvm.run.keyed.records import Entry, Generation, KeyState, Position

_FASTEST = 1  # of zlib: half the bytes, at 50 MB/s
_NO_POSITION = -1, 0

Slots = tuple[str, str]
"""The names of the two slots."""


class Snapshots:
    """Writes and reads snapshots: in the state, or in a folder that all workers have."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def described(self, content: bytes, life: str, number: int) -> dict[str, Any]:
        """Return what the record of a generation says of its snapshot."""
        digest = hashlib.sha256(content).hexdigest()
        about = {"n_bytes": len(content), "sha256": digest}
        if self.folder is not None:
            return about | {"file": f"{life}-{number}-{digest[:16]}.svm.z"}
        return about | {"parts": len(records.parts_of(content))}

    def write(self, state: KeyState, slot: str, record: bytes, of: Generation, it: bytes) -> None:
        """Write a snapshot, before its record is: a file that a record names is there."""
        if of.file is not None:
            assert self.folder is not None
            replacing.write(self.folder / of.file, it)
            return
        identity = records.id_of(record)
        for i, part in enumerate(records.parts_of(it)):
            state.set(f"{slot}:{i}", records.sealed(identity, part))

    def read(self, state: KeyState, slot: str, record: bytes, of: Generation) -> bytes | None:
        """Return the model file of a generation; None: its commit came in part."""
        if of.file is not None:
            content = self._read_file(of.file)
        else:
            identity = records.id_of(record)
            parts = [records.content_at(state, f"{slot}:{i}", identity) for i in range(of.parts)]
            content = b"".join(part for part in parts if part is not None)
            if None in parts:
                return None
        if hashlib.sha256(content).hexdigest() != of.sha256:
            if of.file is None:
                raise records.damaged(f"the snapshot in {slot!r} is damaged")
            raise KeyedStateError(
                f"the snapshot {of.file} is damaged: restore that file in snapshot_dir= from a "
                "copy, or take another consumer group to begin all keys anew"
            )
        return zlib.decompress(content)

    def _read_file(self, name: str) -> bytes:
        if self.folder is None:
            raise KeyedStateError(
                f"the snapshot of a key is the file {name}: give its folder as snapshot_dir="
            )
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise KeyedStateError(
                f"the snapshot {self.folder / name} of a key is gone: restore the file, or take "
                "another consumer group to begin all keys anew"
            ) from None

    def remove(self, of: Generation) -> None:
        """Remove the file of a generation that no key goes back to."""
        if of.file is not None and self.folder is not None:
            (self.folder / of.file).unlink(missing_ok=True)


@dataclass
class KeyLog:
    """The generation of a key that is in use, and its log, as this process knows them."""

    slot: str
    other_slot: str
    record: bytes
    generation: Generation
    is_committed: bool  # whether the record is
    other: bytes | None  # the record in the other slot
    position: Position  # of the last event learnt
    n: int = 0  # entries of the log
    log_bytes: int = 0
    page: bytes | None = None  # the last page of the log, whose first entry is number `first`
    first: int = 0
    is_closed: bool = False  # whether that is committed: another one is begun
    answers: dict[Position, Any] | None = field(default=None, repr=False)

    @property
    def identity(self) -> bytes:
        """What pages of this generation begin with."""
        return records.id_of(self.record)

    def is_current(self, state: KeyState) -> bool:
        """Tell whether the state is as this process left it: nobody else has learnt since."""
        name = self.slot if self.page is None else f"{self.slot}.{self.first}"
        last = self.record if self.page is None else self.page
        if records.is_pending(state, name, last):
            return True  # nobody can have been between
        if state.get(name) != last or state.get(self.other_slot) != self.other:
            return False
        if records.content_at(state, f"{self.slot}.{self.n}", self.identity) is not None:
            return False
        self.is_committed = self.is_closed = True
        return True

    def append(self, state: KeyState, entry: bytes, position: Position) -> None:
        """Add an event that was learnt to the log."""
        if self.page is None or self.is_closed or len(self.page) > records.PAGE_BYTES:
            self.first, self.is_closed = self.n, False
            self.page = records.new_page(self.identity, entry)
            records.put(state, f"{self.slot}.{self.first}", self.page)
        else:
            self.page = records.extended(self.page, entry)
            state.set(f"{self.slot}.{self.first}", self.page)
        self.n += 1
        self.log_bytes += len(entry)
        self.position, self.answers = position, None

    def answer(self, state: KeyState, position: Position) -> Any:
        """Return what was predicted for an event that was learnt; None: it is not kept."""
        if self.answers is None:
            self.answers = {}
            for slot, record in ((self.other_slot, self.other), (self.slot, self.record)):
                generation = records.generation_of(record, slot)
                if record is not None and generation is not None:
                    for page in _pages(state, slot, records.id_of(record)):
                        for line in page:
                            entry = records.read_entry(line, generation.names)
                            self.answers[entry.position] = entry.answer
        return self.answers.get(position)


def begin(state: KeyState, slots: Slots, **about: Any) -> KeyLog:
    """Begin the log of a new key; `about` are fields of its `Generation`."""
    offset, index = _NO_POSITION
    new = Generation(
        number=0, base=None, life=secrets.token_hex(16), offset=offset, index=index, n=0, **about
    )
    record = new.written()
    records.put(state, slots[0], record)
    return KeyLog(*slots, record, new, False, state.get(slots[1]), _NO_POSITION)


def snapshot(log: KeyLog, state: KeyState, snapshots: Snapshots, model: bytes) -> KeyLog:
    """Write a snapshot of the model; return the log that begins with it."""
    old = log.generation
    slots = (log.slot, log.other_slot)
    slot, other_slot = reversed(slots) if log.is_committed else slots
    before = records.generation_of(state.get(slot), slot)
    # Numbers of a generation are never those of the one in the same slot before.
    number = max(old.number, -1 if before is None else before.number) + 1
    content = zlib.compress(model, _FASTEST)
    new = Generation(
        number=number,
        base=old.number if log.is_committed else old.base,
        life=old.life,
        source=old.source,
        offset=log.position[0],
        index=log.position[1],
        n=old.n + log.n,
        common=old.common,
        kind=old.kind,
        made_by=old.made_by,
        names=old.names,
        **snapshots.described(content, old.life, number),
    )
    record = new.written()
    snapshots.write(state, slot, record, new, content)
    records.put(state, slot, record)
    if before is not None and before.file != new.file:
        snapshots.remove(before)
    other = log.record if log.is_committed else log.other
    return KeyLog(slot, other_slot, record, new, False, other, log.position)


class _Kept(NamedTuple):
    """A generation that is in the state, and its log."""

    slot: str
    record: bytes
    generation: Generation
    pages: list[list[bytes]]

    @property
    def end(self) -> Position:
        """The position of the last event that snapshot and log hold."""
        if not self.pages:
            return self.generation.position
        return records.read_entry(self.pages[-1][-1], self.generation.names).position


Learn = Callable[[Generation, bytes | None, Iterator[Entry]], Any]


def restore(
    state: KeyState, slots: Slots, snapshots: Snapshots, learn: Learn
) -> tuple[KeyLog, Any] | None:
    """Return the log in a state, and what `learn` makes of its snapshot and events.

    `learn` is given None for a snapshot that is the common model. None: nothing of the key was ever
    committed. KeyedStateError: it is there, but damaged.
    """
    found = [kept for slot in slots if (kept := _kept_in(state, slot)) is not None]
    found.sort(key=lambda kept: (kept.end, kept.generation.number), reverse=True)
    for kept in found:
        slot, record, generation, _ = kept
        model = None
        if generation.n_bytes and (model := snapshots.read(state, *kept[:3])) is None:
            continue
        other_slot = slots[slot == slots[0]]
        is_committed = not records.is_pending(state, slot, record)
        other = state.get(other_slot)
        log = KeyLog(slot, other_slot, record, generation, is_committed, other, generation.position)
        return log, learn(generation, model, _entries(log, kept.pages, state))
    if all(kept.generation.base is None for kept in found):
        return None  # the first commit of the key came in part, if at all
    where = ", ".join(kept.slot for kept in found)
    raise records.damaged(f"no snapshot of the key is there as a whole ({where})")


def _kept_in(state: KeyState, slot: str) -> _Kept | None:
    record = state.get(slot)
    generation = records.generation_of(record, slot)
    if record is None or generation is None:
        return None
    return _Kept(slot, record, generation, list(_pages(state, slot, records.id_of(record))))


def _entries(log: KeyLog, pages: list[list[bytes]], state: KeyState) -> Iterator[Entry]:
    """Yield the events of the log, which is at its end then."""
    for page in pages:
        log.first = log.n
        for line in page:
            yield (entry := records.read_entry(line, log.generation.names))
            log.n += 1
            log.log_bytes += len(line)
            log.position = entry.position
    if pages:
        name = f"{log.slot}.{log.first}"
        log.page = state.get(name)
        log.is_closed = not records.is_pending(state, name, log.page)


def _pages(state: KeyState, slot: str, identity: bytes) -> Iterator[list[bytes]]:
    """Yield the entries of each page of the log."""
    n = 0
    while (page := records.content_at(state, f"{slot}.{n}", identity)) is not None:
        entries = page.splitlines()
        yield entries
        n += len(entries)


def check_folder(folder: Path) -> None:
    """Refuse a folder of snapshots that cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing.replacement(folder / ".streamsvm") as file:
            file.write(b"")
    except OSError as error:
        raise UnwritableModelFileError(
            f"snapshot_dir={str(folder)!r}: {error.strerror or error}; use a folder that all "
            "workers can read and write"
        ) from error
