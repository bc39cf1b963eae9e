"""The base class of kernel learners with a reserve, which `finish` looks at again."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from streamsvm._parameter_checks import check_number
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.event_path import EventPath
from streamsvm.learners.bases.kernel.dual_kernel_learner import DualKernelLearner
from streamsvm.learners.bases.kernel.reserve import FACTS, Reserve
from streamsvm.learners.bases.kernel.second_looks import SecondLooks
from streamsvm.learners.bases.kernel.trials import trial
from streamsvm.learners.bases.scaled_rows import scaled_rows, unscaled_rows
from streamsvm.support.locked import refuse_to_learn
from streamsvm.support.rows import Rows, taken

_log = logging.getLogger(__name__)

_MOST_LOOKS = 1000
"""`finish` looks at the reserve so often at most; a few times are enough but for rounding."""


def new_reserve(reserve: Any, window: int | None, max_support_vectors: int | None) -> Reserve:
    """Return an empty reserve for these parameters of a learner, which are checked.

    Raises
    ------
    ParameterError
        `reserve` is no number of rows, or is given together with `max_support_vectors`.

    """
    most = None if reserve is None else int(check_number("reserve", reserve, 0))
    if max_support_vectors is not None:
        if most:
            raise ParameterError(
                f"reserve={reserve!r} with max_support_vectors={max_support_vectors!r}: examples "
                "that were merged or left out to keep within the limit would be learnt again; "
                "leave one of them out, or give reserve=0"
            )
        most = 0
    return Reserve(most, window)


class ReserveLearner(DualKernelLearner):
    """A kernel learner that keeps rows which it passed by; a subclass sets `_reserve`.

    The rows are scaled as those that the learner keeps. While scale and width are on trial, each
    candidate fills a reserve of its own, and the learner goes on with that of the best.
    """

    _of_state: ClassVar[tuple[str, ...]] = ("_reserve",)
    _reserve: Reserve

    def _violations(self, signs: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return by how much examples with these f(x), without b, would violate optimality."""
        info = self._state.info[0]
        if info.i < 0 or info.j < 0:
            return np.zeros(len(f))
        g = signs - f
        return np.where(signs > 0.0, g - info.g_min, info.g_max - g)

    def _note(
        self,
        x: Rows,
        signs: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
        margins: np.ndarray,
        seen: int,
    ) -> None:
        if self._reserve.most == 0:
            return
        facts = np.empty(len(signs), FACTS)
        facts["number"], facts["sign"], facts["weight"] = numbers, signs, weights
        # Rows of number 0 are only predicted.
        facts["arrived"] = seen + np.cumsum(numbers > 0)
        facts["margin"] = self._least_margins(signs, margins)
        self._reserve.add(x, facts)

    def _least_margins(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return y f(x) of rows, the least one if there are several problems."""
        # Of several classes the last column is the least margin of the row's class.
        return signs * margins if margins.ndim == 1 else margins[:, -1]

    def _least_margin(self, sign: float, margins: np.ndarray) -> float:
        """Return the same for one event, whose margins are (1, 1) or (1, columns)."""
        margin = margins.item(-1)
        return margin * sign if margins.size == 1 else margin

    def _after_event(self, path: EventPath, sign: float, box: float) -> None:
        # First: a trial of scale and width replaces the reserve by one that has this row already.
        reserve, n = self._reserve, self._n_learnt.item()
        if reserve.most != 0:
            margin = self._least_margin(sign, path.margins)
            if margin < reserve.threshold:
                row = scaled_rows(path.row(), self._factors)
                reserve.add_one(row, (n, n, sign, path.weight, margin))
        reserve.now = n
        # `super()` would take as long as what is called.
        DualKernelLearner._after_event(self, path, sign, box)

    def _rescaled(self, ratio: np.ndarray) -> dict[str, Any]:
        return {"_reserve": self._reserve.rescaled(ratio)}

    def _second_looks(self) -> SecondLooks:
        """Return the rows of the reserve, to be looked at again."""
        return SecondLooks(self)

    def _look_again(
        self, finish: Callable[[], bool], allowed: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Call `finish`, then learn rows of the reserve that violate optimality, until none does.

        Parameters
        ----------
        finish
            A function that leads to the optimum over the examples kept, and returns whether it was
            reached. Between its calls others may learn: their examples are looked at when the
            learner finishes again.
        allowed
            Returns the gap that the rows of the reserve may have together: at most so much is
            enough, even if some violate optimality.

        """
        with self._lock:
            if self._is_learning:
                refuse_to_learn()
            trial.end(self)
            second_looks = self._second_looks()
        for _ in range(_MOST_LOOKS):
            if not finish():
                return
            with self._lock:
                if not second_looks.learn_violating(allowed()):
                    return
        _log.warning("finish ended after %d looks at the reserve", _MOST_LOOKS)

    def reserve_sample(
        self, n: int, n_before: int, draws: random.Random
    ) -> tuple[Rows, np.ndarray, np.ndarray, np.ndarray]:
        """Return rows of the reserve that the model does not keep now.

        Parameters
        ----------
        n
            How many at most: all of them, or so many drawn at random.
        n_before
            Of examples that came after so many.
        draws
            The generator that chooses.

        Returns
        -------
        Rows as they came; their signs and weights; and the numbers of all rows of the reserve that
        are not kept. None at all if an example came more than once.

        """
        with self._lock:
            x, facts = self._reserve.rows()
            is_outside = ~np.isin(facts["number"], self.kept_numbers())
            outside = np.flatnonzero(is_outside & (facts["arrived"] > n_before))
            if len(facts) < len(self._reserve):
                outside = outside[:0]
            rows = outside
            if len(outside) > n:
                rows = outside[np.sort(draws.sample(range(len(outside)), n))]
            found = unscaled_rows(taken(x, rows), self._factors)
            return found, facts["sign"][rows], facts["weight"][rows], facts["number"][outside]

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``support_vectors``, row ``cache``, ``scratch`` arrays and the ``reserve``."""
        return super().memory_parts | {"reserve": self._reserve.nbytes}
