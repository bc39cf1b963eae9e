"""A learner in words: `repr` and `summary`."""

import inspect

import numpy as np
import pytest

from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.learners.bases.registry import registered_learners


@pytest.mark.parametrize("cls", [learner.cls for learner in registered_learners()])
def test_a_representation_is_an_expression_with_what_was_changed(cls):
    assert repr(cls()) == f"{cls.__name__}()"
    name = "max_features" if "max_features" in inspect.signature(cls).parameters else "max_contexts"
    model = cls(**{name: 9})
    assert repr(model) == f"{cls.__name__}({name}=9)"
    assert eval(repr(model), {cls.__name__: cls})._get_params() == model._get_params()


def test_a_pipeline_shows_its_parts_in_a_line_each():
    assert "LASVMClassifier(C=10)" in repr(StandardScaler() | LASVMClassifier(C=10)).splitlines()[2]


@pytest.mark.parametrize("cls", [learner.cls for learner in registered_learners("rows")])
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


@pytest.mark.parametrize("cls", [learner.cls for learner in registered_learners("sentences")])
def test_a_summary_of_sentences(cls):
    model = cls()
    assert "examples learnt" in model.summary()
    model.learn_many([["a", "b"], ["a"]] * 5, [["A", "B"], ["A"]] * 5)
    lines = model.summary().splitlines()
    found = dict(line.strip().split("  ", 1) for line in lines[1:])
    assert lines[0] == cls.__name__ and found["classes"].strip() == "2: A, B"
    counts = [found[name].strip() for name in ("examples learnt", "tokens learnt", "features")]
    assert counts == ["10", "15", "2"]
    is_larank = cls.__name__ == "LaRankSequenceLabeler"
    assert ("no examples are kept" in found["certificate"]) != is_larank


def test_a_linear_summary_names_the_largest_weights():
    model = SVMSGDClassifier()
    for i in range(40):
        sign = 1.0 if i % 2 else -1.0
        model.learn_one({"much": sign, "little": 0.1 * sign, "none": 0.0}, i % 2 == 1)
    (line,) = [line for line in model.summary().splitlines() if "largest weights" in line]
    assert line.split()[2] == "much" and line.split()[3].startswith("+")
    model.learn_one({"much": 5.0}, "third")
    assert sum("largest weights" in line for line in model.summary().splitlines()) == 3
