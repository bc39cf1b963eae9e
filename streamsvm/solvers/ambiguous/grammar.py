"""The symbols and relations seen in meanings, by number; symbol 0 is that of words without one.

Symbols that were seen in the same role of a relation are of one sort, and so are those of one sort
with one of them: players are, if one of them gave and took a ball. In a role, all symbols of the
sort are possible, also those that were never seen there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

EMPTY = "-"


class Grammar:
    """Symbols and relations, and which symbols were arguments of which relations in which role."""

    def __init__(self) -> None:
        self.names: list[str] = [EMPTY]
        self.numbers: dict[str, int] = {EMPTY: 0}
        self.relations: list[int] = []  # their symbols
        self.relation_of: dict[int, int] = {}  # the relation of a symbol
        self.arities: dict[int, dict[int, int]] = {}  # how often a relation had so many arguments
        self.seen = np.zeros((4, 2, 8), np.bool_)  # (relations, roles, symbols)
        self._allowed: np.ndarray | None = None

    @property
    def n_symbols(self) -> int:
        """The number of symbols, the empty one too."""
        return len(self.names)

    @property
    def n_roles(self) -> int:
        """The most arguments that a relation had."""
        return max((n for found in self.arities.values() for n in found), default=0)

    def missing(self, symbols: Iterable[str]) -> int:
        """Return how many of these symbols are not known."""
        return len(set(symbols) - self.numbers.keys())

    def enter_symbols(self, symbols: Iterable[str]) -> None:
        """Number new symbols in their order."""
        for symbol in symbols:
            if symbol not in self.numbers:
                # In this order, so that an interruption leaves nothing that cannot be found.
                self.names.append(symbol)
                self.numbers[symbol] = len(self.names) - 1

    def enter_frame(self, frame: Sequence[str]) -> None:
        """Note a relation and its arguments, whose symbols are known."""
        symbol, *arguments = (self.numbers[name] for name in frame)
        relation = self.relation_of.get(symbol)
        if relation is None:
            relation = len(self.relations)
            self.arities[relation] = {}
            self.relations.append(symbol)
            self.relation_of[symbol] = relation
        found = self.arities[relation]
        found[len(arguments)] = found.get(len(arguments), 0) + 1
        self._make_room(len(arguments))
        for role, argument in enumerate(arguments):
            if not self.seen[relation, role, argument]:
                self.seen[relation, role, argument] = True
                self._allowed = None

    def _make_room(self, n_roles: int) -> None:
        wanted = (len(self.relations), n_roles, self.n_symbols)
        old = self.seen.shape
        shape = [n if n >= m else max(m, 2 * n) for n, m in zip(old, wanted, strict=True)]
        if tuple(shape) != old:
            larger = np.zeros(shape, np.bool_)
            larger[: old[0], : old[1], : old[2]] = self.seen
            self.seen, self._allowed = larger, None

    def allowed(self) -> np.ndarray:
        """Return which symbols can have which roles, bool (relations, roles, symbols or more)."""
        if self._allowed is None:
            wide = self.seen.reshape(-1, self.seen.shape[2])
            found = wide.astype(np.int64)
            while True:
                # Roles that share a symbol have all symbols of both.
                shared = (found @ found.T > 0).astype(np.int64)
                more = (shared @ found > 0).astype(np.int64)
                if (more == found).all():
                    break
                found = more
            self._allowed = (found > 0).reshape(self.seen.shape)
        return self._allowed

    def arity(self, relation: int) -> int:
        """Return how many arguments a relation has most often; of equal ones the first seen."""
        found = self.arities[relation]
        return max(found, key=found.__getitem__)

    def kinds(self) -> np.ndarray:
        """Return the kind of each symbol, uint64: none, an argument, or which relation it is."""
        found = np.ones(self.n_symbols, np.uint64)
        found[0] = 0
        for relation, symbol in enumerate(self.relations):
            found[symbol] = relation + 2
        return found

    def is_argument(self) -> np.ndarray:
        """Return which symbols can be arguments of which relation, bool (relations, symbols)."""
        shown = self.allowed()[: len(self.relations), :, : self.n_symbols]
        return np.asarray(shown.any(axis=1))
