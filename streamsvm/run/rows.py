"""Rows of a batch as numbers: read, scaled and predicted in one way, by runs and by commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.batch import Batch, Event
from streamsvm.errors import FeatureError
from streamsvm.features import frames
from streamsvm.features.frames import are_lists
from streamsvm.features.matrices import are_usable, take
from streamsvm.labels.label_column import MISSING, LabelColumn, labels_like
from streamsvm.learners.bases.learner import Learner
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.bad_events import RefusedEvent
from streamsvm.run.parts import AnyMatrix, MappedScaler, matrix_of, weights_of
from streamsvm.support.rows import LARGEST


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of a batch as numbers, with what is learnt of them.

    `numbers` are those of the rows in the batch, int64 (n,). Of each row there may be its label,
    the id under which it is learnt, int64 (n,), and, if it was predicted earlier, what was `given`.
    """

    batch: Batch
    matrix: AnyMatrix
    numbers: np.ndarray
    labels: LabelColumn | None = None
    ids: np.ndarray | None = None
    given: LabelColumn | None = None

    @classmethod
    def of(cls, learner: Learner, batch: Batch, labels: LabelColumn | None = None) -> Rows:
        """Read all rows of a batch as a learner does."""
        n = len(batch)
        return cls(batch, matrix_of(learner, batch.features, n), np.arange(n), labels)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def are_usable(self) -> np.ndarray:
        """Which rows have only values that learners take: bool (n,)."""
        return are_usable(self.matrix, LARGEST)

    @property
    def weights(self) -> np.ndarray | float:
        """The weights, float64 (n,); 1.0 if the batch has none."""
        found: np.ndarray | float = weights_of(self.batch, self.numbers)
        return found

    def take(self, places: np.ndarray) -> Rows:
        """Return the rows at some places, in their order."""
        return Rows(
            self.batch,
            take(self.matrix, places),
            self.numbers[places],
            None if self.labels is None else self.labels.take(places),
            None if self.ids is None else self.ids[places],
            None if self.given is None else self.given.take(places),
        )

    def reread(self, learner: Learner, places: np.ndarray) -> Rows:
        """Return the rows at some places, read anew: names of features of others are forgotten."""
        features = _without_empty(self.batch.features.take(pa.array(self.numbers[places])))
        return replace(self.take(places), matrix=matrix_of(learner, features, len(places)))

    def margins(
        self, learner: Learner, refuse: Callable[[int, FeatureError], None] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of the rows that a learner takes, and their numbers in the batch.

        It may refuse rows: of missing values, or whose kernel values are out of range. `refuse` is
        given the number of each, and why.
        """
        try:
            return learner.margins_many(self.matrix), self.numbers
        except FeatureError as error:
            if len(self) == 1:
                if refuse is not None:
                    refuse(int(self.numbers[0]), error)
                none = self.take(np.zeros(0, np.int64))
                return learner.margins_many(none.matrix), none.numbers
        # By halves: a row that is refused keeps no other from being predicted.
        halves = np.array_split(np.arange(len(self)), 2)
        found = [self.take(half).margins(learner, refuse) for half in halves]
        margins, numbers = zip(*found, strict=True)
        return np.concatenate(margins), np.concatenate(numbers)


def margins_of(
    scaler: StandardScaler | MappedScaler | None, learner: Learner, batch: Batch
) -> tuple[np.ndarray, np.ndarray]:
    """Predict a batch, of which nothing is learnt.

    Returns, bool (n,), which rows the model takes: all values are finite, and none is missing that
    must not be; and the margins of all rows, NaN in the others.
    """
    rows = Rows.of(learner, batch)
    usable = rows.are_usable
    if not usable.all():
        rows = rows.take(np.flatnonzero(usable))
    if scaler is not None:
        rows = replace(rows, matrix=scaler.transform_matrix(rows.matrix))
    known, taken = rows.margins(learner)
    usable[:] = False
    usable[taken] = True
    values = np.full((len(usable), *known.shape[1:]), np.nan)
    values[taken] = known
    return usable, values


def probabilities_of(
    learner: Learner, margins: np.ndarray, usable: Sequence[bool] | np.ndarray | None = None
) -> list[dict[Any, float] | None]:
    """Return {label: probability} of rows with these margins; None of those that are not usable."""
    if not learner.targets.labels.seen:
        return [{} for _ in margins]
    of, rows = learner.probabilities_of, margins.tolist()
    if usable is None:
        return [of(m) for m in rows]
    return [of(m) if one else None for m, one in zip(rows, usable, strict=True)]


def further_of(
    found: Sequence[Mapping[Any, float] | None],
    probabilities: bool,
    column: tuple[str, Callable[[Any], Any]] | None = None,
) -> dict[str, list[Any]]:
    """Return what is said of rows beside their predictions, by what `probabilities_of` found.

    That is, by name: the probabilities by the texts of labels, as JSON has them, if they are
    wanted; and the column of a wrapper, its sets or answers (`ModelAdapter.column`).
    """
    further: dict[str, list[Any]] = {}
    if probabilities:
        further["probabilities"] = [p and {_text_of(y): q for y, q in p.items()} for p in found]
    if column is not None:
        further[column[0]] = [None if p is None else column[1](p) for p in found]
    return further


def _text_of(label: Any) -> str:
    return label if isinstance(label, str) else json.dumps(label, default=str)


def labels_of(learner: Learner | None, batch: Batch) -> LabelColumn:
    """Return the labels of a batch, as a learner takes them; None: one of River."""
    column_of = LabelColumn.of if learner is None else learner.targets.column_of
    return frames.labels_of(column_of(batch.labels), len(batch))


def true_labels(
    labels: LabelColumn, batch: Batch, truth: str | None, places: np.ndarray
) -> LabelColumn:
    """Return the labels of rows at some places, but those of the column `truth` where it has any.

    None: there is no such column.
    """
    if truth is None or batch.kept is None:
        return labels
    true = labels_like(batch.kept.column(truth), batch.labels.type).take(places)
    if not len(true) or true.codes.min() > MISSING:
        return true
    pairs = zip(true, labels, strict=True)
    return LabelColumn.of_values(label if right is None else right for right, label in pairs)


def event_of(batch: Batch, i: int) -> Event | RefusedEvent:
    """Return row i of a batch as an event, with its `message` if the batch has it."""
    event = next(iter(batch.slice(i, 1).events()))
    if batch.payloads is None:
        return event
    return RefusedEvent(event.x, event.y, event.position, batch.payloads[i], event.w)


def _without_empty(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without the columns that none of them has."""
    if are_lists(rows.schema):
        return rows
    names = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        is_text = field.metadata and b"one_hot" in field.metadata
        used = pc.any(pc.not_equal(column, 0.0)).as_py() if is_text else True
        if column.null_count < len(column) and used:
            names.append(field.name)
    return rows.select(names)
