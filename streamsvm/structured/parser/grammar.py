"""The symbols and relations seen in meanings, by number; symbol 0 is that of words without one.

A relation with another number of arguments is another relation, whose symbol is the same.

Symbols that were seen in the same role of a relation are of one sort, and so are those of one sort
with one of them: players are, if one of them gave and took a ball. In a role, all symbols of the
sort are possible, also those that were never seen there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from streamsvm.model_files.json_values import Content, checked
from streamsvm.structured.batches import NOTHING
from streamsvm.structured.parser.meanings import MOST_PARTS
from streamsvm.support.declaration import FLAG, Field, NamedArrays, as_int


class Grammar:
    """Symbols and relations, and which symbols were arguments of which relations in which role.

    It never changes: `including` returns a larger one, which a parser takes as a whole, so that an
    interruption leaves no part without the others. Symbols, and relations by symbol and number of
    arguments, are in the order of their numbers; `seen` is bool (relations, roles, symbols).
    """

    def __init__(
        self, numbers: dict[str, int], relation_of: dict[tuple[int, int], int], seen: np.ndarray
    ) -> None:
        self.numbers, self.relation_of, self.seen = numbers, relation_of, seen
        self.names = list(numbers)
        self.relations = [symbol for symbol, _ in relation_of]
        self.arities = [n for _, n in relation_of]
        self.allowed = _allowed(seen)  # which symbols can have which roles, as `seen`
        # Which symbols can be arguments of which relation.
        self.is_argument = np.asarray(self.allowed.any(axis=1))
        # Of each symbol: none, an argument, or which relation it is.
        self.kinds = np.ones(len(numbers), np.uint64)
        self.kinds[0] = 0
        for relation, symbol in enumerate(self.relations):
            # That of its first number of arguments: it must not change.
            if self.kinds[symbol] == 1:
                self.kinds[symbol] = relation + 2

    @classmethod
    def empty(cls) -> Grammar:
        """Return one without symbols."""
        return cls({NOTHING: 0}, {}, np.zeros((0, 0, 1), np.bool_))

    @classmethod
    def from_file(cls, content: dict[str, Any], arrays: NamedArrays, most: int) -> Grammar:
        """Return what `as_file` described, with at most so many symbols; else ValueError."""
        names = checked(content.get("symbols"), list, "symbols")
        if len(names) > most or not all(isinstance(name, str) for name in names):
            raise ValueError("symbols: more than max_symbols, or one is no string")
        numbers = {name: i for i, name in enumerate([NOTHING, *names])}
        if len(numbers) <= len(names):
            raise ValueError("symbols: two are equal, or one is empty")
        relation_of: dict[tuple[int, int], int] = {}
        relations = checked(content.get("relations"), list, "relations")
        arities = checked(content.get("arities"), list, "arities")
        for symbol, arity in zip(relations, arities, strict=True):
            n = as_int("arities", arity, 0, MOST_PARTS - 1)
            relation_of[as_int("relations", symbol, 1, len(names)), n] = len(relation_of)
        if len(relation_of) < len(relations):
            raise ValueError("relations: two are equal")
        shape = (len(relations), max(arities, default=0), len(numbers))
        seen = arrays.take("seen", Field(shape, np.uint8, range=FLAG), {})
        return cls(numbers, relation_of, seen.astype(np.bool_))

    def as_file(self) -> Content:
        """Return the content of a file."""
        content: dict[str, Any] = {"symbols": self.names[1:], "relations": self.relations}
        return content | {"arities": self.arities}, {"seen": self.seen.astype(np.uint8)}

    @property
    def n_symbols(self) -> int:
        """The number of symbols, the empty one too."""
        return len(self.numbers)

    @property
    def n_roles(self) -> int:
        """The most arguments that a relation had."""
        return self.seen.shape[1]

    def including(self, symbols: Iterable[str], frames: Iterable[Sequence[str]]) -> Grammar:
        """Return the grammar with these symbols, and with relations and arguments of them.

        It is this one if there is nothing new. Symbols are numbered in their order.
        """
        numbers, relation_of, entries = dict(self.numbers), dict(self.relation_of), []
        for symbol in symbols:
            numbers.setdefault(symbol, len(numbers))
        for frame in frames:
            of, *arguments = (numbers[name] for name in frame)
            relation = relation_of.setdefault((of, len(arguments)), len(relation_of))
            entries += [(relation, role, symbol) for role, symbol in enumerate(arguments)]
        n_roles = max((n for _, n in relation_of), default=0)
        old, shape = self.seen.shape, (len(relation_of), n_roles, len(numbers))
        if shape == old and all(self.seen[entry] for entry in entries):
            return self
        seen = np.zeros(shape, np.bool_)
        seen[: old[0], : old[1], : old[2]] = self.seen
        for entry in entries:
            seen[entry] = True
        return Grammar(numbers, relation_of, seen)

    def number_of(self, frame: Sequence[str]) -> int:
        """Return the number of a relation that was entered with its arguments."""
        return self.relation_of[self.numbers[frame[0]], len(frame) - 1]


def _allowed(seen: np.ndarray) -> np.ndarray:
    """Return which symbols are of the sort of those seen in a role, bool as `seen`."""
    sorts, found = np.arange(seen.shape[2]), np.zeros_like(seen)
    used = list(zip(*np.nonzero(seen.any(axis=2)), strict=True))
    for role in used:
        merged = np.zeros(sorts.size, np.bool_)
        merged[sorts[seen[role]]] = True
        sorts[merged[sorts]] = merged.argmax()
    for role in used:
        found[role] = sorts == sorts[seen[role].argmax()]
    return found
