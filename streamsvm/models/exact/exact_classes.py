"""The exact solution of rows of two classes, as a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamsvm import kernels
from streamsvm.model_files.json_values import Content, Json
from streamsvm.models.exact import exact_file
from streamsvm.models.exact.exact_rows import ExactRows, in_double, with_costs
from streamsvm.models.kernel.preparation import ClassCosts
from streamsvm.models.model import Kernel, Model, Parts
from streamsvm.models.outputs import Outputs, sides_of
from streamsvm.models.rows import NumberedRows
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.support.declaration import Field, NamedArrays
from streamsvm.support.interruptions import Changes
from streamsvm.support.rows import Rows, shape


class ExactClasses(ExactRows, Model):
    """Rows of two classes and their exact solution: y is -1 of class 0, and +1 of class 1.

    Attributes
    ----------
    C, costs
        The cost of errors, and those of the classes.

    """

    is_sparse = False
    state = None

    def __init__(
        self, kernel: Kernel | None, C: float, window: int | None, cache_mb: float
    ) -> None:
        super().__init__(kernel, window, cache_mb, np.inf)
        self.C, self.costs, self.outputs = C, ClassCosts(), Outputs(0)
        self.n_learnt, self.n_features = np.zeros(1, np.int64), 0

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose C is multiplied by a factor."""
        costs = self.costs.with_class(factor)
        return [(self.__dict__, {"outputs": Outputs(self.n_classes + 1), "costs": costs})]

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as C is multiplied by other factors from now on."""
        return [(self.__dict__, {"costs": self.costs.weighted(factors, is_balanced)})]

    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return the margins from before each."""
        self.problem.settle()
        self.n_features = max(self.n_features, shape(rows.x)[1])
        x, margins = in_double(rows.x), np.zeros(len(rows.y))
        costs = self.costs.of_rows(self.C, rows)
        for r in range(len(x)):
            margins[r] = self.problem.decisions(x[r : r + 1])[0]
            if rows.numbers[r] > 0:
                self._learn_row(x[r], rows.part(r, r + 1), float(costs[r]))
        return margins

    def _learn_row(self, x: np.ndarray, row: NumberedRows, cost: float) -> None:
        y, n = float(sides_of(row.y)[0]), self.n_examples + 1
        self.add_example(x, y, cost, int(row.numbers[0]), float(row.w[0]), y)
        self.costs.count(row.y)
        self.n_learnt[0] = n
        if n & (n - 1) == 0 and self.costs.is_balanced and self.costs.counts.min() > 0:
            self.problem = with_costs(self.problem, self.costs_of_kept, self.C)

    def is_negative(self, y: float) -> bool:
        """Tell whether the coefficient of an example is 0 or less."""
        return y < 0.0

    def costs_of_kept(self, problem: ExactProblem, C: float) -> np.ndarray:
        """Return the C_i that all examples of a problem would have now, for a weight of 1."""
        return self.costs.now(C, np.maximum(0.0, problem.facts["y"][: problem.n]))

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, float64 (n,)."""
        return self.decisions(x)

    def become_sparse(self) -> None:
        """Do nothing: rows are kept with all their features."""

    def cost_of(self, number: float) -> float:
        """Return the C_i of the next example, if it is of this class, for a weight of 1."""
        return self.costs.of_next(self.C, number)

    # Events: each is a batch of one row

    def event_parts(self) -> Parts:
        """Return no parts."""
        return None, None, None

    def room_for_features(self) -> int:
        """Return the number of features."""
        return self.n_features

    def takes_every_row(self) -> bool:
        """Tell whether it accepts every row of finite values."""
        return kernels.product_of(type(self.problem.kernel)) == "distance"

    # Files

    def as_file(self) -> Content:
        """Return the solution, and the counts of classes, as JSON values and arrays."""
        content, arrays = exact_file.solution_as_file(self, self.n_features)
        return content, arrays | {"exact_counts": self.costs.counts}

    def read(self, content: Json, arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not hold together."""
        problem = exact_file.read_solution(self, self.n_features, content, arrays)
        self.costs = self.costs.changed(counts=arrays.take("exact_counts", Field((2,)), {}))
        self.n_passed = int(self.n_learnt[0]) - problem.n_added
        if self.n_passed < 0:
            raise ValueError("more examples were added than learnt")
        self.problem = problem
