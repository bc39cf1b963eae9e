"""Models of every kind that have learnt some events, to be saved and spoilt."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

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
    TrackingSVMClassifier,
    kernels,
)

RBF = kernels.RBF(gamma=0.5)
N = 60

MAKE: dict[str, Callable[[], Any]] = {
    "adaptive": lambda: AdaptiveSVMClassifier(window=50, seed=3),
    "adaptive_classes": lambda: AdaptiveSVMClassifier(scale=False, seed=3),
    "ambiguous": lambda: AmbiguousSVMClassifier(kernel=RBF, reprocess=1, seed=3),
    "ambiguous_averaged": AmbiguousSVMClassifier,
    "ambiguous_linear": lambda: AmbiguousSVMClassifier(C=0.1, averaged=False, bias_rate=0.0),
    "concepts": lambda: ConceptLabeler(window=2),
    "huller": lambda: HullerClassifier(kernel=RBF, seed=3),
    "incremental": lambda: IncrementalSVMClassifier(kernel=RBF, window=30),
    "larank": lambda: LaRankClassifier(kernel=RBF, seed=5),
    "larank_budget": lambda: LaRankClassifier(kernel=RBF, max_support_vectors=20, seed=5),
    "lasvm": lambda: LASVMClassifier(class_weight="balanced"),
    "lasvm_budget": lambda: LASVMClassifier(kernel=RBF, max_support_vectors=15),
    "lasvm_classes": lambda: LASVMClassifier(kernel=RBF, reserve=20),
    "lasvm_classes_rest": lambda: LASVMClassifier(kernel=RBF, multiclass="ovr"),
    "lasvm_sparse": lambda: LASVMClassifier(kernel=RBF, sparse=True),
    "lasvm_window": lambda: LASVMClassifier(kernel=RBF, window=25),
    "pa_sparse": lambda: KernelPAClassifier(kernel=RBF, mode="PA-II", sparse=True),
    "pegasos_merge": lambda: KernelPegasosClassifier(RBF, max_support_vectors=15, budget="merge"),
    "perceptron_project": lambda: KernelPerceptronClassifier(RBF, max_support_vectors=15, seed=3),
    "pipeline": lambda: StandardScaler() | LASVMClassifier(kernel=RBF),
    "sbp": lambda: SBPClassifier(kernel=RBF, window=40, seed=3),
    "sgd_classes": lambda: SVMSGDClassifier(l2=0.01, t0=10.0, sparse=True),
    "sgd_rate_search": lambda: SVMSGDClassifier(C=1.0, n_expected=100),
    "sgdqn": lambda: SGDQNClassifier(l2=0.01, t0=10.0, sparse=False),
    "sgdqn_classes_rate_search": lambda: SGDQNClassifier(l2=0.01),
    "sequence_exact": lambda: LaRankSequenceLabeler("exact", max_support_patterns=15, seed=9),
    "sequence_greedy": lambda: LaRankSequenceLabeler(seed=9),
    "sequence_pa": lambda: SequencePA(class_weight={2: 3.0}),
    "sequence_perceptron": lambda: SequencePerceptron("exact"),
    "ospas": lambda: OSPASParser(seed=9),
    "tracking": lambda: TrackingSVMClassifier(kernel=RBF, seed=7),
    "tracking_fresh": lambda: TrackingSVMClassifier(kernel=kernels.Linear(), seed=7),
    "tracking_support": lambda: TrackingSVMClassifier(kernel=RBF, gradients="support", window=40),
}
OF_CLASSES = ("adaptive_classes", "ambiguous", "concepts", "larank", "ospas", "sequence")


def teach(model: Any, name: str, n: int = N) -> Any:
    """Let a model learn some events of its kind."""
    draw = random.Random(3).random
    last = list(model.steps.values())[-1] if hasattr(model, "steps") else model
    for _ in range(n):
        x = {"a": round(4.0 * draw() - 2.0, 3), "b": round(4.0 * draw() - 2.0, 3)}
        x |= {"c": round(draw(), 3)} if draw() < 0.5 else {}
        y = int(x["a"] ** 2 + x["b"] ** 2 < 2.0)
        y += 2 * (x["a"] > 0.5) if name.startswith(OF_CLASSES) or "_classes" in name else 0
        model.learn_one(*_said(last, x, y))
    return model


def learnt(name: str) -> Any:
    """Return a model that has learnt some events."""
    return teach(MAKE[name](), name)


def _said(model: Any, x: dict[Any, float], y: int) -> tuple[Any, Any]:
    """Return an event as what a model learns: a sentence, or words and what they mean."""
    words = [f"{name}{value:.0f}" for name, value in x.items()]
    if isinstance(model, OSPASParser):
        return words, [f"is({words[0]}, label{y})", f"has({words[-1]}, in({words[0]}))"]
    if isinstance(model, ConceptLabeler):
        universe = {"first": {words[0]: f"label{y}"}, "after": dict(pairwise(words))}
        concepts = [*words[:-1], f"label{y}"]
        return (words, universe), Counter(concepts) if len(words) > 2 else concepts
    if not hasattr(model, "predict_proba_one"):
        return [[word] for word in words] + [x], [0] * len(x) + [y]
    return x, y
