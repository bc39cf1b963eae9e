"""The kernel models of an adaptive learner, of which the scores are combined.

    FIRST   finds scale, width and C of its kernel itself, and learns from all examples, or those of
            its window
    RANKS   compares ranks of features as bits, shared out by learnt relevance (see `rank_bits`),
            which are found anew as the stream doubles
    LATEST  is as the first, but keeps the last 250 examples only, of rare classes, too

They are LASVMs. Of several classes, of which a LASVM has a problem for each pair, the second and
third are LaRanks, which take less time and are as good beside the first; of more than `MOST_PAIRS`
the first is one, too. `RANKS` is for dense rows of at most as many features as there are bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm import kernels
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.kernel_solver import ReservingSolver, merging_by
from streamsvm.models.kernel.larank_solver import LaRankSolver
from streamsvm.models.kernel.lasvm_solver import LASVMSolver
from streamsvm.models.kernel.preparation import Preparation
from streamsvm.models.kernel.relearning import add_classes
from streamsvm.models.kernel.reserve import new_reserve
from streamsvm.models.model import Kernel
from streamsvm.models.outputs import ProblemOutputs, Scores
from streamsvm.models.rank_bits import N_BITS, RankBits
from streamsvm.models.rows import NumberedRows
from streamsvm.solvers.adaptive.combination import N_MODELS
from streamsvm.solvers.bounds import RARE, bounds_of
from streamsvm.solvers.larank import step as larank
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.support.rows import Rows

FIRST, RANKS, LATEST = range(N_MODELS)

WINDOW_OF_LATEST = 250

MOST_PAIRS = 50
"""The largest number of classes of which the first is a LASVM."""

# The defaults of `LASVMClassifier` and `LaRankClassifier`: a test compares them.
LASVM = lasvm.Schedule(
    tau=1e-3, reprocess=1.0, delta_max=1.0, max_reprocess=1000.0, second_order=1.0
)
LARANK = larank.Schedule(tau=1e-3, reprocess=-1.0, most=100.0, candidates=16.0)


class Settings(NamedTuple):
    """What all models are given."""

    C: float | str
    scale: bool | str
    window: int | None
    max_support_vectors: int | None
    sparse: bool | None
    limit: int  # of features
    cache_mb: float
    n_threads: int
    seed: int | None
    max_classes: int | None

    def first(self, factors: list[float], is_sparse: bool) -> KernelModel:
        """Return a new first model for classes with these factors of C."""
        sparse = True if is_sparse else self.sparse
        is_lasvm, rows = len(factors) <= MOST_PAIRS, (sparse, is_sparse)
        return self._model(factors, None, self.C, self.scale, rows, self.window, is_lasvm)

    def as_first(self, factors: list[float], first: KernelModel, is_latest: bool) -> KernelModel:
        """Return a new model with kernel, C and scale of the first, of the last examples or all."""
        window = WINDOW_OF_LATEST if is_latest else self.window
        if self.window is not None and window is not None:
            window = min(window, self.window)
        is_lasvm = len(factors) <= (2 if is_latest else MOST_PAIRS)
        # It does not become sparse by itself.
        rows = (first.is_sparse if is_latest else self.sparse, first.is_sparse)
        rare = 0.0 if is_latest else RARE
        new = self._model(factors, first.kernel, first.C, "auto", rows, window, is_lasvm, rare)
        new.preparation.factors = first.preparation.factors
        return new

    def ranks(self, factors: list[float], gamma: float) -> KernelModel:
        """Return a new model that learns rows as bits."""
        kernel, C = kernels.RBF(gamma=gamma), 1.0 if isinstance(self.C, str) else self.C
        is_lasvm = len(factors) <= 2
        return self._model(factors, kernel, C, False, (False, False), self.window, is_lasvm)

    def _model(
        self,
        factors: list[float],
        kernel: Kernel | None,
        C: float | str,
        scale: bool | str,
        rows: tuple[bool | None, bool],  # sparse, is_sparse
        window: int | None,
        is_lasvm: bool,
        rare: float = RARE,
    ) -> KernelModel:
        most = self.max_support_vectors
        reserve, cache_mb = new_reserve(0, window, most), self.cache_mb / N_MODELS
        solver: ReservingSolver
        if is_lasvm:
            bounds = bounds_of(window, most, merging_by(kernel), rare=rare)
            solver = LASVMSolver(kernel, LASVM._replace(bounds=bounds), cache_mb, reserve, False)
        else:
            schedule = LARANK._replace(bounds=bounds_of(window, most, rare=rare))
            solver = LaRankSolver(kernel, schedule, cache_mb, reserve, self.seed, self.max_classes)
        model = KernelModel(
            solver,
            ProblemOutputs if is_lasvm else Scores,
            Preparation(kernel, C, scale, "auto"),
            sparse=rows[0],
            is_sparse=rows[1],
            limit=self.limit,
            n_threads=self.n_threads,
        )
        add_classes(model, len(factors), factors)
        return model


class Member(NamedTuple):
    """A model among those that are combined, and how it sees rows."""

    slot: int  # `FIRST`, ...
    model: KernelModel
    bits: RankBits | None = None

    def seen(self, x: Rows) -> Rows:
        """Return rows as the model is given them."""
        return x if self.bits is None else self.bits.of_rows(np.asarray(x))

    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return scores from before, float64 (n, outputs)."""
        model, learnt = self.model, rows.numbers > 0
        numbers = np.where(learnt, model.n_examples + np.cumsum(learnt), 0)
        margins = model.learn(rows._replace(x=self.seen(rows.x), numbers=numbers))
        return self._combined(margins)

    def scores(self, x: Rows) -> np.ndarray:
        """Return the scores of rows that are combined, float64 (n, outputs)."""
        return self._combined(self.model.margins_of(self.seen(x)))

    def _combined(self, margins: np.ndarray) -> np.ndarray:
        first, n = self.model.outputs.combined
        return margins.reshape(len(margins), -1)[:, first : first + n]

    def follows(self, first: KernelModel) -> bool:
        """Tell whether its kernel is that of the first model; rows are rescaled if they were."""
        model = self.model
        if model.kernel.gamma != first.kernel.gamma or first.C != model.C:
            return False
        if model.is_sparse != first.is_sparse:
            return False
        own, found = model.factors, first.factors
        if own is found or (own is not None and found is not None and np.array_equal(own, found)):
            return True
        if found is None or first.preparation.trial is not None or first.is_sparse:
            return False
        model.rescale(found)
        return True


def has_ranks(x_is_sparse: bool, n_features: int) -> bool:
    """Tell whether ranks are compared, too."""
    return not x_is_sparse and 1 <= n_features <= N_BITS
