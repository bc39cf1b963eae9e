"""The base classes of structured learners, and of those that learn a sentence as one example."""

from __future__ import annotations

import inspect
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from river import base

from streamsvm._compiling import working_time
from streamsvm.errors import LabelError
from streamsvm.learners.bases import words
from streamsvm.model_files import container
from streamsvm.monitor.certificate import Certificate
from streamsvm.monitor.learnt import Learnt, TrainingObserver
from streamsvm.monitor.watched import Reported
from streamsvm.support.locked import Locked, guarded

_NONE: Any = None
"""The rows of a sentence: a monitor samples none."""


class StructuredLearner(Locked, container.Saved, Reported, base.Estimator):
    """A River estimator of sentences, with what runs ask all of them for."""

    chunk = 512
    """Number of sentences that a run learns before it checks the time and for Ctrl-C."""
    described: tuple[str, ...]
    """The parameters that matter most."""

    def __repr__(self) -> str:
        return words.short(self)

    def _contents(self) -> dict[str, Any]:
        # A copy is its own: a monitor observes one learner.
        return super()._contents() | {"observer": None}

    @property
    def description(self) -> str:
        """The parameters in use that matter most, in a few words."""
        known = inspect.signature(type(self)).parameters
        given = {name: getattr(self, name) for name in self.described if name in known}
        return ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)

    @abstractmethod
    def rehearse(self) -> None:
        """Learn and predict made-up sentences, so that all that is needed is compiled."""

    def _save_and_load(self) -> Any:
        """Return what is loaded from a file of this learner."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder, "model.svm"))
            return container.load(Path(folder, "model.svm"))


class SentenceLearner(StructuredLearner):
    """A learner of whole sentences.

    A subclass reads examples and labels (`_read`), refuses those there is no room for
    (`_check_room`), learns and predicts one that was read (`_learn_next`, `_predict_next`), and
    says what a monitor counts as label and prediction (`_compared`).
    """

    takes = "records"
    described = ("C", "exploration", "window")

    @abstractmethod
    def _read(self, X: Any, y: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return examples and labels, checked one by one."""

    @abstractmethod
    def _check_room(self, examples: Sequence[Any], labels: Sequence[Any]) -> None:
        """Refuse examples that have more new symbols, or the like, than there is room for."""

    @abstractmethod
    def _learn_next(self, example: Any, label: Any) -> None:
        """Learn an example that was read."""

    @abstractmethod
    def _predict_next(self, example: Any) -> Any:
        """Return what is predicted for an example that was read."""

    @abstractmethod
    def _compared(self, label: Any, predicted: Any) -> tuple[list[Any], list[Any]]:
        """Return labels and predictions of the items that a monitor counts; None: no prediction."""

    def predict_then_learn_one(self, x: Any, y: Any) -> Any:
        """Learn like `learn_one`; return what `predict_one` returned before it.

        Parameters
        ----------
        x, y
            As in `learn_one`.

        Returns
        -------
        As from `predict_one`.

        Raises
        ------
        FeatureError, LabelError, ModelBusyError
            As for `learn_one`.

        """
        predicted: list[Any] = []
        self._learn(*self._read([x], [y]), predicted)
        return predicted[0]

    @guarded
    def _learn(
        self,
        examples: Sequence[Any],
        labels: Sequence[Any],
        predicted: list[Any] | None = None,
    ) -> None:
        """Learn what was read; with `predicted` or a monitor, each example is predicted before."""
        if len(examples) != len(labels):
            raise LabelError(f"labels of {len(labels)} sentences, for {len(examples)} sentences")
        self._check_room(examples, labels)
        if predicted is None and self.observer is None:
            for example, label in zip(examples, labels, strict=True):
                self._learn_next(example, label)
            return
        for example, label in zip(examples, labels, strict=True):
            guess = self._predict_next(example)
            began = working_time()
            self._learn_next(example, label)
            if predicted is not None:
                predicted.append(guess)
            if self.observer is not None:
                seconds = working_time() - began
                _tell(self.observer, *self._compared(label, guess), seconds)

    # What a monitor asks for: see `Reported`.

    certificate = Certificate(None, "no certificate: no examples are kept")

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first sentence."""
        return {name: n for name, n in self.figures.items() if isinstance(n, int)}


def _tell(
    observer: TrainingObserver, labels: list[Any], predicted: list[Any], seconds: float
) -> None:
    """Tell a monitor of the items of a sentence that took so long to learn."""
    n = len(labels)
    if not n or (n == 1 and observer.note(labels[0], predicted[0], seconds)):
        return
    zeros, numbers = np.zeros(n), np.zeros(n, np.int64)
    observer.learnt(Learnt(_NONE, zeros, labels, predicted, zeros, zeros + 1.0, numbers, seconds))
