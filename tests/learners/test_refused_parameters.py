"""Parameters that a learner cannot take: what is refused, and what is said of it."""

import re

import pytest

from streamsvm import (
    AdaptiveSVMClassifier,
    AmbiguousSVMClassifier,
    HullerClassifier,
    IncrementalOneClassSVM,
    IncrementalSVMClassifier,
    IncrementalSVMRegressor,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SBPClassifier,
    SVMSGDClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import ParameterError

RBF, LINEAR, NAN = kernels.RBF(gamma=1.0), kernels.Linear(), float("nan")
OF_TRIALS = {
    "scale": ["yes", 1],
    "gamma": [0.5, "rule"],
    "C": ["large", "1", None, 0, 0.0, True],
    "reprocess": [-1],
}
WRONG = {
    LASVMClassifier: OF_TRIALS
    | {
        "tau": [-1],
        "delta_max": [0.0],
        "cache_mb": [NAN],
        "class_weight": ["even"],
        "kernel": ["rbf"],
        "reserve": [-1],
        "sparse": ["yes"],
        "hashing": [0],
        "max_features": [-1],
        "n_jobs": [0, "two"],
    },
    LaRankClassifier: OF_TRIALS
    | {"candidates": [0], "max_support_vectors": [1], "tau": [0.0], "class_weight": ["balanced"]},
    AdaptiveSVMClassifier: {
        "C": [0.0],
        "window": [0],
        "max_support_vectors": [1],
        "scale": ["yes"],
        "class_weight": ["balanced"],
    },
    TrackingSVMClassifier: {
        "K": [0, 2.5],
        "epsilon": [0.0, "small"],
        "window": [0],
        "reservoir": [-1],
        "max_support_vectors": [1],
        "class_weight": ["balanced"],
        "tau": [-1.0],
        "C": [0.0, "auto"],
    },
    SBPClassifier: {"nu": [-1.0], "iterations": [-1], "window": [0], "class_weight": ["balanced"]},
    KernelPAClassifier: {"C": [0.0]},
    KernelPegasosClassifier: {"l2": [0.0, 1e-320]},
    KernelPerceptronClassifier: {
        "margin": [-1.0],
        "max_support_vectors": [1],
        "class_weight": ["balanced"],
    },
    HullerClassifier: {"reprocess": [-1]},
    SVMSGDClassifier: {
        "l2": [0.0],
        "t0": [0.5],
        "power": [1.5],
        "skip": [0],
        "averaged": ["yes", 1],
        "class_weight": ["balanced"],
    },
    AmbiguousSVMClassifier: {"C": ["auto", 0.0]},
    IncrementalSVMClassifier: {
        "C": [0.0, 1e9],
        "window": [1],
        "kernel": ["rbf"],
        "cache_mb": [-1.0],
    },
    IncrementalSVMRegressor: {"C": [0.0, 1e9], "epsilon": [-0.1], "window": [1]},
    IncrementalOneClassSVM: {"nu": [0.0, 1.1, NAN, "a"]},
}
SAID = [
    (LASVMClassifier, {"class_weight": {True: -1.0}}, "class_weight[True]=-1.0: use a"),
    (LASVMClassifier, {"sparse": False, "hashing": 100}, "hashing=100"),
    (LASVMClassifier, {"multiclass": "all"}, "multiclass='all': use 'ovo' or 'ovr'"),
    *(
        (cls, given, said)
        for cls in (LASVMClassifier, LaRankClassifier)
        for given, said in (
            ({"kernel": RBF, "scale": True}, "only without `kernel`"),
            ({"reserve": 5, "max_support_vectors": 10}, "reserve=5 with max_support_vectors=10"),
        )
    ),
    (LaRankClassifier, {"reserve": 5, "K": 2}, "reserve=5 with K=2: K keeps all examples"),
    (TrackingSVMClassifier, {"K": 3, "epsilon": 0.1}, "give one of them"),
    (TrackingSVMClassifier, {"reservoir": 5, "window": 5}, "use one only"),
    (TrackingSVMClassifier, {"reservoir": 5, "gradients": "support"}, "is not uniform"),
    (TrackingSVMClassifier, {"gradients": "fresh"}, "use it with kernels.Linear"),
    (TrackingSVMClassifier, {"gradients": "some"}, "None or one of 'all', 'support', 'fresh'"),
    (
        TrackingSVMClassifier,
        {"kernel": LINEAR, "gradients": "fresh", "max_support_vectors": 5},
        "use window or reservoir",
    ),
    (SBPClassifier, {"window": 5, "reservoir": 5}, "give one of them only"),
    (KernelPAClassifier, {"mode": "PA-3"}, "mode='PA-3': use one of 'PA', 'PA-I', 'PA-II'"),
    (KernelPAClassifier, {"mode": "PA", "class_weight": {1: 2.0}}, "'PA-I' or 'PA-II'"),
    (KernelPegasosClassifier, {"budget": "remove"}, "use None or one of 'project', 'merge'"),
    (KernelPerceptronClassifier, {"budget": "magic"}, "budget='magic': use None or one"),
    (KernelPerceptronClassifier, {"voted": True, "max_support_vectors": 50}, "leave max_support"),
    (KernelPerceptronClassifier, {"voted": True, "averaged": True}, "the votes of all models"),
    (SVMSGDClassifier, {"loss": "absolute"}, "use one of 'hinge'"),
    (SVMSGDClassifier, {"C": 1.0}, "n_expected"),
    (AmbiguousSVMClassifier, {"reprocess": 1}, "reprocess=1 without a kernel"),
    (AmbiguousSVMClassifier, {"kernel": RBF, "C": "auto"}, "C='auto': use a number"),
    *(
        (AmbiguousSVMClassifier, {"kernel": LINEAR, "max_support_vectors": wrong}, "at least 2")
        for wrong in (1, 0.5)
    ),
    (AmbiguousSVMClassifier, {"max_support_vectors": 100}, "100 without a kernel"),
]
CASES = SAID + [
    (cls, {name: value}, f"{name}={value!r}")
    for cls, wrong in WRONG.items()
    for name, values in wrong.items()
    for value in values
]


@pytest.mark.parametrize(
    ("cls", "given", "said"), CASES, ids=[f"{cls.__name__}-{given}" for cls, given, _ in CASES]
)
def test_what_is_refused_says_what_is_accepted(cls, given, said):
    with pytest.raises(ParameterError, match=re.escape(said)) as error:
        cls(**given)
    assert any(word in str(error.value) for word in (" use ", "leave", "give", "only"))


@pytest.mark.parametrize("model", [AdaptiveSVMClassifier(), SBPClassifier(window=5)], ids=repr)
def test_ids_are_refused_where_none_are_kept(model):
    with pytest.raises(ParameterError, match="ids: "):
        model.learn_many([[1.0]], [1], ids=[1])
