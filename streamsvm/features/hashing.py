"""Names hashed to a fixed number of columns."""

from __future__ import annotations

import zlib
from typing import Any

_REMEMBERED = 2**16


class HashedColumns(dict[Any, int]):
    """Twice the column that a name is hashed to, plus 1 if its values change sign.

    The hash is the CRC-32 of the name's text, which is the same in every process. Up to 65,536
    strings are remembered, because hashing a name takes longer than everything else about it.

    Parameters
    ----------
    buckets
        The number of columns, at least 1.

    """

    def __init__(self, buckets: int) -> None:
        super().__init__()
        self._buckets = buckets

    def __missing__(self, name: Any) -> int:
        text = name if isinstance(name, str) else repr(name)
        # Not hash(): that of a string is another one in each process.
        hashed = zlib.crc32(text.encode())
        place = 2 * (hashed % self._buckets) + (hashed >> 31)
        # Others may be equal and yet have another text: 1 and True.
        if isinstance(name, str):
            if len(self) >= _REMEMBERED:
                self.clear()
            self[name] = place
        return place
