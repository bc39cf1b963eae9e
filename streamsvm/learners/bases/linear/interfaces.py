"""What the parts of a linear learner use of it: batches, and the fast path of events."""

from __future__ import annotations

from typing import Any, Protocol

from streamsvm.learners.bases.interfaces import AnyLearner
from streamsvm.learners.bases.linear.linear_solver import LinearSolver
from streamsvm.native_events.linear_path import NoFastPath
from streamsvm.solvers.linear.state import LinearState


class AnyLinearLearner(AnyLearner, Protocol):
    """A `LinearLearner`, as its parts see it."""

    solver: LinearSolver
    t0: float | None
    sparse: bool | None
    class_weight: Any
    fast_path: NoFastPath
    pace: Any  # a `BindingPace`

    @property
    def state(self) -> LinearState | None:
        """See `LinearLearner`, as for all that follows."""

    @property
    def n_outputs(self) -> int: ...

    @property
    def labels(self) -> tuple[Any, ...]: ...

    def make_room(self, d: int) -> LinearState: ...

    def search_rate(self, n: int) -> None: ...

    def search_rate_if_due(self) -> None: ...

    def bind_fast_path(self) -> None: ...

    def close_fast_path(self) -> None: ...

    def set_fast_path(self, path: NoFastPath) -> None: ...
