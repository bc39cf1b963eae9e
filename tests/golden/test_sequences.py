"""The thesis' figures for sequence labelling, reached after one pass."""

import pytest

from benchmarks.golden import sequences
from streamsvm import Chain
from tests.slow import slow_but

CASES = sequences.chunkers()


# LaRank, greedy, and PA, exact.
@pytest.mark.parametrize("case", slow_but(CASES, CASES[0], CASES[3]), ids=lambda case: case.name)
def test_chunking(case):
    chain = Chain(sequences.TEMPLATE)
    (X, y), (X_test, y_test) = sequences.conll("train"), sequences.conll("test")
    case.model.learn_many(chain.transform_many(X), y)
    score = sequences.score_of(case.model, chain.transform_many(X_test), y_test)
    assert 100.0 * score.f1 >= case.f1
