"""What a LASVM classifier keeps: the state of two classes, or that of several, and their labels.

`_state` is a `LASVMState` until a third class appears; then it becomes a `PairsState`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamsvm.features.names import Name
from streamsvm.labels import outputs
from streamsvm.labels.growing_labels import GrowingLabels, spread_to
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.event_path import EventPath
from streamsvm.learners.bases.kernel.bounds import covered_by
from streamsvm.learners.bases.kernel.reserve_learner import ReserveLearner
from streamsvm.learners.bases.kernel.second_looks import SecondLooks
from streamsvm.learners.bases.kernel.second_looks_of_classes import SecondLooksOfClasses
from streamsvm.learners.bases.kernel.support_vectors import ProblemVectors, as_matrix
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm import boxes
from streamsvm.solvers.lasvm import events as events  # registers the solver
from streamsvm.solvers.lasvm import state as lasvm_state
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.solvers.lasvm.gap import Outside, lasvm_gap
from streamsvm.solvers.lasvm_pairs import classes, files, inspection, layout
from streamsvm.solvers.lasvm_pairs import events as pairs_events  # noqa: F401  # registers the solver
from streamsvm.solvers.lasvm_pairs import finish as pairs_finish
from streamsvm.solvers.lasvm_pairs import state as pairs_state
from streamsvm.solvers.lasvm_pairs import step as pairs
from streamsvm.solvers.lasvm_pairs.state import PairsState
from streamsvm.support import stores
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.rows import Rows


class LASVMModel(ReserveLearner):
    """Base class of `LASVMClassifier`: its states, labels and class weights, and what they say."""

    _output = outputs.PROBLEMS
    compiles_classes_apart = True
    _takes_balanced = True

    multiclass: str
    max_classes: int
    max_support_vectors: int | None
    budget: str | None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # The number of examples: of the negative and the positive class, or of each of several.
        self._counts = np.zeros(2)

    @property
    def _is_several(self) -> bool:
        return isinstance(self._state, PairsState)

    @property
    def _is_one_vs_rest(self) -> bool:
        return self.multiclass == "ovr"

    # The solver

    @property
    def _states(self) -> Any:  # type: ignore[override]
        return pairs_finish if self._is_several else lasvm_state

    @property
    def _solver(self) -> Any:  # type: ignore[override]
        return pairs if self._is_several else lasvm

    def _new_state(self, n_features: int) -> Any:
        k = len(self._labels.seen)
        if k > 2:
            return pairs_state.new_state(n_features, k, sparse=self._sparse)
        return lasvm_state.new_state(n_features, self._cache_bytes, sparse=self._sparse)

    def _state_for(self, n_features: int) -> Any:
        state, k = super()._state_for(n_features), len(self._labels.seen)
        if isinstance(state, PairsState) and state.info[0].n_classes < k:
            kernel, d = self._bound_kernel(state), len(self._schema)
            state = self._state = classes.with_classes(
                state, kernel, k, self._is_one_vs_rest, self._cache_bytes, d
            )
        return state

    def _grow(self, capacity: int, n_features: int) -> None:
        larger = self._is_several and capacity > self._state.store.entered.size
        if larger or (self._is_several and stores.wants_pairs(self._state.store)):
            self._state = classes.grown(self._state, self._cache_bytes)
        else:
            super()._grow(capacity, n_features)

    def _new_margins(self, n: int) -> np.ndarray:
        return self._output.zeros(self._labels, n)

    def _coefficients(self, n: int) -> np.ndarray:
        several = self._is_several
        return inspection.coefficients(self._state) if several else self._state.alpha[:n]

    def _write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        self._solver.margins_of(state, self._bound_kernel(state), x, out)

    def _with_signs_exchanged(self) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
        state = copy.deepcopy(self._state)
        if state is not None:
            boxes.exchange_classes(state)
        reserve = self._reserve.with_signs(np.negative)
        changed = {"_state": state, "_counts": self._counts[::-1].copy(), "_reserve": reserve}
        return changed, np.negative

    # Classes

    def _add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Add a class; return the function that converts earlier signs, None if they stay."""
        if label in self._labels.seen:
            # A batch may also be cut before an example of a class that is known.
            return None
        labels = GrowingLabels(self._labels.seen)
        labels.most = self._labels.most
        is_turned, k = labels.add(label), len(labels.seen)
        new: dict[str, Any] = {"_labels": labels}
        change: Callable[[np.ndarray], np.ndarray] | None = None
        if k == 2 and is_turned:
            changed, change = self._with_signs_exchanged()
            new |= changed
        elif k == 3:
            change = spread_to(labels)
            new |= {"_calibration": np.zeros(0), "_counts": np.zeros(3)}
            positive = labels.seen.index(labels.positive)
            new["_counts"][[1 - positive, positive]] = self._counts
            if self._state is not None:
                new["_state"] = self._state_of_several(positive)
            new["_reserve"] = self._reserve.with_signs(change)
        elif k > 3:
            new["_counts"] = np.append(self._counts, 0.0)
        # Set in one step, so that labels and signs match after an interruption.
        self.__dict__.update(new)
        return change

    def _state_of_several(self, positive: int) -> PairsState:
        return classes.from_two(self._state, positive, self._is_one_vs_rest, self._cache_bytes)

    def pair_margins_one(self, x: Mapping[Name, Any]) -> dict[tuple[Any, Any], float]:
        """Return the margin of each binary problem for an event.

        Parameters
        ----------
        x
            Features by name, as in `predict_one`.

        Returns
        -------
        {(a, b): margin}: above 0 for label a, below 0 for b; b is None for all other labels.

        """
        with self._lock:
            row = self._schema.known_row(x) if self._sparse else self._schema.row(x)
            if not self._is_several:
                if len(self._labels.seen) < 2:
                    return {}
                pair = (self._labels.positive, self._labels.negative)
                return {pair: float(self._margins(row)[0])}
            state = self._state_for(len(self._schema))
            out = np.zeros((1, len(state.problems.table)))
            pairs.problem_margins_of(state, self._bound_kernel(state), row, out)
            return dict(zip(self._problem_labels(), out[0].tolist(), strict=True))

    def _problem_labels(self) -> list[tuple[Any, Any]]:
        return inspection.labels_of(self._state, self._labels.seen)

    # Class weights

    def _costs_of(self, y: np.ndarray, labels: LabelColumn) -> np.ndarray:
        """Return C times the class weight of each row; "balanced" weights count the rows first."""
        if self.class_weight != "balanced":
            return super()._costs_of(y, labels)
        numbers = self._side_of(y)
        counts = self._counts + np.cumsum(np.eye(len(self._counts))[numbers], axis=0)
        own = counts[np.arange(len(y)), numbers]
        return self.C_ * counts.sum(axis=1) / (len(self._counts) * own)

    def _note(
        self,
        x: Rows,
        signs: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
        margins: np.ndarray,
        seen: int,
    ) -> None:
        if self.class_weight == "balanced":
            sides = self._side_of(signs[numbers > 0])
            self._counts = self._counts + np.bincount(sides, minlength=len(self._counts))
        super()._note(x, signs, weights, numbers, margins, seen)

    def _side_of(self, signs: np.ndarray) -> np.ndarray:
        """Return the index in `_counts` of each sign, or number of a class."""
        numbers = signs > 0.0 if self._labels.is_binary else signs
        return np.asarray(numbers, np.int64)

    def _box_of(self, label: Any, sign: float) -> float:
        if self.class_weight is None:
            # Without another call: each event asks for it.
            return self.C_
        if self.class_weight != "balanced":
            return super()._box_of(label, sign)
        counts = self._counts.copy()
        own = int(sign > 0.0) if self._labels.is_binary else int(sign)
        counts[own] += 1.0
        return float(self.C_ * counts.sum() / (len(counts) * counts[own]))

    def _after_event(self, path: EventPath, sign: float, box: float) -> None:
        if self.class_weight == "balanced":
            self._counts[int(sign > 0.0) if self._labels.is_binary else int(sign)] += 1.0
        # `super()` would take as long as what is called.
        ReserveLearner._after_event(self, path, sign, box)

    def _costs_now(self, signs: np.ndarray) -> np.ndarray:
        if self.class_weight != "balanced":
            return super()._costs_now(signs)
        return self._balanced_costs()[self._side_of(signs)]

    def _balanced_costs(self) -> np.ndarray:
        return self.C_ * self._counts.sum() / (len(self._counts) * np.maximum(self._counts, 1.0))

    def _rebalance(self) -> None:
        if self.class_weight != "balanced" or self._state is None or self._counts.min() == 0:
            return
        c, kernel, d = self._balanced_costs(), self._bound_kernel(self._state), len(self._schema)
        if self._is_several:
            pairs_finish.set_boxes(self._state, kernel, c, d)
        else:
            boxes.set_boxes(self._state, kernel, c[0], c[1], d)

    def _second_looks(self) -> SecondLooks:
        if not self._is_several:
            return SecondLooks(self)
        self._state_for(len(self._schema))
        return SecondLooksOfClasses(self)

    # Inspection

    @property
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient."""
        if self._is_several:
            return inspection.n_support_vectors(self._state)
        return super().n_support_vectors

    @property
    def dual(self) -> float:
        """The value of the dual objective; of several classes, the sum over the problems."""
        if self._is_several:
            return float(self._state.problems.table["dual"].sum())
        return super().dual

    @property
    def squared_norm(self) -> float:
        """The square of |w|; of several classes, the sum over the problems."""
        if self._is_several:
            return max(0.0, 2.0 * (inspection.sum_of_coefficients(self._state) - self.dual))
        return super().squared_norm

    @property
    def bias(self) -> Any:
        """The constant b of the decision function; of several classes {(a, b): b} by problem."""
        if self._is_several:
            found = inspection.biases(self._state)
            return dict(zip(self._problem_labels(), found, strict=True))
        return 0.0 if self._state is None else float(lasvm_state.bias(self._state))

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair, the uncertainty of b; at the optimum at most tau."""
        if self._is_several:
            return inspection.delta(self._state)
        return 0.0 if self._state is None else float(lasvm.delta(self._state))

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap, of the examples kept at each moment, with 95 % probability."""
        value = self.looks.bound()
        if value is None:
            return Certificate(None, "no example was learnt yet")
        return Certificate(value, "of the examples kept at each moment")

    @property
    def covers(self) -> str:
        """What the gap is about: the "stream", its "window", "merged" vectors, or "problems".

        Of several classes it is about the examples that each problem keeps.
        """
        if self._is_several:
            return "problems"
        return covered_by(self.window, self.max_support_vectors, self.budget)

    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept, summed over the problems.

        Returns
        -------
        The gap, not normalised. The learner has learnt an example.

        """
        if self._is_several:
            return inspection.kept_gap(self._state)
        return lasvm_gap(self._state, self.bias)

    def gap_beside(self, signs: np.ndarray, margins: np.ndarray, boxes: np.ndarray) -> KeptGap:
        """Return the gap on the examples kept, at the bias that is best for others, too."""
        return lasvm_gap(self._state, self.bias, Outside(signs, margins, boxes))

    def at_bound(self) -> np.ndarray:
        """Return whether each support vector is at its upper bound C_i, in some problem at least.

        Returns
        -------
        bool, one value for each support vector. The learner has learnt an example.

        """
        if self._is_several:
            return inspection.at_bound(self._state)
        at_bound = (self._state.alpha == self._state.lower) | (
            self._state.alpha == self._state.upper
        )
        return at_bound[self._state.alpha != 0.0]

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of support vectors, the kernel row cache and scratch arrays."""
        parts = super().memory_parts
        if self._is_several:
            # Without the space for growth, which was never written.
            of_members, of_values = layout.unused_bytes(self._state.problems)
            values = self._state.problems.values.nbytes
            parts["support_vectors"] -= values + of_members
            parts["cache"] += values - of_values
        return parts

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, hits and misses of the cache."""
        if self._is_several:
            return inspection.counters(self._state) | self._ignored()
        return super().counters

    def support_vectors(self) -> Any:
        """Return the support vectors, in the order in which they entered the model.

        Returns
        -------
        Copies of rows, coefficients, labels and example numbers: `SupportVectors` for two classes,
        `ProblemVectors` for more.

        """
        if not self._is_several:
            return super().support_vectors()
        rows, found, entered = self._expansion()
        kept = np.flatnonzero(np.abs(found).max(axis=1, initial=0.0))
        kept = kept[np.argsort(np.abs(entered[kept]), kind="stable")]
        labels = [self._labels.seen[c] for c in self._state.y[kept].tolist()]
        matrix = as_matrix(rows)[kept]
        names, sides = self.feature_names, self._problem_labels()
        return ProblemVectors(names, matrix, found[kept], labels, entered[kept], sides)


def as_file(part: LASVMModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the reserve and the problems of several classes, for model files."""
    content, arrays = part._reserve.as_file()
    return content, arrays | (files.to_arrays(part._state) if part._is_several else {})


def read(part: LASVMModel, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set the reserve and the problems of several classes from a model file."""
    k = len(part._labels.seen)
    signs = (-1.0, 1.0) if k < 3 else range(k)
    part._reserve.read(content, arrays, len(part._schema), signs)
    part._labels.most = part.max_classes
    if part._is_several:
        if part._state.info[0].n_classes > len(part._labels.seen):
            raise ValueError("there are problems of more classes than labels")
        part._state = files.with_arrays(
            part._state, arrays, part._is_one_vs_rest, part._cache_bytes, len(part._schema)
        )
