"""What all learners of rows have, those without labels, too: a lock, names of features, figures."""

from __future__ import annotations

from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.learners.bases import words
from streamsvm.model_files import container
from streamsvm.models.exact.exact_rows import ExactRows
from streamsvm.models.model import Model
from streamsvm.monitor.watched import Reported
from streamsvm.selection.candidates import Candidates
from streamsvm.support.locked import Locked


class RowLearner(Locked, container.Saved, Reported):
    """A learner of rows whose features have names.

    Attributes
    ----------
    schema
        The features that it knows.
    model
        What it learns with.
    waiting
        The examples that wait to be chosen; None: all are learnt as they come.

    """

    schema: Schema
    model: Model | ExactRows
    waiting: Candidates | None = None

    def __repr__(self) -> str:
        return words.short(self)

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""
        return self.model.n_examples

    @property
    def feature_names(self) -> list[Name]:
        """The features seen, in the order of the columns of `support_vectors().rows`."""
        with self.lock:
            return list(self.schema.names)

    @property
    def n_unknown_events(self) -> int:
        """How many events were predicted that had none of the features that the model knows.

        Of text, and where no feature comes with half of the events, they are not counted.
        """
        return self.schema.n_unknown

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of each part of the model, and of the ``names`` of features."""
        return self.model.memory_parts | {"names": self.schema.memory_usage}

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays, including cached kernel rows and scratch, and of the names."""
        waiting = 0 if self.waiting is None else self.waiting.nbytes
        return sum(self.memory_parts.values()) + waiting

    def _ignored(self) -> dict[str, int]:
        """Return the counter of features that were ignored, if there are any."""
        n = self.schema.n_ignored
        return {"features_ignored": n} if n else {}
