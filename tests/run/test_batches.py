"""Progressive validation of batches by one function, whatever the model is made of."""

import numpy as np
import pytest
from river import compose, linear_model, preprocessing

import streamsvm
from connectors import ArrowSource
from streamsvm import LaRankClassifier, LASVMClassifier, StandardScaler, predict_then_learn_many
from streamsvm.errors import ParameterError
from streamsvm.run.runner import Run
from tests.learners.test_lasvm import CONTAINERS, rows


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_pipeline_predicts_then_learns_as_a_run_does(container):
    x, y = rows(300)
    model, other = (StandardScaler() | LASVMClassifier() for _ in range(2))
    predicted = []
    for part in (slice(0, 7), slice(7, 300)):
        batch = CONTAINERS[container](x[part])
        predicted += predict_then_learn_many(model, batch, y[part])
    table = CONTAINERS["table"](x)
    report = Run(ArrowSource(table.append_column("y", [y]), "y"), other).execute()
    # The first row is not scored by a run: nothing is known then.
    right = np.count_nonzero(np.array(predicted[1:]) == y[1:])
    assert report.accuracy == pytest.approx(right / 299)
    if container != "array":
        assert model.predict_proba_many(table) == other.predict_proba_many(table)
    alone, same = LaRankClassifier(seed=1), LaRankClassifier(seed=1)
    assert predict_then_learn_many(alone, x, y) == same.predict_then_learn_many(x, y)


def test_other_pipelines_are_refused():
    for model in (
        preprocessing.StandardScaler() | LASVMClassifier(),
        StandardScaler() | linear_model.LogisticRegression(),
        compose.Select("a") | StandardScaler() | LASVMClassifier(),
    ):
        with pytest.raises(ParameterError, match="Pipeline: use a learner of streamsvm"):
            streamsvm.predict_then_learn_many(model, np.ones((2, 2)), [True, False])
