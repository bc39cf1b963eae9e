"""Names of columns, as a list, as a dict, and as a table for compiled code."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable

from streamsvm.native_events.python_objects import are_names
from streamsvm.native_events.vocabulary import Vocabulary

Name = Hashable


class Names:
    """Names by column, and columns by name; they only grow, and compiled code appends, too.

    The list is what there is; the dict and the table follow it once somebody asks for them. The
    names of arrays are 0, 1, ..., and may be a million: they are listed once somebody asks for one.
    """

    def __init__(self) -> None:
        self._names: list[Name] = []
        self._index: dict[Name, int] = {}
        self._vocabulary = Vocabulary(self._names)
        # How many names are known to be 0, 1, ..., listed or not.
        self._n_range = 0
        self._listing = threading.Lock()
        # How many were looked at, and what was found.
        self._n_noted = 0
        self._is_range = self._are_plain = True

    @property
    def n_names(self) -> int:
        """How many there are."""
        return max(len(self._names), self._n_range)

    @property
    def names(self) -> list[Name]:
        """The names by column."""
        self._list_range()
        return self._names

    @property
    def index(self) -> dict[Name, int]:
        """The column of each name."""
        names = self.names
        known = len(self._index)
        if known < len(names):
            # Whoever else does so at the same time writes the same.
            self._index.update(zip(names[known:], range(known, len(names)), strict=False))
        return self._index

    @property
    def vocabulary(self) -> Vocabulary:
        """The names, for compiled code."""
        self._list_range()
        return self._vocabulary

    @property
    def is_range(self) -> bool:
        """Whether they are 0, 1, ...: those of arrays."""
        self._note()
        return self._is_range

    @property
    def are_plain(self) -> bool:
        """Whether compiled code may handle them."""
        self._note()
        return self._are_plain

    def append(self, names: Iterable[Name]) -> None:
        """Append the names that are new, in their order."""
        known = self.n_names
        if isinstance(names, range) and names.start == known and self.is_range:
            self._n_range = max(known, names.stop)
            return
        index = self.index
        self._names.extend(dict.fromkeys(name for name in names if name not in index))

    def _list_range(self) -> None:
        if len(self._names) >= self._n_range:
            return
        # Anybody may ask, at any time.
        with self._listing:
            known = len(self._names)
            more = range(known, self._n_range)
            self._n_noted = max(self._n_noted, self._n_range)
            self._names.extend(more)

    def _note(self) -> None:
        known, noted = len(self._names), self._n_noted
        if known <= noted:
            return
        if self._is_range:
            self._is_range = self._names[noted:] == list(range(noted, known))
        if self._are_plain:
            # Those of the table are: compiled code looked at each.
            self._are_plain = are_names(self._names[max(noted, self._vocabulary.n_names) :])
        self._n_noted = known
