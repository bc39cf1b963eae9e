"""Meanings: expressions such as ``pass(purple9, purple2)``, their symbols, and their relations.

A meaning is a relation with arguments: symbols, or meanings again. It is a tuple, its relation
first; `frames_of` returns the relations of a meaning, each with the symbols of its arguments: that
of an argument that is a meaning is its relation (thesis, section 6.2.1).
"""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from streamsvm.errors import LabelError
from streamsvm.structured.batches import NOTHING
from streamsvm.support.label_values import LONGEST_LABEL

Meaning = tuple[Any, ...]
Candidates = list[Meaning | str]

MOST_PARTS = 32
"""A relation and its arguments."""

_DEEPEST = 50

_LONGEST_KEPT = 200
"""Characters of a text whose meaning is kept; those of longer ones would fill the memory."""

_PART = re.compile(r"[(),]|[^\s(),]+")


def read_meaning(given: Any, depth: int = 0) -> Meaning | str:
    """Return a meaning as nested tuples, or a symbol, which is a string without parentheses.

    `given` is a string, or nested lists or tuples of strings, the relation first. LabelError: it is
    of another form.
    """
    if isinstance(given, str):
        return _kept(given) if len(given) <= _LONGEST_KEPT else _read_text(given)
    if not isinstance(given, (list, tuple)) or not given or depth > _DEEPEST:
        # Of lists within lists without end Python's own representation fails.
        raise LabelError(
            f"{reprlib.repr(given):.80} is no meaning: use a string, or (relation, arguments...), "
            f"with at most {_DEEPEST} lists within each other"
        )
    parts = [read_meaning(part, depth + 1) for part in given]
    if not isinstance(parts[0], str) or len(parts) > MOST_PARTS:
        raise LabelError(
            f"{reprlib.repr(given):.80} is no meaning: the first part must be the relation, a "
            f"string, and at most {MOST_PARTS - 1} arguments follow"
        )
    return tuple(parts)


def _read_text(text: str) -> Meaning | str:
    """Return the meaning, or the symbol, that a string stands for."""
    open_lists: list[list[Any]] = []
    parts: list[Any] = []
    found = _PART.findall(text)
    for i, part in enumerate(found):
        before = found[i - 1] if i else ""
        if part == "(":
            if before in ("", "(", ",", ")") or len(open_lists) >= _DEEPEST:
                raise LabelError(f"{text!r:.80} is no meaning: a relation is missing before (")
            open_lists.append(parts)
            parts = [parts.pop()]
        elif part == ")":
            if not open_lists or before == "," or len(parts) > MOST_PARTS:
                raise LabelError(f"{text!r:.80} is no meaning: see its last )")
            outer = open_lists.pop()
            outer.append(tuple(parts))
            parts = outer
        elif part == ",":
            if before in ("", "(", ",") or not open_lists:
                raise LabelError(f"{text!r:.80} is no meaning: a comma has nothing before it")
        else:
            if len(part) > LONGEST_LABEL:
                raise LabelError(
                    f"symbol {part[:40]!r}... has {len(part):,} characters: use at most "
                    f"{LONGEST_LABEL:,}"
                )
            if before not in ("", "(", ","):
                raise LabelError(f"{text!r:.80} is no meaning: a comma is missing")
            parts.append(part)
    if open_lists or len(parts) != 1:
        raise LabelError(f"{text!r:.80} is no meaning: use for example pass(purple9, purple2)")
    result: Meaning | str = parts[0]
    return result


_kept = lru_cache(maxsize=2**14)(_read_text)


def frames_of(meaning: Meaning) -> list[tuple[str, ...]]:
    """Return the relations of a meaning, outermost first, each with its arguments' symbols."""
    found = [tuple(part if isinstance(part, str) else part[0] for part in meaning)]
    for part in meaning[1:]:
        if not isinstance(part, str):
            found += frames_of(part)
    return found


def symbols_of(meaning: Meaning | str) -> Iterator[str]:
    """Yield the symbols of a meaning, each as often as it is there."""
    if isinstance(meaning, str):
        yield meaning
    else:
        for part in meaning:
            yield from symbols_of(part)


def read_candidates(candidates: Any) -> Candidates:
    """Return candidates as meanings and symbols; words without a symbol need no mention."""
    if isinstance(candidates, (str, bytes, Mapping)) or not isinstance(candidates, Iterable):
        raise LabelError(f"candidates are {type(candidates).__name__}: use a list of meanings")
    found = [read_meaning(candidate) for candidate in candidates]
    if NOTHING in symbols_in([[one for one in found if not isinstance(one, str)]]):
        raise LabelError(f"{NOTHING!r} stands for words without a symbol: use another name")
    return [one for one in found if one != NOTHING]


def symbols_in(bags: Iterable[Candidates]) -> set[str]:
    """Return the symbols of all candidates."""
    return {symbol for bag in bags for meaning in bag for symbol in symbols_of(meaning)}


def bag_of(candidates: Sequence[Meaning | str], n_words: int) -> tuple[Counter[str], int]:
    """Return how often each symbol is in the bag, and how many words may have none.

    A symbol is there as often as in the meaning that has it most often; symbols given alone are
    added. The shortest of the meanings leaves most words without a symbol.
    """
    bag: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    least: int | None = None
    for candidate in candidates:
        if isinstance(candidate, str):
            alone[candidate] += 1
            continue
        own = Counter(symbols_of(candidate))
        least = own.total() if least is None else min(least, own.total())
        bag |= own
    return bag + alone, max(0, n_words - (least or 0) - alone.total())


def as_text(meaning: Meaning | str) -> str:
    """Return a meaning as a string, without blanks."""
    if isinstance(meaning, str):
        return meaning
    return f"{meaning[0]}({','.join(map(as_text, meaning[1:]))})"
