"""The learner's part of the command line: its options, and the model that they describe."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import ParameterError
from streamsvm.losses import LOSSES

LEARNERS: dict[str, Any] = {
    "larank": LaRankClassifier,
    "lasvm": LASVMClassifier,
    "sgd": SVMSGDClassifier,
    "sgdqn": SGDQNClassifier,
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
    "loss": {"choices": tuple(LOSSES), "help": "sgd, default hinge; sgdqn, squared_hinge"},
    "l2": {"type": float, "help": "sgd, sgdqn: lambda; default .0001"},
    "power": {"type": float, "help": "sgd, sgdqn: how the rate falls, 0 for drift; default 1"},
    "hashing": {"type": int, "metavar": "N", "help": "hash feature names to so many columns"},
    "cache_mb": {"type": float, "help": "megabytes of kernel rows; default 200"},
}


KERNELS = {"rbf": None, "linear": kernels.Linear(), "polynomial": kernels.Polynomial()}
"""With their default parameters; the width of None follows the data."""

_OF_KERNELS = ("kernel", "gamma", "degree", "coef0")


def add_learner_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that choose the learner; one not given is the class' default."""
    group.add_argument(
        "--learner",
        choices=sorted(LEARNERS),
        help="default: lasvm; in replay larank, if the target has more than two classes",
    )
    group.add_argument(
        "--kernel",
        choices=list(KERNELS),
        help="default: rbf; none for sgd, sgdqn",
    )
    group.add_argument(
        "--gamma",
        type=float,
        help="width (rbf) or factor (polynomial); default for rbf: from the data seen",
    )
    group.add_argument("--degree", type=int, help="polynomial; default 3")
    group.add_argument("--coef0", type=float, help="polynomial; default 1")
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
        degree = 3 if options.degree is None else options.degree
        coef0 = 1.0 if options.coef0 is None else options.coef0
        return kernels.Polynomial(degree=degree, gamma=gamma, coef0=coef0)
    return None if options.gamma is None else kernels.RBF(gamma=options.gamma)


def model_from(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the learner of the options, and the model: it, behind a scaler if asked for."""
    options.learner = options.learner or "lasvm"
    cls = LEARNERS[options.learner]
    known = inspect.signature(cls).parameters.keys()
    given = {name: getattr(options, name) for name in (*_OPTIONS, *_OF_KERNELS)}
    given = {name: value for name, value in given.items() if value is not None}
    unknown = given.keys() - known - (set(_OF_KERNELS) if "kernel" in known else set())
    if unknown:
        names = ", ".join("--" + name.replace("_", "-") for name in sorted(unknown))
        raise ParameterError(f"{names}: not for --learner {options.learner}; leave it out")
    given = {name: value for name, value in given.items() if name not in _OF_KERNELS}
    if "kernel" in known:
        given["kernel"] = kernel_from(options)
    if "seed" in known:
        given["seed"] = options.seed
    learner = cls(**given)
    return learner, StandardScaler() | learner if options.scale else learner
