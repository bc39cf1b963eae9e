"""OSPASParser: sentences parsed, learnt from bags of meanings."""

import copy
import random
import time
from functools import partial
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from examples.papers.ambiguous_house import house
from streamsvm import OSPASParser
from streamsvm.errors import LabelError
from streamsvm.model_files import codec
from streamsvm.structured.parser.algorithm_24 import EXPLORATIONS, learn_sentence
from streamsvm.structured.parser.meanings import as_text, bag_of, frames_of, read_meaning
from streamsvm.support.draws import new_draws
from streamsvm.support.rows import SparseRows
from tests.interruptions import interrupted
from tests.learners.test_all_learners import content
from tests.reference import slow_ospas

TRACED = ("parser/parser.py", "parser/grammar.py", "parser/ranking.py")
SETTINGS = list(OSPASParser._unit_test_params())


def learnt(model, sentences):
    for said in sentences:
        model.learn_one(said.words, said.candidates)
    return model


def with_class(model):
    values, arrays = codec.to_file(model)
    return values | {"class": "OSPASParser"}, arrays


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_sentences_are_learnt_as_by_the_slow_twin(exploration):
    rng, d, k = np.random.default_rng(3), 9, 6
    fast, slow = np.zeros((d, k)), np.zeros((d, k))
    late, sums, draws, others = np.zeros((1, 1)), np.zeros(4), new_draws(5), new_draws(5)
    for i in range(60):
        n = int(rng.integers(0, 8))
        # Different values, so that no two words or labels are equally good but by design.
        X = np.where(rng.random((n, d)) < 0.4, rng.random((n, d)), 0.0).astype(np.float32)
        counts = np.where(rng.random(k) < 0.6, rng.integers(1, 4, k), 0)
        row, column = np.nonzero(X)
        start = np.searchsorted(row, np.arange(n + 1)).astype(np.int64)
        rows = SparseRows(start, column.astype(np.int32), X[row, column], d)
        labels, left = np.empty(n, np.int64), counts.copy()
        how = (EXPLORATIONS[exploration], draws, labels, sums)
        learn_sentence(fast, late, float(i), rows, left, k, 0.3, *how)
        found = slow_ospas.learn_sentence(slow, X.astype(float), counts, 0.3, exploration, others)
        assert labels.tolist() == found
        assert (counts - left == np.bincount(labels[labels >= 0], minlength=k)).all()
        np.testing.assert_allclose(fast, slow, atol=1e-12)
    assert np.abs(slow).max() > 0.1 and sums[0] > 50 and draws[0] == others[0]


@pytest.mark.parametrize("settings", SETTINGS)
def test_sentences_and_bags_as_text_and_as_arrow(settings):
    sentences = list(house(60, 1, 0))
    model = learnt(OSPASParser(**settings), sentences)
    words, bags = [s.words for s in sentences], [s.candidates for s in sentences]
    batch = OSPASParser(**settings)
    batch.learn_many(pa.array(words[:40]), pa.array([[*map(as_text, b)] for b in bags[:40]]))
    batch.learn_many(pa.array([" ".join(w) for w in words[40:]]), bags[40:])
    assert content(batch) == content(model)
    further = list(house(20, 2, 1))
    parses = learnt(model, further).predict_many([s.words for s in further])
    assert any(parse.meaning for parse in parses)
    symbols = model.predict_symbols_many([s.words for s in further])
    assert symbols == [parse.symbols for parse in parses]
    assert model.n_examples == 80 and model.memory_usage > 10_000
    assert 0 < model.sum_of_losses and model.n_updates > 10 and model.regret_bound < 100.0


def is_ours(code):
    return code.co_filename.endswith(TRACED)


def test_an_interruption_at_any_line_leaves_a_whole_model():
    event = ("u0 w1 u2 " + " ".join(f"n{i}" for i in range(70)),
             ["r(y,z)", "q(s1,r(x,s2),s3)", "u(z,q(s4,s5))", "v(s6,s7,s8,y,s9)"])  # fmt: skip
    plain = OSPASParser(seed=0)
    for i in range(12):
        plain.learn_one(f"u{i % 3} w1 u{i % 2}", ["r(x,y)", "r(y)"])
    asked, n_hits = ["u0 w1 u2", "n1 u2 n3 w1", event[0]], 0
    for k in range(1, 10_000, 3):
        model = copy.deepcopy(plain)
        was = interrupted(partial(model.learn_one, *event), k, is_ours)
        n_hits += was
        loaded = codec.from_file(*with_class(model))
        assert model.predict_many(asked) == loaded.predict_many(asked)
        for each in (model, loaded):
            each.learn_one(*event)
        assert content(model) == content(loaded)
        assert model.predict_many(asked) == loaded.predict_many(asked)
        if not was:
            break
    assert n_hits > 50


@pytest.mark.parametrize(("exploration", "least"), [("random", 95.0), ("order_free", 95.0)])
def test_the_house_is_aligned_at_ambiguity_3(exploration, least):
    model = OSPASParser(exploration=exploration, window=0, averaged=False, seed=0)
    learnt(model, house(1200, 3, 0))
    test = list(house(200, 0, 1))
    parses = model.predict_many([s.words for s in test])
    aligned = [parse.symbols == s.symbols for parse, s in zip(parses, test, strict=True)]
    right = [parse.meaning == s.meaning for parse, s in zip(parses, test, strict=True)]
    assert 100.0 * np.mean(aligned) >= least and np.mean(right) > 0.85


def test_meanings_are_composed_that_were_never_seen():
    model = OSPASParser(seed=0)
    pairs = [(a, b) for a in range(2, 9) for b in range(2, 9) if a != b]
    for a, b in pairs * 3:
        if (a, b) != (4, 7):
            pass_ = f"pass(pink{a} , pink{b})"
            model.learn_one(f"pink {a} passes to pink {b}", [pass_, f"kick(pink{b})"])
            model.learn_one(f"pink {a} shoots", [pass_, ["kick", f"pink{a}"]])
    parse = model.predict_one("pink 4 passes to pink 7")
    assert parse.meaning == ("pass", "pink4", "pink7") == parse.meanings[0]
    assert parse.roles[0].count("REL") == 1 and {"A0", "A1"} < set(parse.roles[0])
    assert model.predict_one(["pink", "3", "shoots"]).meaning == ("kick", "pink3")
    assert set(model.relations) == {"pass", "kick"} and "pink4" in model.symbols
    given = ["kick(pink7)", "pass(pink7,pink4)", "pass(pink4, pink7)"]
    assert model.match_one("pink 4 passes to pink 7", given) == given[2]
    assert model.match_one("pink 4 passes to pink 7", given[:2]) == given[1]
    assert model.match_one("pink 4 passes to pink 7", ["goal()"]) is None
    scores = model.scores_one("pink 4 passes to pink 7")
    assert max(scores, key=scores.get) == parse.meaning


def test_a_relation_with_two_numbers_of_arguments():
    model, rng = OSPASParser(seed=0), random.Random(0)

    def told():
        who, (a, b) = rng.choice(["ann", "bob", "cid"]), rng.sample(["hall", "attic", "yard"], 2)
        short = f"{who} goes to the {a}", ("move", who, a)
        return rng.choice([short, (f"{who} goes from the {b} to the {a}", ("move", who, b, a))])

    for _ in range(300):
        sentence, meaning = told()
        model.learn_one(sentence, [meaning])
    test = [told() for _ in range(100)]
    assert all(model.predict_one(sentence).meaning == meaning for sentence, meaning in test)
    assert model.relations == ["move"] and len(model.predict_one(test[0][0]).meanings) == 1


def test_what_nothing_speaks_for_has_no_meaning():
    model = OSPASParser(seed=0)
    for a, b in list(permutations(range(1, 8), 2)) * 2:
        candidates = [f"pass(pink{a}, pink{b})", f"kick(pink{a})"]
        model.learn_one(f"pink {a} passes to pink {b}", [*candidates, f"kick(pink{b})"])
        model.learn_one(f"pink {a} shoots", candidates)
    parse = model.predict_one("the weather is nice in Paris")
    assert parse == ([None] * 6, [], None, [], 0.0)
    learnt(other := OSPASParser(seed=0, max_features=9), house(9, 0, 0))
    assert other.n_ignored_features > model.n_ignored_features == 0
    # The score says how sure it is: none of those that are right without a doubt is unsure.
    learnt(sure := OSPASParser(seed=0), house(900, 0, 1))
    parses = [sure.predict_one(said.words) for said in house(100, 0, 2)]
    assert min(parse.score for parse in parses) > 0.0 == sure.predict_one("so what").score


def test_arguments_are_those_that_words_name():
    model = learnt(OSPASParser(seed=0), house(1500, 3, 2))
    invented = wrong = 0
    for said in house(300, 0, 9):
        meaning = model.predict_one(said.words).meaning
        invented += not set(meaning[1:]) <= set(said.words)
        wrong += meaning != said.meaning
    assert invented <= 1 and wrong <= 3


def test_meanings_within_meanings():
    model = OSPASParser(window=0, averaged=False, seed=0)
    people, deeds = ["ann", "bob", "eve"], ["sings", "jumps"]
    for _ in range(30):
        for one in people:
            for other in people:
                for deed in deeds:
                    model.learn_one([one, "thinks", other, deed], [["think", one, [deed, other]]])
                    model.learn_one([other, deed], [(deed, other)])
    parse = model.predict_one("ann thinks bob sings")
    assert ("think", "ann", ("sings", "bob")) in parse.meanings


def test_meanings_are_read():
    nested = ("believe", "mother", ("break", "dog", "box"))
    assert read_meaning("believe( mother ,break(dog,box) )") == nested
    assert read_meaning(["believe", "mother", ["break", "dog", "box"]]) == nested
    assert read_meaning(as_text(nested)) == nested
    assert read_meaning("ballstopped()") == ("ballstopped",)
    assert read_meaning("pink4") == "pink4"
    assert frames_of(nested) == [("believe", "mother", "break"), ("break", "dog", "box")]
    bag, n_empty = bag_of([("defense", "a", "a"), ("kick", "a"), "b", "b"], 9)
    assert bag == {"defense": 1, "kick": 1, "a": 2, "b": 2} and n_empty == 9 - 2 - 2
    texts = ["", "a b", "f(a", "f)a(", "f(a,)", "(a)", "f(,a)", "f(a)(b)", "f(a) g", "a,b"]
    deep = ["f"]
    for _ in range(10_000):
        deep = ["f", deep]
    texts += ["s" * 1001, f"f({'s' * 1001})"]
    assert read_meaning("s" * 1000) == "s" * 1000
    wrong = [
        *texts,
        deep,
        ["f", "s" * 1001],
        [],
        [["f"]],
        3,
        None,
        ["f"] * 40,
        "f(" * 60 + ")" * 60,
    ]
    for given in wrong:
        with pytest.raises(LabelError) as refused:
            read_meaning(given)
        assert len(str(refused.value)) < 200


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_sentences_and_bags_at_the_limits(exploration):
    model = OSPASParser(exploration=exploration, seed=0)
    assert model.predict_one("nothing learnt").symbols == [None, None]
    assert model.predict_one([]) == ([], [], None, [], 0.0)
    learnt(model, house(60, 1, 0))
    kept = content(model)
    # Without words or candidates there is nothing to learn; the sentence is counted.
    model.learn_one(["the"], [])
    model.learn_one([], ["move(cat,hall)"])
    values, arrays = content(model)
    assert values == kept[0] | {"n_examples": 62} and arrays == kept[1]
    model.learn_one(["never", "seen"], model.symbols)  # all labels but the empty one
    model.learn_one(["a"] * 9, [*model.symbols, "-"])
    assert model.predict_one("xyz zyx").symbols == [None, None]
    with pytest.raises(LabelError, match="max_symbols"):
        learnt(OSPASParser(max_symbols=3), house(9, 1, 0))
    began = time.process_time()
    words = [word for said in house(170, 0, 2) for word in said.words][:1000]
    model.learn_one(words, [s.meaning for s in house(30, 0, 3)])
    assert len(model.predict_one(words).symbols) == 1000
    assert time.process_time() - began < 20.0
