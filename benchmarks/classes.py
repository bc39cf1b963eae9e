"""Several classes: LASVM, LaRank and SVC side by side, for `benchmarks.pages`.

``python -m benchmarks.classes`` compares events, each predicted and then learnt. Seconds are of the
processor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from river import datasets

from benchmarks import default_streams
from benchmarks.common import error_of, error_of_rows, rows_of, seconds_of
from benchmarks.golden import problems
from benchmarks.golden.problems import Problem
from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    kernels,
    predict_then_learn_many,
)

NAMES = {
    "USPS, 10 classes, 7,291 x 256, C 10": "usps_10",
    "Letter, 26 classes, 16,000 x 16, C 10": "letter",
    "Covertype, 7 classes, 15,000 x 54, C 10": "covtype",
    "MNIST, 10 classes, 60,000 x 784, C 1000": "mnist_10",
}
BOTH: tuple[Any, ...] = (LASVMClassifier, LaRankClassifier)


def covtype() -> Problem:
    """Return seven classes: 15,000 rows, standardised, and 5,000 to test on."""
    x, y = rows_of("covtype_first20k")
    x = x.astype(float)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    deviation = x[:15_000].std(axis=0)
    x = (x - x[:15_000].mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    x = x.astype(np.float32)
    return Problem(x[:15_000], y[:15_000], x[15_000:], y[15_000:], kernels.RBF(gamma=0.05), 10.0)


def _figures(model: Any, problem: Problem) -> dict[str, float]:
    """Learn, predict, finish."""
    _, learn = seconds_of(lambda: model.learn_many(problem.x, problem.y))
    predicted, predict = seconds_of(lambda: np.array(model.predict_many(problem.x_test)))
    n = model.n_support_vectors
    _, finish = seconds_of(model.finish)
    finished = np.mean(np.array(model.predict_many(problem.x_test)) != problem.y_test)
    return {
        "error": 100 * float(np.mean(predicted != problem.y_test)),
        "seconds": learn,
        "finished": 100 * float(finished),
        "finish": finish,
        "rate": len(predicted) / predict,
        "vectors": n,
    }


def _of_svc(problem: Problem) -> dict[str, float]:
    """Return the figures of scikit-learn's SVC."""
    from sklearn.svm import SVC

    x, x_test = problem.x.astype(float), problem.x_test.astype(float)
    svc = SVC(C=problem.C, gamma=problem.kernel.gamma, cache_size=500)
    _, learn = seconds_of(lambda: svc.fit(x, problem.y))
    predicted, predict = seconds_of(lambda: svc.predict(x_test))
    error = 100 * float(np.mean(predicted != problem.y_test))
    return {
        "error": error,
        "seconds": learn,
        "rate": len(predicted) / predict,
        "vectors": len(svc.support_),
    }


def _of_separate(problem: Problem) -> dict[str, float]:
    """Return the figures of a LASVM of two classes for each two classes; they share nothing."""
    labels = np.unique(problem.y)
    votes = np.zeros((len(problem.x_test), len(labels)))
    finished, n, learn, predict, finish = votes.copy(), 0, 0.0, 0.0, 0.0
    # One after the other, since their reserves would not fit into memory together.
    for a, b in combinations(range(len(labels)), 2):
        mine = (problem.y == labels[a]) | (problem.y == labels[b])
        model = LASVMClassifier(problem.kernel, C=problem.C, cache_mb=500)
        x, y = problem.x[mine], problem.y[mine] == labels[a]
        learn += seconds_of(partial(model.learn_many, x, y))[1]
        margins, seconds = seconds_of(partial(model.decision_function_many, problem.x_test))
        predict, n = predict + seconds, n + model.n_support_vectors
        _vote(votes, a, b, margins)
        finish += seconds_of(model.finish)[1]
        _vote(finished, a, b, model.decision_function_many(problem.x_test))
    error, finished_error = (
        100 * float(np.mean(labels[cast.argmax(axis=1)] != problem.y_test))
        for cast in (votes, finished)
    )
    return {
        "error": error,
        "seconds": learn,
        "finished": finished_error,
        "finish": finish,
        "rate": len(problem.x_test) / predict,
        "vectors": n,
    }


def _vote(votes: np.ndarray, a: int, b: int, margins: np.ndarray) -> None:
    """Add the votes of a problem, and its margins as fractions of a vote."""
    near = np.clip(margins, -1.0, 1.0) / (2 * votes.shape[1])
    votes[:, a] += (margins > 0) + near
    votes[:, b] += (margins <= 0) - near


def of_problem(name: str, quick: bool = False) -> dict[str, dict[str, float]]:
    """Return the figures of LASVM, separate LASVMs, LaRank and SVC, of the same parameters."""
    own = NAMES[name]
    problem = covtype() if own == "covtype" else getattr(problems, own)()
    few = problem._replace(x=problem.x[:500], y=problem.y[:500])
    if quick:
        problem = few
    found = {}
    for label, model in learners(problem.kernel, problem.C).items():
        # Compiled code is loaded before the clock runs.
        _figures(learners(problem.kernel, problem.C)[label], few)
        found[label] = _figures(model, problem)
    _of_separate(few)
    return found | {"separate LASVMs": _of_separate(problem), "SVC": _of_svc(problem)}


def learners(kernel: Any, C: float, seed: int = 1) -> dict[str, Any]:
    """Return new learners by name."""
    return {
        "LASVM": LASVMClassifier(kernel, C=C, cache_mb=500),
        "LaRank": LaRankClassifier(kernel, C=C, cache_mb=500, seed=seed),
    }


def of_events() -> None:
    """Print microseconds an event and progressive errors on River's ImageSegments."""
    events = list(datasets.ImageSegments())
    # Without a kernel, several widths are tried during the first 1,024 of these 2,310 events.
    for kernel, bound in ((kernels.RBF(gamma=0.2), None), (None, 500), (None, None)):
        for name, cls in (("LASVM", LASVMClassifier), ("LaRank", LaRankClassifier)):
            for _ in range(2):  # the first time it may compile
                model = StandardScaler() | cls(kernel, C=10.0, max_support_vectors=bound, seed=1)
                error, seconds = seconds_of(partial(error_of, model, events))
            print(
                f"ImageSegments, {kernel}, max_support_vectors={bound}: {name} "
                f"{1e6 * seconds / len(events):.1f} us, {error:.2f} %",
                flush=True,
            )


STREAMS = {
    "chessboard, which changes": "chessboard",
    "USPS, 10 classes": "usps_train",
    "Covertype, 7 classes": "covtype_sample10k",
    "Letter, 26 classes": "letter_train",
    "OCR letters, 26 classes": "ocr_letters_train",
}
_MOST_ROWS = 10_000


def stream(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of a file."""
    return rows_of(name, _MOST_ROWS, ("label", "word_id", "position"))


def _progressive(make: Callable[[], Any], x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return progressive error in % and seconds of the processor, with compiled code loaded."""
    predict_then_learn_many(make(), x[:2000], y[:2000].tolist())
    return seconds_of(partial(error_of_rows, make(), x, y))


def of_stream(name: str, quick: bool = False) -> dict[str, Any]:
    """Return progressive errors and seconds of a stream, by the defaults but for C."""
    x, y = (rows[:1500] if quick else rows for rows in stream(STREAMS[name]))
    return {
        f"{cls.__name__}, {C:g}": _progressive(partial(cls, C=C, seed=1), x, y)
        for C in (1.0, 10.0)
        for cls in BOTH
    }


LIMITS: list[dict[str, int]] = [
    {},
    *({kind: n} for kind in ("max_support_vectors", "window") for n in (100, 300, 1000)),
]


BOUNDED = {
    "chessboard": "chessboard",
    "Letter": "letter_train",
    "Covertype, as it came": "covtype_first20k",
    "Covertype, shuffled": "covtype_sample10k",
    "USPS": "usps_train",
    "MNIST": "mnist_train",
    "OCR letters": "ocr_letters_train",
    "ImageSegments": "ImageSegments",
    "random RBF, drift": "random RBF drift",
    "LED, drift": "LED drift",
    "Waveform": "waveform",
}
"""The streams of several classes, by the names on the page."""


def of_bounds(name: str, quick: bool = False) -> list[tuple[float, ...]]:
    """Return progressive errors of LASVM and LaRank within each of `LIMITS`, by the defaults."""
    n = 1000 if quick else 4000
    x, y = default_streams.streams(n)[BOUNDED[name]](n)
    errors = []
    for limit in LIMITS:
        errors.append(tuple(error_of_rows(cls(seed=1, **limit), x, y) for cls in BOTH))
    return errors


def blobs(k: int, d: int, scale: float, seed: int, p: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return 6,000 rows of k Gaussians, whose centres are `scale` apart, and their numbers."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(k, d)) * scale
    y = random.choice(k, 6000, p=p)
    return (centres[y] + random.normal(size=(6000, d))).astype(np.float32), y


def rings(noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 6,000 rows and the ring that each is in, of four; a share of noise is drawn anew."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(6000, 2))
    y = np.digitize(np.hypot(*x.T), [0.7, 1.2, 1.7])
    is_noise = random.random(6000) < noise
    y[is_noise] = random.integers(0, 4, is_noise.sum())
    return x.astype(np.float32), y


def _made() -> dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]]:
    unequal = [0.5, 0.25, 0.15, 0.07, 0.03]
    made = {f"{k} Gaussians": partial(blobs, k, 6, 0.8) for k in (3, 6, 15, 30)}
    made["5 Gaussians, unequal"] = lambda seed: blobs(5, 6, 1.0, seed, unequal)
    made["12 Gaussians, far apart"] = partial(blobs, 12, 10, 2.5)
    return made | {
        name: partial(rings, noise)
        for name, noise in (("rings", 0.0), ("rings, 20 % noise", 0.2), ("rings, 40 % noise", 0.4))
    }


OVERLAPPING = _made()


def of_overlap(name: str, quick: bool = False) -> dict[str, tuple[float, float]]:
    """Return progressive errors and seconds of LASVM and LaRank, means of two seeds."""
    found = {}
    for cls in BOTH:
        of_seeds = []
        for seed in (1,) if quick else (1, 2):
            x, y = OVERLAPPING[name](seed)
            of_seeds.append(_progressive(partial(cls, seed=1), x, y))
        error, seconds = np.mean(of_seeds, axis=0).tolist()
        found[cls.__name__] = error, seconds
    return found


MANY = {
    f"{name}, {n_classes}": (name, n_classes, n)
    for name, n_classes, n in (
        ("LASVM, one against one", 100, 3000),
        ("LASVM, one against one", 300, 3000),
        ("LASVM, one against the rest", 300, 3000),
        ("LASVM, one against the rest", 1000, 3000),
        ("LaRank", 100, 3000),
        ("LaRank", 1000, 3000),
        ("LaRank", 5000, 6000),
    )
}


def of_many(item: str, quick: bool = False) -> dict[str, float]:
    """Return seconds, memory and error of groups of near points, one for each class."""
    name, n_classes, n = MANY[item]
    learner: Any = LaRankClassifier
    if name != "LaRank":
        learner = partial(LASVMClassifier, multiclass="ovr" if "rest" in name else "ovo")
    random = np.random.default_rng(0)
    n = 600 if quick else n
    y = random.integers(0, n_classes, n)
    centres = random.normal(size=(n_classes, 10))
    x = (centres[y] + 0.3 * random.normal(size=(n, 10))).astype(np.float32)
    model = learner(kernels.RBF(gamma=0.1), C=10.0, max_classes=n_classes, seed=1)
    learner(kernels.RBF(gamma=0.1), C=10.0, seed=1).learn_many(x[:100], y[:100] % 5)
    _, seconds = seconds_of(partial(model.learn_many, x, y))
    error = 100 * float(np.mean(np.array(model.predict_many(x[:500])) != y[:500]))
    return {"seconds": seconds, "mb": model.memory_usage / 1e6, "error": error}


if __name__ == "__main__":
    of_events()
