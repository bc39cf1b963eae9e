"""You learn how to label words with the things of a world that changes as it is talked about.

A house with 58 concepts is simulated: people and pets move, take, give, eat and sit, and each event
is told in a sentence, of 75 words. "He puts it in the fridge" tells who and what only to those who
know where everybody is and who holds what. Sentences that even that does not tell are not made.

`python examples/house.py [SENTENCES]` learns from 3,000 sentences, or as many as are given.
`python examples/house.py [SENTENCES] --write house.parquet` writes them to a file instead, for

    streamsvm replay house.parquet --learner concepts --columns words,universe --target concepts
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from streamsvm import ConceptLabeler

MALES = ["John", "Mark", "Harry", "Peter"]
FEMALES = ["Gina", "Francoise", "Maggie"]
PETS = ["cat", "dog", "hamster"]
DRINKS = ["water", "milk", "juice"]
FOODS = ["chocolate", "rice", "salad", "yoghurt", "fruit"]
TOYS = ["ball", "doll", "videogame", "football"]
OBJECTS = [*DRINKS, *FOODS, *TOYS, "book", "coat", "phone"]
ROOMS = ["kitchen", "livingroom", "bedroom", "bathroom", "hall", "garden"]
SEATS = {"chair": "kitchen", "couch": "livingroom", "armchair": "livingroom"}
SEATS |= {"stool": "hall", "bench": "garden"}
PLACES = {"fridge": "kitchen", "sideboard": "kitchen", "table": "livingroom"}
PLACES |= {"closet": "bedroom", "desk": "bedroom", "cabinet": "bathroom"}
FURNITURE = {**SEATS, **PLACES, "bed": "bedroom"}
VERBS = "move get give put sleep wake play drink eat bring drop sit stand cook work".split()
ACTORS = [*MALES, *FEMALES, *PETS]
CONCEPTS = [*VERBS, *ACTORS, *OBJECTS, *ROOMS, *FURNITURE]

TITLES = {"John": "father", "Mark": "brother", "Gina": "mother", "Francoise": "sister"}
"""People who are called "the father" instead of by their names."""

MEANT = {
    "he": MALES, "him": MALES, "she": FEMALES, "her": FEMALES, "animal": PETS, "one": OBJECTS,
    "it": [*PETS, *OBJECTS, *FURNITURE], "orange": ["fruit", "juice"], "seat": list(SEATS),
    "there": ROOMS,
}  # fmt: skip
"""What ambiguous words can mean."""


class World:
    """Where everything is, and what holds it."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(f"house {seed}")
        self.location = {**FURNITURE, **{actor: draw.choice(ROOMS) for actor in ACTORS}}
        self.containedby: dict[str, str] = {}
        for thing in OBJECTS:
            self.store(thing, draw.choice(list(PLACES)))

    def store(self, thing: str, holder: str) -> None:
        """Let something or somebody be held by a piece of furniture, or by somebody."""
        self.containedby[thing], self.location[thing] = holder, self.location[holder]

    def walk(self, actor: str, room: str) -> None:
        """Take somebody to another room, with all that he holds."""
        self.location[actor] = room
        for thing in self.held(actor):
            self.location[thing] = room

    def held(self, holder: str) -> list[str]:
        """Return what somebody, or a piece of furniture, holds."""
        return [thing for thing, by in self.containedby.items() if by == holder]

    def is_free(self, actor: str) -> bool:
        """Tell whether somebody neither sits nor sleeps."""
        return actor not in self.containedby

    def is_near(self, actor: str, other: str) -> bool:
        """Tell whether two are in one room."""
        return self.location[actor] == self.location[other]

    def who_is_in(self, room: str) -> list[str]:
        """Return the people and pets in a room."""
        return [actor for actor in ACTORS if self.location[actor] == room]

    def tables(self) -> dict[str, dict[str, str]]:
        """Return the relations as they are now."""
        return {"location": dict(self.location), "containedby": dict(self.containedby)}


def _has(world: World, a: str, o: str) -> bool:
    return world.containedby.get(o) == a


def _can_get(world: World, a: str, o: str) -> bool:
    lies = world.containedby.get(o) not in ACTORS
    return lies and world.is_near(a, o) and world.is_free(a) and len(world.held(a)) < 3


def _can_give(world: World, a: str, o: str, b: str) -> bool:
    return a != b and _has(world, a, o) and world.is_near(a, b) and len(world.held(b)) < 3


def _can_play(world: World, a: str, o: str) -> bool:
    return o in TOYS and world.is_near(a, o) and world.containedby.get(o) in (None, a)


def _can_put(world: World, a: str, o: str, f: str) -> bool:
    return f in PLACES and world.is_free(a) and _has(world, a, o) and world.is_near(a, f)


def _can_use(world: World, a: str, f: str, use: Any) -> bool:
    return f in use and world.is_free(a) and world.is_near(a, f) and not set(world.held(f)) & _ALL


def _can_cook(world: World, a: str, o: str) -> bool:
    is_there = world.location[a] == "kitchen" and world.is_near(a, o)
    others = {*ACTORS} - {a}
    return o in FOODS and a not in PETS and is_there and world.containedby.get(o) not in others


_OFTEN = {"stand": 1.5, "wake": 1.5, "play": 1.3, "work": 1.6}
_ALL = set(ACTORS)
_BEDS, _DESKS = {"bed", "couch"}, {"desk", "table"}


class Sentence(NamedTuple):
    """A way to tell an event: words, and slots for those who take part."""

    verb: str
    pattern: str
    is_coherent: Callable[..., bool]
    """is_coherent(world, *slots) tells whether it can happen, slots in order of the pattern."""


def _from_room(w: World, a: str, r: str, q: str) -> bool:
    return w.is_free(a) and w.location[a] == r != q


# A and B are actors, O an object, F furniture, R and Q rooms.
SENTENCES = [
    Sentence("move", "A goes from R to Q", _from_room),
    Sentence("move", "A goes to Q", lambda w, a, q: w.is_free(a) and w.location[a] != q),
    Sentence("get", "A gets O", _can_get),
    Sentence(
        "get", "A gets O from F",
        lambda w, a, o, f: _can_get(w, a, o) and w.containedby.get(o) == f,
    ),
    Sentence("get", "A gets O in R", lambda w, a, o, r: _can_get(w, a, o) and w.location[o] == r),
    Sentence("give", "A gives O to B", _can_give),
    Sentence("put", "A puts O in F", _can_put),
    Sentence("sleep", "A sleeps on F", lambda w, a, f: _can_use(w, a, f, _BEDS)),
    Sentence("wake", "A wakes up", lambda w, a: w.containedby.get(a) in _BEDS),
    Sentence(
        "wake", "A wakes up in R",
        lambda w, a, r: w.containedby.get(a) in _BEDS and w.location[a] == r,
    ),
    Sentence("play", "A plays in R", lambda w, a, r: w.location[a] == r and w.is_free(a)),
    Sentence("play", "A plays with O", _can_play),
    Sentence(
        "play", "A plays with O in R", lambda w, a, o, r: _can_play(w, a, o) and w.location[a] == r
    ),
    Sentence("drink", "A drinks O", lambda w, a, o: o in DRINKS and _has(w, a, o)),
    Sentence("eat", "A eats O", lambda w, a, o: o in FOODS and _has(w, a, o)),
    Sentence(
        "bring", "A brings O to Q",
        lambda w, a, o, q: w.is_free(a) and _has(w, a, o) and w.location[a] != q,
    ),
    Sentence(
        "bring", "A brings O from R to Q",
        lambda w, a, o, r, q: _has(w, a, o) and _from_room(w, a, r, q),
    ),
    Sentence("drop", "A drops O", _has),
    Sentence("drop", "A drops O in R", lambda w, a, o, r: _has(w, a, o) and w.location[a] == r),
    Sentence("sit", "A sits on F", lambda w, a, f: _can_use(w, a, f, SEATS)),
    Sentence("stand", "A stands up", lambda w, a: w.containedby.get(a) in SEATS),
    Sentence(
        "stand", "A stands up from F",
        lambda w, a, f: f in SEATS and w.containedby.get(a) == f,
    ),
    Sentence("cook", "A cooks O", _can_cook),
    Sentence("cook", "A cooks O in R", lambda w, a, o, r: r == "kitchen" and _can_cook(w, a, o)),
    Sentence("work", "A works on F", lambda w, a, f: a not in PETS and _can_use(w, a, f, _DESKS)),
]  # fmt: skip
SLOTS = {"A": ACTORS, "B": ACTORS, "O": OBJECTS, "F": list(FURNITURE), "R": ROOMS, "Q": ROOMS}


def carry_out(world: World, verb: str, of: dict[str, str]) -> None:
    """Change the world as an event does."""
    actor, thing, place = of["A"], of.get("O", ""), of.get("F", "")
    if verb in ("move", "bring"):
        world.walk(actor, of["Q"])
    elif verb in ("get", "cook"):
        world.store(thing, actor)
    elif verb == "give":
        world.store(thing, of["B"])
    elif verb == "put":
        world.store(thing, place)
    elif verb in ("eat", "drink"):
        # There is more of it.
        world.store(thing, "fridge" if thing in ("milk", "yoghurt", "salad") else "sideboard")
    elif verb in ("drop", "wake", "stand"):
        del world.containedby[thing if verb == "drop" else actor]
    elif verb in ("sit", "sleep"):
        world.store(actor, place)


class Told(NamedTuple):
    """A sentence, the concept of each word, and the world in which it was told."""

    words: list[str]
    concepts: list[str]
    tables: dict[str, dict[str, str]]
    is_ambiguous: bool


class House:
    """A stream of sentences about the house; each event changes it.

    Parameters
    ----------
    seed
        Events and words are drawn by it.
    ambiguity
        How often somebody or something is named by an ambiguous word, if that is understandable.

    """

    def __init__(self, seed: int = 0, ambiguity: float = 0.6) -> None:
        self.world, self.draw, self.ambiguity = World(seed), random.Random(seed), ambiguity

    def __iter__(self) -> Iterator[Told]:
        while True:
            yield self.tell(*self.event())

    def event(self) -> tuple[Sentence, dict[str, str]]:
        """Return a way to tell something that can happen now, and who takes part."""
        while True:
            verb = self.draw.choices(VERBS, [_OFTEN.get(verb, 2) for verb in VERBS])[0]
            told = self.draw.choice([s for s in SENTENCES if s.verb == verb])
            for _ in range(300):
                slots = [slot for slot in told.pattern.split() if slot in SLOTS]
                of = {slot: self.draw.choice(SLOTS[slot]) for slot in slots}
                if told.is_coherent(self.world, *of.values()) and not self._is_avoided(of):
                    return told, of

    def _is_avoided(self, of: dict[str, str]) -> bool:
        """Tell whether somebody would go to a room with a crowd or, mostly, with one like him."""
        there = self.world.who_is_in(of["Q"]) if "Q" in of else []
        peers = next(kind for kind in (MALES, FEMALES, PETS) if of["A"] in kind)
        return len(there) > 1 or (bool({*there} & {*peers}) and self.draw.random() < 0.8)

    def tell(self, told: Sentence, of: dict[str, str]) -> Told:
        """Return an event as a sentence that can be understood, and let it happen."""
        vague: list[str] = []
        if self.draw.random() < self.ambiguity:
            # Mostly one word of a sentence is ambiguous; rather who acts than anything else.
            slots = sorted(of, key=lambda slot: self.draw.random() * (3.0 if slot == "A" else 1.0))
            vague = slots[-1:] if self.draw.random() < 0.8 else slots[-2:]
        words, concepts = self._words(told, of, vague)
        while vague and len(readings(words, self.world)) > 1:
            vague = vague[1:]
            words, concepts = self._words(told, of, vague)
        told_now = Told(words, concepts, self.world.tables(), bool(MEANT.keys() & set(words)))
        carry_out(self.world, told.verb, of)
        return told_now

    def _words(
        self, told: Sentence, of: dict[str, str], vague: list[str]
    ) -> tuple[list[str], list[str]]:
        words, concepts, verb = [], [], told.pattern.split()[1]
        for token in told.pattern.split():
            if token not in of:
                words.append(token)
                concepts.append(told.verb if token == verb else "-")
                continue
            phrase = self._phrase(of[token], token, token in vague)
            if phrase == ["there"] and words[-1] == "in":
                words.pop()
                concepts.pop()
            words += phrase
            concepts += ["-"] * (len(phrase) - 1) + [of[token]]
        return words, concepts

    def _phrase(self, concept: str, slot: str, is_vague: bool) -> list[str]:
        if not is_vague:
            name = TITLES.get(concept, concept)
            return [name] if concept in [*MALES, *FEMALES] and name == concept else ["the", name]
        if concept in MALES:
            return ["he" if slot == "A" else "him"]
        if concept in FEMALES:
            return ["she" if slot == "A" else "her"]
        if concept in ROOMS:
            return ["there"]
        nouns = [noun for noun in ("animal", "one", "orange", "seat") if concept in MEANT[noun]]
        noun = self.draw.choice(["it", *nouns])
        return ["it"] if noun == "it" else ["the", noun]


_NAMED = {TITLES.get(concept, concept): [concept] for concept in CONCEPTS} | MEANT


def readings(words: list[str], world: World) -> list[tuple[str, tuple[str, ...]]]:
    """Return all that a sentence can mean in a world: pattern, and who takes part."""
    bare, found = [word for word in words if word != "the"], []
    for told in SENTENCES:
        pattern = told.pattern.split()
        if bare[-1] == "there" and pattern[-2:] == ["in", "R"]:
            del pattern[-2]
        if len(pattern) != len(bare):
            continue
        pairs = list(zip(pattern, bare, strict=True))
        if any(token not in SLOTS and token != word for token, word in pairs):
            continue
        meant = [
            [concept for concept in _NAMED[word] if concept in SLOTS[token]]
            for token, word in pairs
            if token in SLOTS
        ]
        found += [
            (told.pattern, slots) for slots in product(*meant) if told.is_coherent(world, *slots)
        ]
    return found


def sentences(n: int, seed: int = 0) -> list[Told]:
    """Return n sentences about a house."""
    return list(islice(House(seed), n))


def write(story: list[Told], path: str) -> None:
    """Write sentences to a Parquet file; a bag has the concepts of a sentence, sorted."""
    bags = [sorted(concept for concept in told.concepts if concept != "-") for told in story]
    columns = {"words": [told.words for told in story], "universe": [t.tables for t in story]}
    columns |= {"concepts": [told.concepts for told in story], "bag": bags}
    pq.write_table(pa.table(columns), path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sentences", type=int, nargs="?", default=3000)
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    n = options.sentences
    if options.write:
        write(sentences(n, seed=1), options.write)
        return
    model, right, start = ConceptLabeler(), 0, time.perf_counter()
    for number, told in enumerate(islice(House(seed=1), n), 1):
        # Each sentence is labelled before it is learnt.
        right += model.predict_one((told.words, told.tables)) == told.concepts
        model.learn_one((told.words, told.tables), told.concepts)
        if number % max(1, n // 5) == 0:
            seconds = time.perf_counter() - start
            print(f"{number:,} sentences in {seconds:.1f} s, {right / number:.1%} of them right")
    test = sentences(1000, seed=2)
    found = model.predict_many([(told.words, told.tables) for told in test])
    pairs = list(zip(test, found, strict=True))
    wrong = sum(concepts != told.concepts for told, concepts in pairs)
    print(f"test: {wrong / len(test):.1%} of the sentences have a wrong label; for example")
    for told, concepts in [pair for pair in pairs if pair[0].is_ambiguous][:5]:
        print("  " + " ".join(f"{w}:{c}" for w, c in zip(told.words, concepts, strict=True)))


if __name__ == "__main__":
    main()
