"""The learner's part of the command line: its options, and the model that they describe."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from streamsvm import StandardScaler, kernels
from streamsvm.cli.parameters import add_options, parameters
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.registry import registered_learners

KERNELS = {"rbf": None, "linear": kernels.Linear(), "polynomial": kernels.Polynomial()}
"""With their default parameters; the width of None follows the data."""

_OF_KERNELS = ("kernel", "gamma", "degree", "coef0")
_ELSEWHERE = ("kernel", "seed")
"""Parameters that are options in another way."""


def add_learner_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that choose the learner; one not given is the class' default."""
    group.add_argument(
        "--learner",
        choices=[learner.name for learner in registered_learners()],
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
    add_options(group, parameters(_ELSEWHERE))
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
    classes: dict[str, Any] = {learner.name: learner.cls for learner in registered_learners()}
    cls = classes[options.learner]
    known = inspect.signature(cls).parameters.keys()
    names = [parameter.name for parameter in parameters(_ELSEWHERE)]
    given = {name: getattr(options, name) for name in (*names, *_OF_KERNELS)}
    given = {name: value for name, value in given.items() if value is not None}
    unknown = given.keys() - known - (set(_OF_KERNELS) if "kernel" in known else set())
    if unknown:
        wrong = ", ".join("--" + name.replace("_", "-") for name in sorted(unknown))
        raise ParameterError(f"{wrong}: not for --learner {options.learner}; leave it out")
    given = {name: value for name, value in given.items() if name not in _OF_KERNELS}
    if "kernel" in known:
        given["kernel"] = kernel_from(options)
    if "seed" in inspect.signature(cls).parameters:
        given["seed"] = options.seed
    learner = cls(**given)
    return learner, StandardScaler() | learner if options.scale else learner
