"""The tokens of sentences by column: from strings, lists, dicts and Arrow columns."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamsvm.errors import FeatureError, ParameterError
from streamsvm.structured.sentences import number_of

Names = Sequence[str] | None
"""The names of the columns; None: those that the tokens have."""


class TokenColumns(NamedTuple):
    """The tokens of sentences by column."""

    first: np.ndarray  # int64 (sentences + 1,)
    texts: dict[str, Sequence[str]]  # a text for each token
    numbers: dict[str, Sequence[float]]  # a number for each token


def of_sentence(sentence: Any, names: Names) -> TokenColumns:
    """Return the tokens of one sentence by column."""
    if isinstance(sentence, (str, bytes, Mapping)) or not isinstance(sentence, Iterable):
        raise FeatureError(
            f"a sentence is {type(sentence).__name__}: use a list of tokens, which are strings, "
            "lists of strings, or dicts"
        )
    tokens = sentence if isinstance(sentence, (list, tuple)) else list(sentence)
    first = np.array([0, len(tokens)], np.int64)
    if tokens and isinstance(tokens[0], Mapping):
        return TokenColumns(first, *_dict_columns(tokens, names))
    columns = [tokens]
    if tokens and not isinstance(tokens[0], str):
        columns = _list_columns(tokens)
    if names is None:
        names = list(map(str, range(len(columns))))
    elif tokens and len(columns) != len(names):
        raise ParameterError(
            f"the tokens have {len(columns)} columns, and columns= names {len(names)}: "
            f"{', '.join(names)}"
        )
    return TokenColumns(first, dict(zip(names, columns, strict=False)), {})


def _list_columns(tokens: Sequence[Any]) -> list[Any]:
    """Return the columns of tokens that are lists."""
    # A text among them would be a list of its letters.
    if not any(isinstance(token, (str, bytes, Mapping)) for token in tokens):
        try:
            return list(zip(*tokens, strict=True))
        except (TypeError, ValueError):
            pass
    raise FeatureError(
        "the tokens have not all as many columns: use strings, lists of as many strings, or dicts"
    )


def names_of(columns: TokenColumns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the columns of texts, and of those of numbers."""
    return tuple(columns.texts), tuple(columns.numbers)


def joined(sentences: list[TokenColumns]) -> TokenColumns:
    """Return sentences that have the same columns, in the same order, as one."""
    if len(sentences) == 1:
        return sentences[0]
    texts, numbers = names_of(sentences[0])
    ends = np.cumsum([0, *(columns.first[-1] for columns in sentences)])
    return TokenColumns(
        ends.astype(np.int64),
        {n: list(chain.from_iterable(c.texts[n] for c in sentences)) for n in texts},
        {n: list(chain.from_iterable(c.numbers[n] for c in sentences)) for n in numbers},
    )


def _dict_columns(tokens: Sequence[Any], names: Names) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of texts and those of numbers; a missing text is empty, a number 0."""
    kinds: dict[Any, bool] = {}
    for token in tokens:
        if not isinstance(token, Mapping):
            raise FeatureError(f"a token is {token!r:.60}, and another one a dict: use one kind")
        for name, value in token.items():
            is_text = isinstance(value, str)
            if kinds.setdefault(name, is_text) != is_text:
                raise FeatureError(f"feature {name!r:.60} is a string and a number: use one kind")
    by_text = {str(name): name for name in kinds}
    if len(by_text) < len(kinds):
        raise FeatureError("two features have the same name, as 1 and '1' have: rename one")
    texts = {text: [t.get(n, "") for t in tokens] for text, n in by_text.items() if kinds[n]}
    numbers = {
        text: [number_of(n, t.get(n, 0.0)) for t in tokens]
        for text, n in by_text.items()
        if not kinds[n]
    }
    return texts if names is None else _chosen(texts, numbers, names, len(tokens)), numbers


def _chosen(
    texts: dict[str, Any], numbers: dict[str, Any], names: Sequence[str], n: int
) -> dict[str, Any]:
    """Return the columns of texts that have these names."""
    for name in names:
        if name in numbers:
            raise FeatureError(f"feature {name!r:.60} is a number: a column holds strings")
    if not any(name in texts for name in names):
        raise ParameterError(
            f"the tokens have none of the columns {', '.join(names)}; "
            f"they have {', '.join(texts) or 'no texts'}"
        )
    empty = [""] * n
    return {name: texts.get(name, empty) for name in names}


def of_arrow(X: Any, names: Names) -> TokenColumns:
    """Return the tokens of an Arrow column of lists, or of a table of them."""
    named = _named_columns(X, names)
    found: dict[str, Sequence[str]] = {}
    first: np.ndarray | None = None
    for name, column in named.items():
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not (pa.types.is_list(whole.type) or pa.types.is_large_list(whole.type)):
            raise FeatureError(f"column {name!r} is of {whole.type}: use lists of strings")
        texts = whole.flatten()
        if whole.null_count or texts.null_count:
            raise FeatureError(f"column {name!r}: a sentence or a token is null")
        lengths = np.diff(whole.offsets.to_numpy())
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        if first is not None and (ends != first).any():
            raise FeatureError(f"column {name!r} has other numbers of tokens than the first one")
        if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
            raise FeatureError(f"column {name!r} holds lists of {texts.type}: use lists of strings")
        first, found[name] = ends, texts.to_pylist()
    if first is None:
        raise FeatureError("a table without columns")
    return TokenColumns(first, found, {})


def _named_columns(X: Any, names: Names) -> dict[str, Any]:
    """Return the columns of a table, or the one column of lists, that are to be used."""
    if not isinstance(X, (pa.Table, pa.RecordBatch)):
        if names is not None and len(names) > 1:
            raise ParameterError(
                f"columns=: one Arrow column of lists; use a table of {', '.join(names)}"
            )
        return {"0" if names is None else names[0]: X}
    there = X.schema.names
    wanted = there if names is None else names
    for name in wanted:
        if name not in there:
            raise ParameterError(f"the table has no column {name!r:.60}; it has {', '.join(there)}")
        if there.count(name) > 1:
            raise FeatureError(f"the table has column {name!r:.60} more than once: rename one")
    return {name: X.column(name) for name in wanted}
