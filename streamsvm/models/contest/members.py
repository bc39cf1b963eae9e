"""The models of an adaptive learner, and how they begin and learn.

The first finds scale and width of its kernel itself, and the others have its scale. The second and
third have a wider kernel and a larger C, the third of them nearly linear; the fourth has a narrower
kernel and keeps the last 1,000 examples only.

They are LASVMs for two classes, and LaRanks for several, which cost less; but where classes overlap
LASVM errs less. So of several classes the second is a LASVM, and so is the third, as the first in
all else; of more than `MOST_PAIRS`, for which it has a problem for each pair, they are LaRanks, and
the third has a tenth of C.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm import kernels
from streamsvm.models.contest import race
from streamsvm.models.contest.errors import add_classes
from streamsvm.models.contest.group import Group
from streamsvm.models.kernel import finishing
from streamsvm.models.kernel.bounds import merging_by
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.larank_solver import LaRankSolver
from streamsvm.models.kernel.lasvm_solver import LASVMSolver
from streamsvm.models.kernel.preparation import Preparation
from streamsvm.models.kernel.reserve import FACTS, Reserve
from streamsvm.models.kernel.reserving_solver import ReservingSolver, reserving
from streamsvm.models.outputs import ProblemOutputs, Scores
from streamsvm.solvers.bounds import bounds_of
from streamsvm.solvers.larank import step as larank
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.support.rows import sparse


class Kind(NamedTuple):
    """How a model differs from the first."""

    is_lasvm: bool
    width: float  # its gamma divided by that of the first
    cost: float  # its C divided by that of the first
    window: int | None = None  # how many of the last examples it keeps at most


MOST_PAIRS = 50
"""The largest number of classes of which a LASVM is among the models."""

KINDS = (
    Kind(True, 1.0, 1.0),
    Kind(True, 1.0 / 4.0, 10.0),
    Kind(True, 1.0 / 16.0, 10.0),
    Kind(True, 4.0, 1.0, 1000),
)
_LARANKS = tuple(kind._replace(is_lasvm=False) for kind in KINDS)
KINDS_OF_SEVERAL = (_LARANKS[0], KINDS[1], Kind(True, 1.0, 1.0), _LARANKS[3])
KINDS_OF_MANY = (*_LARANKS[:2], Kind(False, 1.0, 0.1), _LARANKS[3])


# The defaults of `LASVMClassifier` and `LaRankClassifier`.
_LASVM = lasvm.Schedule(
    tau=1e-3, reprocess=1.0, delta_max=1.0, max_reprocess=1000.0, second_order=1.0
)
_LARANK = larank.Schedule(tau=1e-3, reprocess=-1.0, most=100.0, candidates=16.0)


def kinds_of(n_classes: int) -> tuple[Kind, ...]:
    """Return the kinds of the models for so many classes."""
    if n_classes < 3:
        return KINDS
    return KINDS_OF_SEVERAL if n_classes <= MOST_PAIRS else KINDS_OF_MANY


def new_model(
    group: Group, factors: list[float], kind: Kind, kernel: Any, scale: bool | str
) -> KernelModel:
    """Return a model of a kind for classes with these factors of C.

    Without a kernel it finds scale and width.
    """
    given = group.settings
    windows = [window for window in (given.window, kind.window) if window is not None]
    window, most = min(windows, default=None), given.max_support_vectors
    reserve, cache_mb = finishing.new_reserve(0, window, most), given.cache_mb / len(KINDS)
    solver: ReservingSolver
    if kind.is_lasvm:
        bounds = bounds_of(window, most, merging_by(kernel))
        solver = LASVMSolver(kernel, _LASVM._replace(bounds=bounds), cache_mb, reserve, False)
    else:
        schedule = _LARANK._replace(bounds=bounds_of(window, most))
        solver = LaRankSolver(kernel, schedule, cache_mb, reserve, given.seed, given.max_classes)
    model = KernelModel(
        solver,
        ProblemOutputs if kind.is_lasvm else Scores,
        Preparation(kernel, given.C * kind.cost, scale, "auto"),
        sparse=True if group.is_sparse else given.sparse,
        is_sparse=group.is_sparse,
        limit=given.limit,
        n_threads=given.n_threads,
    )
    add_classes(model, len(factors), factors)
    model.n_features = group.n_features
    return model


def new_first(group: Group, factors: list[float]) -> KernelModel:
    """Return a new first model, which finds scale and width."""
    return new_model(group, factors, kinds_of(len(factors))[0], None, group.settings.scale)


def new_other(group: Group, factors: list[float], first: KernelModel, kind: Kind) -> KernelModel:
    """Return a new model of a kind, which compares rows as the first model does."""
    kernel = kernels.RBF(gamma=first.kernel.gamma * kind.width)
    model = new_model(group, factors, kind, kernel, "auto")
    model.preparation.factors = first.preparation.factors
    return model


def is_of(model: KernelModel, kind: Kind) -> bool:
    """Tell whether a model is of the algorithm of a kind."""
    return isinstance(model.solver, LASVMSolver) == kind.is_lasvm


def follows(other: KernelModel, first: KernelModel, kind: Kind) -> bool:
    """Tell whether a model is of a kind, and compares rows as the first one does.

    If the first one has only rescaled its rows after its trial, the model does so, too.
    """
    if not is_of(other, kind) or other.kernel.gamma != first.kernel.gamma * kind.width:
        return False
    own, found = other.factors, first.factors
    if own is found or (own is not None and found is not None and np.array_equal(own, found)):
        return True
    if first.preparation.trial is not None or found is None or first.is_sparse or other.is_sparse:
        return False
    other.rescale(found)
    return True


@contextlib.contextmanager
def recent_in_reserve(group: Group, m: int) -> Iterator[None]:
    """Let model number m have the last examples in its reserve, for `finish`.

    It has none else, as each example would be kept four times.
    """
    model = group.models[m]
    race.end(model)
    solver, most = reserving(model.solver), group.settings.max_support_vectors
    n = min(group.recent.n_examples, model.n_examples)
    # What it has not learnt yet is more than is kept, and merged vectors stand for examples.
    if group.state.waiting[m] or most is not None or not n:
        yield
        return
    x, classes, weights, _ = group.recent.last(n, group.n_features)
    x = sparse(x) if model.is_sparse else x
    facts = np.zeros(n, FACTS)
    facts["number"] = facts["arrived"] = model.n_examples - n + 1 + np.arange(n)
    facts["class"], facts["weight"] = classes, weights
    empty, solver.kept_rows = solver.kept_rows, Reserve(None, solver.kept_rows.window)
    try:
        solver.kept_rows.add(model.preparation.scaled(x), facts)
        yield
    finally:
        reserving(model.solver).kept_rows = empty
