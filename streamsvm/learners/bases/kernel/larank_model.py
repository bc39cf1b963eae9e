"""What a LaRank classifier keeps: its state and its reserve, and what they say."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamsvm.labels import outputs
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.kernel.bounds import covered_by
from streamsvm.learners.bases.kernel.reserve_learner import ReserveLearner
from streamsvm.learners.bases.kernel.second_looks import SecondLooks, SecondLooksOfLaRank
from streamsvm.learners.bases.kernel.support_vectors import SupportPatterns, as_matrix
from streamsvm.monitor.certificate import Certificate, papers_bound
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.larank import events as events  # registers the solver
from streamsvm.solvers.larank import state as larank_state
from streamsvm.solvers.larank import step as larank
from streamsvm.solvers.larank.gap import larank_gap
from streamsvm.solvers.larank.state import LaRankState
from streamsvm.support import states
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.rows import Rows

_ANY = 2**62

_NO_CERTIFICATE = (
    "no certificate: because LaRank drops examples; with K= it keeps all, and has a certificate"
)


def margins_of_classes(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the score of each row's class, less the largest other one.

    Parameters
    ----------
    y
        int64 (n,): the number of the class of each row.
    scores
        float64 (n, classes).

    """
    rows = np.arange(len(y))
    own, others = scores[rows, y], scores.copy()
    others[rows, y] = -np.inf
    # Without another class: of those that will come the score is 0.
    margins: np.ndarray = own - others.max(axis=1) if scores.shape[1] > 1 else own
    return margins


class LaRankModel(ReserveLearner):
    """Base class of `LaRankClassifier`: its state and its scores of classes, and what they say."""

    _draws: np.ndarray
    K: int | None
    max_classes: int | None
    max_support_vectors: int | None

    # Labels and scores

    _output = outputs.MULTICLASS

    def _new_margins(self, n: int) -> np.ndarray:
        return np.zeros((n, len(self._labels.seen)))

    # The solver

    _states = larank_state
    _solver = larank
    _of_state: ClassVar[tuple[str, ...]] = ("_draws", "_reserve")
    _more_counts: ClassVar[dict[str, str]] = {
        "argmax_new": "n_new",
        "argmax_old": "n_old",
        "optimize_steps": "n_optimize",
    }

    def _new_state(self, n_features: int) -> LaRankState:
        room = max(4, min(2 * len(self._labels.seen), self.max_classes or _ANY))
        cache, draws = self._cache_bytes, self._draws
        return larank_state.new_state(n_features, cache, draws, room, sparse=self._sparse)

    def _state_for(self, n_features: int) -> LaRankState:
        state: LaRankState = super()._state_for(n_features)
        n_classes = len(self._labels.seen)
        if n_classes > state.n_vectors.size:
            capacity, d = state.box.size, states.n_columns(state)
            room = max(n_classes, min(2 * n_classes, self.max_classes or _ANY))
            state = self._state = states.grown(state, capacity, d, self._cache_bytes, room)
        state.info[0].n_classes = n_classes
        return state

    def _coefficients(self, n: int) -> np.ndarray:
        return larank_state.coefficients(self._state)

    def _write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        larank.margins_of(state, self._bound_kernel(state), x, out)

    # The reserve

    def _least_margin(self, sign: float, margins: np.ndarray) -> float:
        # Of one event: faster than with arrays.
        scores = margins[0].tolist()
        own = float(scores.pop(int(sign)))
        # Without another class: of those that will come the score is 0.
        return own - max(scores, default=0.0)

    def _least_margins(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        return margins_of_classes(signs.astype(np.int64), margins)

    def _violations(self, signs: np.ndarray, f: np.ndarray) -> np.ndarray:
        return 1.0 - self._least_margins(signs, f)

    def _second_looks(self) -> SecondLooks:
        return SecondLooksOfLaRank(self)

    # Inspection

    @property
    def n_support_vectors(self) -> int:
        """Number of nonzero coefficients, over all classes."""
        return 0 if self._state is None else int(self._state.n_vectors.sum())

    @property
    def n_support_patterns(self) -> int:
        """Number of examples with a nonzero coefficient for some class."""
        return 0 if self._state is None else int(self._state.info[0].n_alive)

    def support_vectors(self) -> SupportPatterns:  # type: ignore[override]
        """Return copies of the support patterns, in the order in which they entered the model."""
        names, seen = self.feature_names, self._labels.seen
        if self._state is None:
            rows = as_matrix(np.zeros((0, len(names)), np.float32))
            return SupportPatterns(names, rows, np.zeros((0, len(seen))), [], list(seen))
        rows, coefficients, entered = self._unscaled_expansion()
        kept = np.flatnonzero(entered)
        kept = kept[np.argsort(entered[kept], kind="stable")]
        labels = [seen[c] for c in self._state.y[kept].tolist()]
        k = len(seen)
        return SupportPatterns(names, as_matrix(rows)[kept], coefficients[kept, :k], labels, seen)

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean normalised gap so far, with 95 % probability; None without `K`."""
        if self.K is None:
            return Certificate(None, _NO_CERTIFICATE)
        value = self.looks.bound()
        if value is None:
            return Certificate(None, "no example was looked at yet")
        bounded = self.window or self.max_support_vectors
        about = "the examples kept at each moment" if bounded else "all examples so far"
        return Certificate(value, f"of {about}")

    @property
    def papers_certificate(self) -> Certificate:
        """The bound in the papers' form, in expectation: several times as large, for equal C_i."""
        is_covered = self.K is not None and not self.max_support_vectors and self._state is not None
        value = papers_bound(self._state.info[0], blocks=True) if is_covered else None
        return Certificate(value, "the papers' bound is for uniform steps (K), no budget, one C_i")

    @property
    def squared_norm(self) -> float:
        """The square of |w|, over all classes."""
        if self._state is None:
            return 0.0
        own = np.maximum(larank_state.coefficients(self._state), 0.0).sum()
        return max(0.0, 2.0 * (float(own) - self.dual))

    @property
    def covers(self) -> str:
        """What the gap is about: "kept" examples, the "stream", its "window", or "merged" ones."""
        if self.K is not None and self.max_support_vectors is None:
            return "kept"
        return covered_by(self.window, self.max_support_vectors, "project")

    def _costs_now(self, signs: np.ndarray) -> np.ndarray:
        return self._costs_of(signs, LabelColumn(signs.astype(np.int64), self._labels.seen))

    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept.

        Returns
        -------
        The gap, not normalised. The learner has learnt an example.

        """
        return larank_gap(self._state)

    def at_bound(self) -> np.ndarray:
        """Return whether each nonzero coefficient is at its upper bound C_i.

        Returns
        -------
        bool, one value for each nonzero coefficient. The learner has learnt an example.

        """
        return larank_state.bounded(self._state)


def as_file(part: LaRankModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the reserve, for model files."""
    return part._reserve.as_file()


def read(part: LaRankModel, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set the reserve from a model file."""
    part._reserve.read(content, arrays, len(part._schema), range(len(part._labels.seen)))
