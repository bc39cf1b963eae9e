"""Predicts and learns events in the order of their labels, which are simulated to come later.

All in one call of the learner: the result of one event after the other, a hundred times as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.batch import Batch
from streamsvm.errors import FeatureError
from streamsvm.labels.given import labels_of_predictions
from streamsvm.labels.label_column import MISSING, LabelColumn, Pairs, objects
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.learners.bases.learner import Learner
from streamsvm.run.feeder import Feeder
from streamsvm.run.late_labels.clock import Order
from streamsvm.run.late_labels.steps import LearnInOrder
from streamsvm.run.parts import refused_label
from streamsvm.run.rows import Rows


class _InOrder:
    """What becomes of the events of `LearnInOrder`.

    `pairs` are (label, prediction) of each event that was learnt; `predicted`, `are_good` and
    `is_awaited` are what its `hold` is given.
    """

    def __init__(self, feeder: Feeder, step: LearnInOrder) -> None:
        self._feeder, self._labels, self._n_given = feeder, step.labels, len(step.given)
        self.pairs = Pairs()
        self.predicted = np.full(len(step.labels), None, object)
        self.predicted[: self._n_given] = objects(step.given)
        self.are_good = np.ones(len(step.labels), bool)
        self.is_awaited = np.ones(len(step.labels), bool)

    def take_at_once(self, learner: Learner, batch: Batch, order: Order) -> None:
        """Predict and learn all events in one call of the learner."""
        feeder, good = self._feeder, self.are_good
        rows = feeder.checked(batch)
        place = np.full(len(good), MISSING)
        place[rows.numbers] = np.arange(len(rows))
        good &= place != MISSING
        order = order.where(good[order.events])
        rows, are_scaled = feeder.scaled(rows.take(place[order.events]), ~order.is_learnt)
        good[order.events[~are_scaled]] = False
        order = order.where(are_scaled)
        missing = good & (self._labels.codes == MISSING)
        for i in np.flatnonzero(missing[self._n_given :]).tolist():
            self._refuse_unlabelled(batch, self._n_given + i)
        good &= ~missing
        wanted = good[order.events]
        wanted[wanted & order.is_learnt] = self._may_be_learnt(learner, batch, order.where(wanted))
        if not learner.classes:
            # Before the first label nothing is predicted.
            wanted &= np.cumsum(wanted & order.is_learnt) > 0
        self._take_checked(learner, rows.take(np.flatnonzero(wanted)), order.where(wanted))

    def _refuse_unlabelled(self, batch: Batch, i: int) -> None:
        self._feeder.set_aside(batch, i, "missing label", "the label is missing")

    def _may_be_learnt(self, learner: Learner, batch: Batch, order: Order) -> np.ndarray:
        """Return which events to learn have a label that the learner takes; the others are bad."""
        usable = self._feeder.usable_labels(self._labels.take(order.learnt))
        for i in order.learnt[~usable].tolist():
            self._feeder.set_aside(batch, i, *refused_label(learner, self._labels[i]))
        return usable

    def _take_checked(self, learner: Learner, rows: Rows, order: Order) -> None:
        """Predict and learn rows, one for each place, which have been checked and scaled."""
        feeder, labels = self._feeder, self._labels
        if not len(rows):
            return
        late = LateRows(order.is_learnt, order.events, self.predicted)
        try:
            learner.learn_batch(rows.matrix, labels.take(rows.numbers), rows.weights, late=late)
        except FeatureError:
            # The kernel gave no finite value for some row.
            def predict(s: int, i: int) -> list[Any]:
                return feeder.predict_checked(rows.take(np.array([s]))).labels

            def learn(s: int, i: int) -> Pairs:
                row, given = rows.take(np.array([s])), LabelColumn.of([self.predicted[i]])
                row = replace(row, labels=labels.take(row.numbers), given=given)
                return feeder.learn_checked(row)

            self._take_each(order, predict, learn)
        else:
            predicted = LabelColumn.of(list(self.predicted[order.learnt]))
            of = rows.batch, order.learnt, labels.take(order.learnt)
            self.pairs += Pairs((feeder.compared(*of, predicted), predicted))

    def take_one_by_one(self, batches: list[Batch], order: Order) -> None:
        """Take one event after the other: any classifier, and batches of different columns."""
        rows = list(chain.from_iterable((b.slice(i, 1) for i in range(len(b))) for b in batches))

        def predict(_: int, i: int) -> list[Any]:
            found, is_awaited = self._feeder.predict(rows[i])[1:]
            if found and self._labels[i] is None:
                self._refuse_unlabelled(rows[i], 0)
                return []
            if found and not is_awaited[0]:
                # Scored, as its label is known here, but it was not asked for.
                guess, label = LabelColumn.of(labels_of_predictions(found)), self._labels[i : i + 1]
                if self._feeder.learner is not None:
                    label = self._feeder.compared(rows[i], np.zeros(1, np.int64), label, guess)
                self.pairs += Pairs((label, guess))
                self.is_awaited[i] = False
            return found

        def learn(_: int, i: int) -> Pairs:
            return self._feeder.learn(rows[i], self._labels[i : i + 1], [self.predicted[i]])

        self._take_each(order, predict, learn)

    def _take_each(
        self,
        order: Order,
        predict: Callable[[int, int], list[Any]],
        learn: Callable[[int, int], Pairs],
    ) -> None:
        """Predict and learn by functions of a place and its event; [] is no prediction."""
        for s, (i, is_learnt) in enumerate(zip(*map(np.ndarray.tolist, order), strict=True)):
            if not (self.are_good[i] and self.is_awaited[i]):
                # A row that was refused is not learnt when its label comes: it would count twice.
                continue
            if is_learnt:
                self.pairs += learn(s, i)
            elif found := predict(s, i):
                self.predicted[i] = found[0]
            else:
                self.are_good[i] = False


def learn_in_order(feeder: Feeder, step: LearnInOrder) -> Pairs:
    """Take such a step; return (label, prediction) of each event that was learnt."""
    found, batch = _InOrder(feeder, step), _joined(step.batches)
    in_turns = feeder.adapter.in_turns or feeder.learner is None
    if in_turns or batch is None or feeder.is_too_wide(batch):
        found.take_one_by_one(step.batches, step.order)
    else:
        found.take_at_once(feeder.row_learner, batch, step.order)
    step.hold(found.predicted, found.are_good, found.is_awaited)
    return found.pairs


def _joined(batches: list[Batch]) -> Batch | None:
    """Return batches as one; None if columns of one name are of types that do not agree."""
    if len(batches) > 1 and not all(batch.features.num_columns for batch in batches):
        # A table without columns has no rows.
        return None
    try:
        return Batch.concat(batches)
    except pa.ArrowException:
        return None
