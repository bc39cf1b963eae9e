"""Concept labels in the simulated house: wrong sentences, and words a second.

`python -m benchmarks.concepts [--train 50000] [--test 20000] [--seed 1]`: the table of
docs/systems/concepts.md. Seconds are of the processor, without compiling. The house is that of
`examples/house.py`; another seed is another house.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from examples.house import Told, sentences
from streamsvm import ConceptLabeler

BOTH = ("location", "containedby")
ROWS = [
    ("location and containedby", BOTH, {}, False, None),
    ("left to right", BOTH, {"order": "left_to_right"}, False, None),
    ("location", BOTH[:1], {}, False, None),
    ("containedby", BOTH[1:], {}, False, None),
    ("words alone", (), {}, False, None),
    ("words alone, left to right", (), {"order": "left_to_right"}, False, None),
    ("5,000 sentences", BOTH, {}, False, 5000),
    ("bags", BOTH, {}, True, None),
    ("bags, 5,000 sentences", BOTH, {}, True, 5000),
]


def examples(story: list[Told], names: tuple[str, ...]) -> list[tuple[list[str], dict]]:
    """Return the sentences, each with some relations of its world."""
    return [(told.words, {name: told.tables[name] for name in names}) for told in story]


def measure(train, test, names, settings, is_weak):
    """Return the shares of wrong sentences and bags, and words learnt and labelled a second."""
    y = [Counter(told.concepts) if is_weak else told.concepts for told in train]
    x, x_test = examples(train, names), examples(test, names)
    # Compiles.
    first = ConceptLabeler(**settings)
    first.learn_many(x[:5], y[:5])
    first.predict_many(x[:5])
    model, begin = ConceptLabeler(**settings), time.process_time()
    model.learn_many(x, y)
    learnt = time.process_time()
    found = model.predict_many(x_test)
    end = time.process_time()
    pairs = [(told.concepts, labels) for told, labels in zip(test, found, strict=True)]
    wrong = sum(a != b for a, b in pairs) / len(test)
    bags = sum(sorted(a) != sorted(b) for a, b in pairs) / len(test)
    words = [sum(len(told.words) for told in story) for story in (train, test)]
    return wrong, bags, words[0] / (learnt - begin), words[1] / (end - learnt)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, default in (("train", 50_000), ("test", 20_000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    train = sentences(options.train, options.seed)
    test = sentences(options.test, options.seed + 1)
    vague = sum(told.is_ambiguous for told in test) / len(test)
    print(f"{len(train):,} + {len(test):,} sentences, {vague:.1%} of them ambiguous")
    print("wrong sentences, wrong bags, words learnt and labelled a second")
    for name, names, settings, is_weak, n in ROWS:
        wrong, bags, fast, faster = measure(train[:n], test, names, settings, is_weak)
        print(f"{name:28} {wrong:7.2%} {bags:7.2%} {fast:10,.0f} {faster:10,.0f}", flush=True)


if __name__ == "__main__":
    main()
