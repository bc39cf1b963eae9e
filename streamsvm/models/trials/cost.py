"""What it takes a candidate of a race to learn rows, by counts of its solver, not by the clock."""

from __future__ import annotations

from typing import Any

from streamsvm.solvers.lasvm_pairs import layout

_FEWEST = 2
"""So many rows are learnt after each event at least: so the best catches up at some time."""

_OF_BYTE = 0.5
"""The work for each byte that is copied when the problems of several classes need more room."""

_ROWS_AT_FIRST = 8
"""So many rows show what one takes."""


class Cost:
    """What a model does for a row, in about nanoseconds, by the counts of its solver."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._before, self._n_before = self._total(), model.n_examples
        self._problems = self._problems_now()
        self._of_row, self._most = 0.0, _ROWS_AT_FIRST

    def _total(self) -> float:
        model, counts = self._model, self._model.solver.counters
        d = 0 if model.is_sparse else model.room_for_features()
        of_value = 220.0 if model.solver.has_problems else 20.0 + 0.2 * d
        of_rows = model.n_examples * (5000.0 + 1500.0 * model.n_classes)
        steps = counts["steps"] + counts["null_steps"]
        return float(of_rows + 600.0 * steps + of_value * counts["kernel_values"])

    def _problems_now(self) -> Any:
        solver = self._model.solver
        return solver.state.problems if solver.has_problems and solver.state is not None else None

    def of_last(self) -> float:
        """Return what the rows took that were learnt since the last time."""
        total, n, problems = self._total(), self._model.n_examples, self._problems_now()
        last, rows = total - self._before, n - self._n_before
        if problems is not self._problems:
            last += _OF_BYTE * layout.moved_bytes(self._problems, problems)
        self._problems = problems
        self._before, self._n_before = total, n
        self._of_row, self._most = last / max(1, rows), 2 * rows
        return last

    def affordable(self, budget: float) -> int:
        """Return how many rows the model may learn now."""
        rows = int(budget / self._of_row) if self._of_row else _ROWS_AT_FIRST
        return max(_FEWEST, min(rows, self._most))
