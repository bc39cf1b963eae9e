"""A learner in words: `repr` and `summary`."""

import numpy as np
import pytest

from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.learners.bases.registry import registered_learners

LEARNERS = [learner.cls for learner in registered_learners()]


@pytest.mark.parametrize("cls", LEARNERS)
def test_a_representation_is_an_expression_with_what_was_changed(cls):
    assert repr(cls()) == f"{cls.__name__}()"
    model = cls(max_features=9)
    assert repr(model) == f"{cls.__name__}(max_features=9)"
    assert eval(repr(model), {cls.__name__: cls})._get_params() == model._get_params()


def test_a_pipeline_shows_its_parts_in_a_line_each():
    assert "LASVMClassifier(C=10)" in repr(StandardScaler() | LASVMClassifier(C=10)).splitlines()[2]


@pytest.mark.parametrize("cls", LEARNERS)
def test_a_summary_says_what_was_learnt(cls):
    model = cls(seed=1) if hasattr(cls(), "seed") else cls()
    assert "  examples learnt " in model.summary()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 12))
    model.learn_many(x, x[:, 0] > 0.0)
    lines = dict(line.split(maxsplit=1) for line in model.summary().splitlines()[1:])
    assert model.summary().splitlines()[0] == cls.__name__
    assert lines["examples"] == "learnt  50" or lines["examples"].split() == ["learnt", "50"]
    assert lines["features"].startswith("12: 0, 1, 2") and lines["features"].endswith(", ...")
    assert lines["classes"].startswith("2: ") and lines["memory"].endswith(" kB")
    assert lines["certificate"].endswith(")") or lines["certificate"].startswith("none: ")
    bias = getattr(model, "bias_", getattr(model, "bias", None))
    if isinstance(bias, float):
        assert lines["bias"] == f"{bias:.4g}"


def test_a_linear_summary_names_the_largest_weights():
    model = SVMSGDClassifier()
    for i in range(40):
        sign = 1.0 if i % 2 else -1.0
        model.learn_one({"much": sign, "little": 0.1 * sign, "none": 0.0}, i % 2 == 1)
    (line,) = [line for line in model.summary().splitlines() if "largest weights" in line]
    assert line.split()[2] == "much" and line.split()[3].startswith("+")
    model.learn_one({"much": 5.0}, "third")
    assert sum("largest weights" in line for line in model.summary().splitlines()) == 3
