"""Batches into a model: rows are checked, predicted and learnt; bad rows go to `BadEvents`.

Learners of this package take batches without dicts. Each row takes the steps of progressive
validation: it is learnt by the scaler (without its label) and scaled, predicted, then learnt.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from connectors.batch import Batch
from streamsvm.errors import FeatureError
from streamsvm.features.events import fault_of
from streamsvm.features.frames import are_lists
from streamsvm.features.matrices import bad_value
from streamsvm.labels.given import labels_of_predictions
from streamsvm.labels.label_column import MISSING, LabelColumn, Pairs
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.watched import Model
from streamsvm.run import parts
from streamsvm.run.adapters import adapter_of
from streamsvm.run.bad_events import BadEvents, EventLike, fault_in
from streamsvm.run.batch_feeder import BatchFeeder, Predicted
from streamsvm.run.rows import (
    Rows,
    event_of,
    further_of,
    labels_of,
    probabilities_of,
    true_labels,
)
from streamsvm.support.rows import LARGEST


class Feeder(BatchFeeder):
    """Predicts and learns batches with a model.

    The model is a learner of this package, a pipeline of `StandardScaler` and one, or any River
    classifier (which is given the events one by one). `bad` takes the rows that cannot be used.

    `positive` is a label, as text: it is learnt as True, all others as False. `target` is the field
    of the label, if events need not have it: if none had it before, the first one that lacks it may
    have a field with a similar name, which is then named.
    """

    learner: Learner | None  # None: the model takes events

    def __init__(
        self, model: Model, bad: BadEvents, positive: str | None = None, target: str | None = None
    ) -> None:
        super().__init__(bad)
        self.model, self.positive = model, positive
        self._target, self._missing = target, ""
        self._are_answers = True  # whether somebody gave the labels that are learnt now
        self.adapter = adapter_of(model)
        self.follow()
        # River's StatImputer wants None for a missing value, which other events simply lack.
        steps = steps_of(model)
        self._imputed = [name for step in steps for name, _ in getattr(step, "imputers", ())]

    @property
    def row_learner(self) -> Learner:
        """The learner, where rows are taken: see `takes_events`."""
        assert self.learner is not None
        return self.learner

    def follow(self) -> None:
        """Take the scaler and the learner of the model in use: see `BatchFeeder`."""
        self.scaler, self.learner = parts.parts_of(self.adapter.inner)

    def labels_of(self, batch: Batch) -> LabelColumn:
        """Return the labels of a batch: see `BatchFeeder`."""
        labels = labels_of(self.learner, batch)
        if self.positive is not None:
            labels = labels.mapped(lambda y: str(y) == self.positive)
        return labels

    def feed(self, batch: Batch, labels: Sequence[Any], first: int | None = None) -> Pairs:
        """Predict each row, then learn it: see `BatchFeeder`."""
        return self._predict_and_learn(batch, labels, None, first)

    def learn(
        self,
        batch: Batch,
        labels: Sequence[Any],
        predicted: Sequence[Any],
        are_answers: bool = True,
    ) -> Pairs:
        """Learn rows that `predict` was given earlier, and returned `predicted` for.

        `are_answers` is False for labels that nobody gave: the default of those that never came.
        Returns (label, prediction) of each row that was learnt.
        """
        self._are_answers = are_answers
        pairs = self._predict_and_learn(batch, labels, predicted, None)
        if are_answers:
            self.adapter.answered(y for y, _ in pairs)
        return pairs

    def _predict_and_learn(
        self, batch: Batch, labels: Sequence[Any], given: Sequence[Any] | None, first: int | None
    ) -> Pairs:
        """Do what `feed` does, or `learn` if predictions are given."""
        if self.takes_events:
            kept, predicted, _ = self._one_by_one(batch, labels, given)
            guesses = LabelColumn.of(labels_of_predictions(predicted))
            if self.learner is None:
                return Pairs((LabelColumn.of([labels[i] for i in kept]), guesses))
            own = LabelColumn.of(labels).take(kept)
            return Pairs((self.compared(batch, kept, own, guesses), guesses))
        labels = LabelColumn.of(labels)
        if self.is_too_wide(batch):
            pairs = Pairs()
            for i, row in self._narrow_rows(batch):
                before = None if given is None else given[i : i + 1]
                number = None if first is None else first + i
                pairs += self._predict_and_learn(row, labels[i : i + 1], before, number)
            return pairs
        rows = self.checked(batch, labels)
        if given is None:
            rows, _ = self.scaled(rows)
        elif len(rows) and self.scaler is not None:
            rows = replace(rows, matrix=self.scaler.transform_matrix(rows.matrix))
        if not len(rows):
            return Pairs()
        if given is not None:
            earlier = LabelColumn.of(given).take(rows.numbers)
            return self.learn_checked(replace(rows, given=earlier))
        ids = None if first is None else first + 1 + rows.numbers
        return self._feed_checked(replace(rows, ids=ids))

    def _feed_checked(self, rows: Rows) -> Pairs:
        """Predict and learn checked rows."""
        return self.learn_checked(rows)

    def predict(self, batch: Batch) -> Predicted:
        """Predict rows whose labels are not known yet: see `BatchFeeder`."""
        if self.takes_events:
            return self._one_by_one(batch, None)
        if self.is_too_wide(batch):
            found = [(i, self.predict(row)) for i, row in self._narrow_rows(batch)]
            numbers = np.array([i for i, one in found if one.labels], np.int64)
            guesses = [guess for _, one in found for guess in one.labels]
            awaited = np.array([waits for _, one in found for waits in one.awaited], bool)
            return Predicted(numbers, guesses, awaited)
        rows, _ = self.scaled(self.checked(batch))
        if not len(rows):
            return Predicted(rows.numbers, [], np.zeros(0, bool))
        return self.predict_checked(rows)

    def predict_checked(self, rows: Rows) -> Predicted:
        """Predict checked rows, those that the learner takes: see `predict`."""
        margins, taken = rows.margins(self.row_learner, partial(self._refuse, rows.batch))
        awaited = self._awaited(margins)
        predicted: list[Any] = self.row_learner.targets.labels_of(margins).tolist()
        self.say(rows.batch, taken, predicted, self._further(margins))
        return Predicted(taken, predicted, awaited)

    def say(
        self,
        batch: Batch,
        rows: np.ndarray,
        predicted: Iterable[Any],
        further: dict[str, list[Any]],
        are_learnt: bool = False,
    ) -> None:
        """Give predictions for rows of a batch, which `are_learnt` in turn, to the output."""
        if self.output is not None:
            self.output.add(
                batch, rows.tolist(), labels_of_predictions(predicted), further, are_learnt
            )

    def _further(self, margins: np.ndarray) -> dict[str, list[Any]]:
        """Return what the output has of rows with these margins beside their predictions."""
        if not self._wants_probabilities:
            return {}
        return further_of(probabilities_of(self.row_learner, margins), True)

    @property
    def _wants_probabilities(self) -> bool:
        return self.output is not None and self.output.probabilities

    def _awaited(self, margins: np.ndarray) -> np.ndarray:
        """Return which labels of rows with these margins are waited for, bool: all."""
        return np.ones(len(margins), bool)

    def _refuse(self, batch: Batch, i: int, error: FeatureError) -> None:
        """Give row i, which the learner refuses, to `bad`."""
        kind = "missing value" if self.row_learner.missing == "reject" else "kernel value"
        self.set_aside(batch, i, kind, str(error))

    def set_aside(self, batch: Batch, i: int, kind: str, reason: str) -> None:
        """Give row i of a batch to `bad`."""
        self.bad.take(event_of(batch, i), kind, reason)

    # Learners of this package

    def is_too_wide(self, batch: Batch) -> bool:
        """Tell whether the rows have more features between them than one event may have."""
        most = self.row_learner.most_features
        return batch.features.num_columns > most and not are_lists(batch.features.schema)

    def _narrow_rows(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Yield each row that can be used as a batch of its own features, and its number."""
        most = self.row_learner.most_features
        for i, event in enumerate(batch.events()):
            if len(event.x) > most:
                n = len(event.x)
                reason = f"an event of {n:,} features: at most {most:,} are taken (max_features)"
                self.set_aside(batch, i, "too many features", reason)
                continue
            row = batch.slice(i, 1)
            yield i, replace(row, features=row.features.select(list(event.x)))

    def checked(self, batch: Batch, labels: LabelColumn | None = None) -> Rows:
        """Return the rows that can be used; give the others to `bad`."""
        rows = Rows.of(self.row_learner, batch, labels)
        usable = rows.are_usable & parts.are_weights(batch)
        if labels is not None:
            usable &= self.usable_labels(labels)
        if usable.all():
            return rows
        for i in np.flatnonzero(~usable).tolist():
            self._reject(rows, i)
        # The names of features that only bad rows have must not reach the model.
        return rows.reread(self.row_learner, np.flatnonzero(usable))

    def scaled(self, rows: Rows, learn: np.ndarray | bool = True) -> tuple[Rows, np.ndarray]:
        """Scale checked rows, and learn them first, or those to `learn`.

        Those that the scaler refuses are given to `bad`. Returns the others, and which these are.
        """
        if self.scaler is None or not len(rows):
            return rows, np.ones(len(rows), bool)
        scaled, refused = self.scaler.learn_transform_usable(rows.matrix, learn)
        for r in np.flatnonzero(refused >= 0).tolist():
            c = int(refused[r])
            reason = self.scaler.far_message(rows.matrix.names[c], float(rows.matrix.values[r, c]))
            self.set_aside(rows.batch, int(rows.numbers[r]), "outlier", reason)
        rows, good = replace(rows, matrix=scaled), refused < 0
        return rows if good.all() else rows.take(np.flatnonzero(good)), good

    def usable_labels(self, labels: LabelColumn) -> np.ndarray:
        """Return which labels are neither missing nor of a class beyond the most."""
        known, most = set(self.row_learner.classes), self.row_learner.most_classes
        members_of = self.row_learner.targets.members_of
        for label, _ in labels.present():
            for one in members_of(label):
                if one is not None and parts.can_be_label(one, known, most):
                    known.add(one)
        found = [members_of(label) for label in labels.values]
        usable = [bool(members) and known.issuperset(members) for members in found]
        if all(usable) and labels.codes.min(initial=0) > MISSING:
            return np.ones(len(labels), bool)
        # MISSING is -1, so that it selects the last element.
        return np.array([*usable, False])[labels.codes]

    def _reject(self, rows: Rows, i: int) -> None:
        event, labels = event_of(rows.batch, i), rows.labels
        if labels is not None and labels[i] is None:
            self.bad.take(event, "missing label", self._reason(event, bool(labels.values)))
            return
        bad = bad_value(rows.matrix, i, LARGEST)
        if (reason := parts.weight_fault(event.w)) is not None:
            self.bad.take(event, "bad weight", reason)
        elif bad is not None:
            name, value = bad
            self.bad.take(event, "bad feature", f"feature {name!r} is {value}: {fault_of(value)}")
        elif labels is not None:
            self.bad.take(event, *parts.refused_label(self.row_learner, labels[i]))

    def _reason(self, event: EventLike, others_have: bool) -> str:
        """Return why an event without a label is refused; looked up for the first one only."""
        if not self._missing:
            self._missing = "the label is missing"
            # Text fields are features named field=value.
            fields = {str(name).partition("=")[0] for name in event.x}
            has_learnt = self.learner is not None and self.learner.classes
            is_absent = not others_have and not has_learnt
            if is_absent and (near := difflib.get_close_matches(self._target or "", fields, n=1)):
                self._missing += f": there is no `{self._target}`, did you mean `{near[0]}`?"
        return self._missing

    def learn_checked(self, rows: Rows) -> Pairs:
        """Learn checked rows; return pairs of labels and predictions, `given` or made now."""
        batch, numbers, labels, given = rows.batch, rows.numbers, rows.labels, rows.given
        assert labels is not None
        if self.requests is not None and rows.ids is None:
            assert batch.ids is not None
            ids = batch.ids[numbers]
            # A row of a known id takes the place of that example.
            return self._learn_parts(replace(rows, ids=ids), self.requests.parts(ids))
        further = {}
        if given is None and self._wants_probabilities:
            if len(rows) > 1:  # each is predicted after the one before was learnt
                return self._learn_parts(rows, _each(rows))
            try:
                further = self._further(self.row_learner.margins_many(rows.matrix))
            except FeatureError as error:
                self._refuse(batch, int(numbers[0]), error)
                return Pairs()
        if given is not None and self.row_learner.observer is not None:
            self.row_learner.observer.expect(given.tolist())
        try:
            predicted = self.row_learner.learn_batch(rows.matrix, labels, rows.weights, rows.ids)
        except FeatureError as error:
            if len(rows) == 1:
                self._refuse(batch, int(numbers[0]), error)
                return Pairs()
            # The learner refuses some row: learn them one by one.
            return self._learn_parts(rows, _each(rows))
        if given is None:
            self.say(batch, numbers, predicted, further, are_learnt=True)
        guesses = predicted if given is None else given
        return Pairs((self.compared(batch, numbers, labels, guesses), guesses))

    def _learn_parts(self, rows: Rows, some: Iterable[slice]) -> Pairs:
        """Learn one part of checked rows after the other."""
        pairs = Pairs()
        for one in some:
            pairs += self.learn_checked(rows.take(np.arange(one.start, one.stop)))
        return pairs

    def compared(
        self, batch: Batch, rows: np.ndarray, labels: LabelColumn, guesses: LabelColumn
    ) -> LabelColumn:
        """Return what the predictions for some rows are compared with: the truth, where it is."""
        found: LabelColumn = self.row_learner.targets.judged(labels, guesses)
        return true_labels(found, batch, self.truth, rows)

    # Events, one by one

    @property
    def takes_events(self) -> bool:
        """Whether rows are taken as events: by wrappers, and by classifiers of River."""
        return self.learner is None or self.adapter.are_events

    def _one_by_one(
        self, batch: Batch, labels: Sequence[Any] | None, given: Sequence[Any] | None = None
    ) -> Predicted:
        """Predict (if nothing is `given`) and learn (if there are labels) each row as an event."""
        kept, predicted, wanted = [], [], []
        for i, event in enumerate(batch.events()):
            if labels is not None and labels[i] is None:
                others_have = any(label is not None for label in labels)
                self.set_aside(batch, i, "missing label", self._reason(event, others_have))
                continue
            x: dict[Any, Any] = event.x
            x |= {name: None for name in self._imputed if name not in x}
            try:
                if given is not None:
                    guess, is_wanted = given[i], True
                else:
                    guess, is_wanted, said = self.adapter.predict_one(x, labels is not None)
                    further = {name: [value] for name, value in (said or {}).items()}
                    if self._wants_probabilities:
                        further |= further_of([self.adapter.inner.predict_proba_one(x)], True)
                if labels is not None and is_wanted:
                    self.adapter.learn_one(x, event.w, labels[i], guess, self._are_answers)
                    if given is None:
                        self.adapter.answered([labels[i]])
            except Exception as error:
                self.set_aside(batch, i, "bad event", fault_in(error))
            else:
                kept.append(i)
                predicted.append(guess)
                wanted.append(is_wanted)
                if given is None:
                    self.say(batch, np.array([i]), [guess], further, labels is not None)
        if self.adapter.are_events:
            self.follow()
        return Predicted(np.array(kept, np.int64), predicted, np.array(wanted, bool))


def _each(rows: Rows) -> Iterator[slice]:
    """Yield a slice for each row."""
    return (slice(i, i + 1) for i in range(len(rows)))
