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
TRIED = [
    ({"scale": "yes"}, "use 'auto'"),
    ({"scale": 1}, "use 'auto'"),
    ({"gamma": 0.5}, "use 'auto'"),
    ({"gamma": "rule"}, "use 'auto'"),
    ({"kernel": RBF, "scale": True}, "only without `kernel`"),
    *(({"C": wrong}, "use a number") for wrong in ("large", "1", None, 0, 0.0, True)),
    ({"reserve": 5, "max_support_vectors": 10}, "reserve=5 with max_support_vectors=10"),
]
REFUSED = {
    LASVMClassifier: [
        *TRIED,
        ({"C": 0}, "C=0"),
        ({"C": "1"}, "C='1'"),
        ({"tau": -1}, "tau=-1"),
        ({"reprocess": -1}, "reprocess=-1"),
        ({"delta_max": 0.0}, "delta_max"),
        ({"cache_mb": NAN}, "cache_mb"),
        ({"class_weight": "even"}, "class_weight='even'"),
        ({"class_weight": {True: -1.0}}, "class_weight[True]"),
        ({"kernel": "rbf"}, "kernel='rbf' is not a registered kernel: use one of"),
        ({"reserve": -1}, "reserve=-1"),
        ({"sparse": "yes"}, "sparse='yes'"),
        ({"sparse": False, "hashing": 100}, "hashing=100"),
        ({"hashing": 0}, "hashing=0"),
        ({"max_features": -1}, "max_features=-1"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": "two"}, "n_jobs='two'"),
        ({"multiclass": "all"}, "multiclass='all': use 'ovo' or 'ovr'"),
    ],
    LaRankClassifier: [
        *TRIED,
        ({"candidates": 0}, "candidates"),
        ({"reprocess": -1}, "reprocess"),
        ({"max_support_vectors": 1}, "max_support_vectors"),
        ({"tau": 0.0}, "tau"),
        ({"class_weight": "balanced"}, "balanced"),
        ({"reserve": 5, "K": 2}, "reserve=5 with K=2: K keeps all examples"),
    ],
    AdaptiveSVMClassifier: [
        ({"C": 0.0}, "C="),
        ({"window": 0}, "window="),
        ({"max_support_vectors": 1}, "max_support_vectors="),
        ({"scale": "yes"}, "scale="),
        ({"class_weight": "balanced"}, "class_weight="),
    ],
    TrackingSVMClassifier: [
        ({"K": 0}, "K=0: use a whole number of at least 1"),
        ({"K": 2.5}, "K=2.5"),
        ({"K": 3, "epsilon": 0.1}, "give one of them"),
        ({"epsilon": 0.0}, "epsilon=0.0: use a number above 0"),
        ({"epsilon": "small"}, "epsilon='small'"),
        ({"window": 0}, "window=0: use a whole number of at least 1, or None"),
        ({"reservoir": -1}, "reservoir=-1"),
        ({"reservoir": 5, "window": 5}, "use one only"),
        ({"reservoir": 5, "gradients": "support"}, "is not uniform"),
        ({"max_support_vectors": 1}, "of at least 2"),
        ({"gradients": "fresh"}, "use it with kernels.Linear"),
        ({"gradients": "some"}, "use None or one of 'all', 'support', 'fresh'"),
        (
            {"kernel": LINEAR, "gradients": "fresh", "max_support_vectors": 5},
            "use window or reservoir",
        ),
        ({"class_weight": "balanced"}, "class_weight='balanced'"),
        ({"tau": -1.0}, "tau=-1.0"),
        ({"C": 0.0}, "C=0.0"),
        ({"C": "auto"}, "C='auto'"),
    ],
    SBPClassifier: [
        ({"nu": -1.0}, "nu=-1.0"),
        ({"iterations": -1}, "iterations=-1"),
        ({"window": 0}, "window=0"),
        ({"window": 5, "reservoir": 5}, "give one of them only"),
        ({"class_weight": "balanced"}, "use None or a dict"),
    ],
    KernelPAClassifier: [
        ({"mode": "PA-3"}, "mode='PA-3': use one of 'PA', 'PA-I', 'PA-II'"),
        ({"mode": "PA", "class_weight": {1: 2.0}}, "'PA-I' or 'PA-II'"),
        ({"C": 0.0}, "C=0.0"),
    ],
    KernelPegasosClassifier: [
        ({"l2": 0.0}, "l2=0.0"),
        ({"l2": 1e-320}, "use a finite number of at least 1e-100"),
        ({"budget": "remove"}, "use None or one of 'project', 'merge'"),
    ],
    KernelPerceptronClassifier: [
        ({"budget": "magic"}, "budget='magic': use None or one"),
        ({"margin": -1.0}, "margin=-1.0"),
        ({"max_support_vectors": 1}, "max_support_vectors=1"),
        ({"voted": True, "max_support_vectors": 50}, "leave max_support_vectors and averaged out"),
        ({"voted": True, "averaged": True}, "the votes of all models"),
        ({"class_weight": "balanced"}, "use None or a dict"),
    ],
    HullerClassifier: [({"reprocess": -1}, "reprocess=-1")],
    SVMSGDClassifier: [
        ({"loss": "absolute"}, "use one of 'hinge'"),
        ({"l2": 0.0}, "above 0"),
        ({"C": 1.0}, "n_expected"),
        ({"t0": 0.5}, "at least 1"),
        ({"power": 1.5}, "between 0 and 1"),
        ({"skip": 0}, "at least 1"),
        ({"averaged": "yes"}, "averaged"),
        ({"averaged": 1}, "at least 2"),
        ({"class_weight": "balanced"}, "dict"),
    ],
    AmbiguousSVMClassifier: [
        ({"reprocess": 1}, "reprocess"),
        *(
            ({"C": wrong} | more, f"C={wrong!r}")
            for wrong in ("auto", 0.0)
            for more in ({}, {"kernel": RBF})
        ),
        ({"kernel": LINEAR, "max_support_vectors": 1}, "max_support_vectors"),
        ({"kernel": LINEAR, "max_support_vectors": 0.5}, "max_support_vectors"),
        ({"max_support_vectors": 100}, "without a kernel"),
    ],
    IncrementalSVMClassifier: [
        *(({"C": wrong}, "C=") for wrong in (0.0, 1e9)),
        ({"window": 1}, "window=1"),
        ({"kernel": "rbf"}, "kernel='rbf'"),
        ({"cache_mb": -1.0}, "cache_mb=-1.0"),
    ],
    IncrementalSVMRegressor: [
        *(({"C": wrong}, "C=") for wrong in (0.0, 1e9)),
        ({"epsilon": -0.1}, "epsilon=-0.1"),
        ({"window": 1}, "window=1"),
    ],
    IncrementalOneClassSVM: [({"nu": wrong}, "nu=") for wrong in (0.0, 1.1, NAN, "a")],
}
CASES = [(cls, given, said) for cls, refused in REFUSED.items() for given, said in refused]


@pytest.mark.parametrize(
    ("cls", "given", "said"), CASES, ids=[f"{cls.__name__}-{given}" for cls, given, _ in CASES]
)
def test_what_is_refused_says_what_is_accepted(cls, given, said):
    with pytest.raises(ParameterError, match=re.escape(said)):
        cls(**given)


@pytest.mark.parametrize("model", [AdaptiveSVMClassifier(), SBPClassifier(window=5)], ids=repr)
def test_ids_are_refused_where_none_are_kept(model):
    with pytest.raises(ParameterError, match="ids: "):
        model.learn_many([[1.0]], [1], ids=[1])
