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
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from streamsvm.run.keyed import records
from streamsvm.run.keyed.records import Entry, Generation, KeyState, Position

_FASTEST = 1  # of zlib: half the bytes, at 50 MB/s

Slots = tuple[str, str]
"""The names of the two slots."""


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
            for slot in (self.other_slot, self.slot):
                if (kept := _kept_in(state, slot)) is not None:
                    self.answers |= {entry.position: entry.answer for entry in kept.entries()}
        return self.answers.get(position)


def begin(state: KeyState, slots: Slots, **about: Any) -> KeyLog:
    """Begin the log of a new key; `about` are fields of its `Generation`."""
    life = secrets.token_hex(16)
    new = Generation(number=0, base=None, life=life, offset=-1, index=0, n=0, **about)
    record = new.written()
    records.put(state, slots[0], record)
    return KeyLog(*slots, record, new, False, state.get(slots[1]), new.position)


def snapshot(log: KeyLog, state: KeyState, model: bytes) -> KeyLog:
    """Write a snapshot of the model; return the log that begins with it."""
    old = log.generation
    slot, other_slot = log.slot, log.other_slot
    base, other = old.base, log.other
    if log.is_committed:
        slot, other_slot, base, other = other_slot, slot, old.number, log.record
    before = records.generation_of(state.get(slot), slot)
    content = zlib.compress(model, _FASTEST)
    parts = records.parts_of(content)
    new = replace(
        old,
        # Never that of the generation in the same slot before.
        number=max(old.number, -1 if before is None else before.number) + 1,
        base=base,
        offset=log.position[0],
        index=log.position[1],
        n=old.n + log.n,
        parts=len(parts),
        n_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    record = new.written()
    identity = records.id_of(record)
    for i, part in enumerate(parts):
        state.set(f"{slot}:{i}", records.sealed(identity + part))
    records.put(state, slot, record)
    return KeyLog(slot, other_slot, record, new, False, other, log.position)


class _Kept(NamedTuple):
    """A generation that is in the state, and the pages of its log."""

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

    def entries(self) -> Iterator[Entry]:
        """Yield the events of the log."""
        for page in self.pages:
            for line in page:
                yield records.read_entry(line, self.generation.names)

    def model(self, state: KeyState) -> bytes | None:
        """Return the model file of the snapshot; None: its commit came in part."""
        identity = records.id_of(self.record)
        names = [f"{self.slot}:{i}" for i in range(self.generation.parts)]
        parts = [records.content_at(state, name, identity) for name in names]
        content = b"".join(part for part in parts if part is not None)
        if None in parts:
            return None
        if hashlib.sha256(content).hexdigest() != self.generation.sha256:
            raise records.damaged(f"the snapshot in {self.slot!r} is damaged")
        return zlib.decompress(content)

    def log(self, state: KeyState, other_slot: str) -> KeyLog:
        """Return the log at its end."""
        slot, other = self.slot, state.get(other_slot)
        is_committed = not records.is_pending(state, slot, self.record)
        log = KeyLog(slot, other_slot, self.record, self.generation, is_committed, other, self.end)
        log.n = sum(map(len, self.pages))
        log.log_bytes = sum(len(line) for page in self.pages for line in page)
        if self.pages:
            log.first = log.n - len(self.pages[-1])
            log.page = state.get(name := f"{slot}.{log.first}")
            log.is_closed = not records.is_pending(state, name, log.page)
        return log


Learn = Callable[[Generation, bytes | None, Iterator[Entry]], Any]


def restore(state: KeyState, slots: Slots, learn: Learn) -> tuple[KeyLog, Any] | None:
    """Return the log in a state, and what `learn` makes of its snapshot and events.

    `learn` is given None for a snapshot that is the common model. None: nothing of the key was ever
    committed. KeyedStateError: it is there, but damaged.
    """
    found = [kept for slot in slots if (kept := _kept_in(state, slot)) is not None]
    found.sort(key=lambda kept: (kept.end, kept.generation.number), reverse=True)
    for kept in found:
        model = None
        if kept.generation.parts and (model := kept.model(state)) is None:
            continue
        learnt = learn(kept.generation, model, kept.entries())
        return kept.log(state, slots[kept.slot == slots[0]]), learnt
    if all(kept.generation.base is None for kept in found):
        return None  # the first commit of the key came in part, if at all
    where = ", ".join(kept.slot for kept in found)
    raise records.damaged(f"no snapshot of the key is there as a whole ({where})")


def _kept_in(state: KeyState, slot: str) -> _Kept | None:
    record = state.get(slot)
    generation = records.generation_of(record, slot)
    if record is None or generation is None:
        return None
    identity, pages, n = records.id_of(record), [], 0
    while (page := records.content_at(state, f"{slot}.{n}", identity)) is not None:
        pages.append(page.splitlines())
        n += len(pages[-1])
    return _Kept(slot, record, generation, pages)
