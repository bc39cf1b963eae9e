"""Faults that learners and scalers must survive."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.trial import expect, fault
from connectors import MemorySource
from streamsvm import (
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import LabelError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run

N = 20_000
_BOUND = {"max_support_vectors": 100}
_RBF = kernels.RBF(gamma=0.2)
LEARNERS: dict[str, Any] = {
    "sgd": SVMSGDClassifier,
    "sgdqn": SGDQNClassifier,
    "lasvm": lambda: LASVMClassifier(_RBF, **_BOUND),
    "larank": lambda: LaRankClassifier(_RBF, seed=0, reprocess=1, window=300),
    "tracking": lambda: TrackingSVMClassifier(_RBF, seed=0, window=200),
    "perceptron": lambda: KernelPerceptronClassifier(_RBF, **_BOUND),
    "pa": lambda: KernelPAClassifier(_RBF, **_BOUND),
    "pegasos": lambda: KernelPegasosClassifier(_RBF, **_BOUND),
}


def _problem(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5))
    y = x @ [1.0, -1.0, 0.5, 0.0, 2.0] + rng.normal(size=n) > 0
    return x, y


def _late_accuracy(model: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy of the predictions for the last half, each made before learning."""
    from streamsvm import predict_then_learn_many

    predicted = predict_then_learn_many(model, x, y.tolist())
    half = len(y) // 2
    return float(
        np.mean([p == t for p, t in zip(predicted[half:], y[half:].tolist(), strict=True)])
    )


@fault(
    "one value of 1e6 at row 3,000, or of 1e30 at row 300, of 20,000",
    "behind `StandardScaler` it is clipped and counted: of all learners the accuracy on the second "
    "half is within .02 of that without it",
)
def outliers(_: Path) -> None:
    x, y = _problem()
    for name, make in LEARNERS.items():
        clean = _late_accuracy(StandardScaler() | make(), x, y)
        for value, row in ((1e6, 3000), (1e30, 300)):
            odd = x.copy()
            odd[row, 0] = value
            model = StandardScaler() | make()
            found = _late_accuracy(model, odd, y)
            expect(found > clean - 0.02 and clean > 0.75, name, value, clean, found)
            expect(sum(model["StandardScaler"].n_clipped.values()) >= 1, name)


@fault("the same in a stream that is not scaled", "SGD and SGD-QN recover to within .03")
def unscaled(_: Path) -> None:
    x, y = _problem()
    for make in (SVMSGDClassifier, SGDQNClassifier):
        clean = _late_accuracy(make(), x, y)
        odd = x.copy()
        odd[3000, 0] = 1e6
        found = _late_accuracy(make(), odd, y)
        expect(found > clean - 0.03, make.__name__, clean, found)


@fault("a value of 1e100", "refused as beyond single precision")
def beyond_single(_: Path) -> None:
    x, y = _problem(100)
    events = [
        (dict(enumerate(row)), label) for row, label in zip(x.tolist(), y.tolist(), strict=True)
    ]
    events[50][0][0] = 1e100
    letters: list[Any] = []
    model = StandardScaler() | SVMSGDClassifier()
    Run(MemorySource([({str(n): v for n, v in x.items()}, y) for x, y in events]), model,
        bad_events=BadEvents(letters.append)).execute()  # fmt: skip
    expect(len(letters) == 1 and "single precision" in letters[0]["reason"], letters)


@fault("values of 1e6 standard deviations, with `reject=`", "dead letters, counted")
def rejected(_: Path) -> None:
    x, y = _problem(500)
    x[300:310, 0] = 1e9
    events = [({str(i): v for i, v in enumerate(row)}, t)
              for row, t in zip(x.tolist(), y.tolist(), strict=True)]  # fmt: skip
    bad = BadEvents("skip")
    report = Run(MemorySource(events), StandardScaler(reject=1e6) | SVMSGDClassifier(),
                 bad_events=bad).execute()  # fmt: skip
    expect(report.learnt == 490 and bad.counts == {"outlier": 10}, report.learnt, bad.counts)


@fault(
    "`--label-delay 1`",
    "20,000 rows of 8 features take at most twice the time of the processor, for LASVM",
)
def delayed(_: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 8))
    events = [({str(i): v for i, v in enumerate(row)}, bool(row[0] * row[1] > 0))
              for row in x.tolist()]  # fmt: skip
    times: dict[Any, list[float]] = {None: [], 1: []}
    for _round in range(3):
        for delay in (None, 1):
            late = None if delay is None else LateLabels(delay=delay)
            source = MemorySource(events)
            start = time.process_time()
            Run(source, LASVMClassifier(_RBF, **_BOUND), late=late).execute()
            times[delay].append(time.process_time() - start)
    expect(min(times[1]) < 2.0 * min(times[None]), times)


@fault(
    "a target with thousands of classes",
    "time and memory are at most linear in them (one against one: quadratic), and more than "
    "`max_classes` (1,000; LASVM, adaptive: 200) are "
    "refused until it is raised",
)
def many_classes(_: Path) -> None:
    times = {}
    for k in (250, 250, 1000):
        x = np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float32)
        y = (np.arange(3000) % k).tolist()
        model = LaRankClassifier(_RBF, seed=0)
        start = time.process_time()
        model.learn_many(x, y)
        times[k] = time.process_time() - start
    expect(times[1000] < 6.0 * times[250], times)
    for make, most in ((LASVMClassifier, 200), (LaRankClassifier, 1000)):
        try:
            make().learn_many(np.zeros((most + 1, 1), np.float32), list(range(most + 1)))
        except LabelError:
            continue
        raise AssertionError(f"{make.__name__} took {most + 1} classes")
    LaRankClassifier(max_classes=1001).learn_many(
        np.zeros((1001, 1), np.float32), list(range(1001))
    )


@fault("a bound on the memory of LaRank", "`max_support_vectors`, as of the other learners")
def bound_of_larank(_: Path) -> None:
    x, y = _problem(3000)
    for make in (LaRankClassifier, LASVMClassifier):
        model = make(max_support_vectors=50)
        model.learn_many(x.astype(np.float32), y.tolist())
        kept = getattr(model, "n_support_patterns", model.n_support_vectors)
        expect(kept <= 50, make.__name__, kept)
