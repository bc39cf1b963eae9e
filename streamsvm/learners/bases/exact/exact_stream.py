"""The base class of exact learners without labels: of numbers, or of nothing but the features."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence

import numpy as np

from streamsvm._parameter_checks import check_size, numbers_of, weights_of
from streamsvm.errors import LabelError
from streamsvm.features import batches
from streamsvm.features.events import Event
from streamsvm.features.frames import Batch
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT, Schema
from streamsvm.labels.labelled_rows import Ids, Weights
from streamsvm.learners.bases.exact.exact_learner import ExactLearner
from streamsvm.learners.bases.kernel.support_vectors import SupportVectors, in_order
from streamsvm.models.exact.exact_rows import ExactRows, in_double
from streamsvm.models.model import Kernel
from streamsvm.support.locked import guarded, locked
from streamsvm.support.rows import Rows, shape


class ExactStream(ExactLearner):
    """An exact solution of rows with numbers, or without."""

    def __init__(
        self,
        kernel: Kernel | None,
        window: int | None,
        max_features: int,
        cache_mb: float,
        missing: str,
        tube: float,
    ) -> None:
        super().__init__()
        self.kernel, self.window = kernel, check_size("window", window, 2)
        self.max_features, self.missing = max_features, missing
        self.cache_mb = cache_mb
        limit = check_size("max_features", max_features) or LIMIT
        self.schema = Schema(limit=limit, missing=missing)
        self.model = ExactRows(kernel, self.window, cache_mb, tube)

    @abc.abstractmethod
    def learn_example(self, x: np.ndarray, y: float, weight: float, number: int) -> None:
        """Learn a row, float64 (features,), of any weight."""

    # What is learnt

    def _learn_event(self, x: Event, y: float, w: Weights) -> None:
        self._learn(lambda: self.schema.wider_row(x), np.array([y]), w, None)

    def _learn_rows(self, X: Batch, y: np.ndarray | None, w: Weights, ids: Ids | None) -> None:
        def read() -> tuple[Rows, Sequence[Name]]:
            return batches.rows_of(self.schema, batches.matrix_of(X, self.schema), False)

        self._learn(read, y, w, ids)

    @guarded
    def _learn(
        self,
        read: Callable[[], tuple[Rows, Sequence[Name]]],
        y: np.ndarray | None,
        w: Weights,
        ids: Ids | None,
    ) -> None:
        """Learn the rows that `read` returns, and the names of new features."""
        rows, new = read()
        n, schema = shape(rows)[0], self.schema
        targets = np.zeros(n) if y is None else y
        if len(targets) != n:
            raise LabelError(f"{len(targets)} numbers for {n} rows")
        weights, numbers = weights_of(w, n), numbers_of(ids, n)
        if not n:
            return
        rows, statistics = schema.missing.filled(rows, [*schema.names, *new], True)
        self.model.diagonal_of(rows)
        schema.extend(new)
        schema.missing.keep(statistics)
        self.problem.settle()
        x = in_double(rows)
        for r in range(n):
            number = self.last_number + 1 if numbers is None else int(numbers[r])
            self.learn_example(x[r], float(targets[r]), float(weights[r]), number)

    # What is predicted

    @guarded
    def decision_of(self, x: Event) -> float:
        """Return f of an event."""
        self.problem.settle()
        row = in_double(self.schema.row(x))
        if isinstance(x, dict):
            self.schema.note_predicted(x)
        return float(self.problem.decisions(row)[0])

    @guarded
    def decisions_of(self, X: Batch) -> np.ndarray:
        """Return f of the rows of a batch, float64 (n,)."""
        self.problem.settle()
        return self.problem.decisions(in_double(batches.known_rows(self.schema, X, False)))

    # Looking inside

    @locked
    def support_vectors(self) -> SupportVectors:
        """Return the support vectors, in the order of their numbers.

        Returns
        -------
        SupportVectors
            Copies of rows and coefficients, what each was learnt with, and example numbers.

        """
        problem, names = self.problem, list(self.schema.names)
        n, rows = problem.n, problem.rows(len(names))
        found = in_order(names, rows, problem.state.beta[:n].copy(), self.numbers.copy(), float)
        y_of = dict(zip(self.numbers.tolist(), problem.facts["y"][:n].tolist(), strict=True))
        return found._replace(labels=[y_of[number] for number in found.entered.tolist()])
