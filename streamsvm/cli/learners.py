"""The learner's part of the command line: its options, and the model that they describe."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    StandardScaler,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import ParameterError

LEARNERS: dict[str, Any] = {
    "larank": LaRankClassifier,
    "lasvm": LASVMClassifier,
    "tracking": TrackingSVMClassifier,
}

_OPTIONS: dict[str, dict[str, Any]] = {
    "C": {"type": float, "help": "cost of an error; default 1"},
    "K": {"type": int, "help": "tracking: steps after each row; default 10"},
    "epsilon": {"type": float, "help": "tracking: wanted mean gap, in the place of K"},
    "gradients": {"choices": ("all", "support", "fresh"), "help": "tracking: what is kept"},
    "tau": {"type": float, "help": "tolerance; default .001"},
    "reprocess": {
        "type": int,
        "help": "lasvm: steps after a row, default 1; larank: eleven steps each, default: as many "
        "as gain more than further rows",
    },
    "candidates": {"type": int, "help": "larank: patterns that OPTIMIZE picks from; default 16"},
    "delta_max": {"type": float, "help": "lasvm: more steps until delta is below; default 1"},
    "class_weight": {"choices": ("balanced",), "help": "lasvm: weigh classes by counts"},
    "window": {"type": int, "metavar": "ROWS", "help": "learn from the last so many rows only"},
    "reservoir": {"type": int, "metavar": "ROWS", "help": "tracking: keep a uniform sample"},
    "max_support_vectors": {"type": int, "metavar": "N", "help": "bound the model's size"},
    "max_support_patterns": {"type": int, "metavar": "N", "help": "larank: bound its size"},
    "budget": {
        "choices": ("merge", "project", "remove", "smallest"),
        "help": "what makes room within that bound; default: the best for the kernel",
    },
    "cache_mb": {"type": float, "help": "megabytes of kernel rows; default 200"},
}


def add_learner_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that choose the learner; one not given is the class' default."""
    group.add_argument(
        "--learner",
        choices=sorted(LEARNERS),
        help="default: lasvm; in replay larank, if the target has more than two classes",
    )
    group.add_argument("--kernel", choices=("rbf", "linear", "polynomial"), default="rbf")
    group.add_argument(
        "--gamma",
        type=float,
        help="width (rbf) or factor (polynomial); default for rbf: from the data seen",
    )
    group.add_argument("--degree", type=int, default=3, help="polynomial; default 3")
    group.add_argument("--coef0", type=float, default=1.0, help="polynomial; default 1")
    for name, settings in _OPTIONS.items():
        group.add_argument("--" + name.replace("_", "-"), **settings)
    group.add_argument(
        "--scale",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="standardise numeric features online; default on",
    )


def kernel_from(options: argparse.Namespace) -> Any:
    """Return the kernel of the options; None = RBF with a width from the data."""
    if options.kernel == "linear":
        return kernels.Linear()
    if options.kernel == "polynomial":
        gamma = 1.0 if options.gamma is None else options.gamma
        return kernels.Polynomial(degree=options.degree, gamma=gamma, coef0=options.coef0)
    return None if options.gamma is None else kernels.RBF(gamma=options.gamma)


def model_from(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the learner of the options, and the model: it, behind a scaler if asked for."""
    options.learner = options.learner or "lasvm"
    cls = LEARNERS[options.learner]
    given = {name: getattr(options, name) for name in _OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    unknown = given.keys() - inspect.signature(cls).parameters.keys()
    if unknown:
        names = ", ".join("--" + name.replace("_", "-") for name in sorted(unknown))
        raise ParameterError(f"{names}: not for --learner {options.learner}; leave it out")
    learner = cls(kernel=kernel_from(options), seed=options.seed, **given)
    return learner, StandardScaler() | learner if options.scale else learner
