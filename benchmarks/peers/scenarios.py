"""The scenarios: permanent ids, what each shows, and the systems that take part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.peers import own, streams, systems, workloads


class Scenario(NamedTuple):
    """One workload and the systems that run on it; the first one is ours."""

    id: str
    shows: str
    load: Callable[[], Any]
    systems: dict[str, Callable[[Any], dict[str, Any]]]
    unit: str = "s"  # of `seconds`, times `factor`
    factor: float = 1.0
    slow: tuple[str, ...] = ()  # measured once, and only if asked for
    elsewhere: dict[str, tuple[float, float]] = {}  # noqa: RUF012  taken from another run: s, error
    only_by_name: bool = False


_TWO_THREADS = {
    "LASVM, 2 threads": systems.lasvm(n_jobs=2),
    "scikit-learn-intelex SVC, 2 threads": systems.svc_intelex,
}
_BATCH = {
    "LASVM": systems.lasvm(),
    "LASVM, one pass": systems.lasvm(finish=False),
    "scikit-learn SVC": systems.svc,
    "scikit-learn-intelex SVC": systems.svc_intelex,
    **_TWO_THREADS,
}
_SEVERAL = {
    "LASVM": systems.lasvm(),
    "LASVM, one pass": systems.lasvm(finish=False),
    "LaRank": systems.larank(),
    "LaRank, finished": systems.larank(finish=True),
    "scikit-learn SVC": systems.svc,
    "LIBSVM": systems.libsvm,
    "scikit-learn-intelex SVC": systems.svc_intelex,
    **_TWO_THREADS,
}
_NOISY = _BATCH | {
    "LASVM": systems.lasvm(cache_mb=500),
    "LASVM, 2 threads": systems.lasvm(cache_mb=500, n_jobs=2),
}
_ORIGINAL_LARANK = "original LaRank, one epoch"
_LINEAR = {"LinearSVC": systems.linear_svc, "SGDClassifier": systems.sgd}
_ORIGINAL = "original LASVM, one epoch + finishing"
_RIVERS = (
    "River KNN, lazy 1,000",
    "River KNN, SWINN",
    "River HoeffdingTree",
    "River LogisticRegression",
    "River PAClassifier",
    "River ALMAClassifier",
)


def _events(scaled: bool, rivers: tuple[str, ...] = _RIVERS) -> dict[str, Any]:
    return {
        "adaptive": streams.ours("AdaptiveSVMClassifier"),
        "LASVM": streams.ours("LASVMClassifier", scaled),
        "LASVM, 500 SV": streams.ours("LASVMClassifier", scaled, max_support_vectors=500),
        "averaged tracking, 500 SV": streams.ours(
            "TrackingSVMClassifier", scaled, max_support_vectors=500, seed=0
        ),
        **{name: streams.river(name, scaled) for name in rivers},
    }


def _events_of_several() -> dict[str, Any]:
    names = (
        "River SoftmaxRegression",
        "River HoeffdingTree",
        "River ARF",
        "River KNN, lazy 1,000",
    )
    return {
        "adaptive": streams.ours("AdaptiveSVMClassifier"),
        "LASVM": streams.ours("LASVMClassifier", True),
        "LaRank, 500 patterns": streams.ours(
            "LaRankClassifier", True, max_support_vectors=500, seed=1
        ),
        "LaRank": streams.ours("LaRankClassifier", True, seed=1),
        **{name: streams.river(name, True) for name in names},
    }


def _noisy(thousands: int, only_by_name: bool = True) -> Scenario:
    return Scenario(
        f"noisy-{thousands}k",
        f"generated, overlapping classes, {thousands},000 x 54, C 3",
        partial(workloads.noisy, 1000 * thousands),
        _NOISY,
        slow=("scikit-learn SVC", "scikit-learn-intelex SVC"),
        only_by_name=only_by_name,
    )


SCENARIOS = [
    Scenario(
        "adult-c1",
        "Adult, 32,561 x 123, gamma .005, C 1",
        partial(workloads.paper, "adult"),
        _BATCH | _LINEAR | {"Vowpal Wabbit --ksvm": systems.vowpal_wabbit},
        slow=("Vowpal Wabbit --ksvm",),
        elsewhere={_ORIGINAL: (78.4, 15.09)},
    ),
    Scenario(
        "adult-c100",
        "Adult, gamma .005, C 100",
        partial(workloads.paper, "adult_100"),
        _BATCH | {"LASVM, papers' schedule": systems.lasvm(delta_max=None, second_order=False)},
        elsewhere={_ORIGINAL: (134.8, 15.07)},
    ),
    Scenario(
        "mnist-8",
        "MNIST, 8 against the rest, 60,000 x 784, gamma .005, C 1000",
        partial(workloads.paper, "mnist_8"),
        _BATCH,
        elsewhere={_ORIGINAL: (146.0, 0.60)},
    ),
    Scenario(
        "banana",
        "Banana, 4,000 x 2, gamma .5, C 316 (two REPROCESS an example)",
        partial(workloads.paper, "banana"),
        {
            "LASVM": systems.lasvm(reprocess=2, delta_max=3.0, second_order=False),
            "LASVM, defaults": systems.lasvm(),
            "LASVM, two epochs": systems.lasvm(epochs=2, delta_max=None),
            "scikit-learn SVC": systems.svc,
            "scikit-learn-intelex SVC": systems.svc_intelex,
            "LASVM, 2 threads": systems.lasvm(
                reprocess=2, delta_max=3.0, second_order=False, n_jobs=2
            ),
            "scikit-learn-intelex SVC, 2 threads": systems.svc_intelex,
        },
        elsewhere={_ORIGINAL: (0.79, 10.4)},
    ),
    Scenario(
        "waveform",
        "Waveform, 4,000 x 21, gamma .05, C 1",
        partial(workloads.paper, "waveform"),
        _BATCH | _LINEAR,
        elsewhere={_ORIGINAL: (0.35, 11.6)},
    ),
    Scenario(
        "usps-0",
        "USPS, 0 against the rest, 7,291 x 256, gamma 2, C 1000",
        partial(workloads.paper, "usps"),
        _BATCH,
        elsewhere={_ORIGINAL: (1.92, 0.40)},
    ),
    Scenario(
        "covertype-2",
        "Covertype, class 2 against the rest, 16,000 x 54, gamma .05, C 10",
        workloads.covertype,
        _BATCH,
    ),
    Scenario(
        "binary",
        "generated, 40,000 x 300 of 0 and 1 (4 % are 1), gamma .05, C 2",
        workloads.binary,
        _BATCH,
    ),
    Scenario(
        "reuters-moneyfx",
        "Reuters, money-fx, 7,770 x 8,315 sparse, gamma 1, C 1",
        workloads.reuters,
        {**_BATCH, "LinearSVC": systems.linear_svc},
    ),
    Scenario(
        "letter",
        "Letter, 26 classes, 16,000 x 16, gamma .025, C 10",
        partial(workloads.paper, "letter"),
        _SEVERAL,
        elsewhere={_ORIGINAL_LARANK: (130.0, 5.38)},
    ),
    Scenario(
        "usps-10",
        "USPS, 10 classes, 7,291 x 256, gamma .025, C 10",
        partial(workloads.paper, "usps_10"),
        _SEVERAL,
        elsewhere={_ORIGINAL_LARANK: (91.0, 5.08)},
    ),
    Scenario(
        "mnist-10",
        "MNIST, 10 classes, 60,000 x 784, gamma .005, C 1000",
        partial(workloads.paper, "mnist_10"),
        {k: v for k, v in _SEVERAL.items() if k != "LaRank, finished"}
        | {"LaRank": systems.larank(cache_mb=500)},
        slow=("LIBSVM", "scikit-learn-intelex SVC"),
    ),
    _noisy(50, only_by_name=False),
    _noisy(100),
    _noisy(500)._replace(systems={"LASVM": _NOISY["LASVM"]}, slow=()),
    Scenario(
        "predict-adult",
        "prediction in batches, a row and support vector: Adult",
        partial(workloads.paper, "adult"),
        {"LASVM": systems.lasvm_predict, "scikit-learn SVC": systems.svc_predict},
        unit="ns",
        factor=1e9,
    ),
    Scenario(
        "predict-mnist-8",
        "prediction in batches, a row and support vector: MNIST 8",
        partial(workloads.paper, "mnist_8"),
        {"LASVM": systems.lasvm_predict, "scikit-learn SVC": systems.svc_predict},
        unit="ns",
        factor=1e9,
    ),
    Scenario(
        "events-bananas",
        "an event, predict_one + learn_one: Bananas, 2 features",
        streams.bananas,
        _events(scaled=False),
        unit="us",
        factor=1e6,
    ),
    Scenario(
        "events-elec2",
        "an event, scaled: Elec2, 8 features, 20,000 rows",
        streams.elec2,
        _events(scaled=True),
        unit="us",
        factor=1e6,
    ),
    Scenario(
        "events-sms",
        "an event of words: SMS spam, 14 of some 9,000 features",
        streams.sms,
        {
            "adaptive": streams.ours("AdaptiveSVMClassifier"),
            "LASVM": streams.ours("LASVMClassifier"),
            "LASVM, 500 SV": streams.ours("LASVMClassifier", max_support_vectors=500),
            "LASVM, hashed": streams.ours("LASVMClassifier", hashing=2**16),
            "SVMSGDClassifier": streams.ours("SVMSGDClassifier"),
            **{
                name: streams.river(name)
                for name in (
                    "River MultinomialNB",
                    "River LogisticRegression",
                    "River PAClassifier",
                    "River HoeffdingTree",
                )
            },
        },
        unit="us",
        factor=1e6,
    ),
    Scenario(
        "events-segments",
        "an event of seven classes, scaled: ImageSegments, 18 features",
        streams.segments,
        _events_of_several(),
        unit="us",
        factor=1e6,
    ),
    Scenario(
        "events-chessboard",
        "an event of eight classes that drift: chessboard, 2 features, 20,000 rows",
        streams.chessboard,
        {
            "adaptive": streams.ours("AdaptiveSVMClassifier"),
            "LaRank, window 1,000": streams.ours("LaRankClassifier", window=1000, seed=1),
            "LaRank, tuned: RBF(100), window 1,000": streams.ours(
                "LaRankClassifier", kernel=("RBF", 100.0), window=1000, seed=1
            ),
            **{k: v for k, v in _events_of_several().items() if k.startswith("River")},
        },
        unit="us",
        factor=1e6,
    ),
    Scenario(
        "replay-parquet",
        "a row of a replay with its monitor: Adult",
        own.adult_file,
        {"LASVM, 500 SV": own.replay},
        unit="us",
        factor=1e6,
    ),
    Scenario(
        "memory-mnist-8",
        "MNIST 8 by bytes for cached kernel rows",
        partial(workloads.paper, "mnist_8"),
        {
            "LASVM, 64 MB": systems.lasvm(cache_mb=64),
            "LASVM, 1 GB": systems.lasvm(cache_mb=1000),
        },
    ),
    Scenario(
        "import",
        "import streamsvm",
        lambda: None,
        {"streamsvm": own.import_time},
    ),
    Scenario(
        "first-event",
        "the first learn_one of a later process",
        lambda: None,
        {"LASVM": own.first_event},
        unit="ms",
        factor=1e3,
    ),
]

BY_ID = {scenario.id: scenario for scenario in SCENARIOS}

WITHOUT: dict[str, str] = {
    "SVMSGDClassifier": "benchmarks/linear.py has peers and measures of its own",
    "SGDQNClassifier": "as SVMSGDClassifier",
    "KernelPerceptronClassifier": "benchmarks/budget_family.py has its peers",
    "KernelPAClassifier": "as KernelPerceptronClassifier",
    "KernelPegasosClassifier": "as KernelPerceptronClassifier",
    "HullerClassifier": "examples/papers/thesis_figure_4_3.py compares it with LASVM",
    "IncrementalSVMClassifier": "benchmarks/exact.py compares it with SVC fitted again",
    "SBPClassifier": "examples/papers/sbp_figures.py compares it",
    "AmbiguousSVMClassifier": "benchmarks/ambiguous.py has its peers",
    "AdaptiveSVMClassifier": "benchmarks/arena.py has its peers",
}
"""Public learners without a scenario, and why."""
