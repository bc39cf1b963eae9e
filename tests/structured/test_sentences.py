"""Sentences as arrays, and the vocabulary."""

import collections
import enum
import types

import numpy as np
import pytest

from streamsvm.errors import FeatureError
from streamsvm.structured import vocabulary
from streamsvm.structured.sentences import TEXT_KEYS, joined, key_of, read_sentences
from streamsvm.support.rows import LARGEST


def as_dicts(sentences):
    """Return the features of each token by key."""
    return [
        dict(zip(sentences.keys[a:b].tolist(), sentences.values[a:b].tolist(), strict=True))
        for a, b in zip(sentences.start, sentences.start[1:], strict=False)
    ]


def test_a_key_is_that_of_every_process():
    # Model files hold keys.
    assert key_of("w=the") == 14827187153040007084


def test_dicts_lists_strings_and_arrays_agree():
    dicts = read_sentences([[{"w": "the", "n": 2.0, "zero": 0.0, "up": True}, {"w": "dog"}]])
    assert as_dicts(dicts) == [
        {key_of("w=the"): 1.0, key_of("n"): 2.0, key_of("up"): 1.0},
        {key_of("w=dog"): 1.0},
    ]
    lists = read_sentences([[["w=the", "up"], ("w=dog",), "w=dog", []]])
    assert as_dicts(lists) == [
        {key_of("w=the"): 1.0, key_of("up"): 1.0},
        {key_of("w=dog"): 1.0},
        {key_of("w=dog"): 1.0},
        {},
    ]
    matrix = read_sentences([np.array([[0.0, 2.5], [1.0, 0.0]])])
    numbers = read_sentences([[{"0": 0.0, "1": 2.5}, {0: 1.0}]])
    assert as_dicts(matrix) == as_dicts(numbers)


def test_subclasses_and_other_containers_are_as_the_plain_ones():
    class Colour(str, enum.Enum):  # noqa: UP042 - its str() is another text
        RED = "red"

    plain = as_dicts(read_sentences([[{"w": "red", "n": 2.0}, {"red": 1.0}]]))
    TEXT_KEYS.clear()
    for kind in (dict, types.MappingProxyType, collections.UserDict, collections.ChainMap):
        tokens = [kind({"w": Colour.RED, "n": 2.0}), kind({Colour.RED: 1.0})]
        assert as_dicts(read_sentences([tokens])) == plain
    assert as_dicts(read_sentences([[{1: 2.0}]])) == [{key_of("1"): 2.0}]
    assert as_dicts(read_sentences([[{1: "a"}, {True: "a"}, {1.0: "a"}]])) == [
        {key_of("1=a"): 1.0},
        {key_of("True=a"): 1.0},
        {key_of("1.0=a"): 1.0},
    ]
    once = [(text for text in ("a", "b")), np.array(["a", "b"]), ("a", np.str_("b"))]
    expected = {key_of("a"): 1.0, key_of("b"): 1.0}
    assert as_dicts(read_sentences([once])) == [expected] * 3


def test_long_texts_are_not_kept():
    TEXT_KEYS.clear()
    read_sentences([[["x" * 201, "x" * 200]]])
    assert list(TEXT_KEYS) == ["x" * 200]


@pytest.mark.parametrize(
    "change",
    [
        {"first": np.array([0, 3])},
        {"first": np.array([0, 9, 2])},
        {"first": np.array([1, 2])},
        {"start": np.array([0, 5, 2])},
        {"start": np.array([0, 1, 2], np.int32)},
        {"keys": np.zeros(2, np.int64)},
        {"values": np.zeros(1, np.float32)},
    ],
)
def test_arrays_of_a_caller_are_checked(change):
    given = read_sentences([["a", "b"]])
    with pytest.raises(FeatureError, match="do not fit together"):
        read_sentences(given._replace(**change))


def test_several_sentences():
    both = read_sentences([["a", "b"], [], ["c"]])
    assert both.first.tolist() == [0, 2, 2, 3] and both.n == 3 and both.n_tokens == 3
    again = joined([read_sentences([["a", "b"], []]), read_sentences([["c"]])])
    assert all((a == b).all() for a, b in zip(both, again, strict=True))
    assert read_sentences([]).n == 0


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ("text", "a sentence is a sequence of tokens, and not str"),
        ({"w": "the"}, "and not dict"),
        (7, "and not int"),
        ([3.0], "a token is float"),
        ([b"the"], "a token is bytes"),
        ([["w=the", 3]], "a feature is 3"),
        ([[("w", "the")]], "a feature is ('w', 'the')"),
        ([{"w": float("nan")}], "feature 'w': nan"),
        ([{"w": float("inf")}], "feature 'w': inf"),
        ([{"w": 1e39}], "feature 'w'"),
        ([{"w": None}], "feature 'w': None"),
        ([{"w": 10**400}], "feature 'w': 1000"),
        ([{"w": np.timedelta64(3, "D")}], "feature 'w'"),
        ([{"w": np.complex128(1j)}], "feature 'w'"),
        ([iter(["a", 5])], "a feature is 5"),
        ([{"w": ["a"]}], "feature 'w'"),
        (np.array([[np.nan]]), "NaN"),
        (np.array([1.0]), "shape (1,)"),
        (np.array([["a"]]), "dtype"),
    ],
)
def test_what_cannot_be_used_is_named(tokens, said):
    with pytest.raises(FeatureError) as error:
        read_sentences([tokens])
    assert said in str(error.value)


def test_keys_are_forgotten_beyond_a_limit(monkeypatch):
    monkeypatch.setattr("streamsvm.structured.sentences._REMEMBERED", 4)
    TEXT_KEYS.clear()
    for i in range(20):
        assert TEXT_KEYS[f"x{i}"] == key_of(f"x{i}")
        assert len(TEXT_KEYS) <= 4


def test_a_vocabulary_grows_and_finds():
    random, table, columns = np.random.default_rng(0), vocabulary.new_vocabulary(), {}
    for n in (10, 1000, 5000):
        texts = [f"f{i}" for i in random.integers(0, n, n)]
        sentence = read_sentences([[[text] for text in texts]])
        table, rows = vocabulary.learnt_rows(table, sentence, 2**20)
        for text in texts:
            columns.setdefault(text, len(columns))
        assert rows.columns.tolist() == [columns[text] for text in texts]
        assert (
            vocabulary.known_rows(table, sentence, vocabulary.size(table)).columns == rows.columns
        ).all()
    assert vocabulary.size(table) == len(columns)
    again = vocabulary.with_keys(vocabulary.keys_of(table, len(columns)))
    assert (vocabulary.known_rows(again, sentence, len(columns)).columns == rows.columns).all()


def test_unknown_features_are_left_out_and_the_limit_holds():
    table = vocabulary.new_vocabulary()
    table, rows = vocabulary.learnt_rows(table, read_sentences([[["a", "b", "c", "a"]]]), 2)
    assert rows.columns.tolist() == [0, 1] and rows.values.tolist() == [2.0, 1.0]
    assert table.counts.tolist() == [2, 1]
    known = vocabulary.known_rows(table, read_sentences([[["c", "b"], ["d"], ["a"]]]), 2)
    assert known.columns.tolist() == [1, 0] and known.start.tolist() == [0, 1, 1, 2]


def test_long_rows_are_sorted_too():
    names = [f"f{i}" for i in np.random.default_rng(1).permutation(300)] * 2
    table = vocabulary.new_vocabulary()
    table, _ = vocabulary.learnt_rows(table, read_sentences([[sorted(set(names))]]), 2**20)
    rows = vocabulary.known_rows(table, read_sentences([[["f1"], names, ["f2"]]]), 300)
    middle = slice(*rows.start[1:3])
    assert rows.columns[middle].tolist() == list(range(300))
    assert (rows.values[middle] == 2.0).all() and rows.start[-1] == 302


def test_the_sum_of_equal_features_is_finite():
    for sign in (1.0, -1.0):
        sentence = read_sentences([[{1: sign * 3e38, "1": sign * 3e38}]])
        _, rows = vocabulary.learnt_rows(vocabulary.new_vocabulary(), sentence, 2**20)
        assert rows.values.tolist() == [sign * LARGEST]
