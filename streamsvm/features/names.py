"""The names of columns, as a list and as a dict, or hashed to a fixed number of columns."""

import sys
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from streamsvm.errors import FeatureError

Name = Hashable

LONGEST_NAME = 1000
"""Names of more characters are left out: most are texts that nobody has split into words."""

MOST_BYTES = 2**28
"""When the names take so many bytes (268 MB), further ones are left out."""

_REMEMBERED = 2**16


def is_long(name: Name) -> bool:
    """Tell whether a name is longer than `LONGEST_NAME`, or has a part that is."""
    if isinstance(name, (str, bytes)):
        return len(name) > LONGEST_NAME
    if isinstance(name, int):
        return name.bit_length() > 8 * LONGEST_NAME
    # Not of a subclass, whose methods may be anybody's code.
    return (type(name) is tuple or type(name) is frozenset) and any(map(is_long, name))


def check_different(names: Sequence[Name]) -> None:
    """Raise FeatureError if two columns have one name."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise FeatureError(f"two columns are named {twice!r}: rename one of them")


def check_equal_to_themselves(names: list[Name]) -> None:
    """Raise FeatureError if a name, as NaN, is not equal to itself: it could not be found again."""
    for name in names:
        if name.__class__ is str:
            continue
        try:
            is_equal = bool(name == name)
        except (TypeError, ValueError):
            is_equal = False
        if not is_equal:
            raise FeatureError(
                f"the name of a feature is {name!r}, which is not equal to itself: its column "
                "could not be found again"
            )


class Names:
    """The names by column, and the columns by name; names are only ever appended.

    The dict is brought up to date when it is read, whatever interrupted appending. The names of
    arrays are 0, 1, ..., and may be a million: they are put into the list only when the list is
    read.
    """

    def __init__(self) -> None:
        self._names: list[Name] = []
        self._index: dict[Name, int] = {}
        # The first so many names are 0, 1, ..., whether they are in the list yet or not.
        self._n_range = 0
        # The bytes of the first `_n_weighed` names.
        self._n_weighed = self._bytes = 0
        # `is_range` holds for the first `_n_checked` names.
        self._n_checked, self._is_range = 0, True

    @property
    def n_names(self) -> int:
        """The number of names."""
        # Each event asks for it: `max` would take longer.
        n = len(self._names)
        return n if n >= self._n_range else self._n_range

    @property
    def names(self) -> list[Name]:
        """The names by column."""
        self._list_range()
        return self._names

    @property
    def index(self) -> dict[Name, int]:
        """The column of each name."""
        names = self.names
        n_indexed = len(self._index)
        if n_indexed < len(names):
            # Two threads may do this at the same time: both write the same entries.
            self._index.update(zip(names[n_indexed:], range(n_indexed, len(names)), strict=False))
        return self._index

    @property
    def nbytes(self) -> int:
        """The bytes of the names, and of the list and dict that hold them."""
        n, weighed = len(self._names), self._n_weighed
        if not n:
            return 0
        if n > weighed:
            fresh = sum(map(sys.getsizeof, self._names[weighed:n]))
            self._bytes, self._n_weighed = self._bytes + fresh, n
        return self._bytes + sys.getsizeof(self._names) + sys.getsizeof(self._index)

    @property
    def room(self) -> int:
        """How many names fit into `MOST_BYTES`, however long they are; 0: none is appended."""
        return max(0, MOST_BYTES - self.nbytes) // (4 * LONGEST_NAME + 100)

    def fitting(self, names: Iterable[Name]) -> list[Name]:
        """Return those of the names that may be appended: short ones, while there is room."""
        # Few names fit, however long they are: their bytes need not be known.
        has_room = len(self._names) * (4 * LONGEST_NAME + 500) < MOST_BYTES or self.room
        return [name for name in names if not is_long(name)] if has_room else []

    @property
    def is_range(self) -> bool:
        """Whether the names are 0, 1, ..., as those of arrays are."""
        self._check_new()
        return self._is_range

    def append(
        self, names: Iterable[Name], check: Callable[[list[Name]], None] | None = None
    ) -> None:
        """Append the hashable names that are not there yet, in their order.

        `check` is called with the new ones before they are appended; it raises if one is refused.
        """
        n = self.n_names
        if isinstance(names, range) and names.start == n and self.is_range:
            self._n_range = max(n, names.stop)
            return
        index = self.index
        new = [name for name in dict.fromkeys(names) if name not in index]
        if check is not None:
            check(new)
        self._names.extend(new)

    def _list_range(self) -> None:
        stop = self._n_range
        if len(self._names) < stop:
            # Each next name is the length of the list. This is one call that runs no Python code,
            # so no other thread can append in between.
            lengths: Iterator[Name] = iter(self._names.__len__, -1)
            is_below: Callable[[Any], bool] = stop.__gt__
            self._names.extend(takewhile(is_below, lengths))

    def _check_new(self) -> None:
        n, checked = len(self._names), self._n_checked
        if n <= checked:
            return
        fresh = self._names[checked:n]
        is_range = self._is_range and fresh == list(range(checked, n))
        self._is_range, self._n_checked = is_range, n


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
