"""A growing vocabulary: a hash table from the keys of features to columns 0, 1, 2, ..."""

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_within
from streamsvm.structured.sentences import Sentences
from streamsvm.support.declaration import Field, NamedArrays, as_int
from streamsvm.support.rows import SparseRows, tidy

_FEWEST = 1024


class Vocabulary(NamedTuple):
    """An open-addressing table, at most half full; a column is the number of its key."""

    key: np.ndarray  # uint64 (places,), a power of two
    column: np.ndarray  # int32 (places,): -1 where a place is empty
    known: np.ndarray  # uint64 (room,): the key of each column
    counts: np.ndarray  # int64 (2,): columns; entries of new features ignored for want of room


def new_vocabulary(n: int = 0) -> Vocabulary:
    """Return an empty vocabulary with room for n keys."""
    places = _FEWEST
    while places < 2 * n:
        places *= 2
    empty = np.full(places, -1, np.int32)
    return Vocabulary(
        np.zeros(places, np.uint64), empty, np.zeros(places // 2, np.uint64), np.zeros(2, np.int64)
    )


def with_keys(keys: np.ndarray, room: int = 0) -> Vocabulary:
    """Return a vocabulary of distinct keys, uint64 (n,), in their order, with room for so many."""
    new = new_vocabulary(max(room, keys.size))
    if keys.size:
        _enter(new, keys, np.empty(keys.size, np.int32), 0, keys.size)
    return new


def size(vocabulary: Vocabulary) -> int:
    """Return the number of keys."""
    return int(vocabulary.counts[0])


def keys_of(vocabulary: Vocabulary, n: int) -> np.ndarray:
    """Return the first n keys, uint64 (n,), in the order of their columns."""
    return vocabulary.known[:n]


def shortened(vocabulary: Vocabulary, n: int) -> Vocabulary:
    """Return a vocabulary with the first n keys alone."""
    shorter = with_keys(keys_of(vocabulary, n))
    shorter.counts[1] = vocabulary.counts[1]
    return shorter


def as_file(vocabulary: Vocabulary, n: int) -> tuple[np.ndarray, int]:
    """Return what a file holds: the first n keys, and how many entries were ignored."""
    return keys_of(vocabulary, n), int(vocabulary.counts[1])


def from_file(name: str, arrays: NamedArrays, most: int, n_ignored: Any = 0) -> Vocabulary:
    """Return the vocabulary of keys in a file; ValueError: two are equal, or more than `most`."""
    n = arrays.length_of(name, 0)
    found = with_keys(arrays.take(name, Field((n,), np.uint64), {}))
    if n > most or size(found) != n:
        raise ValueError(f"{name}: there are more than {most} keys, or two are equal")
    found.counts[1] = as_int("n_ignored", n_ignored, 0)
    return found


def learnt_rows(
    vocabulary: Vocabulary, sentences: Sentences, limit: int
) -> tuple[Vocabulary, SparseRows]:
    """Enter the new features of sentences; return the vocabulary, and their tokens as rows.

    It is changed, or a larger one if there were many new keys. It holds at most `limit` keys;
    further ones are ignored and counted.
    """
    columns = np.empty(sentences.keys.size, np.int32)
    done = _enter(vocabulary, sentences.keys, columns, 0, limit)
    while done < columns.size:
        larger = with_keys(keys_of(vocabulary, size(vocabulary)), vocabulary.key.size)
        larger.counts[1] = vocabulary.counts[1]
        vocabulary = larger
        done = _enter(vocabulary, sentences.keys, columns, done, limit)
    return vocabulary, _rows(columns, sentences, size(vocabulary))


def known_rows(vocabulary: Vocabulary, sentences: Sentences, n: int) -> SparseRows:
    """Return tokens as rows; features that are not among the first n are left out."""
    columns = np.empty(sentences.keys.size, np.int32)
    _find(vocabulary, sentences.keys, columns)
    columns[columns >= n] = -1
    return _rows(columns, sentences, n)


def _rows(columns: np.ndarray, sentences: Sentences, d: int) -> SparseRows:
    start, values = sentences.start.copy(), sentences.values.copy()
    n = tidy(start, columns, values)
    return SparseRows(start, columns[:n], values[:n], d)


@compiled_within
def place(key, column, wanted):
    """Return the place of a key, or the empty place where it belongs."""
    last = key.size - 1
    # The keys are hashes already; templates differ in their lower bits, too.
    at = np.int64(wanted & np.uint64(last))
    while column[at] >= 0 and key[at] != wanted:
        at = (at + 1) & last
    return at


@compiled_within
def column_of(vocabulary, wanted):
    """Return the column of a key, -1 if it has none."""
    return vocabulary.column[place(vocabulary.key, vocabulary.column, wanted)]


@compiled_within
def _add(vocabulary, at, key):
    """Give a key the next column, at its place."""
    n = vocabulary.counts[0]
    vocabulary.key[at], vocabulary.column[at], vocabulary.known[n] = key, n, key
    vocabulary.counts[0] = n + 1


@compiled_within
def entered(vocabulary, wanted, most):
    """Return the column of a key, which gets one if there are fewer than `most`; else -1.

    The caller has made room.
    """
    at = place(vocabulary.key, vocabulary.column, wanted)
    if vocabulary.column[at] < 0 and vocabulary.counts[0] < most:
        _add(vocabulary, at, wanted)
    return vocabulary.column[at]


@compiled
def _find(vocabulary, keys, columns):
    for j in range(keys.size):
        columns[j] = column_of(vocabulary, keys[j])


@compiled
def _enter(vocabulary, keys, columns, first, limit):
    """Set the columns of keys from `first` on; return where the table was full, or their number."""
    counts = vocabulary.counts
    for j in range(first, keys.size):
        at = place(vocabulary.key, vocabulary.column, keys[j])
        if vocabulary.column[at] < 0:
            if counts[0] >= limit:
                counts[1] += 1
                columns[j] = -1
                continue
            if counts[0] >= vocabulary.known.size:
                return j
            _add(vocabulary, at, keys[j])
        columns[j] = vocabulary.column[at]
    return keys.size
