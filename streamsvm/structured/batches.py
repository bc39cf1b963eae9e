"""Batches of sentences and of their labels, as users give them: lists, Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamsvm._parameter_checks import column_of
from streamsvm.errors import FeatureError, LabelError
from streamsvm.structured.sentences import Sentences, read_sentences


def sentences_in(X: Any) -> Sentences:
    """Return the sentences of a batch; raise `FeatureError` if one of them cannot be used."""
    if isinstance(X, (pa.Array, pa.ChunkedArray)):
        lists = arrow_lists(X)
        if lists is None:
            raise FeatureError(
                f"an Arrow column of {X.type}: use one of lists of strings, a sentence a row"
            )
        return read_sentences(lists)
    if isinstance(X, (str, bytes, Mapping)) or hasattr(X, "columns") or not isinstance(X, Iterable):
        raise FeatureError(
            f"a batch of sentences is {type(X).__name__}: use a list of sentences, an Arrow column "
            "of lists, or what streamsvm.Chain makes of a table"
        )
    return read_sentences(X)


def arrow_lists(column: Any) -> list[list[Any]] | None:
    """Return an Arrow column of lists as lists; None if it is of another type."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if column.null_count:
            raise FeatureError("a sentence is null: leave out the row, or give an empty list")
        lists: list[list[Any]] = column.to_pylist()
        return lists
    return None


def label_lists(y: Any) -> Sequence[Any]:
    """Return the labels of a batch, an entry for each sentence."""
    y = column_of(y, "labels", LabelError)
    if isinstance(y, (pa.Array, pa.ChunkedArray)):
        lists = arrow_lists(y)
        if lists is None:
            raise LabelError(f"an Arrow column of {y.type}: use one of lists, a sentence a row")
        return lists
    return y if isinstance(y, Sequence) else list(y)


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


def batch_rows(given: Any, error: type[Exception]) -> list[Any]:
    """Return the rows of a batch: a list, or an Arrow column of strings or of lists."""
    given = column_of(given, "examples", error)
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        if pa.types.is_string(given.type) or pa.types.is_large_string(given.type):
            return given.to_pylist()
        lists = arrow_lists(given)
        if lists is None:
            raise error(f"an Arrow column of {given.type}: use one of strings or lists of strings")
        return lists
    return list(given)
