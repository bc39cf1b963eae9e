"""Sentences as arrays: each feature of a token is a 64-bit key, the hash of its text, and a value.

The text of a string feature is ``name=value``, that of a number is its name; so ``{"w": "the"}``
and ``["w=the"]`` are the same token. The hash is BLAKE2b, the same in every process. Two of a
million features share a key with a probability of 3e-8.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import FeatureError

_REMEMBERED = 2**18
"""How many features are kept with their keys; computing a key takes most of the time."""

_MOST_WORDS = 2**17
"""How many words are kept with the keys of their pieces, and of their shapes."""

_LONGEST = 200
"""Characters of a feature whose key is kept; of longer ones they would fill the memory."""

_LARGEST = float(np.finfo(np.float32).max)


class Sentences(NamedTuple):
    """Sentences, tokens and features; entry j is the feature `keys[j]` with `values[j]`."""

    first: np.ndarray  # int64 (sentences + 1,): the first token of each sentence, and of the next
    start: np.ndarray  # int64 (tokens + 1,): the first entry of each token
    keys: np.ndarray  # uint64 (entries,)
    values: np.ndarray  # float32 (entries,), finite

    @property
    def n(self) -> int:
        """The number of sentences."""
        return self.first.size - 1

    @property
    def n_tokens(self) -> int:
        """The number of tokens of all sentences."""
        return self.start.size - 1


def key_of(text: str) -> int:
    """Return the 64-bit key of a text."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class _NotTextError(Exception):
    """A feature is no string, or its value is none."""


class _Keys(dict[Any, int]):
    """Keys that were computed, by feature; up to 262,144 are kept.

    `text_of` returns the text of a feature, and whether the feature may be kept; or it raises
    _NotTextError.
    """

    def __init__(self, text_of: Callable[[Any], tuple[str, bool]]) -> None:
        self._text_of = text_of

    def __missing__(self, feature: Any) -> int:
        text, is_kept = self._text_of(feature)
        key = key_of(text)
        if is_kept and len(text) <= _LONGEST:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[feature] = key
        return key


def _plain(text: str) -> str:
    """Return a string of a subclass, as enumerations and NumPy have them, as a plain one."""
    return str.__str__(text)


def _text(feature: Any) -> tuple[str, bool]:
    """Return a feature that must be a string; of a subclass it may have a hash of its own."""
    if not isinstance(feature, str):
        raise _NotTextError
    return _plain(feature), type(feature) is str


def _item(feature: tuple[Any, Any]) -> tuple[str, bool]:
    """Return the text of a name and a value that must be strings."""
    # Numbers are not kept: equal ones of other types would be found.
    name, value = feature
    if not (isinstance(name, str) and isinstance(value, str)):
        raise _NotTextError
    return f"{_plain(name)}={_plain(value)}", type(name) is type(value) is str


TEXT_KEYS = _Keys(_text)
"""Shared by all learners, as the key of a feature never changes."""

_ITEM_KEYS = _Keys(_item)


def read_sentences(sentences: Iterable[Any]) -> Sentences:
    """Return sentences, sequences of tokens, as arrays; what `Chain` returns is taken as it is.

    For tokens see `LaRankSequenceLabeler.learn_one`. FeatureError: one is of another kind, or a
    value is not a finite number.
    """
    if isinstance(sentences, Sentences):
        return _checked(sentences)
    given = [_checked(one) if isinstance(one, Sentences) else _read(one) for one in sentences]
    return given[0] if len(given) == 1 else joined(given)


def _checked(given: Sentences) -> Sentences:
    """Return sentences from a caller, whose arrays compiled code may trust."""
    whole = [(given.first, given.n_tokens), (given.start, given.keys.size)]
    fits = given.keys.dtype == np.uint64 and given.values.dtype == np.float32
    fits = fits and given.values.shape == given.keys.shape
    for ends, total in whole:
        fits = fits and ends.dtype == np.int64 and ends.ndim == 1 and ends.size > 0
        fits = fits and ends[0] == 0 and ends[-1] == total and bool((ends[1:] >= ends[:-1]).all())
    if not fits:
        raise FeatureError("sentences whose arrays do not fit together: use what Chain returns")
    return given


def joined(parts: Sequence[Sentences]) -> Sentences:
    """Return the sentences of several parts, in order."""
    if not parts:
        zero = np.zeros(1, np.int64)
        return Sentences(zero, zero, np.zeros(0, np.uint64), np.zeros(0, np.float32))
    first, start, token, entry = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], 0, 0
    for part in parts:
        first.append(part.first[1:] + token)
        start.append(part.start[1:] + entry)
        token += part.n_tokens
        entry += part.keys.size
    return Sentences(
        np.concatenate(first),
        np.concatenate(start),
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def each_of(sentences: Sentences) -> Iterator[Sentences]:
    """Yield the sentences one by one."""
    first, start, keys, values = sentences
    for begin, stop in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        a, b = int(start[begin]), int(start[stop])
        own = np.array([0, stop - begin], np.int64)
        yield Sentences(own, start[begin : stop + 1] - a, keys[a:b], values[a:b])


def _read(tokens: Any) -> Sentences:
    """Return one sentence."""
    if isinstance(tokens, np.ndarray):
        return _read_matrix(tokens)
    if isinstance(tokens, (str, bytes, Mapping)) or not isinstance(tokens, Iterable):
        raise FeatureError(
            f"a sentence is a sequence of tokens, and not {type(tokens).__name__}: "
            "use a list of dicts, of lists of strings, or of strings"
        )
    keys, values, start = array("Q"), array("f"), array("q", [0])
    text_key, item_key = TEXT_KEYS.__getitem__, _ITEM_KEYS.__getitem__
    for token in tokens:
        before = len(keys)
        try:
            if isinstance(token, dict):
                keys.extend(map(item_key, token.items()))
            elif isinstance(token, str):
                keys.append(text_key(token))
            elif isinstance(token, (list, tuple)):
                keys.extend(map(text_key, token))
            else:
                raise TypeError  # a mapping, or what can be read once only
        except (_NotTextError, TypeError):
            del keys[before:]
            _read_slowly(token, keys, values)
        missing = len(keys) - len(values)
        if missing:
            values.extend((1.0,) * missing)
        start.append(len(keys))
    return _sentence(start, keys, values)


def _sentence(start: Any, keys: Any, values: Any) -> Sentences:
    starts = np.array(start, np.int64)
    first = np.array([0, starts.size - 1], np.int64)
    return Sentences(first, starts, np.array(keys, np.uint64), np.array(values, np.float32))


def _read_slowly(token: Any, keys: array[int], values: array[float]) -> None:
    """Append the features of a token, some of which are numbers, or cannot be used."""
    if isinstance(token, Mapping):
        items: Iterable[Any] = token.items()
    elif isinstance(token, Iterable) and not isinstance(token, bytes):
        items = token
    else:
        raise FeatureError(
            f"a token is {type(token).__name__}: use a dict of features, a list of strings, "
            "or a string"
        )
    for item in items:
        if isinstance(item, str):
            keys.append(TEXT_KEYS[item])
            values.append(1.0)
            continue
        if not isinstance(token, Mapping):
            raise FeatureError(f"a feature is {item!r:.60}: in a list of features, use strings")
        name, value = item
        text = _plain(name) if isinstance(name, str) else str(name)
        if isinstance(value, str):
            keys.append(_ITEM_KEYS[(text, value)])
            values.append(1.0)
        else:
            number = number_of(name, value)
            if number != 0.0:
                keys.append(TEXT_KEYS[text])
                values.append(number)


def number_of(name: Any, value: Any) -> float:
    """Return the value of a number feature; FeatureError: no finite number of single precision."""
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        try:
            number = float(value)
        except (OverflowError, TypeError):  # a whole number of 400 digits; a span of time
            number = math.inf
        if abs(number) <= _LARGEST:
            return number
    raise FeatureError(
        f"feature {name!r:.60}: {value!r:.60} is no finite number; use a string, a finite number "
        "of single precision, or a boolean"
    )


def _read_matrix(matrix: np.ndarray) -> Sentences:
    """Return a sentence whose tokens are rows of numbers; columns are named by their numbers."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise FeatureError(
            f"a sentence is an array of shape {matrix.shape} and dtype {matrix.dtype}: use numbers "
            "of shape (tokens, features), or a list of dicts"
        )
    with np.errstate(over="ignore"):
        narrow = matrix.astype(np.float32)
    if not np.isfinite(narrow).all():
        raise FeatureError("a sentence holds NaN, an infinity, or a number above 3.4e38")
    rows, columns = np.nonzero(narrow)
    names = np.array([TEXT_KEYS[str(j)] for j in range(matrix.shape[1])], np.uint64)
    start = np.searchsorted(rows, np.arange(len(matrix) + 1))
    return _sentence(start, names[columns], narrow[rows, columns])


# What a text is made into besides itself


def shape_of(text: str) -> str:
    """Return the shape of a text: runs of capitals, of lower case and of digits as A, a and 0."""
    runs: list[str] = []
    for letter in text:
        if letter.isupper():
            kind = "A"
        elif letter.isalpha():
            kind = "a"
        else:
            kind = "0" if letter.isdigit() else letter
        if not runs or runs[-1] != kind:
            runs.append(kind)
    return "".join(runs)


def pieces_of(text: str, affixes: int, ngrams: int) -> list[str]:
    """Return the features of a text that are about its letters.

    `affixes`: the longest beginnings and ends; 0: none. `ngrams`: the length of n-grams, of the
    text between two marks for its ends; 0: none.
    """
    found = []
    for n in range(1, min(affixes, len(text)) + 1):
        found += [f"prefix={text[:n]}", f"suffix={text[-n:]}"]
    if ngrams:
        marked = f"^{text}$"
        grams = {marked[i : i + ngrams] for i in range(max(1, len(marked) - ngrams + 1))}
        found += [f"gram={gram}" for gram in sorted(grams)]
    return found


@lru_cache(_MOST_WORDS)
def piece_keys(text: str, affixes: int, ngrams: int) -> tuple[int, ...]:
    """Return the keys of the pieces of a text, see `pieces_of`."""
    return tuple(TEXT_KEYS[piece] for piece in pieces_of(text, affixes, ngrams))


@lru_cache(_MOST_WORDS)
def shape_key(text: str) -> int:
    """Return the key of the shape of a text."""
    return TEXT_KEYS[f"shape={shape_of(text)}"]
