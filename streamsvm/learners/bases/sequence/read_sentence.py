"""Sentences as a learner of label sequences takes them, alone or after a `Chain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.learners.bases.sequence.sequence_batches import sentences_in
from streamsvm.model_files.container import steps_of
from streamsvm.preprocessing.chain import Chain
from streamsvm.structured.sentences import Sentences, read_sentences


def check_steps(model: Any) -> None:
    """Raise ParameterError if something else than a `Chain` stands before the learner."""
    before = steps_of(model)[:-1]
    if len(before) > 1 or (before and not isinstance(before[0], Chain)):
        raise ParameterError(
            f"{' | '.join(type(step).__name__ for step in before)}: before a learner of label "
            "sequences use streamsvm.Chain, or nothing"
        )


def read_sentence(model: Any, x: Any) -> Sentences:
    """Return the features of one sentence, for the learner; FeatureError: it cannot be used."""
    first = steps_of(model)[0]
    if isinstance(first, Chain) and not isinstance(x, Sentences):
        features: Sentences = first.transform_one(x)
        return features
    return read_sentences([x])


def read_batch(model: Any, X: Any) -> Iterator[Sentences]:
    """Yield the features of each sentence of a batch, for the learner."""
    first = steps_of(model)[0]
    is_read = isinstance(X, Sentences) or not isinstance(first, Chain)
    return each_of(sentences_in(X) if is_read else first.transform_many(X))


def each_of(sentences: Sentences) -> Iterator[Sentences]:
    """Yield the sentences one by one."""
    first, start, keys, values = sentences
    for begin, stop in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        a, b = int(start[begin]), int(start[stop])
        own = np.array([0, stop - begin], np.int64)
        yield Sentences(own, start[begin : stop + 1] - a, keys[a:b], values[a:b])


def are_same(a: Sentences, b: Sentences) -> bool:
    """Return whether two sentences have the same features."""
    return all(map(np.array_equal, a, b))
