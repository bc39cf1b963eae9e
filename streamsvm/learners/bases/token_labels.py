"""What `ConformalSets` asks of a learner that gives each token of a sentence a label."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from river import base

from streamsvm.features.frames import Batch
from streamsvm.labels.label_column import Label

Features: TypeAlias = tuple[np.ndarray, ...]
"""A sentence that was read, which is given back to the learner; equal ones have equal arrays."""


class LabelsTokens:
    """A base class of such learners, which may stand behind another step of a pipeline."""

    @abstractmethod
    def check_steps(self, model: base.Estimator) -> None:
        """Raise ParameterError if something stands before this learner that must not."""

    @abstractmethod
    def read_sentence(self, model: base.Estimator, x: Any) -> Features:
        """Return the features of a sentence, which comes to `model`, whose last step this is."""

    @abstractmethod
    def read_batch(self, model: base.Estimator, X: Batch) -> Iterator[Features]:
        """Yield the features of each sentence of a batch."""

    @abstractmethod
    def read_labels(self, y: Iterable[Any]) -> Sequence[Iterable[Label]]:
        """Return the labels of a batch, an entry for each sentence."""

    @abstractmethod
    def decision_function_one(self, x: Any) -> list[dict[Label, float]]:
        """Return the score of each label at each token of a sentence."""

    @abstractmethod
    def learn_one(self, x: Any, y: Iterable[Label], w: float = 1.0) -> None:
        """Learn a sentence, and the labels of its tokens."""
