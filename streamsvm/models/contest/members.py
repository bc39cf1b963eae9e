"""The models of an adaptive learner: of which kinds they are.

The first finds scale and width of its kernel itself, and the others have its scale. The second and
third have a wider kernel and a larger C, the third of them nearly linear; the fourth has a narrower
kernel and keeps the last 1,000 examples only.

They are LASVMs for two classes, and LaRanks for several, which cost less; but where classes overlap
LASVM errs less. So of several classes the second is a LASVM, and so is the third, as the first in
all else; of more than `MOST_PAIRS`, for which it has a problem for each pair, they are LaRanks, and
the third has a tenth of C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.kernel_solver import ReservingSolver, merging_by
from streamsvm.models.kernel.larank_solver import LaRankSolver
from streamsvm.models.kernel.lasvm_solver import LASVMSolver
from streamsvm.models.kernel.preparation import Preparation
from streamsvm.models.kernel.reserve import new_reserve
from streamsvm.models.model import Kernel
from streamsvm.models.outputs import ProblemOutputs, Scores
from streamsvm.solvers.bounds import bounds_of
from streamsvm.solvers.larank import step as larank
from streamsvm.solvers.lasvm import step as lasvm


class Kind(NamedTuple):
    """How a model differs from the first."""

    is_lasvm: bool
    width: float  # its gamma divided by that of the first
    cost: float  # its C divided by that of the first
    window: int | None = None  # how many of the last examples it keeps at most

    def is_of(self, model: KernelModel) -> bool:
        """Tell whether a model is of the algorithm of this kind."""
        return isinstance(model.solver, LASVMSolver) == self.is_lasvm

    def is_followed_by(self, other: KernelModel, first: KernelModel) -> bool:
        """Tell whether a model is of this kind, and compares rows as the first one does.

        If the first one has only rescaled its rows after its trial, the model does so, too.
        """
        if not self.is_of(other) or other.kernel.gamma != first.kernel.gamma * self.width:
            return False
        own, found = other.factors, first.factors
        if own is found or (own is not None and found is not None and np.array_equal(own, found)):
            return True
        is_on_trial = first.preparation.trial is not None
        if is_on_trial or found is None or first.is_sparse or other.is_sparse:
            return False
        other.rescale(found)
        return True


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


# The defaults of `LASVMClassifier` and `LaRankClassifier`: a test compares them.
LASVM = lasvm.Schedule(
    tau=1e-3, reprocess=1.0, delta_max=1.0, max_reprocess=1000.0, second_order=1.0
)
LARANK = larank.Schedule(tau=1e-3, reprocess=-1.0, most=100.0, candidates=16.0)


def kinds_of(n_classes: int) -> tuple[Kind, ...]:
    """Return the kinds of the models for so many classes."""
    if n_classes < 3:
        return KINDS
    return KINDS_OF_SEVERAL if n_classes <= MOST_PAIRS else KINDS_OF_MANY


class Settings(NamedTuple):
    """What all models of a group are given."""

    C: float
    scale: bool | str
    window: int | None
    max_support_vectors: int | None
    sparse: bool | None
    limit: int  # of features
    cache_mb: float
    n_threads: int
    seed: int | None
    max_classes: int | None

    def model_of(
        self, kind: Kind, kernel: Kernel | None, scale: bool | str, is_sparse: bool
    ) -> KernelModel:
        """Return a model of a kind; without a kernel it finds scale and width."""
        windows = [window for window in (self.window, kind.window) if window is not None]
        window, most = min(windows, default=None), self.max_support_vectors
        reserve, cache_mb = new_reserve(0, window, most), self.cache_mb / len(KINDS)
        solver: ReservingSolver
        if kind.is_lasvm:
            bounds = bounds_of(window, most, merging_by(kernel))
            solver = LASVMSolver(kernel, LASVM._replace(bounds=bounds), cache_mb, reserve, False)
        else:
            schedule = LARANK._replace(bounds=bounds_of(window, most))
            solver = LaRankSolver(kernel, schedule, cache_mb, reserve, self.seed, self.max_classes)
        return KernelModel(
            solver,
            ProblemOutputs if kind.is_lasvm else Scores,
            Preparation(kernel, self.C * kind.cost, scale, "auto"),
            sparse=True if is_sparse else self.sparse,
            is_sparse=is_sparse,
            limit=self.limit,
            n_threads=self.n_threads,
        )
