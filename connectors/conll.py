"""Sentences from text files in columns, as the CoNLL tasks have them: a token a line."""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from connectors.batch import Event, Position, Reject, shown
from connectors.errors import SnapshotError
from connectors.identity import check_settings
from connectors.sentences import MOST_TOKENS, SENTENCES, SentenceBatch
from connectors.source import BaseSource, Snapshot

_HEAD = _CHUNK = 2**16
_MOST_BYTES = 16_000_000
_MOST_SHOWN = 100
_DOCUMENT = "-DOCSTART-"


class _Line(NamedTuple):
    """A line that is not blank."""

    number: int  # from 1
    text: str
    is_utf8: bool


class TextLines:
    r"""Iterates over the lines of a binary file, which end in ``\n``, ``\r\n`` or ``\r``.

    A line of more than `most` bytes is given in parts. `byte` is where the next line begins.
    """

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self.byte = 0

    def seek(self, byte: int) -> None:
        """Go on with the line that begins at a byte."""
        self._file.seek(byte)
        self._lines.clear()
        self._rest = b""
        self.byte = byte

    def __iter__(self) -> Iterator[bytes]:
        """Return the lines, with their ends."""
        while self._lines or self._read():
            line = self._lines.popleft()
            self.byte += len(line)
            yield line

    def _read(self) -> bool:
        """Read at least one line; False: there is none."""
        held = bytearray(self._rest)
        self._rest = b""
        while chunk := self._file.read(_CHUNK):
            held += chunk
            if b"\n" in chunk or b"\r" in chunk or len(held) > self._most:
                self._lines.extend(bytes(held).splitlines(keepends=True))
                # Of the last line the end is still to come, or the second half of "\r\n" may be.
                is_whole = held.endswith(b"\n")
                if not held.endswith((b"\r", b"\n")):
                    is_whole = len(self._lines[-1]) > self._most
                held = bytearray() if is_whole else bytearray(self._lines.pop())
                if self._lines:
                    break
        self._rest = bytes(held)
        if not self._lines:
            self._lines.extend(self._rest.splitlines(keepends=True))
            self._rest = b""
        return bool(self._lines)


class ConllSource(BaseSource):
    r"""Sentences and their labels from a text file; blank lines separate sentences.

    A line has the columns of one token, separated by white space. The last one, or the one given,
    is the label; the others are the token, as a list of strings. A line whose first column is
    ``-DOCSTART-``, which begins a document in the files of CoNLL-2003, is as a blank line. The file
    is read line by line, however long it is; sentences have at most 100,000 tokens and 16 MB. One
    that is longer, or has a line of another number of columns than its first one, without a column
    of the label, or not in UTF-8, is a `Reject`.

    A checkpoint goes on with a file that has become longer, too.

    Parameters
    ----------
    path
        The file, UTF-8.
    label
        The column of the label, from 0; -1, the default: the last one. None: there are no labels,
        all columns are the token's, and labels are None.
    separator
        What separates columns; None, the default: any white space.

    Raises
    ------
    FileNotFoundError
        There is no such file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.txt")
    ...     _ = path.write_text("the DT B-NP\ndog NN I-NP\n\nbarks VB B-VP\n")
    ...     with ConllSource(path) as source:
    ...         for tokens, labels, position in source.events():
    ...             print(tokens, labels, position.row)
    [['the', 'DT'], ['dog', 'NN']] ['B-NP', 'I-NP'] 0
    [['barks', 'VB']] ['B-VP'] 1

    """

    batch_size = SENTENCES
    _kind = "ConllSource"

    def __init__(
        self, path: str | Path, label: int | None = -1, separator: str | None = None
    ) -> None:
        self._path, self._name = Path(path), str(path)
        self._label, self._separator = label, separator
        self._file = self._path.open("rb")
        self._lines = TextLines(self._file, _MOST_BYTES)
        self._row = self._line = 0

    @property
    def n_rows(self) -> None:
        """None: the number of sentences is not known before they are read."""

    def events(self) -> Iterator[Any]:
        """Return the unread events, one by one."""
        while (found := self._sentence())[1]:
            position = Position(None, self._row)
            self._row += 1
            yield self._event(*found, position)

    def _batches(self, size: int) -> Iterator[Any]:
        events = self.events()
        while items := list(islice(events, size)):
            yield SentenceBatch(items)

    def _sentence(self) -> tuple[list[_Line], int]:
        """Return the lines of the next sentence, if it is not too long, and how many it has."""
        found: list[_Line] = []
        n = n_bytes = 0
        for raw in self._lines:
            self._line += 1
            line = self._read(raw)
            if line is not None:
                n, n_bytes = n + 1, n_bytes + len(raw)
                if n <= MOST_TOKENS and n_bytes <= _MOST_BYTES:
                    found.append(line)
            elif n:
                break
        return found, n

    def _read(self, raw: bytes) -> _Line | None:
        """Return a line; None: it is blank, or begins a document."""
        try:
            text, is_utf8 = raw.decode(), True
        except UnicodeDecodeError:
            text, is_utf8 = raw.decode("utf-8", "backslashreplace"), False
        text = text.strip("\r\n\ufeff")
        if not text.strip():
            return None
        if text.startswith(_DOCUMENT) and text.split(self._separator)[0] == _DOCUMENT:
            return None
        return _Line(self._line, text, is_utf8)

    def _event(self, lines: list[_Line], n: int, position: Position) -> Event | Reject:
        """Return the sentence of some lines; `n` is their number, also of those left out."""
        if n > len(lines):
            reason = (
                f"{self.name}, up to line {self._line}: a sentence of {n:,} tokens; "
                f"{MOST_TOKENS:,} tokens and {_MOST_BYTES // 10**6} MB are accepted: are there no "
                "blank lines?"
            )
            first = "\n".join(line.text for line in lines[:_MOST_SHOWN])
            return Reject(position, "too long", reason, shown(first))
        rows = [line.text.split(self._separator) for line in lines]
        for line, columns in zip(lines, rows, strict=True):
            wrong = self._wrong(line, len(columns), len(rows[0]))
            if wrong is not None:
                kind, reason = wrong
                reason = f"{self.name}, line {line.number}: {reason}"
                return Reject(position, kind, reason, shown("\n".join(line.text for line in lines)))
        labels = None if self._label is None else [columns.pop(self._label) for columns in rows]
        return Event(rows, labels, position)  # type: ignore[arg-type]

    def _wrong(self, line: _Line, n: int, n_first: int) -> tuple[str, str] | None:
        """Return why a line of n columns cannot be used, as kind and reason; None: it can be."""
        if not line.is_utf8:
            return "not UTF-8", f"not UTF-8: {line.text!r:.100}"
        if n != n_first:
            return "unequal columns", f"{n} columns, and {n_first} in the sentence's first line"
        if self._label is not None and not -n <= self._label < n:
            said = f"no column {self._label}, there are {n}: the labels are in another one"
            return "no label", said
        return None

    def _position(self) -> Snapshot:
        size = self._path.stat().st_size
        return {
            "row": self._row,
            "line": self._line,
            "byte": self._lines.byte,
            "size": size,
            "head": self._digest(size),
            "label": self._label,
            "separator": self._separator,
        }

    def _digest(self, size: int) -> str:
        """Return a digest of the beginning of a file of so many bytes, which tells another one."""
        with self._path.open("rb") as file:
            return hashlib.sha256(file.read(min(size, _HEAD))).hexdigest()

    def _resume(self, snapshot: Mapping[str, Any]) -> None:
        numbers: list[Any] = [snapshot.get(name) for name in ("row", "line", "byte", "size")]
        if not all(type(n) is int and n >= 0 for n in numbers):
            raise SnapshotError(f"not a snapshot of a ConllSource: {dict(snapshot)}")
        row, line, byte, size = numbers
        if self._path.stat().st_size < size or snapshot.get("head") != self._digest(size):
            raise SnapshotError(
                f"the snapshot is of another file than {self.name}: give it that file again, or "
                "start anew"
            )
        check_settings(snapshot, {"label": self._label, "separator": self._separator})
        self._row, self._line = row, line
        self._lines.seek(byte)

    def rewind(self) -> None:
        """Go back to the start."""
        self._lines.seek(0)
        self._row = self._line = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
