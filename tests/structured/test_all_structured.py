"""What every learner of sentences must do, in each configuration of its `_unit_test_params`."""

from collections import Counter
from datetime import date

import numpy as np
import pytest

from streamsvm import ConceptLabeler, OSPASParser
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.learners.bases.registry import registered_learners
from tests.learners.test_all_learners import COPIES, content
from tests.structured.examples import examples_of

CASES = [
    pytest.param(learner.cls, params, id=f"{learner.name}-{i}")
    for takes in ("sentences", "records")
    for learner in registered_learners(takes)
    for i, params in enumerate(learner.cls._unit_test_params())
]
every = pytest.mark.parametrize(("cls", "params"), CASES)


@every
def test_events_batches_files_and_copies_are_one_model(cls, params, tmp_path):
    X, Y = examples_of(cls)
    events, batches = cls(**params), cls(**params)
    for x, y in zip(X[:40], Y[:40], strict=True):
        events.learn_one(x, y)
    for i in range(0, 40, 7):
        batches.learn_many(X[i : min(i + 7, 40)], Y[i : min(i + 7, 40)])
    assert content(events) == content(batches)
    before = batches.predict_many(X[40:])
    assert [events.predict_one(x) for x in X[40:]] == before
    others = {how: copied(batches, tmp_path / "m.svm") for how, copied in COPIES.items()}
    batches.learn_many(X[40:], Y[40:])
    wanted = batches.predict_many(X[:20])
    for how, other in others.items():
        assert type(other) is cls and other.predict_many(X[40:]) == before, how
        for x, y in zip(X[40:], Y[40:], strict=True):
            other.learn_one(x, y)
        assert content(other) == content(batches), how
        assert other.predict_many(X[:20]) == wanted, how
    assert batches.n_examples == len(X) and batches.memory_usage > 1000
    fresh = batches.clone()
    assert fresh.n_examples == 0 and repr(fresh) == repr(batches) == repr(cls(**params))


WORDS = ["he", "goes"]
NEW = {
    "sequence": (["new"], ["never seen"]),
    "concepts": ((["she"], {"likes": {"Ann": "Bea"}}), ["Ann"]),
    "ospas": (["she"], ["likes(ann,bea)"]),
}
"""What could be learnt, of which all is new."""

REFUSED = {
    "sequence": [
        ([{"new": float("nan")}], ["B"], FeatureError),
        ([{"new": None}], ["B"], FeatureError),
        (["new", 3], ["B", "B"], FeatureError),
        ("new", ["B"], FeatureError),
        ([{"new": 1.0}], [None], LabelError),
        ([{"new": 1.0}], [float("nan")], LabelError),
        ([{"new": 1.0}], [["B"]], LabelError),
        ([{"new": 1.0}], ["B", "B"], LabelError),
        ([{"new": 1.0}], [], LabelError),
        ([{"new": 1.0}], "B", LabelError),
        ([{"new": 1.0}], 3, LabelError),
        ([{"new": 1.0}], ["B" * 1001], LabelError),
    ],
    "concepts": [
        ("he goes", ["-"], FeatureError),
        (("he", {}), ["-"], FeatureError),
        ((["he", 3], {}), ["-", "-"], FeatureError),
        ((["he"], {"location": ["hall"]}), ["-"], FeatureError),
        ((["he"], {"location": {"John": []}}), ["-"], FeatureError),
        ((["he"], {"location": {"John": np.zeros(2)}}), ["-"], FeatureError),
        ((["he"], {"location": {float("nan"): "hall"}}), ["-"], FeatureError),
        ((["he"], {"concepts": [None]}), ["-"], FeatureError),
        ((["he"], {f"r{i}": {} for i in range(9)}), ["-"], FeatureError),
        ((["he"], {}), ["-", "-"], LabelError),
        ((["he"], {}), "-", LabelError),
        ((["he"], {}), [None], LabelError),
        ((["he"], {}), [[]], LabelError),
        ((["he"], {}), Counter(["a", "b"]), LabelError),
        ((["he"], {}), {"a": -1}, LabelError),
        *(((WORDS, {}), {"A": times}, LabelError) for times in (10**12, 1.5, "2", True)),
        # Model files cannot hold these.
        ((["he"], {}), [10**80], LabelError),
        ((["he"], {}), [b"go"], LabelError),
        ((["he"], {}), ["g" * 1001], LabelError),
        ((["he"], {}), [date(2020, 1, 1)], LabelError),
        ((["he"], {"location": {"John": 10**80}}), ["-"], FeatureError),
        ((["he"], {"concepts": [("a", "b")]}), ["-"], FeatureError),
        (({"he": 1, "goes": 2}, {}), ["-", "-"], FeatureError),
        ((["he"] * 2001, {}), ["-"] * 2001, FeatureError),
        ((["he"], {"concepts": range(60)}), ["-"], LabelError),
        ((["he"], {"clock": {i + 0.5: 60 for i in range(60)}}), ["-"], LabelError),
    ],
    "ospas": [
        (["a", 3], [], FeatureError),
        (7, [], FeatureError),
        ("a " * 2001, [], FeatureError),
        ("a", "f(a)", LabelError),
        ("a", ["f(-)"], LabelError),
        ("a", [3], LabelError),
    ],
}


@every
def test_what_is_refused_changes_nothing(cls, params):
    name = {ConceptLabeler: "concepts", OSPASParser: "ospas"}.get(cls, "sequence")
    more = {"max_concepts": 60} if name == "concepts" else {}
    X, Y = examples_of(cls, 10)
    model = cls(**params, **more)
    model.learn_many(X, Y)
    new_x, new_y = NEW[name]
    before = content(model)
    for x, y, error in REFUSED[name]:
        with pytest.raises(error):
            model.learn_one(x, y)
        with pytest.raises(error):
            model.learn_many([new_x, x], [new_y, y])
        assert content(model) == before, (x, y)
    with pytest.raises(LabelError):
        model.learn_many(X[:2], Y[:1])
    assert content(model) == before


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("sequence", wrong) for wrong in (
            {"inference": "beam"}, {"order": 33}, {"order": -1}, {"order": 1.5},
            {"inference": "exact", "order": 2}, {"class_weight": "balanced"},
            {"class_weight": {"B": -1.0}}, {"max_features": 0}, {"max_features": None},
            {"max_classes": 1},
        )),
        *(("sequence_larank", wrong) for wrong in (
            {"C": 0.0}, {"C": "1"}, {"reprocess": -1}, {"optimize": None}, {"window": 0},
            {"max_support_patterns": 1},
        )),
        *(("concepts", wrong) for wrong in (
            {"exploration": "random"}, {"C": 0.0}, {"window": 13}, {"max_concepts": 1},
        )),
        *(("ospas", wrong) for wrong in (
            {"C": 0.0}, {"exploration": "best"}, {"window": -1}, {"seed": -1},
        )),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_are_checked(name, wrong):
    found = [one.cls for one in registered_learners() if one.name.startswith(name)]
    assert found
    for cls in found:
        with pytest.raises(ParameterError, match=[*wrong][-1]):
            cls(**wrong)
