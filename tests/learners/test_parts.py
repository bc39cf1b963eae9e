"""Learners as compositions: what each kind has, and what may be changed afterwards."""

import numpy as np
import pytest
from river import datasets

import streamsvm
from streamsvm import HullerClassifier, LASVMClassifier, SBPClassifier, TrackingSVMClassifier
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.registry import registered_learners

OF_DUAL = ("dual", "duality_gap", "kept_gap", "gap_beside", "kept_numbers", "at_bound")


def learnt(model, n=60):
    for x, y in datasets.Bananas().take(n):
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize("name", ["huller", "sbp", "kernel_pa", "lasvm", "larank", "tracking"])
def test_a_learner_has_the_methods_of_its_kind_only(name):
    cls = next(learner.cls for learner in registered_learners("rows") if learner.name == name)
    has_dual = name in ("lasvm", "larank", "tracking")
    assert cls.has_dual is has_dual
    for model in (cls(seed=1), learnt(cls(seed=1))):
        assert [hasattr(model, name) for name in OF_DUAL] == [has_dual] * len(OF_DUAL)
        assert hasattr(model, "objective_of") is not has_dual
        assert hasattr(model, "squared_norm") is (name not in ("huller", "sbp"))
    assert hasattr(cls, "duality_gap") is has_dual


def test_kappa_of_tracking_is_the_share_of_null_steps():
    model = learnt(TrackingSVMClassifier(seed=1))
    counts = model.counters
    assert model.kappa == counts["null_steps"] / counts["steps"] > 0.0


def test_class_weights_and_kernel_may_be_set_afterwards():
    model, other = learnt(LASVMClassifier(C=1.0)), learnt(LASVMClassifier(C=1.0))
    model.class_weight = {True: 5.0}
    for x, y in datasets.Bananas().take(120):
        model.learn_one(x, y)
        other.learn_one(x, y)
    assert model.decision_function_one(x) != other.decision_function_one(x)
    model = HullerClassifier(seed=1)
    model.kernel_ = streamsvm.kernels.RBF(gamma=3.0)
    assert model.kernel_.gamma == 3.0


@pytest.mark.parametrize("weight", [np.complex64(1), 0.5 + 2j, np.timedelta64(3, "s")])
def test_weights_that_are_no_numbers_are_refused_or_taken_as_in_batches(weight):
    model = learnt(SBPClassifier(seed=1))
    if isinstance(weight, np.timedelta64):
        model.learn_one({"0": 1.0}, True, weight)
        assert model.n_examples == 61
    else:
        with pytest.raises(ParameterError):
            model.learn_one({"0": 1.0}, True, weight)


def test_hashed_rows_have_their_width_before_the_first_example():
    assert LASVMClassifier(hashing=1024).support_vectors().rows.shape == (0, 1024)


def test_a_model_interrupted_before_its_trial_noted_an_example_loads(tmp_path):
    model = learnt(LASVMClassifier(), 41)
    model.preparation.trial.keep(np.arange(40))
    model.save(tmp_path / "m.svm")
    assert streamsvm.load(tmp_path / "m.svm").n_examples == 41
