"""Streams of events as dicts: predict, then learn, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq

from benchmarks.golden.problems import FOLDER
from benchmarks.peers.workloads import AbsentError

Events = list[tuple[dict[Any, Any], Any]]


def bananas() -> Events:
    """River's Bananas, in order."""
    from river import datasets

    return list(datasets.Bananas())


def _read(name: str) -> Any:
    if not FOLDER.exists():
        raise AbsentError(f"no data in {FOLDER}")
    return pq.read_table(FOLDER / f"{name}.parquet")


def elec2() -> Events:
    """The first 20,000 rows of Elec2, in order of time."""
    rows = _read("elec2").slice(0, 20_000).to_pylist()
    return [({k: v for k, v in row.items() if k != "label"}, row["label"] == "UP") for row in rows]


def segments() -> Events:
    """River's ImageSegments, seven classes, shuffled with a seed."""
    from river import datasets, stream

    return list(stream.shuffle(datasets.ImageSegments(), 2310, seed=0))


def chessboard() -> Events:
    """A board of eight classes that drifts, the first 20,000 rows."""
    rows = _read("chessboard").slice(0, 20_000).to_pylist()
    return [({k: v for k, v in row.items() if k != "label"}, row["label"]) for row in rows]


def sms() -> Events:
    """SMS messages as counts of words: the wide, sparse stream."""
    from river.feature_extraction import BagOfWords

    table, words = _read("sms_spam").to_pydict(), BagOfWords()
    return [
        (dict(words.transform_one(text)), bool(label))
        for text, label in zip(table["text"], table["label"], strict=True)
    ]


def progressive(make: Callable[[], Any]) -> Callable[[Events], dict[str, Any]]:
    """Return a system: seconds an event of predict_one and learn_one, and progressive error."""

    def run(events: Events) -> dict[str, Any]:
        # Code that is compiled or loaded at some event is so before the clock runs.
        warm = make()
        for x, y in events[:1200]:
            warm.predict_one(x)
            warm.learn_one(x, y)
        model, wrong = make(), 0
        wall, cpu = time.perf_counter(), time.process_time()
        for x, y in events:
            wrong += model.predict_one(x) != y
            model.learn_one(x, y)
        n = len(events)
        learner = list(model.steps.values())[-1] if hasattr(model, "steps") else model
        support = getattr(learner, "n_support_vectors", None)
        return {
            "seconds": (time.perf_counter() - wall) / n,
            "cpu_seconds": (time.process_time() - cpu) / n,
            "error": 100.0 * wrong / n,
        } | ({} if support is None else {"n_support_vectors": support})

    return run


def _ours(name: str, **parameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        import streamsvm

        given = dict(parameters)
        if "kernel" in given:
            kind, gamma = given["kernel"]
            given["kernel"] = getattr(streamsvm.kernels, kind)(gamma=gamma)
        return getattr(streamsvm, name)(**given)

    return make


def _scaled(make: Callable[[], Any], river: bool) -> Callable[[], Any]:
    def scaled() -> Any:
        if river:
            from river.preprocessing import StandardScaler

            return StandardScaler() | make()
        import streamsvm

        return streamsvm.StandardScaler() | make()

    return scaled


def _rivers() -> dict[str, Callable[[], Any]]:
    from river import forest, linear_model, naive_bayes, neighbors, tree

    lazy = neighbors.LazySearch(window_size=1000)
    return {
        "River KNN, lazy 1,000": lambda: neighbors.KNNClassifier(engine=lazy.clone()),
        "River KNN, SWINN": neighbors.KNNClassifier,
        "River HoeffdingTree": tree.HoeffdingTreeClassifier,
        "River LogisticRegression": linear_model.LogisticRegression,
        "River PAClassifier": linear_model.PAClassifier,
        "River ALMAClassifier": linear_model.ALMAClassifier,
        "River SoftmaxRegression": linear_model.SoftmaxRegression,
        "River ARF": lambda: forest.ARFClassifier(seed=1),
        "River MultinomialNB": naive_bayes.MultinomialNB,
    }


def river(name: str, scaled: bool = False) -> Callable[[Events], dict[str, Any]]:
    """Return one of River's classifiers as a system."""

    def run(events: Events) -> dict[str, Any]:
        make = _rivers()[name]
        return progressive(_scaled(make, river=True) if scaled else make)(events)

    return run


def ours(name: str, scaled: bool = False, **parameters: Any) -> Any:
    """Return one of our classifiers as a system."""
    make = _ours(name, **parameters)
    run = progressive(_scaled(make, river=False) if scaled else make)
    run.learner = name  # type: ignore[attr-defined]
    return run
