"""Which learner when, for ``python -m benchmarks.pages which``.

One pass over Banana, Bananas, Adult, MNIST 8, USPS 0, Elec2 and SMS, as far as they are at hand,
with budgets of 50, 100 and 500 vectors (or components) and without. For each learner: the error
in %, the microseconds an event takes to be predicted and learnt in batches, the megabytes that the
model takes at the end, and how steady it is: the standard deviation of the error, in points,
of ten models along the last tenth of the stream. Errors are on the test rows; of Bananas, Elec2 and
SMS, which have none, they are of the predictions before learning, and steadiness is measured
on the rows of the last tenth. All kernel learners are given the same gamma and C, but for LASVM and
the adaptive learner by their defaults, as the linear learner has its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from river import compose, datasets

from benchmarks.common import shuffled
from benchmarks.golden import problems
from streamsvm import (
    AdaptiveSVMClassifier,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LASVMClassifier,
    Nystroem,
    RandomFourierFeatures,
    StandardScaler,
    SVMSGDClassifier,
    kernels,
    predict_then_learn_many,
)

BUDGETS = (50, 100, 500, None)


class Stream(NamedTuple):
    """Rows in the order in which they come, and those that errors are measured on."""

    x: Any  # an array, or a sparse matrix
    y: np.ndarray
    x_test: Any
    y_test: np.ndarray
    gamma: float
    C: float
    is_split: bool  # False: there are no test rows but those of the last tenth
    is_scaled: bool = False  # True: `StandardScaler` comes first


def _split(name: str, gamma: float | None = None, C: float | None = None) -> Stream:
    """Return a problem with test rows, its training rows in a random order."""
    p = shuffled(getattr(problems, name)())
    return Stream(p.x, p.y, p.x_test, p.y_test, gamma or p.kernel.gamma, C or p.C, is_split=True)


def _whole(x: Any, y: np.ndarray, gamma: float, is_scaled: bool) -> Stream:
    last = len(y) - len(y) // 10
    return Stream(x, y, x[last:], y[last:], gamma, 1.0, False, is_scaled)


def bananas() -> Stream:
    """The stream of River."""
    events = list(datasets.Bananas())
    x = np.array([list(x.values()) for x, _ in events], np.float32)
    return _whole(x, np.array([y for _, y in events]), 1.0, is_scaled=True)


def elec2() -> Stream:
    """Electricity prices in their order."""
    p = problems.elec2()
    x, y = np.concatenate([p.x, p.x_test]), np.concatenate([p.y, p.y_test])
    return _whole(x, y, 1.0, is_scaled=True)


def sms() -> Stream:
    """Messages as counts of words, divided by the length of the row."""
    import pyarrow.parquet as pq
    from scipy.sparse import csr_matrix

    table = pq.read_table(problems.FOLDER / "sms_spam.parquet")
    words: dict[str, int] = {}
    rows, columns = [], []
    for i, text in enumerate(table["text"].to_pylist()):
        found = [words.setdefault(word, len(words)) for word in text.lower().split()]
        rows += [i] * len(found)
        columns += found
    x = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)))
    lengths = np.sqrt(np.maximum(np.asarray(x.multiply(x).sum(axis=1)).ravel(), 1.0))
    x = csr_matrix(x.multiply(1.0 / lengths[:, None]).astype(np.float32))
    labels = np.array(table["label"].to_pylist())
    return _whole(x, labels == labels[labels != labels[0]][0], 1.0, is_scaled=False)


STREAMS: dict[str, Callable[[], Stream]] = {
    "Banana": lambda: _split("banana", C=1.0),
    "Bananas": bananas,
    "USPS 0": lambda: _split("usps", C=10.0),
    "SMS": sms,
    "Elec2": elec2,
    "Adult": lambda: _split("adult"),
    "MNIST 8": lambda: _split("mnist_8", 0.02, 10.0),
}


def learners(stream: Stream, budget: int | None) -> Iterator[tuple[str, Any]]:
    """Yield the name and the model of each learner for a budget."""
    rbf, n = kernels.RBF(gamma=stream.gamma), 1.0 / len(stream.y)
    bound: dict[str, Any] = {} if budget is None else {"max_support_vectors": budget}
    merge = bound and bound | {"budget": "merge"}
    yield "LASVM", LASVMClassifier(rbf, C=stream.C, **bound)
    yield "LASVM, defaults", LASVMClassifier(**bound)
    if budget is None:
        yield "adaptive, defaults", AdaptiveSVMClassifier()
    yield "kernel perceptron", KernelPerceptronClassifier(rbf, seed=0, **bound)
    yield "kernel PA-I", KernelPAClassifier(rbf, seed=0, **bound)
    yield "kernel Pegasos", KernelPegasosClassifier(rbf, l2=n / stream.C, seed=0, **merge)
    if budget is None:
        yield "SGD, linear", SVMSGDClassifier()
    else:
        yield (
            "random features, SGD",
            RandomFourierFeatures(stream.gamma, budget) | SVMSGDClassifier(),
        )
        yield "Nystroem, SGD", Nystroem(rbf, budget) | SVMSGDClassifier()


def _parts(model: Any) -> list[Any]:
    return list(model.steps.values()) if isinstance(model, compose.Pipeline) else [model]


def _megabytes(model: Any) -> float:
    """Return the memory of the model's arrays; of transformers, as River counts it."""
    sizes = [getattr(p, "memory_usage", None) for p in _parts(model)]
    counted = [
        part._raw_memory_usage if size is None else size
        for part, size in zip(_parts(model), sizes, strict=True)
    ]
    return sum(counted) / 1e6


def _error(model: Any, stream: Stream, some: slice) -> float:
    predicted = np.array(model.predict_many(stream.x_test[some]))
    return 100.0 * float(np.mean(predicted != stream.y_test[some]))


def measure(stream: Stream, model: Any, is_plain: bool = False) -> dict[str, float]:
    """Return what the table has of one learner."""
    # By their defaults they find out whether to scale.
    if stream.is_scaled and not is_plain:
        model = StandardScaler() | model
    n = len(stream.y)
    # Compiled code is loaded before the clock runs.
    spare, few = model.clone(), min(n, 700)
    predict_then_learn_many(spare, stream.x[:few], stream.y[:few])
    ends = np.linspace(n - n // 10, n, 11).astype(int).tolist()
    wrong, seconds, errors, start = 0, 0.0, [], 0
    for stop in ends:
        begin = time.process_time()
        predicted = predict_then_learn_many(model, stream.x[start:stop], stream.y[start:stop])
        seconds += time.process_time() - begin
        wrong += int((np.array(predicted) != stream.y[start:stop]).sum())
        if start:
            errors.append(_error(model, stream, slice(0, 2000)))
        start = stop
    error = _error(model, stream, slice(None)) if stream.is_split else 100.0 * wrong / n
    return {
        "error": error,
        "us": 1e6 * seconds / n,
        "mb": _megabytes(model),
        "spread": float(np.std(errors)),
        "vectors": max(getattr(p, "n_support_vectors", 0) for p in _parts(model)),
    }


def _short(value: float) -> str:
    """Return a number with two digits, or all before the point."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return the table in Markdown: a row a stream and learner, a column a budget."""
    heads = [f"at most {b}" if b else "no bound" for b in BUDGETS]
    lines = ["| data | learner | " + " | ".join(heads) + " |", "|---" * (2 + len(heads)) + "|"]
    for name, of_stream in found.items():
        shown = name
        for learner in dict.fromkeys(key.rpartition(", ")[0] for key in of_stream):
            cells = []
            for budget in BUDGETS:
                one = of_stream.get(f"{learner}, {budget}")
                cells.append(
                    f"{one['error']:.2f} ± {one['spread']:.2f} %, {_short(one['us'])} us, "
                    f"{_short(one['mb'])} MB"
                    if one
                    else ""
                )
            lines.append(f"| {shown} | {learner} | " + " | ".join(cells) + " |")
            shown = ""
    return "\n".join(lines)


def of_stream(name: str, quick: bool = False) -> dict[str, dict[str, float]]:
    """Return what the table has of all learners on a stream."""
    stream, found = STREAMS[name](), {}
    if quick:
        stream = stream._replace(x=stream.x[:1500], y=stream.y[:1500])
    for budget in BUDGETS:
        for learner, model in learners(stream, budget):
            found[f"{learner}, {budget}"] = measure(stream, model, "defaults" in learner)
    return found
