"""What `ConformalSets` asks of a learner that gives each token of a sentence a label."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

Features: TypeAlias = tuple[np.ndarray, ...]
"""A sentence that was read, which is given back to the learner; equal ones have equal arrays."""


class LabelsTokens:
    """A base class of such learners, which may stand behind another step of a pipeline."""

    @abstractmethod
    def check_steps(self, model: Any) -> None:
        """Raise ParameterError if something stands before this learner that must not."""

    @abstractmethod
    def read_sentence(self, model: Any, x: Any) -> Features:
        """Return the features of a sentence, which comes to `model`, whose last step this is."""

    @abstractmethod
    def read_batch(self, model: Any, X: Any) -> Iterator[Features]:
        """Yield the features of each sentence of a batch."""

    @abstractmethod
    def read_labels(self, y: Any) -> Sequence[Any]:
        """Return the labels of a batch, an entry for each sentence."""

    @abstractmethod
    def decision_function_one(self, x: Any) -> list[dict[Any, float]]:
        """Return the score of each label at each token of a sentence."""

    @abstractmethod
    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn a sentence, and the labels of its tokens."""
