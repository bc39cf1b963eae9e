"""The symbols and relations seen in meanings, by number; symbol 0 is that of words without one.

A relation with another number of arguments is another relation, whose symbol is the same.

Symbols that were seen in the same role of a relation are of one sort, and so are those of one sort
with one of them: players are, if one of them gave and took a ball. In a role, all symbols of the
sort are possible, also those that were never seen there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import starmap
from operator import setitem
from typing import Any

import numpy as np

from streamsvm.structured.words import NOTHING


class Grammar:
    """Symbols and relations, and which symbols were arguments of which relations in which role.

    Each thing that is entered is entered by one assignment, and the rest follows from it: so an
    interruption leaves no part without the others.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {NOTHING: 0}  # symbols, in the order of their numbers
        self.relation_of: dict[tuple[int, int], int] = {}  # by symbol and number of arguments
        self._names: list[str] = []  # the keys of these two, as they were last asked for
        self._relations: list[int] = []
        self.seen = np.zeros((4, 2, 8), np.bool_)  # (relations, roles, symbols)
        self._allowed: np.ndarray | None = None  # until a symbol is seen in another role
        self._alike: dict[int, int] = {}  # another symbol of the sort; the last one stands for it

    @property
    def names(self) -> list[str]:
        """The symbols by number."""
        found = self._names
        if len(found) != len(self.numbers):
            found = self._names = list(self.numbers)
        return found

    @property
    def relations(self) -> list[int]:
        """The symbols of relations by number."""
        found = self._relations
        if len(found) != len(self.relation_of):
            found = self._relations = [symbol for symbol, _ in self.relation_of]
        return found

    @property
    def arities(self) -> list[int]:
        """How many arguments relations have, by number."""
        return [n for _, n in self.relation_of]

    @property
    def n_symbols(self) -> int:
        """The number of symbols, the empty one too."""
        return len(self.numbers)

    @property
    def n_roles(self) -> int:
        """The most arguments that a relation had."""
        return max(self.arities, default=0)

    def missing(self, symbols: Iterable[str]) -> int:
        """Return how many of these symbols are not known."""
        return len(set(symbols) - self.numbers.keys())

    def enter_symbols(self, symbols: Iterable[str]) -> None:
        """Number new symbols in their order."""
        for symbol in symbols:
            if symbol not in self.numbers:
                self.numbers[symbol] = len(self.numbers)

    def enter_frame(self, frame: Sequence[str]) -> None:
        """Note a relation and its arguments, whose symbols are known."""
        symbol, *arguments = (self.numbers[name] for name in frame)
        n = len(arguments)
        relation = self.relation_of.setdefault((symbol, n), len(self.relation_of))
        self.make_room(n)
        for role, argument in enumerate(arguments):
            if not self.seen[relation, role, argument]:
                self.enter_role(relation, role, argument)

    def enter_role(self, relation: int, role: int, symbol: int) -> None:
        """Note that a symbol was seen in a role; there is room for it."""
        row = self.seen[relation, role]
        changes: list[tuple[Any, Any, Any]] = [
            (row, symbol, True),
            (self.__dict__, "_allowed", None),
        ]
        if row.any():
            own, other = self._sort_of(symbol), self._sort_of(int(row.argmax()))
            if own != other:
                changes.append((self._alike, own, other))
        # Without Python code in between: what interrupts it makes all of these changes, or none.
        deque(starmap(setitem, changes), 0)

    def _sort_of(self, symbol: int) -> int:
        """Return the symbol that stands for all of its sort."""
        while symbol in self._alike:
            # Every second step is shortened, so that the next search is faster.
            self._alike[symbol] = self._alike.get(self._alike[symbol], self._alike[symbol])
            symbol = self._alike[symbol]
        return symbol

    def make_room(self, n_roles: int) -> None:
        """Make room for all relations and symbols, and for roles."""
        wanted = (len(self.relations), n_roles, self.n_symbols)
        old = self.seen.shape
        shape = [n if n >= m else max(m, 2 * n) for n, m in zip(old, wanted, strict=True)]
        if tuple(shape) != old:
            larger = np.zeros(shape, np.bool_)
            larger[: old[0], : old[1], : old[2]] = self.seen
            self.__dict__.update(seen=larger, _allowed=None)

    def allowed(self) -> np.ndarray:
        """Return which symbols can have which roles, bool (relations, roles, symbols or more)."""
        # Learning may have been interrupted before there was room for a new relation.
        self.make_room(self.n_roles)
        if self._allowed is None:
            sorts = np.arange(self.seen.shape[2])
            for symbol in range(self.n_symbols):
                sorts[symbol] = self._sort_of(symbol)
            ones = sorts[self.seen.argmax(axis=2)]
            is_used = np.asarray(self.seen.any(axis=2))
            self._allowed = (sorts == ones[:, :, None]) & is_used[:, :, None]
        return self._allowed

    def kinds(self) -> np.ndarray:
        """Return the kind of each symbol, uint64: none, an argument, or which relation it is."""
        found = np.ones(self.n_symbols, np.uint64)
        found[0] = 0
        for relation, symbol in enumerate(self.relations):
            # That of its first number of arguments: it must not change.
            if found[symbol] == 1:
                found[symbol] = relation + 2
        return found

    def number_of(self, frame: Sequence[str]) -> int:
        """Return the number of a relation that was entered with its arguments."""
        return self.relation_of[self.numbers[frame[0]], len(frame) - 1]

    def is_argument(self) -> np.ndarray:
        """Return which symbols can be arguments of which relation, bool (relations, symbols)."""
        shown = self.allowed()[: len(self.relations), :, : self.n_symbols]
        return np.asarray(shown.any(axis=1))
