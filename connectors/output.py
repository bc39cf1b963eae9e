"""The interface of an output: where the predictions of a run go, before their events are learnt."""

# ruff: noqa: B027 (methods of `Output` that do nothing are defaults, not forgotten ones)

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from connectors.batch import Batch
from connectors.source import Snapshot


class Output(ABC):
    """Anything that takes predictions: ``Run(output=...)``. Only `add` has no default."""

    exactly_once: bool = False  # whether what was added is committed with a position, in one step
    probabilities: bool = False  # whether those of labels are wanted: events are learnt one by one
    n_learnt: int | None = 0  # examples learnt before the next prediction; None: it is not told
    ends_at: float | None = None  # as of a `Source`

    def begin(self) -> None:
        """Begin; what an earlier process left open is over."""

    @abstractmethod
    def add(
        self,
        batch: Batch,
        rows: Sequence[int],
        predictions: Sequence[Any],
        further: Mapping[str, Sequence[Any]],
        are_learnt: bool = False,
    ) -> None:
        """Take predictions for some rows of a batch, which `are_learnt` one after the other.

        `further` are more values of each row, by name, in the order of `rows`.
        """

    def flush(self) -> None:
        """Wait until the other side has all that was added; else a SourceError."""

    def is_due(self, snapshot: Snapshot | None) -> bool:
        """Tell whether there is something to commit, up to a snapshot of the source."""
        return False

    def commit(self, snapshot: Snapshot, mark: str = "") -> None:
        """Commit what was added, and a position, in one step, under a `mark`."""

    def was_committed(self, snapshot: Snapshot, mark: str) -> bool:
        """Tell whether `commit` was, by an earlier process that ended in it; after `begin`."""
        return False

    def close(self) -> None:
        """Wait until the other side has what counts; drop what was not committed."""
        self.flush()
