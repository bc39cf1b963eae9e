"""The history of a key in its state: the last snapshot, and the log of the events learnt since.

Whatever part of the writes of a commit is there after a crash, in whatever order they came, the
model is restored as it was at some event not before that commit; the events after it come again:

* A snapshot goes to the other slot if its base, the generation in use, is committed. If not, all of
  that is of this commit, and it is overwritten: the base in the other slot is never touched.
* Pages of the log only become longer. Each names its generation, and what the log holds is settled
  by the stream alone: a page of a commit that was lost in part is true, too.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamsvm.errors import KeyedStateError, UnwritableModelFileError
from streamsvm.model_files import replacing
from streamsvm.run.keyed import records
from streamsvm.run.keyed.records import Generation, KeyState

_OTHER = {"a": "b", "b": "a"}
_FASTEST = 1  # of zlib: half the bytes, at 50 MB/s


class Snapshots:
    """Writes and reads snapshots: in the state, or in a folder that all workers have.

    `common` are the models that keys begin with, as files, by their digests.
    """

    def __init__(self, common: Mapping[str, bytes], folder: Path | None) -> None:
        self.common, self.folder = common, folder

    def write(self, state: KeyState, slot: str, model: bytes, name: str) -> dict[str, Any]:
        """Write a model file to a slot; return what its record says of it."""
        content = zlib.compress(model, _FASTEST)
        digest = hashlib.sha256(content).hexdigest()
        about = {"n_bytes": len(content), "sha256": digest}
        if self.folder is not None:
            file = f"{name}-{digest[:16]}.svm.z"
            replacing.write(self.folder / file, content)
            return about | {"file": file}
        parts = records.parts_of(content)
        for i, part in enumerate(parts):
            state.set(f"{slot}:{i}", part)
        return about | {"parts": len(parts)}

    def read(self, state: KeyState, slot: str, of: Generation) -> bytes | None:
        """Return the model file of a generation; None: it is not there as a whole."""
        if not of.n_bytes:
            return self.common.get(of.common)
        if of.file is not None:
            if self.folder is None:
                raise KeyedStateError(
                    f"the snapshot of a key is the file {of.file}: give its folder as snapshots="
                )
            path = self.folder / of.file
            content = path.read_bytes() if path.exists() else b""
        else:
            content = b"".join(state.get(f"{slot}:{i}") or b"" for i in range(of.parts))
        if hashlib.sha256(content).hexdigest() != of.sha256:
            return None
        return zlib.decompress(content)

    def remove(self, of: Generation | None) -> None:
        """Remove the file of a generation that no key goes back to."""
        if of is not None and of.file is not None and self.folder is not None:
            (self.folder / of.file).unlink(missing_ok=True)


@dataclass
class History:
    """Where the history of a key is, as this process knows it."""

    slot: str
    record: bytes
    generation: Generation
    is_committed: bool  # whether the record is
    other: bytes | None  # the record in the other slot
    offset: int  # of the last event learnt
    n: int = 0  # entries of the log
    log_bytes: int = 0
    page: bytes | None = None  # the last page of the log, whose first entry is number `first`
    first: int = 0
    is_closed: bool = False  # whether that is committed: another one is begun
    answers: dict[int, Any] | None = field(default=None, repr=False)

    @property
    def identity(self) -> bytes:
        """What pages of this generation begin with."""
        return records.id_of(self.record)

    def is_current(self, state: KeyState) -> bool:
        """Tell whether the state is as this process left it: nobody else has learnt since."""
        name = self.slot if self.page is None else f"{self.slot}.{self.first}"
        last = self.record if self.page is None else self.page
        found = state.get(name)
        if found is last:
            return True  # not committed yet: nobody can have been between
        if found != last or state.get(_OTHER[self.slot]) != self.other:
            return False
        if records.is_page_of(state.get(f"{self.slot}.{self.n}"), self.identity):
            return False
        self.is_committed = self.is_closed = True
        return True

    def append(self, state: KeyState, entry: bytes, offset: int) -> None:
        """Add an event that was learnt to the log."""
        if self.page is None or self.is_closed or len(self.page) > records.PAGE_BYTES:
            self.first, self.is_closed = self.n, False
            self.page = records.new_page(self.identity, entry)
        else:
            self.page = records.extended(self.page, entry)
        state.set(f"{self.slot}.{self.first}", self.page)
        self.n += 1
        self.log_bytes += len(entry)
        self.offset, self.answers = offset, None

    def answer(self, state: KeyState, offset: int) -> Any:
        """Return what was predicted for an event that was learnt; None: it is not kept."""
        if self.answers is None:
            self.answers = {}
            for slot, record in ((_OTHER[self.slot], self.other), (self.slot, self.record)):
                generation = records.generation_of(record)
                if record is not None and generation is not None:
                    for page in _pages(state, slot, records.id_of(record)):
                        for entry in records.entries_of(page):
                            at, _, _, answer = records.read_entry(entry, generation.names)
                            self.answers[at] = answer
        return self.answers.get(offset)


def begin(state: KeyState, source: str, common: str, names: list[str]) -> History:
    """Begin the history of a new key."""
    generation = Generation(0, None, source, -1, 0, common, names)
    record = generation.written()
    state.set("a", record)
    return History("a", record, generation, False, state.get("b"), -1)


def snapshot(
    history: History, state: KeyState, snapshots: Snapshots, model: bytes, file: str
) -> History:
    """Write a snapshot of the model; return the history that begins with it."""
    old = history.generation
    slot = _OTHER[history.slot] if history.is_committed else history.slot
    before = records.generation_of(state.get(slot))
    # Numbers of a generation are never those of the one in the same slot before.
    number = max(old.number, -1 if before is None else before.number) + 1
    about = snapshots.write(state, slot, model, f"{file}-{number}")
    new = Generation(
        number,
        old.number if history.is_committed else old.base,
        old.source,
        history.offset,
        old.n + history.n,
        old.common,
        old.names,
        **about,
    )
    record = new.written()
    state.set(slot, record)
    if before is not None and before.file != new.file:
        snapshots.remove(before)
    other = history.record if history.is_committed else history.other
    return History(slot, record, new, False, other, history.offset)


def restore(
    state: KeyState, snapshots: Snapshots, learn: Callable[[bytes, Iterator[Any]], Any]
) -> tuple[History, Any] | None:
    """Return the history in a state, and what `learn` makes of its snapshot and events.

    None: nothing of the key was ever committed. KeyedStateError: it is there, but damaged, or began
    with a common model that is not known.
    """
    found = {slot: state.get(slot) for slot in _OTHER}
    of = {slot: records.generation_of(record) for slot, record in found.items()}
    known = [(slot, one) for slot, one in of.items() if one is not None]
    for slot, generation in sorted(known, key=lambda item: -item[1].number):
        record = found[slot]
        assert record is not None
        if (model := snapshots.read(state, slot, generation)) is not None:
            # What is not committed is one object as often as it is asked for.
            is_committed = state.get(slot) is not state.get(slot)
            other = found[_OTHER[slot]]
            history = History(slot, record, generation, is_committed, other, generation.offset)
            return history, learn(model, _entries(history, state))
        if not generation.n_bytes:
            raise KeyedStateError(
                f"a key began with a common model that is not given (its digest is "
                f"{generation.common[:12]}..., given: "
                f"{', '.join(sorted(one[:12] for one in snapshots.common))}): give it, too, as "
                "earlier=[...], or use another consumer group to begin all keys anew"
            )
        if generation.base is None:
            return None  # the first commit of the key was lost in part
    if known:
        where = [one.file or f"in slot {slot}" for slot, one in known]
        raise KeyedStateError(
            f"no snapshot of the key is there as a whole ({', '.join(where)}): its state was "
            "altered, or files of snapshots= were removed; restore them"
        )
    return None


def _entries(history: History, state: KeyState) -> Iterator[tuple[int, dict[str, Any], Any, Any]]:
    """Yield the events of the log; the history is at its end then."""
    names, identity = history.generation.names, history.identity
    for page in _pages(state, history.slot, identity):
        entries = records.entries_of(page)
        history.first, history.page = history.n, page
        for entry in entries:
            yield (found := records.read_entry(entry, names))
            history.n += 1
            history.log_bytes += len(entry)
            history.offset = found[0]
    if history.page is not None:
        name = f"{history.slot}.{history.first}"
        history.is_closed = state.get(name) is not state.get(name)
        history.page = state.get(name)


def _pages(state: KeyState, slot: str, identity: bytes) -> Iterator[bytes]:
    n = 0
    while records.is_page_of(page := state.get(f"{slot}.{n}"), identity):
        assert page is not None
        if not (entries := records.entries_of(page)):
            return
        yield page
        n += len(entries)


def check_folder(folder: Path) -> None:
    """Refuse a folder of snapshots that cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing.replacement(folder / ".streamsvm") as file:
            file.write(b"")
    except OSError as error:
        raise UnwritableModelFileError(
            f"snapshots={str(folder)!r}: {error.strerror or error}; use a folder that all workers "
            "can read and write"
        ) from error
