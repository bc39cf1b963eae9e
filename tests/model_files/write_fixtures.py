"""Writes the model files of `fixtures`: run by the release whose files must stay readable.

    python -m tests.model_files.write_fixtures FOLDER [CASE ...]

Each case is a model that learnt some events and was saved. `expected.json` holds what it predicted
then, and what it predicted after it had learnt further events, to compare with the same of the
loaded file.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from connectors import MemorySource
from streamsvm import (
    AdaptiveSVMClassifier,
    AmbiguousSVMClassifier,
    ConceptLabeler,
    HullerClassifier,
    IncrementalSVMClassifier,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    LaRankSequenceLabeler,
    LASVMClassifier,
    OSPASParser,
    SBPClassifier,
    SequencePA,
    SequencePerceptron,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
    save,
)
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from streamsvm.structured.parser.meanings import as_text

RBF = kernels.RBF(gamma=0.5)
LINEAR = kernels.Linear()
FIRST, ALL = 60, 100


def events(n_classes: int) -> list[tuple[dict[Any, float], Any]]:
    """Return `ALL` events of two noisy features and a label, the same everywhere."""
    draw = random.Random(3).random
    found: list[tuple[dict[Any, float], Any]] = []
    for _ in range(ALL):
        x = {"a": round(4.0 * draw() - 2.0, 3), "b": round(4.0 * draw() - 2.0, 3)}
        if draw() < 0.5:
            x["c"] = round(draw(), 3)
        inner, noise = x["a"] ** 2 + x["b"] ** 2 < 2.0, draw() < 0.1
        if n_classes == 2:
            found.append((x, "in" if inner != noise else "out"))
        else:
            found.append((x, int(inner) + (2 if x["a"] > 0.5 and noise is False else 0)))
    return found


def cases() -> Iterator[tuple[str, Any, int, int]]:
    """Yield the name, the new model, its number of classes and how many events come first."""
    yield "lasvm_dense", LASVMClassifier(class_weight="balanced", seed=1), 2, FIRST
    yield "lasvm_sparse", LASVMClassifier(kernel=RBF, sparse=True), 2, FIRST
    yield "lasvm_window", LASVMClassifier(kernel=RBF, window=25), 2, FIRST
    budget = LASVMClassifier(kernel=RBF, max_support_vectors=15, class_weight={"in": 2.0})
    yield "lasvm_budget", budget, 2, FIRST
    yield "lasvm_empty", LASVMClassifier(kernel=RBF), 2, 0
    yield "lasvm_classes", LASVMClassifier(kernel=RBF, reserve=20), 4, FIRST
    rest = LASVMClassifier(kernel=RBF, multiclass="ovr", class_weight="balanced")
    yield "lasvm_classes_rest", rest, 4, FIRST
    yield "larank", LaRankClassifier(kernel=RBF, seed=5), 4, FIRST
    yield "larank_budget", LaRankClassifier(kernel=RBF, max_support_patterns=20, seed=5), 4, FIRST
    yield "tracking_all", TrackingSVMClassifier(kernel=RBF, seed=7), 2, FIRST
    yield "tracking_fresh", TrackingSVMClassifier(kernel=LINEAR, seed=7), 2, FIRST
    support = TrackingSVMClassifier(kernel=RBF, gradients="support", window=40, seed=7)
    yield "tracking_support", support, 2, FIRST
    project = KernelPerceptronClassifier(kernel=RBF, max_support_vectors=15, seed=3)
    yield "perceptron_project", project, 2, FIRST
    merge = KernelPegasosClassifier(kernel=RBF, max_support_vectors=15, budget="merge", seed=3)
    yield "pegasos_merge", merge, 2, FIRST
    yield "pa_sparse", KernelPAClassifier(kernel=RBF, mode="PA-II", sparse=True), 2, FIRST
    yield "huller", HullerClassifier(kernel=RBF, seed=3), 2, FIRST
    exact_svm = IncrementalSVMClassifier(kernel=RBF, window=30, class_weight={"in": 2.0})
    ambiguous = AmbiguousSVMClassifier(kernel=RBF, reprocess=1, seed=3)
    yield "ambiguous", ambiguous, 4, FIRST
    # Written when the last weights predicted, without a bias.
    of_before = AmbiguousSVMClassifier(C=0.1, averaged=False, bias_rate=0.0)
    yield "ambiguous_linear", of_before, 4, FIRST
    yield "ambiguous_averaged", AmbiguousSVMClassifier(), 4, FIRST
    yield "incremental", exact_svm, 2, FIRST
    yield "sbp", SBPClassifier(kernel=RBF, window=40, seed=3), 2, FIRST
    yield "sgd", SVMSGDClassifier(l2=0.01, t0=10.0, sparse=False), 2, FIRST
    yield "sgd_rate_search", SVMSGDClassifier(C=1.0, n_expected=ALL), 2, FIRST
    yield "sgd_sparse_classes", SVMSGDClassifier(l2=0.01, t0=10.0, sparse=True), 4, FIRST
    yield "sgdqn", SGDQNClassifier(l2=0.01, t0=10.0, sparse=False), 2, FIRST
    yield "sgdqn_classes_rate_search", SGDQNClassifier(l2=0.01), 4, FIRST
    yield "sequence_greedy", LaRankSequenceLabeler(seed=9), 4, FIRST
    exact = LaRankSequenceLabeler("exact", max_support_patterns=15, seed=9)
    yield "sequence_exact", exact, 4, FIRST
    yield "sequence_pa", SequencePA(class_weight={2: 3.0}), 4, FIRST
    yield "sequence_perceptron", SequencePerceptron("exact"), 4, FIRST
    yield "ospas", OSPASParser(seed=9), 4, FIRST
    yield "concepts", ConceptLabeler(window=2), 4, FIRST
    yield "adaptive", AdaptiveSVMClassifier(window=50, seed=3), 2, FIRST
    yield "adaptive_classes", AdaptiveSVMClassifier(scale=False, seed=3), 4, FIRST
    yield "pipeline", StandardScaler() | LASVMClassifier(kernel=RBF), 2, FIRST


def sentence(x: dict[Any, float], y: Any) -> tuple[list[Any], list[Any]]:
    """Return an event as a sentence: a token for each feature, and one for the event."""
    return [[f"{name}{value:.0f}"] for name, value in x.items()] + [x], [0] * len(x) + [y]


def said(model: Any, x: dict[Any, float], y: Any) -> tuple[Any, Any]:
    """Return an event as words in a universe with their concepts, or with candidate meanings."""
    words = [f"{name}{value:.0f}" for name, value in x.items()]
    if isinstance(model, OSPASParser):
        return words, [f"is({words[0]}, label{y})", f"has({words[-1]}, in({words[0]}))"]
    universe = {"first": {words[0]: f"label{y}"}, "after": dict(pairwise(words))}
    concepts = [*words[:-1], f"label{y}"]
    return (words, universe), Counter(concepts) if len(words) > 2 else concepts


def is_of_sequences(model: Any) -> bool:
    """Tell whether a model learns sentences."""
    return not hasattr(model, "predict_proba_one")


def learn(model: Any, some: list[tuple[dict[Any, float], Any]]) -> None:
    """Learn some events, predicting each first."""
    for x, y in some:
        if isinstance(model, (OSPASParser, ConceptLabeler)):
            x, y = said(model, x, y)
        elif is_of_sequences(model):
            x, y = sentence(x, y)  # type: ignore[assignment]
        model.predict_one(x)
        model.learn_one(x, y)


def predictions(model: Any, n_classes: int) -> list[Any]:
    """Return margins, labels and probabilities of some events, as JSON values."""
    last = list(model.steps.values())[-1] if hasattr(model, "steps") else model
    found = []
    for x, y in events(n_classes)[:4]:
        if isinstance(model, OSPASParser):
            words, _ = said(model, x, y)
            scores = sorted(model.scores_one(words).values())
            meaning = model.predict_one(words).meaning
            found.append([scores, as_text(meaning or ""), {}])
            continue
        if isinstance(model, ConceptLabeler):
            found.append([[model.dual], model.predict_one(said(model, x, y)[0]), {}])
            continue
        if is_of_sequences(model):
            tokens, _ = sentence(x, y)
            rows = model.decision_function_one(tokens)
            scores = [score for row in rows for score in row.values()]
            found.append([scores, model.predict_one(tokens), {}])
            continue
        row = model.transform_one(x) if hasattr(model, "steps") else x
        margin = last.decision_function_one(row)
        if isinstance(margin, dict):
            margin = list(margin.values())
        p = {str(label): value for label, value in model.predict_proba_one(x).items()}
        found.append([margin, model.predict_one(x), p])
    return found


def a_run(checkpoint: Path, limit: int | None) -> Any:
    """Return a run with all that a checkpoint holds, and its model."""
    model = StandardScaler() | LASVMClassifier(kernel=RBF)
    monitor = TrackingMonitor(model, every=20)
    keep = Checkpoint(checkpoint, every=20)
    return model, Run(MemorySource(events(2)), monitor, limit=limit, checkpoint=keep)


def short(value: Any) -> Any:
    """Return a JSON value with all numbers to eight digits."""
    if isinstance(value, float):
        return float(f"{value:.8g}")
    if isinstance(value, list):
        return [short(inner) for inner in value]
    return {k: short(v) for k, v in value.items()} if isinstance(value, dict) else value


def main(folder: Path, wanted: list[str]) -> None:
    """Write all files, or the named ones."""
    path = folder / "expected.json"
    expected: dict[str, Any] = json.loads(path.read_text("utf-8")) if wanted else {}
    for name, model, n_classes, first in cases():
        if wanted and name not in wanted:
            continue
        learn(model, events(n_classes)[:first])
        save(model, folder / f"{name}.svm")
        now = predictions(model, n_classes)
        learn(model, events(n_classes)[first:])
        then = predictions(model, n_classes)
        expected[name] = {"classes": n_classes, "first": first, "now": now, "then": then}
    if not wanted:
        expected["checkpoint"] = of_a_run(folder / "checkpoint.svm")
    text = json.dumps(short(expected), separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")


def of_a_run(path: Path) -> dict[str, Any]:
    """Write a checkpoint; return what is expected of it."""
    model, run = a_run(path, FIRST)
    run.execute()
    content, now = path.read_bytes(), predictions(model, 2)
    model, run = a_run(path, None)
    run.execute()
    then = predictions(model, 2)
    path.write_bytes(content)
    path.with_name(path.name + ".lock").unlink()
    return {"classes": 2, "first": FIRST, "now": now, "then": then}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
