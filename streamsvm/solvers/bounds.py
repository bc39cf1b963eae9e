"""What a kernel solver keeps within, as types: a solver is compiled without what it does not use.

Every `Schedule` of a kernel solver has a field ``bounds``, one of the types below. Functions that
depend on it are chosen by its type (`chosen_by`) when their caller is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MERGE, MERGE_MEAN = 0.0, 1.0
"""Policies of a `Budget`: two examples become one between them, which for kernels that are not RBF
is their mean. Kernel perceptrons have further ones: see `solvers.perceptron.budget`."""


RARE = 0.005
"""This share of a window is a generation of all classes: see `solvers.window`."""


class Unbounded(NamedTuple):
    """No example leaves for its age, nor because there are too many."""

    limit: float = np.inf  # most examples kept


class Window(NamedTuple):
    """The last examples, and the last ones of each class."""

    window: float  # older ones than so many leave; at least 1
    limit: float = np.inf  # most examples kept
    rare: float = RARE  # 0: all leave by their age alone


class Reservoir(NamedTuple):
    """A uniform sample of all examples."""

    limit: float  # most examples kept; at least 1


class Budget(NamedTuple):
    """At most so many examples, within a window if wanted."""

    limit: float  # most examples kept; at least 2
    policy: float = MERGE  # what makes room
    window: float = 0.0  # examples older than so many leave; 0: none does
    rare: float = RARE  # as of a `Window`


Bounds = Unbounded | Window | Reservoir | Budget

UNBOUNDED = Unbounded()


def bounds_of(
    window: int | None, limit: int | None, policy: float = MERGE, reservoir: int | None = None,
    rare: float = RARE,
) -> Bounds:  # fmt: skip
    """Return the bounds of a learner: the last `window` examples (>= 1), at most `limit` (>= 2).

    With a `reservoir` (>= 1) it has neither. For `rare` see `Window`.
    """
    if reservoir is not None:
        return Reservoir(float(reservoir))
    if limit is not None:
        return Budget(float(limit), policy, float(window or 0), rare)
    return UNBOUNDED if window is None else Window(float(window), rare=rare)
