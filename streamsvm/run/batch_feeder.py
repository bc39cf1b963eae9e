"""What a run asks of a feeder, which puts batches into a model: of rows, sentences or records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from connectors.batch import Batch
from connectors.output import Output
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.monitor.score import SentenceScore
from streamsvm.monitor.watched import Reported
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.parts import MappedScaler
from streamsvm.run.requests import Requests


class Predicted(NamedTuple):
    """What is predicted for the rows of a batch that can be used."""

    numbers: np.ndarray  # of these rows in the batch, int64
    labels: list[Any]  # None before the first label was learnt
    awaited: np.ndarray  # bool: whose labels are waited for


class BatchFeeder(ABC):
    """Predicts and learns batches with a model; `bad` takes what cannot be used.

    A `SentenceBatch` has the interface of `Batch`, but for the features.
    """

    learner: Reported | None  # in use; None: the model takes events one by one, as River's do
    # What transforms rows before the learner learns them; None: nothing does.
    scaler: StandardScaler | MappedScaler | None = None
    truth: str | None = None  # a kept column: predictions are compared with it where it has a value
    output: Output | None = None  # what takes the predictions
    # Returns what counts predictions of whole sentences; None: they are of rows.
    new_score: Callable[[], SentenceScore | None] = staticmethod(lambda: None)
    requests: Requests | None = None  # what asks to forget rows, which are learnt by their ids then

    def __init__(self, bad: BadEvents) -> None:
        self.bad = bad

    @property
    def settings(self) -> dict[str, str]:
        """What a run that goes on from a checkpoint must have, too, as texts by name."""
        return {}

    def follow(self) -> None:  # noqa: B027
        """Take the learner in use: that of a wrapper may be another than before."""

    @abstractmethod
    def labels_of(self, batch: Batch) -> LabelColumn:
        """Return the labels of a batch as the model learns them; None where one is missing."""

    @abstractmethod
    def feed(self, batch: Batch, labels: LabelColumn, first: int | None = None) -> Pairs:
        """Predict each row, then learn it; return (label, prediction) of those that were learnt.

        `labels` are from `labels_of`. `first` is the number of rows of this epoch before the batch,
        by which the learner knows rows of an earlier epoch again; None: there is one epoch.
        """

    @abstractmethod
    def predict(self, batch: Batch) -> Predicted:
        """Predict rows whose labels are not known yet; a scaler learns them."""
