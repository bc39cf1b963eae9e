"""The ambiguous house of Bordes' thesis (2010, section 6.2.2): sentences with bags of meanings.

Actors, objects, rooms and furniture, 15 actions: 74 words, 58 symbols and the empty one. A sentence
names an action and what takes part in it; its bag has its meaning and, at ambiguity n, those of 0
to 2 n other events, n in the mean. The thesis gives the numbers, not the grammar: this one is ours.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

KINDS = {
    "ACTOR": "john mark harry gina maggie francoise joe cat dog hamster".split(),
    "OBJECT": "water milk chocolate salad yoghurt apple bread cheese toy doll ball book football "
    "videogame pan".split(),
    "ROOM": "kitchen bedroom livingroom bathroom hall garden".split(),
    "PLACE": "couch chair table desk bed sideboard fridge cupboard shelf stove sink bench".split(),
}
ACTIONS = {
    "move": ("goes moves", ["ACTOR * to the ROOM", "ACTOR * from the ROOM to the ROOM"]),
    "get": ("gets takes", ["ACTOR * the OBJECT from the PLACE"]),
    "give": ("gives", ["ACTOR * the OBJECT to ACTOR"]),
    "put": ("puts lays", ["ACTOR * the OBJECT on the PLACE"]),
    "sleep": ("sleeps", ["ACTOR * in the ROOM", "ACTOR * on the PLACE"]),
    "wake": ("wakes", ["ACTOR * up in the ROOM"]),
    "play": ("plays", ["ACTOR * with the OBJECT"]),
    "drink": ("drinks", ["ACTOR * some OBJECT"]),
    "eat": ("eats", ["ACTOR * some OBJECT at the PLACE"]),
    "bring": ("brings carries", ["ACTOR * the OBJECT to the ROOM"]),
    "drop": ("drops loses", ["ACTOR * the OBJECT in the ROOM"]),
    "sit": ("sits rests", ["ACTOR * on the PLACE"]),
    "stand": ("stands", ["ACTOR * up from the PLACE"]),
    "cook": ("cooks", ["ACTOR * the OBJECT in the ROOM", "ACTOR * some OBJECT for ACTOR"]),
    "work": ("works", ["ACTOR * at the PLACE with ACTOR"]),
}
"""What words say an action, and the sentences with it: * is the word, names of kinds anything."""


class Sentence(NamedTuple):
    words: list[str]
    symbols: list[str | None]  # of each word: the true alignment
    meaning: tuple[str, ...]
    candidates: list[tuple[str, ...]]


def event(rng: random.Random) -> Sentence:
    """Return what is said of a random event; its meaning is the only candidate."""
    action = rng.choice(list(ACTIONS))
    verbs, patterns = ACTIONS[action]
    words, symbols = [], []
    for part in rng.choice(patterns).split():
        word = rng.choice(verbs.split()) if part == "*" else part
        symbol = action if part == "*" else None
        if part in KINDS:
            # Nobody gives something to himself.
            symbol = word = rng.choice([name for name in KINDS[part] if name not in words])
        words.append(word)
        symbols.append(symbol)
    meaning = (action, *(s for s in symbols if s not in (None, action)))
    return Sentence(words, symbols, meaning, [meaning])


def house(n: int, ambiguity: int, seed: int) -> Iterator[Sentence]:
    """Yield n sentences with bags of candidates in random order."""
    rng = random.Random(seed)
    for _ in range(n):
        said = event(rng)
        others = [event(rng).meaning for _ in range(rng.randint(0, 2 * ambiguity))]
        candidates = [said.meaning, *others]
        rng.shuffle(candidates)
        yield said._replace(candidates=candidates)
