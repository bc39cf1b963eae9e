"""Sentences for each learner of them: with labels, with concepts and a world, with meanings."""

import itertools

import numpy as np

from examples.house import sentences
from examples.papers.ambiguous_house import house

RELATIONS = ["location", "containedby"]


def chunks(n=40, seed=0):
    """Return sentences of dicts and their labels: runs of B I I between O."""
    random, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        tokens, labels = [], []
        for _ in range(random.integers(1, 9)):
            inside = bool(labels) and labels[-1] != "O" and random.random() < 0.6
            labels.append("I" if inside else random.choice(["B", "O"]))
            word = f"{labels[-1] if random.random() < 0.7 else 'x'}{random.integers(4)}"
            tokens.append(
                {"w": word, "size": float(random.normal()), "long": random.random() < 0.5}
            )
        X.append(tokens)
        y.append([str(label) for label in labels])
    return X, y


def flat(lists):
    """Return the members of all lists."""
    return list(itertools.chain.from_iterable(lists))


X, Y = chunks()
FRESH, FRESH_Y = chunks(20, seed=1)


def events_of(story, *names):
    """Return what a `ConceptLabeler` is told of a story: words, and tables of these names."""
    return [(one.words, {name: one.tables[name] for name in names}) for one in story]


def examples_of(cls, n=60):
    """Return sentences and what is learnt of them, for a learner."""
    if cls.__name__ == "ConceptLabeler":
        story = sentences(n, seed=3)
        return events_of(story, *RELATIONS), [one.concepts for one in story]
    if cls.__name__ == "OSPASParser":
        said = list(house(n, 1, 0))
        return [one.words for one in said], [one.candidates for one in said]
    return chunks(n)
