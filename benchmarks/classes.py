"""Several classes: LASVM, LaRank and SVC side by side: ``python -m benchmarks.classes``.

One epoch, then predictions of the test rows, then `finish`, which looks again at the reserve.
Printed: test errors in %, seconds of the processor (learn, finish), rows predicted a second, and
support vectors. ``--separate`` adds a LASVM of two classes for each pair, which share nothing (the
support vectors are their sum). ``--svc`` adds scikit-learn's SVC, or that of scikit-learn-intelex
if installed; ``--events`` compares events, each predicted and then learnt; ``--streams``
progressive errors of streams by the defaults of the command, with C 1 and 10; ``--bounds`` those
of more streams without and within limits of memory, and ``--overlap`` of made-up ones whose
classes overlap; ``--many`` seconds and memory with up to thousands of classes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from river import datasets

from benchmarks import default_streams
from benchmarks.svc import fastest_svc
from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    kernels,
    predict_then_learn_many,
)
from tests.golden import problems
from tests.golden.problems import FOLDER, Problem

NAMES = ("usps_10", "letter", "covtype", "mnist_10")


def covtype() -> Problem:
    """Return seven classes: 15,000 rows, standardised, and 5,000 to test on."""
    table = pq.read_table(FOLDER / "covtype_first20k.parquet")
    y = np.array(table.column("label").to_pylist())
    names = [name for name in table.column_names if name != "label"]
    x = np.stack([table.column(name).to_numpy().astype(float) for name in names], axis=1)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    deviation = x[:15_000].std(axis=0)
    x = (x - x[:15_000].mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    x = x.astype(np.float32)
    return Problem(x[:15_000], y[:15_000], x[15_000:], y[15_000:], kernels.RBF(gamma=0.05), 10.0)


def seconds_of(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the seconds of the processor that it took."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def row_of(name: str, model: Any, problem: Problem) -> str:
    """Learn, predict, finish; return a row of the table."""
    _, learn = seconds_of(lambda: model.learn_many(problem.x, problem.y))
    predicted, predict = seconds_of(lambda: np.array(model.predict_many(problem.x_test)))
    rate = len(predicted) / predict
    error = 100 * np.mean(predicted != problem.y_test)
    n = model.n_support_vectors
    _, finish = seconds_of(model.finish)
    finished = 100 * np.mean(np.array(model.predict_many(problem.x_test)) != problem.y_test)
    figures = f"{error:.2f} | {learn:.2f} | {finished:.2f} | {finish:.2f} | {rate:,.0f} | {n:,}"
    return f"{name} | {figures} |"


def svc_row(problem: Problem) -> str:
    """Return the row of scikit-learn's SVC, or of its extension's."""
    name, svc_class = fastest_svc()
    x, x_test = problem.x.astype(float), problem.x_test.astype(float)
    svc = svc_class(C=problem.C, gamma=problem.kernel.gamma, cache_size=500)
    _, learn = seconds_of(lambda: svc.fit(x, problem.y))
    predicted, predict = seconds_of(lambda: svc.predict(x_test))
    error = 100 * np.mean(predicted != problem.y_test)
    rate = len(predicted) / predict
    return f"{name} | {error:.2f} | {learn:.2f} | | | {rate:,.0f} | {len(svc.support_):,} |"


def separate_row(problem: Problem) -> str:
    """Return the row of a LASVM of two classes for each two classes; they share nothing."""
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
        100 * np.mean(labels[cast.argmax(axis=1)] != problem.y_test) for cast in (votes, finished)
    )
    rate = len(problem.x_test) / predict
    figures = f"{error:.2f} | {learn:.2f} | {finished_error:.2f} | {finish:.2f} | {rate:,.0f}"
    return f"separate LASVMs | {figures} | {n:,} |"


def _vote(votes: np.ndarray, a: int, b: int, margins: np.ndarray) -> None:
    """Add the votes of a problem, and its margins as fractions of a vote."""
    near = np.clip(margins, -1.0, 1.0) / (2 * votes.shape[1])
    votes[:, a] += (margins > 0) + near
    votes[:, b] += (margins <= 0) - near


def learners(kernel: Any, C: float, seed: int = 1) -> dict[str, Any]:
    """Return new learners by name."""
    return {
        "LASVM, ovo": LASVMClassifier(kernel, C=C, cache_mb=500),
        "LASVM, ovr": LASVMClassifier(kernel, C=C, cache_mb=500, multiclass="ovr"),
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
                wrong, start = 0, time.process_time()
                for x, y in events:
                    wrong += model.predict_one(x) != y
                    model.learn_one(x, y)
                seconds = time.process_time() - start
            print(
                f"ImageSegments, {kernel}, max_support_vectors={bound}: {name} "
                f"{1e6 * seconds / len(events):.1f} us, {100 * wrong / len(events):.2f} %",
                flush=True,
            )


STREAMS = ("usps_train", "covtype_sample10k", "chessboard", "ocr_letters_train", "letter_train")
_MOST_ROWS = 10_000


def stream(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of a file."""
    table = pq.read_table(FOLDER / f"{name}.parquet").slice(0, _MOST_ROWS)
    without = ("label", "word_id", "position")
    names = [column for column in table.column_names if column not in without]
    x = np.stack([table.column(name).to_numpy().astype(np.float32) for name in names], axis=1)
    return x, np.array(table.column("label").to_pylist())


def of_streams(names: Sequence[str]) -> None:
    """Print progressive errors and seconds, by the defaults but for C."""
    print("| data | C | LASVM | s | LaRank | s |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in names:
        x, y = stream(name)
        for C in (1.0, 10.0):
            cells = []
            for cls in (LASVMClassifier, LaRankClassifier):
                predict_then_learn_many(cls(C=C, seed=1), x[:2000], y[:2000].tolist())
                call = partial(predict_then_learn_many, cls(C=C, seed=1), x, y.tolist())
                predicted, seconds = seconds_of(call)
                error = 100 * np.mean(np.array(predicted, object) != y)
                cells += [f"{error:.2f}", f"{seconds:.1f}"]
            print(f"| {name} | {C:g} | {' | '.join(cells)} |", flush=True)


def of_bounds(names: Sequence[str]) -> None:
    """Print progressive errors of LASVM / LaRank within limits of memory, and their means."""
    limits: list[dict[str, int]] = [{}]
    limits += [{kind: n} for kind in ("max_support_vectors", "window") for n in (100, 300, 1000)]
    heads = ["no limit", *(f"{kind} {n}" for limit in limits for kind, n in limit.items())]
    print(f"| stream | {' | '.join(heads)} |")
    print("|---" * (1 + len(limits)) + "|", flush=True)
    found = []
    for name, read in default_streams.streams(4000).items():
        x, y = read(4000)
        if len(np.unique(y)) <= 2 or (names and name not in names):
            continue
        errors = np.zeros((len(limits), 2))
        for i, limit in enumerate(limits):
            for j, cls in enumerate((LASVMClassifier, LaRankClassifier)):
                predicted = predict_then_learn_many(cls(seed=1, **limit), x, y.tolist())
                errors[i, j] = 100 * np.mean(np.array(predicted, object) != y)
        found.append(errors)
        print(_row_of_bounds(name, errors), flush=True)
    print(_row_of_bounds("mean", np.mean(found, axis=0)))


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


def of_overlap() -> None:
    """Print progressive errors and seconds of LASVM and LaRank, means of two seeds."""
    unequal = [0.5, 0.25, 0.15, 0.07, 0.03]
    made = {f"{k} Gaussians": partial(blobs, k, 6, 0.8) for k in (3, 6, 15, 30)}
    made["5 Gaussians, unequal"] = lambda seed: blobs(5, 6, 1.0, seed, unequal)
    made["12 Gaussians, apart"] = partial(blobs, 12, 10, 2.5)
    made |= {f"rings, {noise:.0%} noise": partial(rings, noise) for noise in (0.0, 0.2, 0.4)}
    print("| stream | LASVM | LaRank |\n|---|---|---|", flush=True)
    for name, make in made.items():
        cells = []
        for cls in (LASVMClassifier, LaRankClassifier):
            errors, times = [], []
            for seed in (1, 2):
                x, y = make(seed)
                predict_then_learn_many(cls(seed=1), x[:1100], y[:1100].tolist())
                call = partial(predict_then_learn_many, cls(seed=1), x, y.tolist())
                predicted, seconds = seconds_of(call)
                errors.append(100 * np.mean(np.array(predicted, object) != y))
                times.append(seconds)
            cells.append(f"{np.mean(errors):.1f} %, {np.mean(times):.1f} s")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _row_of_bounds(name: str, errors: np.ndarray) -> str:
    return f"| {name} | {' | '.join(f'{a:.1f} / {b:.1f}' for a, b in errors)} |"


def of_many() -> None:
    """Print seconds, memory and errors of groups of near points, one for each class."""
    print("| learner | classes | examples | s | MB | error on 500 training rows |")
    print("|---|---|---|---|---|---|", flush=True)
    ovr = partial(LASVMClassifier, multiclass="ovr")
    for name, learner, n_classes, n in (
        ("LASVM, ovo", LASVMClassifier, 100, 3000),
        ("LASVM, ovo", LASVMClassifier, 300, 3000),
        ("LASVM, ovr", ovr, 300, 3000),
        ("LASVM, ovr", ovr, 1000, 3000),
        ("LaRank", LaRankClassifier, 100, 3000),
        ("LaRank", LaRankClassifier, 1000, 3000),
        ("LaRank", LaRankClassifier, 5000, 6000),
    ):
        random = np.random.default_rng(0)
        y = random.integers(0, n_classes, n)
        centres = random.normal(size=(n_classes, 10))
        x = (centres[y] + 0.3 * random.normal(size=(n, 10))).astype(np.float32)
        model = learner(kernels.RBF(gamma=0.1), C=10.0, max_classes=n_classes, seed=1)
        learner(kernels.RBF(gamma=0.1), C=10.0, seed=1).learn_many(x[:100], y[:100] % 5)
        _, seconds = seconds_of(partial(model.learn_many, x, y))
        error = 100 * np.mean(np.array(model.predict_many(x[:500])) != y[:500])
        size = model.memory_usage / 1e6
        cells = f"{n_classes:,} | {n:,} | {seconds:.2f} | {size:.0f} | {error:.1f}"
        print(f"| {name} | {cells} |", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--svc", action="store_true")
    parser.add_argument("--separate", action="store_true")
    parser.add_argument("--events", action="store_true")
    parser.add_argument("--streams", action="store_true")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--only", help="a learner of the table")
    options = parser.parse_args()
    if options.events:
        of_events()
        return
    if options.many:
        of_many()
        return
    if options.overlap:
        of_overlap()
        return
    if options.bounds:
        of_bounds(options.names)
        return
    if options.streams:
        of_streams(options.names or STREAMS)
        return
    print("| data | learner | error | learn, s | finished | finish, s | rows predicted, 1/s | SV |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.names or NAMES:
        problem = covtype() if name == "covtype" else getattr(problems, name)()
        for label, model in learners(problem.kernel, problem.C).items():
            if options.only not in (None, label):
                continue
            # Compiled code is loaded before the clock runs.
            few = problem._replace(x=problem.x[:500], y=problem.y[:500])
            row_of(label, learners(problem.kernel, problem.C)[label], few)
            print(f"| {name} | {row_of(label, model, problem)}", flush=True)
        if options.separate:
            separate_row(problem._replace(x=problem.x[:500], y=problem.y[:500]))
            print(f"| {name} | {separate_row(problem)}", flush=True)
        if options.svc:
            print(f"| {name} | {svc_row(problem)}", flush=True)


if __name__ == "__main__":
    main()
