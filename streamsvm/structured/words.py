"""The words of a sentence, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from streamsvm.errors import FeatureError

NOTHING = "-"
"""What words stand for that mean nothing: they have no symbol, or no concept."""

MOST_WORDS = 2_000
"""A sentence with more is none: time and memory grow with words times relations, or concepts."""


def words_in(sentence: Any) -> list[str]:
    """Return the words of a list; FeatureError: it is something else, or has too many."""
    is_list = isinstance(sentence, Iterable) and getattr(sentence, "ndim", 1) == 1
    if not is_list or isinstance(sentence, (str, bytes, Mapping, Set)):
        raise FeatureError(f"a sentence is {type(sentence).__name__}: use a list of words")
    words = list(sentence)
    if len(words) > MOST_WORDS:
        raise FeatureError(f"a sentence of {len(words):,} words: at most {MOST_WORDS:,} are taken")
    for word in words:
        if not isinstance(word, str):
            raise FeatureError(f"a word is {type(word).__name__}: use strings")
    return list(map(str.__str__, words))


def words_of(sentence: Any) -> list[str]:
    """Return the words of a sentence; FeatureError if it is of another kind."""
    return words_in(str.__str__(sentence).split() if isinstance(sentence, str) else sentence)
