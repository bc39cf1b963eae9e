"""Lines of a text file, in memory that is bounded whatever the file holds."""

from collections import deque
from collections.abc import Iterator
from typing import BinaryIO

_CHUNK = 65_536


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
