"""Names hashed to a fixed number of columns."""

from __future__ import annotations

import zlib
from typing import Any

from streamsvm.features.names import is_long

_REMEMBERED = 2**16


class HashedColumns(dict[Any, int]):
    """Twice the column, of `buckets`, that a name is hashed to, plus 1 if its values change sign.

    The hash is the CRC-32 of the name's text, which is the same in every process. The results for
    up to 65,536 strings of moderate length are cached, as computing them takes most of the time of
    reading an event.
    """

    def __init__(self, buckets: int) -> None:
        super().__init__()
        self._buckets = buckets

    def __missing__(self, name: Any) -> int:
        text = name if isinstance(name, str) else repr(name)
        # Not hash(): Python's hash of a string differs from process to process.
        hashed = zlib.crc32(text.encode(errors="surrogatepass"))
        place = 2 * (hashed % self._buckets) + (hashed >> 31)
        # Other names may be equal with different texts, such as 1 and True.
        if isinstance(name, str) and not is_long(name):
            if len(self) >= _REMEMBERED:
                self.clear()
            self[name] = place
        return place
