"""Sentences about a world as arrays: words, what they may mean, and how that is related."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import repeat
from operator import ne
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import FeatureError, LabelError
from streamsvm.structured.batches import NOTHING, words_in
from streamsvm.structured.sentences import TEXT_KEYS
from streamsvm.support.label_values import LONGEST_LABEL, fault_of

CONCEPTS = "concepts"
"""The key of a universe that names the concepts that exist."""


class GroundedSentence(NamedTuple):
    """A sentence and its universe, checked."""

    words: np.ndarray  # uint64 (n,): keys
    candidates: list[Any] | None  # what exists; None: all that is known
    tables: dict[str, dict[Any, Any]]
    values: dict[str, dict[Any, None]]  # what a table relates something to, each once

    def new_concepts(self, known: Mapping[Any, Any]) -> list[Any]:
        """Return the concepts that the universe names and that are not known, maybe repeated.

        FeatureError: one is None or NaN, or a model file cannot hold it.
        """
        found = [concept for concept in self.candidates or () if concept not in known]
        for part in (*self.tables.values(), *self.values.values()):
            if not part.keys() <= known.keys():
                found += [concept for concept in part if concept not in known]
        if None in found or any(map(ne, found, found)):
            raise FeatureError("a concept of a universe is None or NaN")
        if fault := _fault(found):
            raise FeatureError(f"of a universe {fault}")
        return found


def _fault(concepts: list[Any]) -> str | None:
    """Return why a model file cannot hold one of these concepts."""
    return next(filter(None, (fault_of(concept, "concept") for concept in concepts)), None)


def read_told(example: Any) -> GroundedSentence:
    """Return a pair of a sentence and a universe; FeatureError: it is something else."""
    if not isinstance(example, (tuple, list)) or len(example) != 2:
        raise FeatureError(
            f"an example is {type(example).__name__}: use a pair (sentence, universe)"
        )
    sentence, universe = example
    keys = np.array([TEXT_KEYS[word] for word in words_in(sentence)], np.uint64)
    if not isinstance(universe, Mapping):
        raise FeatureError(
            f"a universe is {type(universe).__name__}: use a dict of relations, each a dict"
        )
    candidates: list[Any] | None = None
    tables: dict[str, dict[Any, Any]] = {}
    values: dict[str, dict[Any, None]] = {}
    for name, table in universe.items():
        if name == CONCEPTS:
            if isinstance(table, (str, bytes)) or not isinstance(table, Iterable):
                raise FeatureError("the concepts of a universe are no list")
            candidates = list(_distinct(table))
        elif isinstance(name, str) and len(name) <= LONGEST_LABEL and isinstance(table, Mapping):
            # A copy: the world may change before it is used.
            own = dict(table)
            known = _distinct(own.values())
            if None in known:
                # As if it were not there.
                del known[None]
                own = {c: d for c, d in own.items() if d is not None}
            tables[name], values[name] = own, known
        else:
            raise FeatureError(
                f"relation {name!r:.60} is no table {{concept: concept}} with a short name"
            )
    return GroundedSentence(keys, candidates, tables, values)


def _distinct(concepts: Iterable[Any]) -> dict[Any, None]:
    """Return the concepts of a universe, each once, in their order."""
    try:
        return dict.fromkeys(concepts)
    except TypeError as error:
        raise FeatureError(f"a concept of a universe is not hashable ({error})") from error


class ConceptTarget(NamedTuple):
    """What the words of a sentence mean: a concept for each, or a bag of them."""

    concepts: list[Any]
    is_bag: bool

    def new_concepts(self, known: Mapping[Any, Any]) -> list[Any]:
        """Return those not known; LabelError: a model file cannot hold one."""
        found = [concept for concept in self.concepts if concept not in known]
        if fault := _fault(found):
            raise LabelError(fault)
        return found


def read_meant(y: Any, n: int) -> ConceptTarget:
    """Return the concepts of n words; LabelError: they cannot be used."""
    is_bag = isinstance(y, (Mapping, Set))
    if isinstance(y, Mapping):
        concepts = []
        for concept, times in y.items():
            is_whole = isinstance(times, (int, np.integer)) and not isinstance(times, bool)
            if not is_whole or times < 0:
                raise LabelError(
                    f"a bag has whole numbers of at least 0, as a Counter has, not {times!r:.40}"
                )
            # One more than there are words is too many.
            concepts += [concept] * min(int(times), n + 1)
    elif isinstance(y, (str, bytes)) or not isinstance(y, (Sequence, Set, np.ndarray)):
        raise LabelError(f"the concepts are {type(y).__name__}: use a list, or a Counter for a bag")
    else:
        concepts = list(y)
    try:
        found = set(concepts)
    except TypeError as error:
        raise LabelError(f"a concept is not hashable ({error})") from error
    if None in found or any(map(ne, concepts, concepts)):
        raise LabelError(f"a concept is None or NaN: use {NOTHING!r} for a word that means nothing")
    if is_bag and len(concepts) < n:
        concepts += [NOTHING] * (n - len(concepts))
    if len(concepts) != n:
        raise LabelError(f"{len(concepts)} concepts for {n} words")
    return ConceptTarget(concepts, is_bag)


def judged(meant: ConceptTarget, predicted: Sequence[Any]) -> list[Any]:
    """Return what the concepts predicted for the words of a sentence are compared with.

    Of a bag, a word whose concept is in it takes that; the others get what is left.
    """
    if not meant.is_bag:
        return meant.concepts
    left = Counter(meant.concepts)
    found: list[Any] = []
    for concept in predicted:
        is_in = left[concept] > 0
        left[concept] -= is_in
        found.append(concept if is_in else None)
    others = left.elements()
    return [next(others) if concept is None else concept for concept in found]


def universe_of(found: Any) -> Any:
    """Return a universe that was a column of Arrow, or of JSON, as a dict of dicts.

    A map is a list of pairs there. Of a struct, all keys of the column are there: those whose value
    is null are left out.
    """
    tables = _as_dict(found)
    if not isinstance(tables, dict):
        return found
    return {
        name: table if name == CONCEPTS else _as_dict(table)
        for name, table in tables.items()
        if table is not None
    }


def _as_dict(found: Any) -> Any:
    """Return a dict, or a list of pairs as one; other values as they are."""
    if isinstance(found, list) and all(isinstance(pair, tuple) for pair in found):
        try:
            return dict(found)
        except TypeError as error:
            raise FeatureError(f"a key of a universe is not hashable ({error})") from error
    return found


def as_arrays(
    told: GroundedSentence,
    meant: ConceptTarget | None,
    number: Mapping[Any, int],
    relations: Sequence[str],
) -> tuple[list[Any], tuple[np.ndarray, ...]]:
    """Return the candidates; and words, relations, uses, target and bag as `Sentence` has them.

    `number` has all concepts, from "-", which is 0, on. Those of `meant` are candidates in any
    universe.
    """
    if told.candidates is None:
        candidates = list(number)
    else:
        meant_too = meant.concepts if meant else ()
        candidates = list(dict.fromkeys([NOTHING, *told.candidates, *meant_too]))
    related = np.zeros((len(relations) + 1, len(candidates)), np.int32)
    used = np.zeros((len(relations), len(candidates)), np.int32)
    n = len(candidates)
    if told.candidates is None:
        related[0] = np.arange(n)
    else:
        related[0] = np.fromiter(map(number.__getitem__, candidates), np.int32, n)
    for a, name in enumerate(relations):
        if table := told.tables.get(name):
            # No concept is None.
            numbers = map(number.get, map(table.get, candidates), repeat(0))
            related[a + 1] = np.fromiter(numbers, np.int32, n)
            used[a] = np.fromiter(map(told.values[name].__contains__, candidates), np.int32, n)
    target, bag = np.zeros(told.words.size, np.int64), np.zeros(len(candidates), np.int64)
    if meant is not None:
        place = {c: k for k, c in enumerate(candidates)}
        target[:] = [place[c] for c in meant.concepts]
        np.add.at(bag, target, 1)
        if meant.is_bag:
            # It is not known yet.
            target[:] = 0
    return candidates, (told.words, related, used, target, bag)
