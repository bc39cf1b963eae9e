"""Batches into `Selective`: each row is answered or not, then learnt, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from connectors.source import Batch
from streamsvm.labels.given import Given
from streamsvm.run import parts
from streamsvm.run.sets_feeder import SetsFeeder, check_reading
from streamsvm.selection.answering import Answer, GivenAnswer


class AnswersFeeder(SetsFeeder):
    """Predicts and learns batches with `Selective`. Parameters are those of `Feeder`.

    Scored are the most likely labels of all events. What is held of an event whose label comes
    later is its answer, which counts. With `audit`, labels of answered events are not waited for.
    """

    def check_run(self, epochs: int, forgets: bool) -> None:
        """Refuse a run that reads the stream again, or forgets events."""
        check_reading(epochs, forgets, "Selective reads a stream once, and forgets nothing")

    def predict_and_ask(self, batch: Batch) -> tuple[np.ndarray, list[Any], np.ndarray]:
        """Predict rows whose labels are not known yet, and tell whose labels are waited for."""
        kept, found = self.predict(batch)
        awaits_all = not self.model.audit
        return kept, found, np.array([awaits_all or one.is_asked for one in found], bool)

    def _predict_event(self, x: dict[Any, Any], is_learnt: bool) -> tuple[Any, bool]:
        """Return the most likely label of an event; if its label comes later, the answer."""
        is_new = self.learner is not None and not self.learner.classes
        answer = self.model.answer_one(x)
        if is_learnt:
            return None if is_new else answer.likely, True
        return GivenAnswer(answer), True

    def _learn_event(self, x: dict[Any, Any], w: float, y: Any, guess: Any) -> None:
        """Learn an event, with the answer that was given to it."""
        if isinstance(guess, Given):
            guess.labels = Answer(*guess.labels)
        last = self.learner
        if last is not None and not parts.can_be_label(y, last.classes, last.most_classes):
            # Refused below, but what was said of it counts.
            self.model.refuse_one(x, y, guess.labels if isinstance(guess, Given) else None)
        super()._learn_event(x, w, y, guess)
