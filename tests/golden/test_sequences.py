"""The thesis' figures for sequence labelling, reached after one pass."""

import pytest

from streamsvm import Chain
from tests.golden import sequences


@pytest.mark.parametrize("case", sequences.chunkers(), ids=lambda case: case.name)
def test_chunking(case):
    chain = Chain(sequences.TEMPLATE)
    (X, y), (X_test, y_test) = sequences.conll("train"), sequences.conll("test")
    case.model.learn_many(chain.transform_many(X), y)
    score = sequences.score_of(case.model, chain.transform_many(X_test), y_test)
    assert 100.0 * score.f1 >= case.f1
