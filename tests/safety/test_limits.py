"""Numbers that are too large: parameters are refused, labels and names are saved."""

import pytest

import streamsvm
from streamsvm import LaRankClassifier, LASVMClassifier, SVMSGDClassifier, TrackingSVMClassifier
from streamsvm.errors import LabelError, ModelFileError, ParameterError

LARGE = [2**63, -(2**63) - 1, 2**256 - 1, -(2**256) + 1]
LEARNERS = [SVMSGDClassifier, LASVMClassifier, LaRankClassifier, TrackingSVMClassifier]


def learnt(cls, name, label, **params):
    model = cls(**params)
    for i in range(6):
        model.learn_one({name: float(i % 3), "b": 1.0}, (label, 1)[i % 2])
    return model


@pytest.mark.parametrize("number", LARGE)
@pytest.mark.parametrize("cls", LEARNERS)
def test_whole_numbers_of_256_bits_come_back_from_files(cls, number, tmp_path):
    path = tmp_path / "model"
    seed = abs(number)
    model = learnt(cls, number, number, seed=seed, class_weight={number: 2.0})
    model.save(path)
    read = streamsvm.load(path)
    assert (read.classes, read.feature_names) == (model.classes, model.feature_names)
    assert read.seed == seed and read.class_weight == {number: 2.0}
    x = {number: 2.0}
    assert read.decision_function_one(x) == model.decision_function_one(x)


def test_larger_labels_are_refused_when_they_come():
    with pytest.raises(LabelError, match="257 bits"):
        learnt(LASVMClassifier, "a", 2**256)


@pytest.mark.parametrize("what", ["name", "class_weight"])
def test_larger_ones_are_refused_before_an_older_file_is_replaced(what, tmp_path):
    path, large = tmp_path / "model", 2**256
    learnt(LASVMClassifier, "a", 0).save(path)
    before = path.read_bytes()
    params = {"class_weight": {large: 2.0}} if what == "class_weight" else {}
    model = learnt(LASVMClassifier, large if what == "name" else 7, 7, **params)
    with pytest.raises(ModelFileError, match=r"cannot be saved.*256 bits"):
        model.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["window", "max_support_vectors", "max_features", "hashing"])
@pytest.mark.parametrize("cls", LEARNERS[1:])
def test_bounds_that_no_number_of_32_bits_reaches_are_refused(cls, name):
    for large in (2**31, 2**63, 2**300):
        with pytest.raises(ParameterError, match=f"{name}=.*at most 2147483647"):
            cls(**{name: large})


def test_candidates_are_bounded():
    with pytest.raises(ParameterError, match=r"candidates=1099511627776.*at most 4096"):
        LaRankClassifier(candidates=2**40)
    with pytest.raises(ParameterError, match="candidates=a huge number"):
        LaRankClassifier(candidates=10**5000)
    model = LaRankClassifier(candidates=4096, seed=0)
    for i in range(60):
        model.learn_one({"a": float(i % 7), "b": float(i % 5)}, i % 3)
    assert len(model.classes) == 3
