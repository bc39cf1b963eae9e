"""Features of tokens from their neighbours, as a River transformer for sentences."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import numpy as np
import pyarrow as pa
from river import base

from streamsvm._parameter_checks import check_size
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.model_files.codec import register
from streamsvm.model_files.json_values import Content, checked
from streamsvm.structured import templates, token_columns
from streamsvm.structured.sentences import TEXT_KEYS, Sentences, joined, piece_keys, shape_key
from streamsvm.structured.templates import CompiledTemplates, Template
from streamsvm.structured.token_columns import TokenColumns
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.locked import Locked

_MOST_LENGTH = 20


class Chain(Locked, base.MiniBatchTransformer):
    """Make features of a token from the texts of its neighbours, its letters and its numbers.

    It stands before a learner of label sequences, in a pipeline. A token is a string, a list of
    strings, whose columns are named 0, 1, ..., or a dict: strings are columns, numbers and booleans
    are features as they are. Without `columns`, the columns of a sentence are those of its own
    tokens, whatever other sentences have; where a token lacks one, its text is empty. All features
    are computed by compiled code, which is several times faster than making dicts of them.

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
        the default: none. The first column is that of `columns`; without them the first one of the
        first sentence that comes, in sentences where keys are in another order, too.
    ngrams
        The length of the parts of the first column's text that are features, up to 20; 0, the
        default: none.
    shapes
        True: the shapes of the first column's texts, one token before to one after, are features:
        "Aa" of "London", "0-a" of "42-nd". False by default.
    columns
        Names separated by commas, such as "word,tag". A token that is a list has these columns, in
        this order; a token that is a string has the only one; of dicts and tables these columns are
        used, and texts under other names are not. In templates, 0 is the first. None, the default:
        the columns of lists are 0, 1, ..., all columns of dicts and tables are used.

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
        columns: str | None = None,
    ) -> None:
        super().__init__()
        self.template, self.window, self.pairs = template, window, pairs
        self.affixes, self.ngrams, self.shapes = affixes, ngrams, shapes
        self.columns = columns
        if template is not None and not isinstance(template, str):
            raise ParameterError(f"template={template!r:.60}: use a string, or None")
        limits = {"window": 100, "affixes": _MOST_LENGTH, "ngrams": _MOST_LENGTH}
        for name, most in limits.items():
            if check_size(name, getattr(self, name), 0, most) is None:
                raise ParameterError(f"{name}=None: use a whole number from 0 to {most}")
        self._names = None if columns is None else _names_in(columns)
        self._first = None if self._names is None else self._names[0]
        self._templates = None
        if template is not None:
            self._templates = templates.read_templates(template, self._names or ())
        self._compiled: dict[tuple[str, ...], CompiledTemplates] = {}

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
            `columns`, or a template, names a column that the tokens do not have.

        """
        return self._features(token_columns.of_sentence(x, self._names))

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
            return self._features(token_columns.of_arrow(X, self._names))
        if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
            raise FeatureError(f"a batch is {type(X).__name__}: use a list of sentences")
        # Features depend on all columns that there are: those of other sentences do not count.
        given = (token_columns.of_sentence(sentence, self._names) for sentence in X)
        alike = groupby(given, token_columns.names_of)
        parts = [self._features(token_columns.joined(list(some))) for _, some in alike]
        return parts[0] if len(parts) == 1 else joined(parts)

    def _features(self, columns: TokenColumns) -> Sentences:
        n = int(columns.first[-1])
        names = tuple(columns.texts)
        texts = [_keys_of(TEXT_KEYS.__getitem__, texts, n) for texts in columns.texts.values()]
        if n == 0:
            return joined([])._replace(first=columns.first)
        with self.lock:
            if self._first is None and names:
                self._first = names[0]
            if self.shapes and self._first in columns.texts:
                # Under a name that no column has.
                texts.append(_keys_of(shape_key, columns.texts[self._first], n))
                names = (*names, _SHAPE)
            compiled = self._compiled_for(names)
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

    def _extra(self, columns: TokenColumns) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return (tokens, keys, values) of features that not every token has one of."""
        found = []
        if (self.affixes or self.ngrams) and self._first in columns.texts:
            how = int(self.affixes), int(self.ngrams)
            pieces = [piece_keys(text, *how) for text in columns.texts[self._first]]
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

    # In files: the first column, if it is known

    def _first_column(self) -> Content:
        return {"first_column": self._first}, {}

    def _read_first_column(self, content: dict[str, Any], arrays: NamedArrays) -> None:
        first = content.get("first_column")
        self._first = None if first is None else checked(first, str, "first_column")


_SHAPE = "\0shape"


def _names_in(columns: Any) -> tuple[str, ...]:
    """Return the names in a text, which are separated by commas."""
    names = tuple(n.strip() for n in columns.split(",")) if isinstance(columns, str) else ("",)
    if "" in names or len(set(names)) < len(names):
        raise ParameterError(
            f"columns={columns!r:.80}: use different names separated by commas, as 'word,tag'"
        )
    return names


def _keys_of(key: Callable[[str], int], texts: Sequence[str], n: int) -> np.ndarray:
    """Return the keys of texts, uint64 (n,)."""
    try:
        return np.fromiter(map(key, texts), np.uint64, n)
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


register(Chain, more=Chain._first_column, read_more=Chain._read_first_column)
