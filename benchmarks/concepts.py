"""Concept labels in the simulated house: wrong sentences, and words a second.

`python -m benchmarks.concepts [--train 50000] [--test 20000] [--seed 1]`: the table of
docs/systems/concepts.md. Seconds are of the processor, without compiling. The house is that of
`examples/house.py`; another seed is another house.

`STREAMSVM_DATA=FOLDER python -m benchmarks.concepts --robocup`: matching of appendix C.7 on the
RoboCup commentaries of Chen and Mooney (2008), sportscaster.parquet in the folder. The sentences of
one game with one candidate are learnt in one pass, as bags of its symbols and without a world; for
each sentence of the other games that candidate is chosen whose bag is most like the one predicted
(cosine; none at 0). Sentences without a right meaning count against it.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter

import numpy as np
import pyarrow.parquet as pq

from benchmarks.golden.problems import FOLDER
from benchmarks.parsing import Rows, f1, splits
from examples.house import Told, sentences
from streamsvm import ConceptLabeler

BOTH = ("location", "containedby")
ROWS = [
    ("location and containedby", BOTH, {}, False, None),
    ("left to right", BOTH, {"exploration": "left_to_right"}, False, None),
    ("location", BOTH[:1], {}, False, None),
    ("containedby", BOTH[1:], {}, False, None),
    ("words alone", (), {}, False, None),
    ("words alone, left to right", (), {"exploration": "left_to_right"}, False, None),
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


def matched(train: Rows, test: Rows) -> tuple[float, float, float]:
    """Learn one game, and return F1, precision and recall of the matches of the others."""
    model = ConceptLabeler()
    for row in train:
        words, bag = row["text"].lower().split(), bag_of(row["candidates"][0])
        # A meaning with more symbols than words cannot be aligned.
        if len(row["candidates"]) == 1 and bag.total() <= len(words):
            model.learn_one((words, {}), bag)
    right = said = 0
    for row in test:
        found = Counter(model.predict_one((row["text"].lower().split(), {})))
        del found["-"]
        likeness = [cosine(found, bag_of(meaning)) for meaning in row["candidates"]]
        best = int(np.argmax(likeness))
        if likeness[best] > 0.0:
            said += 1
            right += row["candidates"][best] == row["gold"]
    return f1(right, said, sum(row["gold"] is not None for row in test))


def bag_of(meaning: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", meaning))


def cosine(a: Counter[str], b: Counter[str]) -> float:
    lengths = [sum(n * n for n in bag.values()) for bag in (a, b)]
    return sum(n * b[key] for key, n in a.items()) / max(1.0, float(np.prod(lengths))) ** 0.5


def robocup() -> None:
    rows = pq.read_table(FOLDER / "sportscaster.parquet").to_pylist()
    scores = [matched(train, test) for train, test in splits(rows)]
    means = np.mean(scores, axis=0)
    print("F1, precision, recall:", *(f"{score:.3f}" for score in means), end="; F1 by game: ")
    print(*(f"{score[0]:.3f}" for score in scores))


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, default in (("train", 50_000), ("test", 20_000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--robocup", action="store_true")
    options = parser.parse_args()
    if options.robocup:
        robocup()
        return
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
