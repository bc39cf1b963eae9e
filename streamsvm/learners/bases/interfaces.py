"""What the parts of a learner use of it: reading and learning of events and batches, and trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from streamsvm.features.event_reader import EventReader
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases.training_observer import TrainingObserver
from streamsvm.selection.candidates import Candidates
from streamsvm.selection.strategies import Selection
from streamsvm.support.rows import Rows


class AnyLearner(Protocol):
    """A `Learner`, as functions for events and batches see it."""

    schema: Schema
    targets: Targets
    is_sparse: bool
    lock: Any
    is_learning: bool
    observer: TrainingObserver | None
    n_learnt: np.ndarray
    event_reader: EventReader | None
    event_path: Any
    selection: Selection | None
    waiting: Candidates | None

    @property
    def repeats(self) -> tuple[np.ndarray, np.ndarray] | None:
        """See `Learner`, as for all that follows."""

    @property
    def new_event_path(self) -> Any: ...
    @property
    def n_examples(self) -> int: ...
    @property
    def last_number(self) -> int: ...

    def event_model(self) -> Any: ...

    def event_parts(self) -> Any: ...

    def bound_kernel(self, state: Any) -> Any: ...

    def room_for_features(self) -> int: ...

    def takes_every_row(self) -> bool: ...

    def after_event(self, path: Any, sign: float, cost: float) -> None: ...

    def cost_of(self, label: Any, sign: float) -> float: ...

    def diagonal_of(self, x: Rows) -> np.ndarray: ...

    def margins_of(self, x: Rows) -> np.ndarray: ...

    def margins_of_arrivals(
        self, candidates: Candidates, x: Rows
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def margins_of_waiting(self, candidates: Candidates) -> np.ndarray: ...

    def become_sparse(self) -> None: ...

    def read(self, X: Any) -> tuple[Rows, Sequence[Name]]: ...

    def predicted_before_class(self, x: Rows) -> LabelColumn | None: ...

    def add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None: ...

    def learn_rows(self, rows: LabelledRows) -> np.ndarray: ...
