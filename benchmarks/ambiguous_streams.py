"""Bags that say less than random ones, on nine streams: ``python -m benchmarks.ambiguous_streams``.

Streams of scikit-learn and River, at most 4,000 rows to learn, then rows with their labels. Errors
in %, a line for each form of the bags and each learner, a column for each stream, and their mean:

* one other: the label and another one at random;
* lacking: the same, but 30 % of the bags have no right label;
* follows: the next label is in 70 % of the bags, the same one for each label;
* tag: label 0 is in 80 % of the bags.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from river.datasets import ImageSegments, synth
from sklearn import datasets

from benchmarks.ambiguous import Data, bag_softmax, linear_candidate
from streamsvm import AmbiguousSVMClassifier, StandardScaler, kernels

_MOST = 4000


class _Stream(NamedTuple):
    read: Callable[[], Any]  # rows and labels
    n: int  # rows to learn; those of the rest are for the test


def _of_river(stream: Any, n: int) -> Any:
    pairs = list(itertools.islice(stream, n))
    return np.array([list(x.values()) for x, _ in pairs]), [y for _, y in pairs]


def _made(**how: Any) -> Any:
    more = {"n_informative": 10, "n_clusters_per_class": 1}
    return datasets.make_classification(8000, 20, **more, **how)


def _blobs() -> Any:
    x, y = datasets.make_blobs(6000, n_features=5, centers=12, cluster_std=1.5, random_state=3)
    return x + 50.0, y


def _random_rbf() -> Any:
    return synth.RandomRBF(3, 4, n_classes=8, n_features=10, n_centroids=24)


STREAMS = {
    "digits": _Stream(lambda: datasets.load_digits(return_X_y=True), 1200),
    "blobs": _Stream(_blobs, 4000),
    "six classes": _Stream(lambda: _made(n_classes=6, random_state=7), 6000),
    "LED": _Stream(lambda: _of_river(synth.LED(seed=5, noise_percentage=0.1), 6000), 5000),
    "RandomRBF": _Stream(lambda: _of_river(_random_rbf(), 8000), 6000),
    "Waveform": _Stream(lambda: _of_river(synth.Waveform(seed=6), 6000), 5000),
    "ImageSegments": _Stream(lambda: _of_river(ImageSegments(), 2310), 1700),
    "wine": _Stream(lambda: datasets.load_wine(return_X_y=True), 120),
    "unequal": _Stream(
        lambda: _made(n_classes=5, weights=[0.6, 0.2, 0.1, 0.06, 0.04], random_state=8), 6000
    ),
}


def data_of(name: str) -> Data:
    """Return a stream as rows to learn and rows for the test; gamma is for scaled rows."""
    x, y = STREAMS[name].read()
    x, y = np.asarray(x, np.float32), np.unique(y, return_inverse=True)[1]
    if name in ("digits", "ImageSegments", "wine"):
        order = np.random.default_rng(0).permutation(len(y))
        x, y = x[order], y[order]
    n, learnt = STREAMS[name].n, min(STREAMS[name].n, _MOST)
    return Data(x[:learnt], y[:learnt], x[n:], y[n:], 0.5 / x.shape[1], 1.0)


def bags_of(y: np.ndarray, form: str) -> np.ndarray:
    """Return bags, bool (n, classes)."""
    draws, n, k = np.random.default_rng(11), len(y), int(y.max()) + 1
    bags = np.eye(k, dtype=bool)[y]
    if form in ("one other", "lacking"):
        bags[np.arange(n), (y + 1 + draws.integers(k - 1, size=n)) % k] = True
    if form == "lacking":
        for i in np.flatnonzero(draws.random(n) < 0.3):
            others = [c for c in range(k) if not bags[i, c]]
            bags[i, y[i]], bags[i, draws.choice(others)] = False, True
    if form == "follows":
        rows = np.flatnonzero(draws.random(n) < 0.7)
        bags[rows, (y[rows] + 1) % k] = True
    if form == "tag":
        bags[:, 0] |= draws.random(n) < 0.8
    return bags


FORMS = ("one other", "lacking", "follows", "tag")


def learnt(data: Data, bags: np.ndarray) -> dict[str, Any]:
    """Return the predictions of the test rows by all learners."""
    labels: list[Any] = [np.flatnonzero(bag).tolist() for bag in bags]
    scaler = StandardScaler()
    scaler.learn_many(data.x)
    rows, tests = np.asarray(scaler.transform_many(data.x)), scaler.transform_many(data.x_test)
    found: dict[str, Any] = {}
    last: Any = StandardScaler() | AmbiguousSVMClassifier(averaged=False, bias_rate=0.0, C=0.1)
    model: Any = StandardScaler() | AmbiguousSVMClassifier()
    for name, one in (("last weights, C .1, no bias", last), ("explicit weights", model)):
        one.learn_many(data.x, labels)
        found[name] = one.predict_many(data.x_test)
    again: Any = StandardScaler() | AmbiguousSVMClassifier()
    again.learn_many(data.x, model["AmbiguousSVMClassifier"].best_candidates(rows, labels))
    found["explicit weights, new model of `best_candidates`"] = again.predict_many(data.x_test)
    kernel, ids = kernels.RBF(gamma=data.gamma), np.arange(1, len(bags) + 1)
    model = AmbiguousSVMClassifier(kernel, C=data.C, reprocess=5, seed=1)
    model.learn_many(rows, labels, ids=ids)
    found["RBF, one pass, `reprocess=5`"] = model.predict_many(tests)
    model.finish()
    found["after `finish`"] = model.predict_many(tests)
    for shown in (ids, None):
        model.learn_many(rows, model.best_candidates(rows, labels, shown), ids=ids)
        model.finish()
    found["learnt again with `best_candidates`"] = model.predict_many(tests)
    for name, learn in (
        ("bag softmax, linear", bag_softmax),
        ("random candidate, SGD", linear_candidate),
    ):
        found[name] = next(learn(data, bags))[1](data.x_test)
    return found


def main() -> None:
    """Print a line for each form of the bags and each learner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(STREAMS))
    given = parser.parse_args()
    sets = {name: data_of(name) for name in given.only}
    print("| bags | learner | " + " | ".join(sets) + " | mean |")
    print("|---|---|" + "---|" * (len(sets) + 1))
    for form in FORMS:
        errors: dict[str, list[float]] = {}
        for data in sets.values():
            for name, guesses in learnt(data, bags_of(data.y, form)).items():
                errors.setdefault(name, []).append(np.mean(np.asarray(guesses) != data.y_test))
        for name, of_sets in errors.items():
            values = [100.0 * value for value in (*of_sets, np.mean(of_sets))]
            row = form, name, *(f"{value:.1f}" for value in values)
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
