"""What every kernel learner can be asked without learning: support vectors, dual, counts."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import numpy as np

from streamsvm.learners.bases.kernel.feature_scales import FeatureScales
from streamsvm.learners.bases.kernel.support_vectors import SupportVectors, as_matrix, in_order
from streamsvm.learners.bases.kernel.trials.trial import Choice, Trial
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.scaled_rows import unscaled_rows
from streamsvm.support import states, stores
from streamsvm.support.rows import Rows

_CACHED = ("cached_rows_hit", "cached_rows_missed", "cached_rows_extended")


class KernelInspection(Learner):
    """The methods and properties of kernel learners that only read the model.

    `KernelLearner` sets the attributes below.
    """

    kernel_: Any
    C: Any  # some learners take "auto"
    C_: float
    class_weight: Any
    _trial: Trial | None
    _choice: Choice | None
    _factors: np.ndarray | None
    _scales: FeatureScales | None

    _n_indefinite = 0
    """How often the kernel was found not to be positive definite: see `definiteness`."""

    _more_counts: ClassVar[dict[str, str]] = {}
    """Further counters of a subclass: {name: the field of `info` that holds it}."""

    @abc.abstractmethod
    def _coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the n slots in use; of several classes (n, columns)."""

    def _expansion(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return rows, coefficients and example numbers of the slots in use."""
        n, store = states.n_slots(self._state), self._state.store
        return stores.rows_of(store, n, len(self._schema)), self._coefficients(n), store.entered[:n]

    def _unscaled_expansion(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return what `_expansion` does, with rows as they came."""
        rows, coefficients, entered = self._expansion()
        return unscaled_rows(rows, self._factors), coefficients, entered

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, C, class weights."""
        weights = "" if self.class_weight is None else f", class_weight={self.class_weight!r}"
        choice = "" if self._choice is None else f" ({self.chosen})"
        return f"{self.kernel_!r}, C={self.C_:g}{weights}{choice}"

    @property
    def chosen(self) -> str | None:
        """Scale, gamma and C in words, and of how many they were the best; None: no trial yet."""
        if self._choice is None:
            return None
        n, first, is_scaled, n_relevant = self._choice
        rows = "scaled rows" if is_scaled else "raw rows"
        rows += f", {n_relevant} features that matter" if n_relevant else ""
        cost = f", C {self.C_:g}" if self.C == "auto" else ""
        return f"{rows}, gamma {self.kernel_.gamma:.2g}{cost}: best of {n} on the first {first:,}"

    @property
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient."""
        return 0 if self._state is None else int(np.count_nonzero(self._state.alpha))

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``support_vectors``, the kernel row ``cache``, ``scratch`` and ``names``."""
        parts = states.memory_parts(self._state) | {"names": self._schema.memory_usage}
        if self._trial is not None:
            parts["scratch"] += self._trial.nbytes
        if self._scales is not None:
            parts["scratch"] += self._scales.nbytes
        return parts

    def support_vectors(self) -> SupportVectors:
        """Return the support vectors, in the order in which they entered the model.

        Returns
        -------
        Copies of rows, coefficients, labels and example numbers.

        """
        if self._state is None:
            empty = np.zeros(0)
            rows = as_matrix(np.zeros((0, len(self._schema)), np.float32))
            return SupportVectors(self.feature_names, rows, empty, [], empty.astype(np.int64))
        rows, alpha, entered = self._unscaled_expansion()
        return in_order(self.feature_names, rows, alpha, entered, self._labels.label)

    @property
    def kappa(self) -> float:
        """The share of operations that changed nothing; 0 before the first operation."""
        counts = self.counters
        calls = counts["steps"] + counts["null_steps"]
        return counts["null_steps"] / calls if calls else 0.0

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, hits and misses of the cache.

        ``indefinite_kernel``, if it is there: how often a kernel of your own was found not to be
        positive definite, as an SVM needs, since the model was made or loaded.
        """
        fields = {"steps": "n_steps", "null_steps": "n_null"} | self._more_counts
        if self._state is None:
            return dict.fromkeys((*fields, "kernel_values", *_CACHED), 0) | self._ignored()
        info, cache = self._state.info[0], self._state.cache.counts.tolist()
        counts = {name: int(info[field]) for name, field in fields.items()}
        counts["kernel_values"] = int(info.n_values) + cache[3]
        return counts | dict(zip(_CACHED, cache[:3], strict=True)) | self._ignored()

    def _ignored(self) -> dict[str, int]:
        n = self._n_indefinite
        return super()._ignored() | ({"indefinite_kernel": n} if n else {})
