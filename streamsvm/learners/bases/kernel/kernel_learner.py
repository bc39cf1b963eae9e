"""The base class of kernel learners: kernel and gamma, class weights, growing states."""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import (
    check_class_weight,
    check_number,
    check_size,
)
from streamsvm.errors import FeatureError
from streamsvm.features import density
from streamsvm.features.schema import LIMIT
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import rehearsal
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.kernel import (
    auto_gamma,
    definiteness,
    kernel_batches,
    loaded,
    rescaling,
    threads,
)
from streamsvm.learners.bases.kernel.feature_scales import FeatureScales, stride
from streamsvm.learners.bases.kernel.kernel_inspection import KernelInspection
from streamsvm.learners.bases.kernel.trials import trial
from streamsvm.learners.bases.scaled_rows import scaled_rows
from streamsvm.monitor.certificate import Certificate
from streamsvm.support import states, stores
from streamsvm.support.interruptions import append_result
from streamsvm.support.kernel_rows import kernel_diagonal
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.kernel_diagonal import LARGEST_DIAGONAL
from streamsvm.support.rows import Rows, SparseRows, dense, shape
from streamsvm.support.sparse_store import SparseStore


class KernelLearner(KernelInspection):
    """A classifier whose decision function is a kernel expansion; a subclass adds the solver.

    `_state` holds the arrays of the solver. It is None before the first example, so that clones are
    cheap. A slot is a position in these arrays that holds one example.
    """

    _takes_balanced: ClassVar[bool] = False
    """Whether `class_weight` may be "balanced"."""

    def __init__(
        self,
        kernel: Any,
        C: float | str,
        class_weight: Any,
        sparse: bool | None,
        hashing: int | None,
        max_features: int,
        cache_mb: float,
        n_jobs: int | None,
        scale: bool | str = False,
        gamma: str = "scale",
        missing: str = "mean",
    ) -> None:
        limit = check_size("max_features", max_features) or LIMIT
        super().__init__(limit, check_size("hashing", hashing), missing)
        self.sparse = sparse
        self.hashing = hashing
        self.max_features = max_features
        self._sparse = density.check_sparse(sparse, hashing)
        self.n_jobs = n_jobs
        self._n_threads = threads.check_n_jobs(n_jobs)
        if kernel is not None:
            kernels.check_kernel(kernel)
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.cache_mb = cache_mb
        self.kernel_ = kernel if kernel is not None else kernels.RBF(gamma=1.0)
        # The C in use, as kernel_ is the kernel in use.
        self.C_ = trial.first_cost(C)
        self._cache_bytes = int(check_number("cache_mb", cache_mb, 0) * 1e6)
        check_class_weight(class_weight, self._takes_balanced)
        self._moments = auto_gamma.new_moments(0)
        self.scale = scale
        self.gamma = gamma
        candidates = trial.candidates_of(scale, gamma, kernel, self.C_)
        # The first examples, while scale and width are on trial.
        self._trial = trial.Trial(candidates) if candidates else None
        self._choice: trial.Choice | None = None
        # float32: what each feature is multiplied by; None: rows are taken as they are.
        self._factors: np.ndarray | None = None
        # Statistics of the rows since then, if rows are scaled and the trial is over.
        self._scales: FeatureScales | None = None

    # To be defined by a subclass

    _states: Any
    """The module of the solver's state, with the function `rebuild`."""

    _schedule: Any
    """The schedule of the solver; it is replaced when a parameter in it changes."""

    _solver: Any
    """The module of the solver, with the function `learn_rows`."""

    _of_state: ClassVar[tuple[str, ...]] = ()
    """Attributes that belong to the state: they are replaced with it."""

    @abc.abstractmethod
    def _write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        """Write the margins of rows into `out`; each thread passes a state with its own scratch."""

    @property
    @abc.abstractmethod
    def certificate(self) -> Certificate:
        """A bound on the mean duality gap over the stream so far, or why there is none."""

    def _new_margins(self, n: int) -> np.ndarray:
        """Return an array of zeros for the margins of n rows."""
        return np.zeros(n)

    def _solve(
        self, state: Any, rows: tuple[Any, ...], margins: np.ndarray, counts: list[int]
    ) -> None:
        """Learn (x, y, box, weight, numbers, diagonal); append how many fitted into the state."""
        call = (state, self._bound_kernel(state), *rows, self._schedule, margins)
        append_result(counts, self._solver.learn_rows, call)

    def _margins_of_learning(self, n: int) -> np.ndarray:
        """Return an array of zeros for what the solver writes of n rows when it learns them."""
        return self._new_margins(n)

    def _rebalance(self) -> None:
        """Update the C_i of all examples if the class weights depend on the stream."""

    def _note(
        self,
        x: Rows,
        signs: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
        margins: np.ndarray,
        seen: int,
    ) -> None:
        """Fill the reserve, if there is one, from rows that were just learnt after `seen` examples.

        The rows are scaled as those that the learner keeps; rows of number 0 are no examples.
        """

    def _rescaled(self, ratio: np.ndarray) -> dict[str, Any]:
        """Return further attributes that change when features are multiplied by a ratio."""
        return {}

    # Learning

    def _with_signs_exchanged(self) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
        state = copy.deepcopy(self._state)
        if state is not None:
            self._states.exchange_classes(state)
        return {"_state": state}, np.negative

    def _bound_kernel(self, state: Any) -> Any:
        """Return the kernel in the form that the functions of the solver take."""
        return bound(self.kernel_, state.store)

    def _bound(self) -> Bound:
        return self._state, self.kernel_, self._schedule, self._calibration, self._labels

    def _room_for_features(self) -> int:
        return 0 if self._state is None else int(states.n_columns(self._state))

    def _box_of(self, label: Any, sign: float) -> float:
        if self.class_weight is None:
            return self.C_
        return self.C_ * float(self.class_weight.get(label, 1.0))

    def _takes_every_row(self) -> bool:
        return kernels.product_of(type(self.kernel_)) == "distance"

    def _after_event(self, path: EventPath, sign: float, box: float) -> None:
        n = self._n_learnt.item()
        if self._trial is not None or (self.kernel is None and n <= auto_gamma.LAST_SET):
            row = path.row()
            if n <= auto_gamma.LAST_SET:
                self._moments = auto_gamma.updated(self._moments, n - 1, row)
            if self._trial is not None:
                place = self._labels.seen.index(self._labels.label_of_sign(sign))
                self._trial.add_one(row, place, path.weight, n)
        elif self._scales is not None and n % stride(n - 1) == 0:
            self._scales.learn(path.row())
        # At powers of two, as in `kernel_batches.learn_rows`.
        if n & (n - 1) == 0:
            self._adapt(n)
            rehearsal.look(self)
        elif self._trial is not None:
            trial.step(self, n)

    _learn_rows = kernel_batches.learn_rows

    def _margins(self, x: Rows) -> np.ndarray:
        margins = kernel_batches.margins_of(self, scaled_rows(x, self._factors))
        if not np.isfinite(margins).all():
            r = int(np.flatnonzero(~np.isfinite(margins.reshape(len(margins), -1)).all(axis=1))[0])
            raise FeatureError(
                f"row {r}: {self.kernel_!r} of it is too large for single precision; scale the "
                "features"
            )
        return margins

    def _state_for(self, n_features: int) -> Any:
        """Return the state, created or grown to hold so many features."""
        if self._state is None:
            self._state = self._new_state(n_features)
        elif states.n_columns(self._state) < n_features:
            room = max(n_features, 2 * states.n_columns(self._state))
            self._grow(
                self._state.store.entered.size, min(room, max(n_features, self._schema.limit))
            )
            if kernels.product_of(type(self.kernel_)) == "vectors":
                self._rebuild()
        return self._state

    def _grow_for(self, n: int, n_features: int) -> None:
        """Make room for n slots."""
        self._state_for(n_features)
        if n > self._state.store.entered.size:
            self._grow(n, states.n_columns(self._state))

    def _grow(self, capacity: int, n_features: int) -> None:
        self._state = states.grown(self._state, capacity, n_features, self._cache_bytes)

    def _rebuild(self) -> None:
        """Recompute everything that depends on the kernel."""
        if self._state is not None:
            self._states.rebuild(self._state, self._bound_kernel(self._state), len(self._schema))

    def _become_sparse(self) -> None:
        if not self._sparse and self.sparse is not False:
            self._become_sparse_after(self._n_examples)

    def _become_sparse_after(self, n: int) -> None:
        """Store rows as their nonzero features from now on, after n examples."""
        self._sparse = True
        self._moments = auto_gamma.sums_of(self._moments, n)
        if self._state is not None:
            self._state = states.made_sparse(self._state, self._cache_bytes)

    def _scratch_store(self, d: int) -> SparseStore | None:
        """Return a sparse store whose scratch has room for d features; None if there is none."""
        store = None if self._state is None else self._state.store
        return store if isinstance(store, SparseStore) and stores.n_columns(store) >= d else None

    def _diagonal(self, x: Rows) -> np.ndarray:
        spare = self._scratch_store(shape(x)[1]) if isinstance(x, SparseRows) else None
        diagonal = kernel_diagonal.diagonal_of(self.kernel_, x, spare)
        good = (diagonal >= 0.0) & (diagonal < LARGEST_DIAGONAL)
        if not good.all():
            r = int(np.argmin(good))
            raise FeatureError(
                f"row {r}: {self.kernel_!r} of the row with itself is {diagonal[r]!r}, which must "
                "be a moderate number of at least 0; scale the features"
            )
        return diagonal

    # Class weights and gamma

    def boxes_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these signs and weights would have now.

        Parameters
        ----------
        signs
            float64 (n,): +1 or -1; for several classes their numbers 0, 1, ...
        weights
            float64 (n,): example weights, at least 0.

        Returns
        -------
        float64 (n,): C times class weight times example weight.

        """
        return self._costs_now(signs) * weights

    def _costs_now(self, signs: np.ndarray) -> np.ndarray:
        """Return C times the class weight that examples of these signs would have now."""
        if not isinstance(self.class_weight, dict):
            return np.full(len(signs), self.C_)
        factors = [
            float(self.class_weight.get(self._labels.label_of_sign(s), 1.0)) for s in signs.tolist()
        ]
        return self.C_ * np.array(factors)

    def _costs_of(self, y: np.ndarray, labels: LabelColumn) -> np.ndarray:
        """Return C times the class weight of each row."""
        if self.class_weight is None:
            return np.full(len(y), self.C_)
        weight = self.class_weight
        return self.C_ * labels.numbers(lambda label: float(weight.get(label, 1.0)))

    def _adapt(self, n: int) -> None:
        """Update gamma, class weights and the kind of rows after n examples, a power of two."""
        follows = self.kernel is None and (self._trial is None or not self._trial.is_due(n))
        if follows and self._choice is None and n <= auto_gamma.LAST_SET:
            moments = auto_gamma.moments_of(self._moments, n) if self._sparse else self._moments
            gamma = auto_gamma.gamma_of(moments, n)
            if auto_gamma.is_worth_it(self.kernel_.gamma, gamma):
                self.kernel_ = kernels.RBF(gamma=gamma)
                self._rebuild()
        self._rebalance()
        if self.sparse is None and not self._sparse and self._state is not None:
            if density.are_sparse(self._dense_rows()):
                self._become_sparse_after(n)
        # Last, when it is known whether rows are sparse.
        if self._trial is not None:
            trial.step(self, n)
        elif self._scales is not None:
            self.__dict__.update(rescaling.adapt(self))
        if self.kernel is not None:
            definiteness.look(self, n)

    def _dense_rows(self) -> np.ndarray:
        """Return the rows kept; `_expansion` has coefficients of all problems, too."""
        n = states.n_slots(self._state)
        return dense(stores.rows_of(self._state.store, n, len(self._schema)))

    def _become_sparse_if_large(self, n_features: int, seen: int) -> None:
        """Become sparse if dense rows of so many features would fill the memory with zeros."""
        if self.sparse is not None or self._sparse or self._state is None:
            return
        if n_features > states.n_columns(self._state):
            capacity = self._state.store.entered.size
            if density.may_be_too_many(capacity, n_features) and density.are_mostly_zero(
                self._dense_rows(), n_features
            ):
                self._become_sparse_after(seen)

    # What model files hold of the trial, and what is computed again when one was read
    _trial_content, _read_trial = trial.content_of, trial.read_content
    _mend_diagonal, _mend_gradients = loaded.mend_diagonal, loaded.mend_gradients

    # Copies

    def _contents(self) -> dict[str, Any]:
        # Without the cached kernel rows: they are recomputed to the last bit.
        contents = super()._contents()
        if self._state is not None:
            contents["_state"] = states.without_cache(self._state)
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        if self._state is not None:
            self._state = states.with_cache(self._state, self._cache_bytes)
