"""Concept labels: the learner and its slow twin, bags, odd sentences, the house."""

import copy
from collections import Counter

import pytest

from examples.house import CONCEPTS, House, readings, sentences
from streamsvm import ConceptLabeler
from tests.learners.test_all_learners import content
from tests.reference.slow_concepts import SlowConcepts
from tests.structured.examples import RELATIONS, events_of

STORY = sentences(3600, seed=3)


def wrong(model, story, *names):
    found = model.predict_many(events_of(story, *names))
    return sum(p != told.concepts for p, told in zip(found, story, strict=True)) / len(story)


@pytest.mark.parametrize("exploration", ["order_free", "left_to_right"])
def test_it_is_the_slow_twin(exploration):
    model = ConceptLabeler(exploration, C=0.05, window=3)
    slow = SlowConcepts(exploration == "order_free", 0.05, 3, RELATIONS)
    for number, told in enumerate(STORY[:60]):
        here = sorted({*told.concepts, *CONCEPTS[15:25], *CONCEPTS[25:45:2]} - {"-"})
        universe, candidates = {**told.tables, "concepts": here}, ["-", *here]
        assert model.predict_one((told.words, universe)) == slow.predict(
            told.words, told.tables, candidates
        )
        concepts = told.concepts
        if number % 3 == 0:
            model.learn_one((told.words, universe), Counter(concepts))
            concepts = slow.aligned(told.words, told.tables, candidates, concepts)
        else:
            model.learn_one((told.words, universe), concepts)
        slow.learn(told.words, told.tables, candidates, concepts)
        assert (model.n_wrong, model.dual) == (slow.n_wrong, pytest.approx(slow.dual, abs=1e-9))
    assert 0.0 < model.dual <= slow.primal() and 10 < slow.n_wrong < 60


def test_bags_and_a_universe_that_changes_between_sentences():
    x, y = events_of(STORY[:400], *RELATIONS), [one.concepts for one in STORY[:400]]
    y[::2] = map(Counter, y[::2])

    def as_it_changes():
        universe = {}
        for words, tables in x:
            for name, table in tables.items():
                universe.setdefault(name, {}).clear()
                universe[name].update(table)
            yield words, universe

    one, many = ConceptLabeler(), ConceptLabeler()
    for event in zip(x, y, strict=True):
        one.learn_one(*event)
    many.learn_many(x, y)
    assert content(one) == content(many)
    assert many.predict_many(as_it_changes()) == [one.predict_one(event) for event in x]
    assert (many.n_examples, many.C) == (400, 0.1)


def test_odd_sentences_and_universes():
    model = ConceptLabeler()
    assert model.predict_one((["what", "now"], {})) == ["-", "-"]
    model.learn_one(([], {}), [])
    model.learn_one((["go"], {"location": {}}), ["go"])
    assert model.predict_one((["go"], {})) == ["go"] and model.predict_one(([], {})) == []
    words, tables = [w for t in STORY[:250] for w in t.words][:1000], STORY[0].tables
    concepts = [c for t in STORY[:250] for c in t.concepts][:1000]
    model.learn_one((words, tables), concepts)
    model.learn_one((words, tables), Counter(concepts))
    assert len(words) == len(model.predict_one((words, tables))) == 1000
    # What the universe lacks cannot be meant, but for what a label says.
    assert set(model.predict_one((words, {"concepts": ["cat"]}))) <= {"-", "cat"}
    model.learn_one((["one"], {"concepts": ["cat"]}), {"milk"})
    model.learn_one((["one", "two"], {}), set())
    few = ConceptLabeler(max_contexts=100, window=2)
    few.learn_many(events_of(STORY[:200], *RELATIONS), [told.concepts for told in STORY[:200]])
    assert few.n_ignored_contexts > 0 == model.n_ignored_contexts
    assert few.model.links.rows.counts[0] <= 100


def test_memory_is_what_the_page_says():
    model = ConceptLabeler(max_contexts=1024)
    for i in range(600):
        sentence = [f"w{i % 500}", f"v{i * 7 % 500}", "sees", f"u{i % 99}"]
        model.learn_one((sentence, {"at": {"x": "y"}}), {f"c{i % 61}"})
    columns = 2 * len(model.classes)
    assert model.memory_usage < 1024 * (25 * columns + 17 * 4 * 2 + 100)


def test_scores_are_those_of_the_search():
    model = ConceptLabeler()
    model.learn_many(events_of(STORY[:300], *RELATIONS), [told.concepts for told in STORY[:300]])
    for x in events_of(STORY[300:320], *RELATIONS):
        assert [max(row, key=row.get) for row in model.scores_one(x)] == model.predict_one(x)
    assert model.scores_one((["milk"], {"concepts": ["cat"]}))[0].keys() == {"-", "cat"}


def test_what_was_learnt_of_relations_holds_for_new_concepts():
    model, told = ConceptLabeler(), STORY[:3000]
    model.learn_many(events_of(told, *RELATIONS), [t.concepts for t in told])
    # Somebody new is the only one who holds the book.
    tables = copy.deepcopy(STORY[3000].tables)
    tables["containedby"]["book"], tables["location"]["book"] = "Ada", "attic"
    tables["location"]["Ada"] = "attic"
    universe = {**tables, "concepts": ["Ada", "book", "Gina", "Maggie", "Francoise", "drop"]}
    assert model.predict_one((["she", "drops", "the", "book"], universe))[-1] == "book"
    assert model.n_wrong < 600


def test_the_world_tells_what_words_do_not():
    told, test = STORY[:2400], STORY[2400:]
    y = [t.concepts for t in told]
    errors = {}
    for name, settings, relations in [
        ("all", {}, RELATIONS),
        ("left to right", {"exploration": "left_to_right"}, RELATIONS),
        ("words", {}, []),
    ]:
        model = ConceptLabeler(**settings)
        model.learn_many(events_of(told, *relations), y)
        errors[name] = wrong(model, test, *relations)
    weak = ConceptLabeler()
    weak.learn_many(events_of(told, *RELATIONS), [Counter(concepts) for concepts in y])
    errors["bags"] = wrong(weak, test, *RELATIONS)
    assert errors["all"] < 0.04 and errors["bags"] < 0.06
    assert errors["left to right"] > 1.5 * errors["all"] and errors["words"] > 0.3


def test_the_house_can_be_understood_and_is_seeded():
    house = House(seed=3)
    for told in STORY[:1500]:
        before = copy.deepcopy(house.world)
        assert house.tell(*house.event()) == told
        (_, slots) = readings(told.words, before)[0]
        assert len(readings(told.words, before)) == 1
        assert [c for c in slots if c not in told.concepts] == []
    words = {word for told in STORY for word in told.words}
    assert (len(CONCEPTS), len(words)) == (58, 75)
    assert {c for told in STORY for c in told.concepts} == {"-", *CONCEPTS}
    assert 0.45 < sum(told.is_ambiguous for told in STORY) / len(STORY) < 0.6
