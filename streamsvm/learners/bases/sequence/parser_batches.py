"""Sentences and bags of candidate meanings as users give them: lists, strings, Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from streamsvm.errors import LabelError
from streamsvm.learners.bases.sequence.sequence_batches import arrow_lists
from streamsvm.structured.meanings import NOTHING, Meaning, read_meaning, symbols_of
from streamsvm.structured.words import words_in

Candidates = list[Meaning | str]


def batch_rows(given: Any, error: type[Exception]) -> list[Any]:
    """Return the rows of a batch: a list, or an Arrow column of strings or of lists."""
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        if pa.types.is_string(given.type) or pa.types.is_large_string(given.type):
            return given.to_pylist()
        lists = arrow_lists(given)
        if lists is None:
            raise error(f"an Arrow column of {given.type}: use one of strings or lists of strings")
        return lists
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise error(f"a batch is {type(given).__name__}: use a list, a row a sentence")
    return list(given)


def words_of(sentence: Any) -> list[str]:
    """Return the words of a sentence; FeatureError if it is of another kind."""
    return words_in(str.__str__(sentence).split() if isinstance(sentence, str) else sentence)


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
