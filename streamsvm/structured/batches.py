"""Batches of sentences and of their labels, as users give them; the words of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from streamsvm._parameter_checks import column_of
from streamsvm.errors import FeatureError, LabelError
from streamsvm.structured.sentences import Sentences, read_sentences


def sentences_in(X: Any) -> Sentences:
    """Return the sentences of a batch; raise `FeatureError` if one of them cannot be used."""
    if isinstance(X, (pa.Array, pa.ChunkedArray)):
        X = _rows_of(X, FeatureError, "lists of strings, a sentence a row")
    if isinstance(X, (str, bytes, Mapping)) or hasattr(X, "columns") or not isinstance(X, Iterable):
        raise FeatureError(
            f"a batch of sentences is {type(X).__name__}: use a list of sentences, an Arrow column "
            "of lists, or what streamsvm.Chain makes of a table"
        )
    return read_sentences(X)


def label_lists(y: Any) -> Sequence[Any]:
    """Return the labels of a batch, an entry for each sentence."""
    y = column_of(y, "labels", LabelError)
    if isinstance(y, (pa.Array, pa.ChunkedArray)):
        return _rows_of(y, LabelError, "lists, a sentence a row")
    return y if isinstance(y, Sequence) else list(y)


def batch_rows(given: Any, error: type[Exception]) -> list[Any]:
    """Return the rows of a batch: a list, or an Arrow column of strings or of lists."""
    given = column_of(given, "examples", error)
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return _rows_of(given, error, "strings or lists of strings", has_texts=True)
    return list(given)


def _rows_of(
    column: pa.Array | pa.ChunkedArray, error: type[Exception], wanted: str, has_texts: bool = False
) -> list[Any]:
    """Return the rows of an Arrow column of lists, or of texts."""
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list and not (is_text and has_texts):
        raise error(f"an Arrow column of {kind}: use one of {wanted}")
    if is_list and column.null_count:
        raise FeatureError("a sentence is null: leave out the row, or give an empty list")
    rows: list[Any] = column.to_pylist()
    return rows


def columns_like(X: Any, labels: list[list[Any]]) -> Any:
    """Return lists of labels as an Arrow column if X is one, and Arrow has a type for them."""
    if not isinstance(X, (pa.Array, pa.ChunkedArray)):
        return labels
    try:
        return pa.array(labels)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise LabelError(
            f"an Arrow column cannot hold these labels together ({error}): give the sentences as "
            "lists (X.to_pylist()), or learn labels of one type"
        ) from error


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
