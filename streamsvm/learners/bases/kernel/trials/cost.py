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
        self.state = model.state
        self._of_row, self._most = 0.0, _ROWS_AT_FIRST

    def _total(self) -> float:
        counts = self._model.counters
        state = self._model.state
        d = 0 if self._model.is_sparse else self._model.room_for_features()
        is_several = hasattr(state, "problems")
        of_value = 220.0 if is_several else 20.0 + 0.2 * d
        n_classes = self._model.targets.n_classes
        of_rows = self._model.n_examples * (5000.0 + 1500.0 * n_classes)
        return (
            of_rows
            + 600.0 * (counts["steps"] + counts["null_steps"])
            + of_value * counts["kernel_values"]
        )

    def of_last(self) -> float:
        """Return what the rows took that were learnt since the last time."""
        total, n = self._total(), self._model.n_examples
        last, rows = total - self._before, n - self._n_before
        state = self._model.state
        if state is not self.state and hasattr(state, "problems"):
            before = getattr(self.state, "problems", None)
            last += _OF_BYTE * layout.moved_bytes(before, state.problems)
        self.state = state
        self._before, self._n_before = total, n
        self._of_row, self._most = last / max(1, rows), 2 * rows
        return last

    def affordable(self, budget: float) -> int:
        """Return how many rows the model may learn now."""
        rows = int(budget / self._of_row) if self._of_row else _ROWS_AT_FIRST
        return max(_FEWEST, min(rows, self._most))
