"""Solvers that keep rows which they passed by, for `finish` to look at again."""

from __future__ import annotations

import abc
from typing import ClassVar

import numpy as np

from streamsvm.model_files.json_values import Content, Json
from streamsvm.models.kernel.kernel_solver import DualSolver, KernelSolver
from streamsvm.models.kernel.reserve import FACTS, Reserve
from streamsvm.models.model import Kernel
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.rows import Rows


class ReservingSolver(DualSolver):
    """A solver with a reserve, whose rows are scaled as those that it keeps.

    While scale and width are on trial, each candidate fills a reserve of its own, and the model
    goes on with that of the best.
    """

    revisits: ClassVar[type]
    """The class of `Revisits` by which `finish` looks at the rows of the reserve again."""

    kept_rows: Reserve

    @abc.abstractmethod
    def violations(self, numbers: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return by how much examples with these f(x), without b, would violate optimality."""

    def add_rows(self, rows: tuple[Rows, ...]) -> None:
        """Keep examples that are not kept, with coefficient 0.

        `rows` are the arguments of `learn`, f(x) without b, and what else the solver needs.
        """
        raise AssertionError("they are learnt again")

    def fresh(self, kernel: Kernel, cache_bytes: int) -> KernelSolver:
        """Return a solver with these settings, and an empty reserve, that has learnt nothing."""
        reserve = Reserve(self.kept_rows.most, self.kept_rows.window)
        return super().fresh(kernel, cache_bytes).changed(kept_rows=reserve)

    @property
    def n_members(self) -> int:
        """Number of examples kept, of several problems the sum over all."""
        info = self.state.info[0]
        return int(info.n - info.n_dead)

    def as_file(self) -> Content:
        """Return the reserve for model files."""
        return self.kept_rows.as_file()

    def read(self, content: Json, arrays: NamedArrays, d: int, k: int) -> None:
        """Set what `as_file` returned."""
        self.kept_rows.read(content, arrays, d, k)

    @abc.abstractmethod
    def improve_some(self, n_features: int, allowed: float) -> tuple[bool, float, int]:
        """Make some steps on the examples kept, to their optimum.

        Returns whether it is reached, or the gap is `allowed`; the largest error; and the number of
        steps, 0 if none changes a coefficient in double precision.
        """

    @abc.abstractmethod
    def least_margins(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return y f(x) of rows, the least one if there are several problems."""

    @abc.abstractmethod
    def least_margin(self, number: float, margins: np.ndarray) -> float:
        """Return the same for one event, whose margins are (1, 1) or (1, columns)."""

    def note(self, x: Rows, targets: tuple[np.ndarray, ...], seen: int) -> None:
        """Fill the reserve from rows that were just learnt after `seen` examples.

        `targets` are their classes, weights, numbers (0 of rows that are only predicted) and
        margins.
        """
        if self.kept_rows.most == 0:
            return
        classes, weights, numbers, margins = targets
        facts = np.empty(len(classes), FACTS)
        facts["number"], facts["class"], facts["weight"] = numbers, classes, weights
        facts["arrived"] = seen + np.cumsum(numbers > 0)
        facts["margin"] = self.least_margins(classes, margins)
        self.kept_rows.add(x, facts)

    def wants(self, number: float, margins: np.ndarray) -> float | None:
        """Return the least margin of an event if the reserve takes it, or None."""
        if self.kept_rows.most == 0:
            return None
        margin = self.least_margin(number, margins)
        return margin if margin < self.kept_rows.threshold else None


def reserving(solver: KernelSolver) -> ReservingSolver:
    """Return a solver that keeps a reserve."""
    assert isinstance(solver, ReservingSolver)
    return solver
