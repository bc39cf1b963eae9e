"""River's contract, and River's tools around our learners."""

import numpy as np
import pandas as pd
import pytest
from river import (
    active,
    checks,
    compat,
    datasets,
    drift,
    ensemble,
    evaluate,
    feature_extraction,
    metrics,
    multiclass,
    preprocessing,
)
from river.multioutput import MultiClassEncoder

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    Nystroem,
    RandomFourierFeatures,
    RankBits,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    kernels,
)
from streamsvm.learners.bases.registry import registered_learners
from tests.learners.test_all_learners import marks_of
from tests.slow import slow

MODELS = {
    f"{learner.name}-{i}": learner.cls(**parameters)
    for learner in registered_learners("rows")
    for i, parameters in enumerate(learner.cls._unit_test_params())
}
MODELS["scaler"] = StandardScaler()
MODELS["random features"] = RandomFourierFeatures(gamma=0.5, n_components=16)
MODELS["rank bits"] = RankBits()
MODELS["Nystroem"] = Nystroem(kernels.RBF(gamma=0.5), n_components=16, rate=0.5)
FIRST = {type(model): model for model in reversed(MODELS.values())}
"""The configuration of each class that passes all checks; the others pass some."""

OF_OTHERS = ("check_learn_one", "check_clone_is_independent", "check_pickling")


def checks_of(model):
    """Return checks with their numbers: all, or some on the first data set of each."""
    found = [
        (f"{check.__name__}-{j}", check)
        for j, check in enumerate(checks.yield_checks(model))
        if check.__name__ not in model._unit_test_skips()
    ]
    if model is FIRST[type(model)]:
        return found
    first = {check.__name__: (name, check) for name, check in reversed(found)}
    return [first[name] for name in OF_OTHERS if name in first]


def marks(name, check):
    """River checks memory with two data sets and for long; by default of one kind only."""
    is_long = check.__name__ == "check_bounded_memory_growth"
    return slow if is_long and not name.startswith("adaptive") else marks_of(name)


CHECKS = [
    pytest.param(model, check, id=f"{name}-{of_check}", marks=marks(name, check))
    for name, model in MODELS.items()
    for of_check, check in checks_of(model)
]


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_rivers_checks(model, check):
    check(model.clone())


def test_no_check_of_rivers_is_skipped():
    assert not any(model._unit_test_skips() for model in MODELS.values())


BANANAS, PHISHING, SEGMENTS = datasets.Bananas(), datasets.Phishing(), datasets.ImageSegments()
FEW_BANANAS, FEW_SEGMENTS = list(BANANAS.take(1200)), list(SEGMENTS.take(700))
RIVERS_SCALER, SAMPLER = preprocessing.StandardScaler(), feature_extraction.RBFSampler
LASVM, ONE_OF_ALL = LASVMClassifier(), multiclass.OneVsRestClassifier(LASVMClassifier())
IN_USE = {
    "bananas": (LASVM, BANANAS, 0.89),
    "scaler": (StandardScaler() | LASVM, PHISHING, 0.93, metrics.ROCAUC()),
    "scaler of river": (RIVERS_SCALER | LASVM, PHISHING, 0.93, metrics.ROCAUC()),
    "one versus rest": (StandardScaler() | ONE_OF_ALL, FEW_SEGMENTS, 0.75),
    "drift": (drift.DriftRetrainingClassifier(LASVM, drift.binary.DDM()), FEW_BANANAS, 0.8),
    "bagging": (ensemble.BaggingClassifier(LASVM, n_models=2, seed=0), FEW_BANANAS, 0.8),
    "larank": (StandardScaler() | LaRankClassifier(C=10.0, seed=1), SEGMENTS, 0.9),
    "sgd": (StandardScaler() | SVMSGDClassifier(), PHISHING, 0.85),
    "sgdqn": (StandardScaler() | SGDQNClassifier(), PHISHING, 0.85),
    # River's logistic regression has 70.1 % with these features.
    "features": (SAMPLER(1.0, n_components=100, seed=1) | SVMSGDClassifier(), BANANAS, 0.71),
}


@pytest.mark.parametrize("name", IN_USE)
def test_with_rivers_tools_it_is_as_good_as_it_was(name):
    model, events, least, *metric = IN_USE[name]
    metric = metric[0] if metric else metrics.Accuracy()
    assert evaluate.progressive_val_score(events, model.clone(), metric).get() > least


def test_active_learning():
    sampler = active.EntropySampler(LASVMClassifier(), seed=1)
    asked = right = 0
    for i, (x, y) in enumerate(datasets.Bananas().take(1500)):
        if i < 10:
            # River's samplers ask only where there are probabilities: after the first labels.
            sampler.learn_one(x, y)
        predicted, ask = sampler.predict_one(x)
        right += predicted == y
        if ask:
            asked += 1
            sampler.learn_one(x, y)
    assert 0 < asked < 1500 and right > 1200


@pytest.mark.parametrize("learner", registered_learners("rows"), ids=lambda one: one.name)
def test_river_is_told_which_learners_take_several_classes(learner):
    model = learner.cls(**next(learner.cls._unit_test_params()))
    assert model._multiclass is (model.most_classes != 2)
    assert (StandardScaler() | model)._multiclass is model._multiclass
    assert model._multiclass is (
        learner.name in ("adaptive", "ambiguous", "larank", "lasvm", "sgd", "sgdqn")
    )
    assert model.predict_proba_one({"a": 1.0}) == (
        {} if model._multiclass else {False: 0.5, True: 0.5}
    )
    if model._multiclass:
        assert MultiClassEncoder(model).predict_one({"a": 1.0}) == {}


@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
def test_rivers_scikit_learn_adapter_takes_three_classes(cls):
    x = np.array([[i % 3, i % 5] for i in range(90)], float)
    y = np.array(["a", "b", "c"])[x[:, 0].astype(int)]
    model = compat.convert_river_to_sklearn(cls()).fit(x, y)
    assert (model.predict(x) == y).mean() > 0.6
    assert model.predict_proba(x[:2]).shape == (2, 3)


@pytest.mark.parametrize("drop_zeros", [False, True])
def test_batches_of_rivers_one_hot_encoder(drop_zeros):
    frame = pd.DataFrame({"c": [*"ababca"], "n": [*"xyxyxz"]})
    y = pd.Series([True, False, True, False, True, True])
    many = preprocessing.OneHotEncoder(drop_zeros=drop_zeros) | SVMSGDClassifier()
    many.learn_many(frame, y)
    assert many.predict_many(frame).tolist() == y.tolist()
    assert set(many["SVMSGDClassifier"].feature_names) == {"c_a", "c_b", "c_c", "n_x", "n_y", "n_z"}
