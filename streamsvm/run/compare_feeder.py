"""Batches into `Compare`: each row is predicted by both models, then learnt, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from connectors.source import Batch
from streamsvm.labels.given import GivenBoth
from streamsvm.labels.label_column import Pairs
from streamsvm.model_files.container import steps_of
from streamsvm.run import parts
from streamsvm.run.feeder import guess_of
from streamsvm.run.sets_feeder import SetsFeeder, check_reading


class CompareFeeder(SetsFeeder):
    """Predicts and learns batches with `Compare`. Parameters are those of `Feeder`.

    Scored are the predictions of the model in use. What is held of an event whose label comes later
    are the predictions of both.
    """

    def check_run(self, epochs: int, forgets: bool) -> None:
        """Refuse a run that reads the stream again, or forgets events."""
        check_reading(epochs, forgets, "models are compared on a stream read once, kept whole")

    def predict(self, batch: Batch) -> tuple[np.ndarray, list[Any]]:
        """Predict rows whose labels are not known yet: see `SetsFeeder`."""
        self._follow()
        return super().predict(batch)

    def _taken(self, batch: Batch, labels: Sequence[Any], given: Sequence[Any] | None) -> Pairs:
        self._follow()
        found = super()._taken(batch, labels, given)
        self._follow()
        return found

    def _follow(self) -> None:
        """Take the parts of the model in use, which may be another one than before."""
        self.scaler, self.learner = parts.parts_of(self.model.model)

    def _predict_event(self, x: dict[Any, Any], is_learnt: bool) -> tuple[Any, bool]:
        """Return what both predict for an event, and that its label is learnt."""
        model = self.model
        if model.record is not None:
            guess = guess_of(model.model, x, is_learnt)
            return GivenBoth(guess, (guess, guess)), True
        both = guess_of(model.a, x, is_learnt), guess_of(model.b, x, is_learnt)
        return GivenBoth(both[0], both), True

    def _learn_event(self, x: dict[Any, Any], w: float, y: Any, guess: Any) -> None:
        """Learn an event, for which both had predicted something."""
        # That b can take it is looked at as for any model.
        parts.check_label(self.model.a, y)
        self._learn_given(steps_of(self.model.b)[-1], x, w, y, guess)
