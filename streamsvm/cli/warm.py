"""`streamsvm warm`: compile everything once, so that no later run has to."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Hashable
from typing import Any

import numpy as np

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
)
from streamsvm.cli.learners import KERNELS


def add_parser(subcommands: Any) -> None:
    """Add the subcommand's arguments."""
    parser = subcommands.add_parser(
        "warm",
        help="compile and cache the solvers for this machine",
        description="Compiles the solvers for each built-in kernel and keeps the machine code in "
        "the cache, as a container's build or an installation may want.",
    )
    parser.add_argument(
        "--kernel",
        choices=list(KERNELS),
        action="append",
        help="for this kernel, and no others that are not named; default: all",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run every compiled path on a few rows; return the exit code."""
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = x[:, 0] * x[:, 1] > 0
    scaler = StandardScaler()
    scaler.learn_many(x)
    scaled = scaler.transform_many(x)
    for name in options.kernel or KERNELS:
        kernel = KERNELS[name]
        for sparse in (False, True):
            start = time.perf_counter()
            _use(kernel, sparse, scaled, y)
            kind = "sparse" if sparse else "dense"
            print(
                f"{name} kernel, {kind} rows: {time.perf_counter() - start:.1f} s", file=sys.stderr
            )
    start = time.perf_counter()
    _use_linear(scaled, y)
    print(f"linear learners: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return 0


def _use_linear(x: np.ndarray, y: np.ndarray) -> None:
    """Learn and predict with every linear learner: batches, and events past the first ones."""
    many, labels = np.tile(x, (6, 1)), np.tile(y, 6)
    for sparse in (False, True):
        for model in (SVMSGDClassifier(sparse=sparse), SGDQNClassifier(sparse=sparse)):
            model.learn_many(many, labels)
            for _ in range(2):
                event: dict[Hashable, float] = dict(enumerate(x[0].tolist()))
                model.predict_one(event)
                model.learn_one(event, y[0])
            model.predict_proba_many(x)


def _use(kernel: Any, sparse: bool, x: np.ndarray, y: np.ndarray) -> None:
    """Learn, predict, finish and measure with every learner: batches, and one event."""
    for model in (
        LASVMClassifier(
            kernel=kernel, class_weight="balanced", max_support_vectors=100, sparse=sparse
        ),
        LASVMClassifier(kernel=kernel, sparse=sparse),
        TrackingSVMClassifier(kernel=kernel, max_support_vectors=100, sparse=sparse, seed=0),
    ):
        monitor = TrackingMonitor(model)
        model.learn_many(x, y)
        event: dict[Hashable, float] = dict(enumerate(x[0].tolist()))
        model.predict_proba_one(event)
        model.learn_one(event, y[0])
        model.finish()
        monitor.measure()
    several = LaRankClassifier(kernel=kernel, sparse=sparse, max_support_patterns=50, seed=0)
    watched = TrackingMonitor(several)
    several.learn_many(x, (y + 2 * (x[:, 2] > 0)).tolist())
    several.predict_proba_one(dict(enumerate(x[0].tolist())))
    several.finish()
    watched.measure()
