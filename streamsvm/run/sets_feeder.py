"""Batches into `ConformalSets`: each row gets its set, and is then learnt, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from connectors.source import Batch
from streamsvm.errors import ParameterError
from streamsvm.labels.given import Given, told
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.learners.conformal_sets import ConformalSets
from streamsvm.run import parts
from streamsvm.run.feeder import Feeder, guess_of


def check_reading(
    epochs: int, forgets: bool, why: str = "ConformalSets read a stream once, and forget nothing"
) -> None:
    """Refuse to read a stream again, or to forget events, by ParameterError."""
    if epochs > 1 or forgets:
        what = f"epochs={epochs!r}" if epochs > 1 else "tombstones"
        raise ParameterError(f"{what}: {why}")


class SetsFeeder(Feeder):
    """Predicts and learns batches with `ConformalSets`. Parameters are those of `Feeder`.

    A row's set depends on the row before it, whose label must be known to the thresholds: rows are
    taken as events. What is held of an event whose label comes later is its label and set, a
    `Given`: that set counts. `model` is of `ConformalSets`, or another wrapper.
    """

    in_turns = True
    _are_answers = True

    def check_run(self, epochs: int, forgets: bool) -> None:
        """Refuse a run that reads the stream again, or forgets events."""
        check_reading(epochs, forgets)

    def feed(self, batch: Batch, labels: Sequence[Any], first: int | None = None) -> Pairs:
        """Predict each row, then learn it; return (label, prediction): see `Feeder`."""
        return self._taken(batch, labels, None)

    def learn(
        self,
        batch: Batch,
        labels: Sequence[Any],
        predicted: Sequence[Any],
        are_answers: bool = True,
    ) -> Pairs:
        """Learn rows that `predict` was given earlier: see `Feeder`."""
        self._are_answers = are_answers
        try:
            return self._taken(batch, labels, predicted)
        finally:
            self._are_answers = True

    def give_up(self, n: int) -> None:
        """Take that so many sets will not be learnt: see `Feeder`."""
        if isinstance(self.model, ConformalSets):
            self.model.sets.give_up(n)

    def predict(self, batch: Batch) -> tuple[np.ndarray, list[Any]]:
        """Predict rows whose labels are not known yet: see `Feeder`. Predictions are `Given`."""
        numbers, predicted, _ = self._one_by_one(batch, None)
        return np.array(numbers, np.int64), predicted

    def _taken(self, batch: Batch, labels: Sequence[Any], given: Sequence[Any] | None) -> Pairs:
        rows, found, _ = self._one_by_one(batch, labels, given)
        guesses = LabelColumn.of(told(found))
        if self.learner is None:
            return Pairs((LabelColumn.of([labels[i] for i in rows]), guesses))
        kept = np.array(rows, np.int64)
        own = LabelColumn.of(labels).take(kept)
        return Pairs((self.judged(batch, kept, own, guesses), guesses))

    def _predict_event(self, x: dict[Any, Any], is_learnt: bool) -> tuple[Any, bool]:
        """Return what is predicted for an event; its set, too, if its label comes later."""
        guess = guess_of(self.model, x, is_learnt)
        if guess is None and is_learnt:
            return None, True
        labels = self.model.predict_set_one(x)
        return guess if is_learnt else Given(guess, labels), True

    def _learn_event(self, x: dict[Any, Any], w: float, y: Any, guess: Any) -> None:
        """Learn an event, with the set that was given for it."""
        if not isinstance(guess, Given):
            parts.learn_event(self.model, x, w, y)
            return
        self._learn_given(self.learner, x, w, y, guess)

    def _learn_given(self, watched: Any, x: dict[Any, Any], w: float, y: Any, guess: Given) -> None:
        """Learn an event; if `watched` has a monitor, it scores what was predicted."""
        observer = getattr(watched, "observer", None)
        if observer is not None:
            observer.expect([guess.label])
        try:
            if self._are_answers or not isinstance(self.model, ConformalSets):
                parts.learn_event(self.model, x, w, y, given=guess.labels)
            else:  # a label that nobody gave says nothing of the set
                parts.learn_event(self.model.model, x, w, y)
                self.give_up(1)
        except BaseException:
            if observer is not None:
                observer.expect([])
            raise
