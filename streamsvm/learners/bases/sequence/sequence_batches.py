"""Batches of sentences and of their labels: lists, Arrow columns, and what `Chain` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from streamsvm.errors import FeatureError, LabelError
from streamsvm.labels.class_labels import is_too_long, plain, too_long, too_many_classes
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
    if isinstance(X, (str, bytes, Mapping, pa.Table, pa.RecordBatch)) or not isinstance(
        X, Iterable
    ):
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
    if isinstance(y, (pa.Array, pa.ChunkedArray)):
        lists = arrow_lists(y)
        if lists is None:
            raise LabelError(f"an Arrow column of {y.type}: use one of lists, a sentence a row")
        return lists
    if isinstance(y, (str, bytes, Mapping)) or not isinstance(y, Iterable):
        raise LabelError(f"the labels are {type(y).__name__}: use a list of labels a sentence")
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


def read_labels(
    y: Sequence[Any], sentences: Sentences, seen: list[Any], most: int | None = None
) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Return the labels of all tokens as numbers, int32; raise `LabelError` if one cannot be used.

    `seen` are the labels seen before, in the order of their numbers; there may be at most `most` of
    them. Returned, too: how many are known when each sentence is learnt, int64; and all of them.
    """
    rows = list(y)  # another thread may shorten y
    if len(rows) != sentences.n:
        raise LabelError(f"labels for {len(rows)} sentences, and {sentences.n} sentences")
    numbers = {label: i for i, label in enumerate(seen)}
    all_seen, found = list(seen), np.empty(sentences.n_tokens, np.int32)
    known, ends = np.empty(sentences.n, np.int64), sentences.first.tolist()
    for i, labels in enumerate(rows):
        if isinstance(labels, (str, bytes, Mapping)) or not isinstance(labels, Iterable):
            raise LabelError(f"the labels of a sentence are {labels!r:.60}: use a list")
        given = list(labels)
        if len(given) != ends[i + 1] - ends[i]:
            raise LabelError(
                f"sentence {i} of this batch has {ends[i + 1] - ends[i]} tokens and {len(given)} "
                "labels: give one label a token"
            )
        try:
            codes = [numbers.get(label, -1) for label in given]
        except TypeError as error:
            raise LabelError(f"a label is no hashable: {error}") from error
        if -1 in codes:
            codes = [_number_of(label, numbers, all_seen, most) for label in given]
        found[ends[i] : ends[i + 1]] = codes
        known[i] = len(all_seen)
    return found, known, all_seen


def _number_of(label: Any, numbers: dict[Any, int], seen: list[Any], most: int | None) -> int:
    """Return the number of a label, which may be new."""
    label = plain(label)
    if label is None or label != label:
        raise LabelError("a label is missing (None or NaN): learn needs one for each token")
    if label not in numbers:
        if is_too_long(label):
            raise LabelError(too_long(label))
        if most is not None and len(seen) >= most:
            raise LabelError(too_many_classes(label, most))
        numbers[label] = len(seen)
        seen.append(label)
    return numbers[label]
