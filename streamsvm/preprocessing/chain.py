"""Features of tokens from their neighbours, as a River transformer for sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from river import base

from streamsvm._parameter_checks import check_size
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.model_files.codec import register
from streamsvm.structured import templates
from streamsvm.structured.sentences import TEXT_KEYS, Sentences, joined, number_of
from streamsvm.structured.templates import CompiledTemplates, Template
from streamsvm.structured.words import PieceKeys, ShapeKeys
from streamsvm.support.locked import Locked

_MOST_LENGTH = 20


class _Columns(NamedTuple):
    """The tokens of sentences by column."""

    first: np.ndarray  # int64 (sentences + 1,)
    texts: dict[str, Sequence[str]]  # a text for each token
    numbers: dict[str, Sequence[float]]  # a number for each token


class Chain(Locked, base.MiniBatchTransformer):
    """Make features of a token from the texts of its neighbours, its letters and its numbers.

    It stands before a learner of label sequences, in a pipeline. A token is a string, a list of
    strings, whose columns are named 0, 1, ..., or a dict: strings are columns, numbers and booleans
    are features as they are. The columns of a sentence are those of its own tokens, whatever other
    sentences have; where a token lacks one, its text is empty. All features are computed by
    compiled code, which is several times faster than making dicts of them.

    Parameters
    ----------
    template
        Lines in the format of CRF++, such as ``U05:%x[-1,0]/%x[0,0]``: the text of column 0 one
        token before, with that of the token. None, the default: those of `window` and `pairs`.
    window
        Without a template: each column of each token up to so many places away is a feature. 2 by
        default, at most 100.
    pairs
        Without a template: whether neighbours within the window are features in pairs, too; True by
        default.
    affixes
        The longest beginnings and ends of the first column's text that are features, up to 20; 0,
        the default: none.
    ngrams
        The length of the parts of the first column's text that are features, up to 20; 0, the
        default: none.
    shapes
        True: the shapes of the first column's texts, one token before to one after, are features:
        "Aa" of "London", "0-a" of "42-nd". False by default.

    Examples
    --------
    >>> from streamsvm import Chain, LaRankSequenceLabeler
    >>> model = Chain(window=1) | LaRankSequenceLabeler(seed=42)
    >>> for _ in range(3):
    ...     model.learn_one(["the", "dog", "barks"], ["DET", "NOUN", "VERB"])
    >>> model.predict_one(["the", "dog"])
    ['DET', 'NOUN']

    """

    def __init__(
        self,
        template: str | None = None,
        window: int = 2,
        pairs: bool = True,
        affixes: int = 0,
        ngrams: int = 0,
        shapes: bool = False,
    ) -> None:
        super().__init__()
        self.template, self.window, self.pairs = template, window, pairs
        self.affixes, self.ngrams, self.shapes = affixes, ngrams, shapes
        if template is not None and not isinstance(template, str):
            raise ParameterError(f"template={template!r:.60}: use a string, or None")
        limits = {"window": 100, "affixes": _MOST_LENGTH, "ngrams": _MOST_LENGTH}
        for name, most in limits.items():
            if check_size(name, getattr(self, name), 0, most) is None:
                raise ParameterError(f"{name}=None: use a whole number from 0 to {most}")
        self._templates = None if template is None else templates.read_templates(template)
        self._compiled: dict[tuple[str, ...], CompiledTemplates] = {}
        self._pieces, self._shape_keys = PieceKeys(int(affixes), int(ngrams)), ShapeKeys()

    def transform_one(self, x: Any) -> Any:
        """Return the features of one sentence, for the learner.

        Parameters
        ----------
        x
            A sentence: a sequence of tokens.

        Returns
        -------
        The features as arrays.

        Raises
        ------
        FeatureError
            A token cannot be used.
        ParameterError
            A template names a column that the tokens do not have.

        """
        return self._features(_joined([_columns_of(x)]))

    def transform_many(self, X: Any) -> Sentences:
        """Return the features of several sentences.

        Parameters
        ----------
        X
            A list of sentences; or an Arrow column of lists of strings, or an Arrow Table or
            RecordBatch of such columns, a sentence a row.

        Returns
        -------
        The features as arrays.

        Raises
        ------
        FeatureError, ParameterError
            As for `transform_one`.

        """
        if isinstance(X, (pa.Array, pa.ChunkedArray, pa.Table, pa.RecordBatch)):
            return self._features(_arrow_columns(X))
        if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
            raise FeatureError(f"a batch is {type(X).__name__}: use a list of sentences")
        # Features depend on all columns that there are: those of other sentences do not count.
        alike = groupby(map(_columns_of, X), _names_of)
        parts = [self._features(_joined(list(sentences))) for _, sentences in alike]
        return parts[0] if len(parts) == 1 else joined(parts)

    def _features(self, columns: _Columns) -> Sentences:
        n = int(columns.first[-1])
        names = tuple(columns.texts)
        texts = [_keys_of(TEXT_KEYS, texts, n) for texts in columns.texts.values()]
        if self.shapes and names:
            # Under a name that no column has.
            texts.append(_keys_of(self._shape_keys, columns.texts[names[0]], n))
            names = (*names, _SHAPE)
        with self._lock:
            compiled = self._compiled_for(names) if n else None
        if compiled is None:
            return Sentences(columns.first, np.zeros(n + 1, np.int64), *_nothing())
        stacked = np.array(texts, np.uint64).reshape(len(texts), n)
        keys = templates.features_of(compiled, stacked, columns.first)
        extra = self._extra(columns)
        start = np.arange(n + 1) * keys.shape[1]
        plain = Sentences(columns.first, start, keys.ravel(), np.ones(keys.size, np.float32))
        return _merged(plain, extra) if extra else plain

    def _compiled_for(self, names: tuple[str, ...]) -> CompiledTemplates:
        if names not in self._compiled:
            found = self._templates
            columns = [name for name in names if name != _SHAPE]
            if found is None:
                found = templates.windows(columns, int(self.window), bool(self.pairs))
            if _SHAPE in names:
                found = found + [Template(f"shape[{row}]", ((row, _SHAPE),)) for row in (-1, 0, 1)]
            if len(self._compiled) >= 64:
                self._compiled.clear()
            self._compiled[names] = templates.compile_templates(found, names)
        return self._compiled[names]

    def _extra(self, columns: _Columns) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return (tokens, keys, values) of features that not every token has one of."""
        found = []
        if (self.affixes or self.ngrams) and columns.texts:
            texts = next(iter(columns.texts.values()))
            pieces = [self._pieces[text] for text in texts]
            lengths = np.array(list(map(len, pieces)), np.int64)
            keys = np.fromiter(chain.from_iterable(pieces), np.uint64, int(lengths.sum()))
            tokens = np.repeat(np.arange(len(pieces)), lengths)
            found.append((tokens, keys, np.ones(keys.size, np.float32)))
        for name, numbers in columns.numbers.items():
            values = np.array(numbers, np.float32)
            tokens = np.flatnonzero(values)
            keys = np.full(tokens.size, TEXT_KEYS[name], np.uint64)
            found.append((tokens, keys, values[tokens]))
        return found

    def _contents(self) -> dict[str, Any]:
        fresh = {"_pieces": PieceKeys(int(self.affixes), int(self.ngrams))}
        return {**super()._contents(), "_shape_keys": ShapeKeys(), **fresh}


_SHAPE = "\0shape"


def _nothing() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(0, np.uint64), np.zeros(0, np.float32)


def _keys_of(keys: Mapping[str, int], texts: Sequence[str], n: int) -> np.ndarray:
    """Return the keys of texts, uint64 (n,)."""
    try:
        return np.fromiter(map(keys.__getitem__, texts), np.uint64, n)
    except Exception:
        for text in texts:
            if not isinstance(text, str):
                raise FeatureError(
                    f"a token is {text!r:.60}: use a string, a list of strings, or a dict"
                ) from None
        raise


def _merged(plain: Sentences, extra: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Sentences:
    """Return sentences with further features, which are put after the others of a token."""
    n = plain.n_tokens
    tokens = np.concatenate([np.repeat(np.arange(n), np.diff(plain.start)), *(e[0] for e in extra)])
    keys = np.concatenate([plain.keys, *(e[1] for e in extra)])
    values = np.concatenate([plain.values, *(e[2] for e in extra)])
    order = np.argsort(tokens, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(tokens, minlength=n))]).astype(np.int64)
    return Sentences(plain.first, start, keys[order], values[order])


# Sentences by column


def _columns_of(sentence: Any) -> _Columns:
    """Return the tokens of one sentence by column."""
    if isinstance(sentence, (str, bytes, Mapping)) or not isinstance(sentence, Iterable):
        raise FeatureError(
            f"a sentence is {type(sentence).__name__}: use a list of tokens, which are strings, "
            "lists of strings, or dicts"
        )
    tokens = sentence if isinstance(sentence, (list, tuple)) else list(sentence)
    first = np.array([0, len(tokens)], np.int64)
    if not tokens or isinstance(tokens[0], str):
        return _Columns(first, {"0": tokens}, {})
    if isinstance(tokens[0], Mapping):
        return _Columns(first, *_dict_columns(tokens))
    try:
        columns = list(zip(*tokens, strict=True))
    except (TypeError, ValueError) as error:
        raise FeatureError(
            "the tokens have not all as many columns: use strings, lists of as many strings, "
            "or dicts"
        ) from error
    return _Columns(first, {str(i): column for i, column in enumerate(columns)}, {})


def _names_of(columns: _Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(columns.texts), tuple(columns.numbers)


def _joined(sentences: list[_Columns]) -> _Columns:
    """Return sentences that have the same columns, in the same order, as one."""
    if len(sentences) == 1:
        return sentences[0]
    texts, numbers = _names_of(sentences[0])
    ends = np.cumsum([0, *(columns.first[-1] for columns in sentences)])
    return _Columns(
        ends.astype(np.int64),
        {n: list(chain.from_iterable(c.texts[n] for c in sentences)) for n in texts},
        {n: list(chain.from_iterable(c.numbers[n] for c in sentences)) for n in numbers},
    )


def _dict_columns(tokens: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of texts and those of numbers; a missing text is empty, a number 0."""
    kinds: dict[str, bool] = {}
    for token in tokens:
        if not isinstance(token, Mapping):
            raise FeatureError(f"a token is {token!r:.60}, and another one a dict: use one kind")
        for name, value in token.items():
            is_text = isinstance(value, str)
            if kinds.setdefault(name, is_text) != is_text:
                raise FeatureError(f"feature {name!r:.60} is a string and a number: use one kind")
    texts = {str(n): [t.get(n, "") for t in tokens] for n, is_text in kinds.items() if is_text}
    numbers = {
        str(n): [number_of(n, t.get(n, 0.0)) for t in tokens]
        for n, is_text in kinds.items()
        if not is_text
    }
    return texts, numbers


def _arrow_columns(X: Any) -> _Columns:
    """Return the tokens of an Arrow column of lists, or of a table of them."""
    named = {"0": X}
    if isinstance(X, (pa.Table, pa.RecordBatch)):
        named = dict(zip(X.schema.names, X.columns, strict=True))
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
        first, found[name] = ends, _arrow_texts(name, texts)
    if first is None:
        raise FeatureError("a table without columns")
    return _Columns(first, found, {})


def _arrow_texts(name: str, texts: Any) -> Sequence[str]:
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise FeatureError(f"column {name!r} holds lists of {texts.type}: use lists of strings")
    found: list[str] = texts.to_pylist()
    return found


register(Chain)
