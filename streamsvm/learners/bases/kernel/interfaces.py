"""What the parts of a kernel learner use of it: batches, trials, adaptation, revisits."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases.interfaces import AnyLearner
from streamsvm.learners.bases.kernel.class_costs import ClassCosts
from streamsvm.learners.bases.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.learners.bases.kernel.preparation import Preparation
from streamsvm.support.rows import Rows


class AnyKernelLearner(AnyLearner, Protocol):
    """A `KernelLearner`, as its parts see it."""

    costs: ClassCosts
    kernel: Any
    sparse: bool | None
    cache_mb: float | None
    n_threads: int
    seed: int | None
    n_indefinite: int
    preparation: Preparation
    is_rehearsal_copy: bool

    @property
    def solver(self) -> KernelSolver:
        """See `KernelLearner`, as for all that follows."""

    @property
    def kernel_(self) -> Any: ...

    @property
    def C_(self) -> float: ...  # noqa: N802

    @property
    def state(self) -> Any: ...

    @property
    def counters(self) -> dict[str, int]: ...

    @property
    def n_support_vectors(self) -> int: ...

    @property
    def squared_norm(self) -> float: ...

    def replace(self, **parts: Any) -> None: ...

    def sizes(self, n_features: int) -> Sizes: ...

    def expansion(self) -> tuple[Rows, np.ndarray, np.ndarray]: ...

    def dense_rows(self) -> np.ndarray: ...

    def kept_numbers(self) -> np.ndarray: ...

    def costs_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray: ...

    def margins_of_learning(self, rows: LabelledRows) -> np.ndarray: ...

    def become_sparse_after(self, n: int) -> None: ...

    def _get_params(self) -> dict[str, Any]: ...
