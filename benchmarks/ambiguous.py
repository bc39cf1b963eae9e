"""Bags of candidates on real sets: ``STREAMSVM_DATA=DIR python -m benchmarks.ambiguous``.

Letter, USPS, and Adult's education as 16 classes. Each label of a training row gets 0 to 3 other
labels, drawn at random without repetition; test rows have their labels. After one pass;
after `finish`; and after bags have shrunk twice to their best candidates, and `finish` ("ids": the
first time without what an example adds to its own scores, and `finish` each time). Errors in %,
seconds of processor time on one core.

* ambiguous: `AmbiguousSVMClassifier`, with a kernel, also within bounds, and with explicit
  weights; beside these a softmax of whole bags, and SGD that learns one candidate of each bag;
* a random candidate: `LaRankClassifier`, which learns one candidate of each bag, at two C;
* each is right: one `LASVMClassifier` a label, for which the rows are positive whose bag has it.

``--only LETTERS``: some of the sets; ``--limit N``: so many rows; ``--without SYSTEM``: leave out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from benchmarks.golden import problems
from streamsvm import (
    AmbiguousSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    kernels,
)


class Data(NamedTuple):
    """Rows for training and for tests, with labels from 0 on."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    gamma: float
    C: float  # of the ambiguous SVM, whose loss is a mean over pairs


def letter() -> Data:
    """Letter: 26 classes, 16 features."""
    return _of(problems.letter(), 4.0)._replace(gamma=0.2)


def usps() -> Data:
    """USPS: 10 classes, 256 features."""
    return _of(problems.usps_10(), 1.0)


def education() -> Data:
    """Adult: 16 levels of education, from all other columns but the years of it.

    Levels and scales are those of the rows for training.
    """
    tables = [_table("adult_raw_train"), _table("adult_raw_test")]
    parts: list[np.ndarray] = []
    for name in tables[0].schema.names:
        if name in ("education", "education_num"):
            continue
        train, test = (table[name].to_numpy(zero_copy_only=False) for table in tables)
        if train.dtype == object:
            levels = np.unique(train[train != None].astype(str))  # noqa: E711
            found = [rows.astype(str)[:, None] == levels for rows in (train, test)]
        else:
            ranks = [
                np.log1p(rows) if name.startswith("capital") else rows for rows in (train, test)
            ]
            mean, size = ranks[0].mean(), ranks[0].std()
            found = [((rows - mean) / size)[:, None] for rows in ranks]
        parts.append(np.concatenate(found).astype(np.float32))
    x, n = np.concatenate(parts, axis=1), len(tables[0])
    y = np.unique(np.concatenate([table["education"] for table in tables]), return_inverse=True)[1]
    return Data(x[:n], y[:n], x[n:], y[n:], 0.02, 1.0)


def _table(name: str) -> Any:
    return pq.read_table(os.path.join(os.environ["STREAMSVM_DATA"], f"{name}.parquet"))


def _of(problem: Any, C: float) -> Data:
    _, which = np.unique(np.concatenate([problem.y, problem.y_test]), return_inverse=True)
    n = len(problem.y)
    return Data(problem.x, which[:n], problem.x_test, which[n:], problem.kernel.gamma, C)


SETS: dict[str, Callable[[], Data]] = {"Letter": letter, "USPS": usps, "education": education}


def bags_of(y: np.ndarray, n_extra: int, seed: int = 1) -> np.ndarray:
    """Return bags, bool (n, classes), of each label and so many others."""
    draws, k = np.random.default_rng(seed), int(y.max()) + 1
    bags = np.zeros((len(y), k), bool)
    keys = draws.random((len(y), k))
    keys[np.arange(len(y)), y] = -1.0
    np.put_along_axis(bags, keys.argsort(axis=1)[:, : n_extra + 1], True, axis=1)
    return bags


Predict = Callable[[np.ndarray], np.ndarray]
Learnt = Iterator[tuple[str, Predict]]


def ambiguous(data: Data, bags: np.ndarray, reprocess: int = 5, with_ids: bool = False) -> Learnt:
    """Yield the ambiguous SVM with a kernel, at several moments."""
    kernel, ids = kernels.RBF(gamma=data.gamma), np.arange(1, len(bags) + 1)
    model = AmbiguousSVMClassifier(kernel, C=data.C, reprocess=reprocess, seed=1)
    labels: list[Any] = [np.flatnonzero(bag).tolist() for bag in bags]
    model.learn_many(data.x, labels, ids=ids)
    yield "one pass", model.predict_many
    model.finish()
    yield "finished", model.predict_many
    for own in (ids if with_ids else None, None):
        model.learn_many(data.x, model.best_candidates(data.x, labels, own), ids=ids)
        if with_ids:
            model.finish()
    model.finish()
    yield "best candidates", model.predict_many


def bounded(data: Data, bags: np.ndarray, reprocess: int = 5) -> Learnt:
    """Yield the ambiguous SVM with a kernel within bounds."""
    labels: list[Any] = [np.flatnonzero(bag).tolist() for bag in bags]
    for most in (500, 1000, 2000, 4000):
        model = AmbiguousSVMClassifier(
            kernels.RBF(gamma=data.gamma),
            C=data.C,
            reprocess=reprocess,
            seed=1,
            max_support_vectors=most,
        )
        model.learn_many(data.x, labels)
        yield f"one pass, at most {most}", model.predict_many


def linear(data: Data, bags: np.ndarray) -> Learnt:
    """Yield the ambiguous SVM with explicit weights, all parameters at their defaults."""
    labels: list[Any] = [np.flatnonzero(bag).tolist() for bag in bags]
    model: Any = AmbiguousSVMClassifier()
    model.learn_many(data.x, labels)
    yield "one pass", model.predict_many
    model = StandardScaler() | AmbiguousSVMClassifier()
    model.learn_many(data.x, labels)
    yield "one pass, scaled", model.predict_many


def linear_candidate(data: Data, bags: np.ndarray) -> Learnt:
    """Yield SGD of logistic regressions, which learns a random candidate of each bag."""
    model = StandardScaler() | SVMSGDClassifier(loss="log", averaged=True)
    model.learn_many(data.x, _drawn(bags))
    yield "one pass, scaled", model.predict_many


def bag_softmax(data: Data, bags: np.ndarray) -> Learnt:
    """Yield a linear softmax whose loss is -log of the probability of the whole bag.

    One pass of AdaGrad, and the mean of its weights; the rate is .3 for all sets.
    """
    mean, width = data.x.mean(axis=0), data.x.std(axis=0)
    width[width == 0.0] = 1.0

    def rows(x: np.ndarray) -> np.ndarray:
        return np.column_stack([(x - mean) / width, np.ones(len(x))])

    w = np.zeros((bags.shape[1], data.x.shape[1] + 1))
    squares, total = np.full_like(w, 1e-8), np.zeros_like(w)
    for x, bag in zip(rows(data.x), bags, strict=True):
        scores = w @ x
        p = np.exp(scores - scores.max())
        p /= p.sum()
        in_bag = np.exp(np.where(bag, scores, -np.inf) - scores[bag].max())
        slope = np.outer(p - in_bag / in_bag.sum(), x)
        squares += slope**2
        w -= 0.3 * slope / np.sqrt(squares)
        total += w
    yield "one pass, scaled", lambda x: (rows(x) @ total.T).argmax(axis=1)


def random_candidate(data: Data, bags: np.ndarray) -> Learnt:
    """Yield LaRank, which learns a random candidate of each bag."""
    for C in (0.03, 1.0):
        model = LaRankClassifier(kernels.RBF(gamma=data.gamma), C=C, seed=1)
        model.learn_many(data.x, _drawn(bags))
        yield f"one pass, C {C:g}", model.predict_many


def _drawn(bags: np.ndarray) -> np.ndarray:
    """Return a random candidate of each bag."""
    keys = np.random.default_rng(2).random(bags.shape)
    return np.where(bags, keys, -1.0).argmax(axis=1)


def each_is_right(data: Data, bags: np.ndarray) -> Learnt:
    """Yield an SVM for each label, to which all rows whose bag has the label are positive."""
    models = []
    for y in range(bags.shape[1]):
        model = LASVMClassifier(kernels.RBF(gamma=data.gamma), C=1.0, seed=1, scale=False)
        model.learn_many(data.x, bags[:, y])
        models.append(model)
    yield (
        "one pass",
        lambda x: np.array([model.decision_function_many(x) for model in models]).argmax(axis=0),
    )


SYSTEMS = {
    "ambiguous": ambiguous,
    "ambiguous, ids": partial(ambiguous, with_ids=True),
    "ambiguous, bounded": bounded,
    "ambiguous, linear": linear,
    "a random candidate, linear": linear_candidate,
    "bag softmax, linear": bag_softmax,
    "a random candidate": random_candidate,
    "each is right": each_is_right,
}


def main() -> None:
    """Print a line for each set, system and number of further labels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SETS))
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--extra", type=int, nargs="*", default=[0, 1, 2, 3])
    given = parser.parse_args()
    print("| set | system | further labels | after | error | seconds |\n|---|---|---|---|---|---|")
    for name in given.only:
        data = SETS[name]()
        data = data._replace(x=data.x[: given.limit], y=data.y[: given.limit])
        for system, learn in SYSTEMS.items():
            for n_extra in given.extra if system not in given.without else ():
                start = time.process_time()
                for after, predict in learn(data, bags_of(data.y, n_extra)):
                    seconds = time.process_time() - start
                    error = 100.0 * np.mean(np.asarray(predict(data.x_test)) != data.y_test)
                    row = name, system, n_extra, after, f"{error:.2f} %", f"{seconds:.1f}"
                    print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
