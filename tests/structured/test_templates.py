"""Templates and Chain against the same features made of texts in Python."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest

import streamsvm
from streamsvm import Chain
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.structured.sentences import joined, key_of, pieces_of, read_sentences, shape_of
from streamsvm.structured.templates import read_templates

TEMPLATE = """
# words
U00:%x[-2,0]
U01:%x[0,0]/%x[1,1]
U02:%x[0,1]
U03:bias

B
"""
WORDS = [["the", "big", "dog"], ["a"], [], ["the", "the"]]
TAGS = [["D", "J", "N"], ["D"], [], ["D", "N"]]
PAIRS = [list(zip(w, t, strict=True)) for w, t in zip(WORDS, TAGS, strict=True)]


def texts_of(sentence):
    """Return the features of TEMPLATE as texts: (template, texts found)."""

    def at(t, column):
        if t < 0:
            return f"_B{t}"
        return sentence[t][column] if t < len(sentence) else f"_B+{t - len(sentence) + 1}"

    return [
        [(0, at(t - 2, 0)), (1, at(t, 0), at(t + 1, 1)), (2, at(t, 1)), (3,)]
        for t in range(len(sentence))
    ]


def keys_of(sentences):
    return [
        sentences.keys[a:b].tolist()
        for a, b in zip(sentences.start, sentences.start[1:], strict=False)
    ]


def test_equal_texts_have_equal_keys_and_others_have_others():
    texts = [features for sentence in PAIRS for features in texts_of(sentence)]
    keys = keys_of(Chain(TEMPLATE).transform_many(PAIRS))
    key_by_text = {}
    for row, found in zip(texts, keys, strict=True):
        assert len(row) == len(found)
        for text, key in zip(row, found, strict=True):
            assert key_by_text.setdefault(text, key) == key
    assert len(set(key_by_text.values())) == len(key_by_text) > 10


def test_one_and_many_lists_tables_and_dicts_agree():
    chain = Chain(TEMPLATE)
    many = chain.transform_many(PAIRS)
    assert many.first.tolist() == [0, 3, 4, 4, 6]
    one = [keys_of(chain.transform_one(sentence)) for sentence in PAIRS]
    assert keys_of(many) == [keys for sentence in one for keys in sentence]
    table = pa.table({"0": WORDS, "1": TAGS})
    for batch in (table, table.to_batches()[0], pa.concat_tables([table[:1], table[1:]])):
        assert all((a == b).all() for a, b in zip(many, chain.transform_many(batch), strict=True))
    assert (chain.transform_many(table[1:]).keys == many.keys[many.start[3] :]).all()
    dicts = [[{"0": w, "1": t} for w, t in sentence] for sentence in PAIRS]
    assert (chain.transform_many(dicts).keys == many.keys).all()
    named = Chain(TEMPLATE.replace(",0]", ",w]").replace(",1]", ",p]"))
    assert named.transform_many(pa.table({"w": WORDS, "p": TAGS})).n_tokens == many.n_tokens


def some_sentence(random):
    """Return a sentence of one of the kinds of tokens; dicts have keys of their own."""
    words, n = ["the", "Dog", ""], random.randrange(4)
    kind = random.choice(["text", "list", "dict", "dict"])
    if kind == "text":
        return random.choices(words, k=n)
    if kind == "list":
        width = random.randrange(4)
        return [random.choices(words, k=width) for _ in range(n)]
    kinds = {name: random.choice([words, [0.0, 2.5, True]]) for name in ("w", "1", 2, "n")}
    names = [random.sample(list(kinds), random.randrange(5)) for _ in range(n)]
    return [{name: random.choice(kinds[name]) for name in some} for some in names]


def test_any_batch_is_one_by_one():
    random = Random(1)
    for chain in (Chain(window=1), Chain(window=0, affixes=2, ngrams=2, shapes=True)):
        for _ in range(100):
            sentences = [some_sentence(random) for _ in range(random.randrange(5))]
            one_by_one = joined([chain.transform_one(sentence) for sentence in sentences])
            many = chain.transform_many(sentences)
            assert all(map(np.array_equal, many, one_by_one)), sentences
            assert [a.dtype for a in many] == [a.dtype for a in one_by_one]


def test_windows_and_pairs():
    plain = Chain(window=1, pairs=False).transform_many(WORDS)
    pairs = Chain(window=1).transform_many(WORDS)
    assert np.diff(plain.start).tolist() == [3] * 6 and np.diff(pairs.start).tolist() == [5] * 6
    assert keys_of(pairs)[0][:3] == keys_of(plain)[0]
    assert np.diff(Chain(window=0).transform_one(["a", "b"]).start).tolist() == [1, 1]


def test_letters_and_shapes_and_numbers():
    assert shape_of("London-2 42nd") == "Aa-0 0a" and shape_of("") == ""
    assert pieces_of("ab", 3, 0) == ["prefix=a", "suffix=b", "prefix=ab", "suffix=ab"]
    assert pieces_of("aba", 0, 2) == ["gram=^a", "gram=a$", "gram=ab", "gram=ba"]
    assert pieces_of("", 2, 2) == ["gram=^$"] and pieces_of("", 0, 5) == ["gram=^$"]
    chain = Chain(window=0, affixes=1, ngrams=2, shapes=True)
    found = chain.transform_one([{"w": "Ab", "size": 2.5, "up": True}, {"w": "b", "size": 0.0}])
    first, second = keys_of(found)
    assert {key_of("prefix=A"), key_of("gram=Ab"), key_of("size"), key_of("up")} < set(first)
    assert found.values[: len(first)].tolist().count(2.5) == 1
    assert key_of("size") not in second
    # Four of shape and text, then letters; the values of all texts are 1.
    assert len(first) == 4 + 2 + 3 + 2 and len(second) == 4 + 2 + 2


@pytest.mark.parametrize(
    "line", ["B01:%x[0,0]", "U1:%x[a,0]", "U1:%x[0]", "U1:%y[0,0]", "U:%x[101,0]", "B", "# only",
             f"U:%x[{'9' * 5000},0]"]
)  # fmt: skip
def test_lines_that_are_no_templates(line):
    with pytest.raises(ParameterError, match="template"):
        Chain(line)
    assert len(read_templates("\ufeffU1:%x[ -1 , word ]\nU2:a%x[0,0]b")) == 2


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ("text", "a sentence is str"),
        ([3], "not all as many columns"),
        (["a", 3], "a token is 3"),
        ([["a", 3]], "a token is 3"),
        ([["a"], ["b", "c"]], "not all as many columns"),
        ([{"w": "a"}, {"w": 1.0}], "a string and a number"),
        ([{"w": "a"}, "b"], "use one kind"),
        ([{1: "a", "1": "b"}], "the same name"),
        ([{1: "a"}, {"1": "b"}], "the same name"),
        ([["a", "b"], "cd"], "not all as many columns"),
        ([("a", "b"), {"c": "x", "d": "y"}], "not all as many columns"),
        ([{"w": "a", "n": float("nan")}], "'n': nan"),
        ([{"w": "a", "n": None}], "'n': None"),
    ],
)
def test_tokens_that_cannot_be_used(tokens, said):
    with pytest.raises(FeatureError) as error:
        Chain().transform_one(tokens)
    assert said in str(error.value)


def test_tables_that_cannot_be_used():
    chain = Chain()
    for bad in (
        pa.array(["a"]),
        pa.array([["a"], None]),
        pa.array([["a", None]]),
        pa.array([[1]]),
        pa.table({"a": [["x"]], "b": [["x", "y"]]}),
        pa.table({}),
        pa.table([pa.array([["a"]])] * 2, names=["w", "w"]),
    ):
        with pytest.raises(FeatureError):
            chain.transform_many(bad)
    with pytest.raises(ParameterError, match="no column '1'"):
        Chain(TEMPLATE).transform_one(["a"])
    for params in ({"window": -1}, {"window": None}, {"affixes": 21}, {"template": 3}):
        with pytest.raises(ParameterError):
            Chain(**params)


@pytest.mark.parametrize("template", [None, "U0:%x[0,0]/%x[-1,1]", "U0:%x[0,word]/%x[-1,tag]"])
def test_tokens_of_all_kinds_have_the_columns_that_are_named(template):
    chain = Chain(template, window=1, affixes=2, shapes=True, columns="word, tag")
    many = chain.transform_many(PAIRS)
    dicts = [[{"tag": t, "x": "no", "word": w} for w, t in sentence] for sentence in PAIRS]
    table = pa.table({"x": TAGS, "tag": TAGS, "word": WORDS})
    for others in (dicts, table, [list(map(list, sentence)) for sentence in PAIRS]):
        assert all(map(np.array_equal, many, chain.transform_many(others)))
    assert key_of("prefix=th") in many.keys and key_of("prefix=D") not in many.keys
    (one,) = [chain.transform_one([{"word": "a"}, {"word": "b", "n": 2.0}])]
    assert key_of("n") in one.keys
    assert np.array_equal(one.keys[one.keys != key_of("n")],
                          chain.transform_one([("a", ""), ("b", "")]).keys)  # fmt: skip
    single = Chain(window=0, columns="word")
    same = [["a"], [("a",)], [{"word": "a", "tag": "b"}]]
    assert len({single.transform_one(tokens).keys.tobytes() for tokens in same}) == 1
    assert (single.transform_many(pa.array([["a"]])).keys == single.transform_one(["a"]).keys).all()


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        (["a"], "have 1 columns, and columns= names 2: word, tag"),
        ([("a", "b", "c")], "have 3 columns"),
        ([{"w": "a", "t": "b"}], "none of the columns word, tag; they have w, t"),
        ([{"word": "a", "tag": 2.0}], "'tag' is a number"),
    ],
)
def test_tokens_without_the_columns_that_are_named(sentence, said):
    with pytest.raises((FeatureError, ParameterError)) as error:
        Chain(columns="word,tag").transform_one(sentence)
    assert said in str(error.value)


def test_columns_that_cannot_be_used():
    chain = Chain(columns="word,tag")
    with pytest.raises(ParameterError, match="no column 'tag'; it has word"):
        chain.transform_many(pa.table({"word": [["a"]]}))
    with pytest.raises(ParameterError, match="use a table"):
        chain.transform_many(pa.array([["a"]]))
    for bad in ("", "a,,b", "a,a", 3, ["a"]):
        with pytest.raises(ParameterError, match="columns="):
            Chain(columns=bad)
    with pytest.raises(ParameterError, match="no column '2'"):
        Chain("U0:%x[0,2]", columns="word,tag").transform_one([("a", "b")])


def test_letters_are_those_of_the_same_column_whatever_the_order_of_the_keys(tmp_path):
    chain = Chain(window=0, affixes=2, ngrams=2, shapes=True)
    chain.transform_one([])
    chain.transform_one([{"n": 1.0}])
    token = {"word": "Dog", "tag": "NN"}
    expected = sorted(chain.transform_one([token]).keys)
    streamsvm.save(chain | streamsvm.SequencePA(), tmp_path / "m.svm")
    loaded = streamsvm.load(tmp_path / "m.svm")["Chain"]
    swapped = dict(reversed(token.items()))
    for other in (chain, loaded, Chain(window=0, affixes=2, ngrams=2, shapes=True, columns="word")):
        found = sorted(other.transform_one([swapped]).keys)
        assert found == expected or set(found) < set(expected)
    assert key_of("suffix=NN") not in chain.transform_many([[{"tag": "NN"}], [swapped]]).keys
    assert key_of("suffix=NN") in chain.clone().transform_one([swapped]).keys


def test_files_and_copies(tmp_path):
    model = Chain(TEMPLATE, shapes=True) | streamsvm.SequencePA()
    model.learn_many(PAIRS, TAGS)
    streamsvm.save(model, tmp_path / "m.svm")
    loaded = streamsvm.load(tmp_path / "m.svm")
    assert loaded["Chain"]._get_params() == model["Chain"]._get_params()
    assert loaded.predict_many(PAIRS) == model.predict_many(PAIRS)
    clone = model["Chain"].clone()
    assert (clone.transform_one(PAIRS[0]).keys == model["Chain"].transform_one(PAIRS[0]).keys).all()
    assert read_sentences([clone.transform_one(PAIRS[0])]).n_tokens == 3
