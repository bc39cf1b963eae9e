"""Sentences from text files in columns, as the CoNLL tasks have them: a token a line."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connectors.errors import NotReadableError, SnapshotError
from connectors.source import Closing, Event, Position, Snapshot

_HEAD = 2**16


class ConllSource(Closing):
    r"""Sentences and their labels from a text file; blank lines separate sentences.

    A line has the columns of one token, separated by white space. The last one, or the one given,
    is the label; the others are the token, as a list of strings. The file is read line by line,
    however long it is.

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
    >>> Path("a.txt").write_text("the DT B-NP\ndog NN I-NP\n\nbarks VB B-VP\n")
    39
    >>> with ConllSource("a.txt") as source:
    ...     for tokens, labels, position in source.events():
    ...         print(tokens, labels, position.row)
    [['the', 'DT'], ['dog', 'NN']] ['B-NP', 'I-NP'] 0
    [['barks', 'VB']] ['B-VP'] 1

    """

    def __init__(
        self, path: str | Path, label: int | None = -1, separator: str | None = None
    ) -> None:
        self._path = Path(path)
        self._label, self._separator = label, separator
        self._file = self._path.open("rb")
        self._row = self._line = 0

    @property
    def name(self) -> str:
        """The file's path."""
        return str(self._path)

    @property
    def n_rows(self) -> int | None:
        """None: the number of sentences is not known before they are read."""
        return None

    def events(self) -> Iterator[Event]:
        """Return the unread sentences.

        Returns
        -------
        Iterator[Event]
            The tokens, lists of strings, as x; a list of labels, or None, as y; and the number of
            the sentence.

        Raises
        ------
        NotReadableError
            A line has another number of columns than the sentence's first one, no column of the
            label, or is no UTF-8.

        """
        while lines := self._sentence():
            tokens = [columns for _, columns in lines]
            labels = None
            if self._label is not None:
                labels = [self._taken(number, columns) for number, columns in lines]
            width = len(tokens[0])
            for number, columns in lines:
                if len(columns) != width:
                    raise NotReadableError(
                        f"{self.name}, line {number}: {len(columns)} columns beside the label, "
                        f"and {width} in the first line of the sentence"
                    )
            position = Position(None, self._row)
            self._row += 1
            yield Event(tokens, labels, position)  # type: ignore[arg-type]

    def _sentence(self) -> list[tuple[int, list[str]]]:
        """Return the numbers and columns of the lines of the next sentence; [] at the end."""
        found: list[tuple[int, list[str]]] = []
        for raw in self._file:
            self._line += 1
            try:
                line = raw.decode().strip("\r\n\ufeff")
            except UnicodeDecodeError as error:
                raise NotReadableError(
                    f"{self.name}, line {self._line}: no UTF-8 ({error.reason})"
                ) from error
            if line.strip():
                found.append((self._line, line.split(self._separator)))
            elif found:
                break
        return found

    def _taken(self, number: int, columns: list[str]) -> str:
        """Remove the label from the columns of a line, and return it."""
        try:
            return columns.pop(self._label)  # type: ignore[arg-type]
        except IndexError as error:
            raise NotReadableError(
                f"{self.name}, line {number}: no column {self._label}, "
                f"there are {len(columns)}: set label to that of the labels"
            ) from error

    def snapshot(self) -> Snapshot:
        """Return the position of the next unread sentence.

        Returns
        -------
        Snapshot
            JSON values, ready for ``json.dumps``.

        """
        return {
            "source": "ConllSource",
            "row": self._row,
            "line": self._line,
            "byte": self._file.tell(),
            "head": self._digest(min(self._file.tell(), _HEAD)),
            "label": self._label,
        }

    def _digest(self, n: int) -> str:
        """Return a digest of the first n bytes, which tells another file of the same name."""
        with self._path.open("rb") as file:
            return hashlib.sha256(file.read(n)).hexdigest()

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot.

        Parameters
        ----------
        snapshot
            The return value of `snapshot`, of this or an earlier process.

        Raises
        ------
        SnapshotError
            The snapshot is of another source, or the file's beginning is another one.

        """
        row, line, byte = (_whole(snapshot.get(name)) for name in ("row", "line", "byte"))
        if snapshot.get("source") != "ConllSource" or min(row, line, byte) < 0:
            raise SnapshotError(f"not a snapshot of a ConllSource: {dict(snapshot)}")
        same = self._path.stat().st_size >= byte
        same = same and snapshot.get("head") == self._digest(min(byte, _HEAD))
        if not same or snapshot.get("label") != self._label:
            raise SnapshotError(
                f"the snapshot is of another file than {self.name}, or of other columns"
            )
        self._row, self._line = row, line
        self._file.seek(byte)

    def rewind(self) -> None:
        """Go back to the start."""
        self._file.seek(0)
        self._row = self._line = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _whole(value: Any) -> int:
    """Return a whole number as it is, and -1 for anything else."""
    return value if type(value) is int else -1
