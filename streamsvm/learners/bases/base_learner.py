"""What all learners share, of rows and of sentences: lock, observer, files, and words."""

from __future__ import annotations

import abc
from pathlib import Path

from streamsvm.learners.bases import summary
from streamsvm.learners.bases.training_observer import TrainingObserver
from streamsvm.model_files import container
from streamsvm.support.locked import Locked


class BaseLearner(Locked, abc.ABC):
    """The base class of all learners."""

    def __init__(self) -> None:
        # Every use of the scratch arrays holds the lock: one thread may learn while others predict.
        super().__init__()
        # The monitor that is told of each example learnt.
        self.observer: TrainingObserver | None = None

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """The parameters in use that matter most, in a few words."""

    def summary(self) -> str:
        """Return what the learner has learnt as a table to print.

        Returns
        -------
        Lines of name and value: parameters in use, examples, features, classes, and what there is
        of support vectors, bias, duality gap, certificate, largest weights and memory.

        """
        with self._lock:
            return summary.table(self)

    def __repr__(self) -> str:
        """Return the class and the parameters that differ from their defaults."""
        return summary.short(self)

    def save(self, path: str | Path) -> None:
        """Write the model to a file that `streamsvm.load` reads; it holds data, no code.

        A failure leaves an older file unchanged: the new one is renamed when it is complete.

        Parameters
        ----------
        path
            The file; an older one is replaced.

        Raises
        ------
        UnwritableModelFileError
            The file cannot be written.
        ModelFileError
            A label or feature name is of a type that a file cannot hold.

        """
        container.save(self, path)
