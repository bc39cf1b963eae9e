"""Events predicted, and learnt later: many steps at once, with the result of one after the other.

A step predicts an event, or learns one that was predicted by an earlier step. All steps of a batch
are given to the model in one call, as one at a time costs a hundred times as much.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from connectors.source import Batch
from streamsvm.errors import FeatureError
from streamsvm.features.matrices import take
from streamsvm.labels.label_column import MISSING, LabelColumn, Pairs
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.run.feeder import Feeder
from streamsvm.run.parts import AnyMatrix, event_of, refused_label, weights_of


class Steps(NamedTuple):
    """The steps to take with some events, in order."""

    events: np.ndarray  # int64 (n,): the event of each step
    is_learnt: np.ndarray  # bool (n,): whether the step learns its event; else it predicts it

    def where(self, wanted: np.ndarray) -> Steps:
        """Return the steps for which `wanted`, bool (n,), is True."""
        return Steps(self.events[wanted], self.is_learnt[wanted])

    @property
    def learnt(self) -> np.ndarray:
        """The events that are learnt, in the order of their steps."""
        return self.events[self.is_learnt]


class Taken(NamedTuple):
    """What became of the events of some steps."""

    pairs: Pairs  # (label, prediction) of each event that was learnt
    predicted: np.ndarray  # object (events,): their predictions
    are_good: np.ndarray  # bool (events,): False: the event cannot be used


def take_steps(
    feeder: Feeder, batches: list[Batch], labels: LabelColumn, given: list[Any], steps: Steps
) -> Taken:
    """Predict and learn events, step by step; return what became of them.

    `given` are the predictions of the first events, which were predicted earlier. Each of the
    others is predicted by a step, before one learns it.
    """
    predicted = np.full(len(labels), None, object)
    predicted[: len(given)] = np.array([*given, None], object)[:-1]
    batch = _joined(batches)
    learner = feeder.learner
    if learner is None or batch is None or feeder.is_too_wide(batch):
        return _one_by_one(feeder, batches, labels, predicted, steps)
    matrix, kept = feeder.checked(batch)
    place = np.full(len(labels), MISSING)
    place[kept] = np.arange(len(kept))
    steps, good = steps.where(place[steps.events] != MISSING), place != MISSING
    matrix = take(matrix, place[steps.events])
    if feeder.scaler is not None:
        raw = matrix
        matrix, refused = feeder.scaler.learn_transform_usable(raw, ~steps.is_learnt)
        for s in np.flatnonzero(refused >= 0).tolist():
            i, name = int(steps.events[s]), raw.names[refused[s]]
            reason = feeder.scaler.far_message(name, float(raw.values[s, refused[s]]))
            feeder.bad.take(event_of(batch, i), "outlier", reason)
            good[i] = False
    good &= _have_labels(feeder, batch, labels, len(given), good)
    wanted = good[steps.events]
    wanted[wanted & steps.is_learnt] = _may_be_learnt(feeder, batch, labels, steps.where(wanted))
    if not learner.classes:
        # Before the first label nothing is predicted.
        wanted &= np.cumsum(wanted & steps.is_learnt) > 0
    steps, matrix = steps.where(wanted), take(matrix, np.flatnonzero(wanted))
    return Taken(_at_once(feeder, batch, matrix, labels, predicted, steps, good), predicted, good)


def _have_labels(
    feeder: Feeder, batch: Batch, labels: LabelColumn, first: int, good: np.ndarray
) -> np.ndarray:
    """Return which events have a label; give good ones from `first` on without one to `bad`."""
    missing = labels.codes == MISSING
    for i in np.flatnonzero(good & missing).tolist():
        if i >= first:
            feeder.bad.take(event_of(batch, i), "missing label", "the label is missing")
    return ~missing


def _may_be_learnt(feeder: Feeder, batch: Batch, labels: LabelColumn, steps: Steps) -> np.ndarray:
    """Return which events to learn have a label that the learner takes; the others are bad."""
    usable = feeder.usable_labels(labels.take(steps.learnt))
    for i in steps.learnt[~usable].tolist():
        assert feeder.learner is not None
        feeder.bad.take(event_of(batch, i), *refused_label(feeder.learner, labels[i]))
    return usable


def _at_once(
    feeder: Feeder,
    batch: Batch,
    matrix: AnyMatrix,
    labels: LabelColumn,
    predicted: np.ndarray,
    steps: Steps,
    good: np.ndarray,
) -> Pairs:
    """Take steps whose rows have been checked and scaled; write what is predicted, and is good."""
    assert feeder.learner is not None
    if not len(steps.events):
        return Pairs()
    w = weights_of(batch, steps.events)
    late = LateRows(steps.is_learnt, steps.events, predicted)
    try:
        feeder.learner.learn_batch(matrix, labels.take(steps.events), w, late=late)
    except FeatureError:
        # The kernel gave no finite value for some row.
        return _rows_one_by_one(feeder, batch, matrix, labels, predicted, steps, good)
    return Pairs((labels.take(steps.learnt), LabelColumn.of(list(predicted[steps.learnt]))))


def _rows_one_by_one(
    feeder: Feeder,
    batch: Batch,
    matrix: AnyMatrix,
    labels: LabelColumn,
    predicted: np.ndarray,
    steps: Steps,
    good: np.ndarray,
) -> Pairs:
    assert feeder.learner is not None
    pairs = Pairs()
    for s, (i, is_learnt) in enumerate(zip(*map(np.ndarray.tolist, steps), strict=True)):
        row, event = take(matrix, np.array([s])), np.array([i])
        if not good[i]:
            continue
        if is_learnt:
            given = LabelColumn.of([predicted[i]])
            pairs += feeder.learn_checked(batch, row, labels.take(event), event, None, given)
        else:
            # A row that is refused now is not learnt when its label comes: it would count twice.
            found = feeder.predict_checked(batch, row, event)[1]
            good[i] = bool(found)
            predicted[i] = found[0] if found else None
    return pairs


def _one_by_one(
    feeder: Feeder,
    batches: list[Batch],
    labels: LabelColumn,
    predicted: np.ndarray,
    steps: Steps,
) -> Taken:
    """Take the steps one after the other: any classifier, and batches of different columns."""
    rows = list(chain.from_iterable((b.slice(i, 1) for i in range(len(b))) for b in batches))
    good, pairs = np.ones(len(labels), bool), Pairs()
    for i, is_learnt in zip(*map(np.ndarray.tolist, steps), strict=True):
        if not good[i]:
            continue
        if is_learnt:
            pairs += feeder.learn(rows[i], labels[i : i + 1], [predicted[i]])
            continue
        kept, guesses = feeder.predict(rows[i])
        good[i] = len(kept) > 0
        if good[i]:
            good[i : i + 1] &= _have_labels(feeder, rows[i], labels[i : i + 1], 0, good[i : i + 1])
            predicted[i] = guesses[0]
    return Taken(pairs, predicted, good)


def _joined(batches: list[Batch]) -> Batch | None:
    """Return batches as one; None if columns of one name are of types that do not agree."""
    if len(batches) == 1:
        return batches[0]
    tables = [pa.Table.from_batches([batch.features]) for batch in batches]
    try:
        table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
        kind = batches[-1].labels.type
        labels = pa.concat_arrays([batch.labels.cast(kind) for batch in batches])
    except pa.ArrowException:
        return None
    if not all(batch.features.num_columns for batch in batches):
        # A table without columns has no rows.
        return None
    rows = np.concatenate([batch.rows for batch in batches])
    files = list(chain.from_iterable(b.files or [b.file] * len(b) for b in batches))
    weights = [batch.weights for batch in batches if batch.weights is not None]
    w = np.concatenate(weights) if weights else None
    return Batch(table.to_batches()[0], labels, rows, None, files=files, weights=w)
