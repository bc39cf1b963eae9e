"""Predictions from any thread, beside the one that learns."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

from streamsvm.errors import ParameterError
from streamsvm.monitor.tracker import TrackingMonitor


class Serving:
    """A copy of a model that answers while the model goes on learning.

    A learner may be asked from any thread, too: it then answers when it has learnt the event, or
    the batch, that it is at. A `Serving` never waits for that. It answers from its copy, which is
    of a moment between two events (of a pipeline: of all its steps at once), and is renewed by the
    thread that learns.

    Renewing copies the model's arrays but its cached kernel rows: 10,000 support vectors of 784
    features are 52 MB, which take 10 ms, the first time .2 s. Asking costs what it costs the model.

    Parameters
    ----------
    model
        A learner, a pipeline, or a `TrackingMonitor` of either.
    seconds
        `refresh` does nothing sooner than this after the last copy, at least 0; by default 1.

    Raises
    ------
    ParameterError
        `seconds` is out of range.

    Examples
    --------
    >>> from connectors import MemorySource
    >>> from streamsvm import LASVMClassifier
    >>> from streamsvm.run.runner import Run
    >>> from streamsvm.run.serving import Serving
    >>> events = [({"a": float(i % 7)}, i % 7 > 3) for i in range(200)]
    >>> model = LASVMClassifier()
    >>> serving = Serving(model, seconds=0.0)
    >>> report = Run(MemorySource(events), model, on_progress=serving.refresh).execute()
    >>> serving.predict_one({"a": 6.0}), serving.predict_one({"a": 0.0})
    (True, False)

    """

    def __init__(self, model: Any, seconds: float = 1.0) -> None:
        if not seconds >= 0:
            raise ParameterError(f"seconds={seconds!r}: use a number of at least 0")
        self._model = model.model if isinstance(model, TrackingMonitor) else model
        self.seconds = seconds
        # River's models are not made for several threads; ours have locks of their own.
        self._lock = threading.Lock()
        self._copy = copy.deepcopy(self._model)
        self._moment = time.monotonic()

    def refresh(self, progress: Any = None) -> bool:
        """Renew the copy if it is time; to be called by the thread that learns, between events.

        Parameters
        ----------
        progress
            Not used: so that a `Run` can call this after each chunk (``on_progress=``).

        Returns
        -------
        Whether the copy was renewed.

        """
        if time.monotonic() - self._moment < self.seconds:
            return False
        # One assignment: whoever is answering keeps the copy that it began with.
        self._copy = copy.deepcopy(self._model)
        self._moment = time.monotonic()
        return True

    @property
    def age(self) -> float:
        """Seconds since the copy was made."""
        return time.monotonic() - self._moment

    @property
    def model(self) -> Any:
        """The copy: a model of its own, which is never changed again."""
        return self._copy

    def predict_one(self, x: Any) -> Any:
        """Return the label predicted for an event."""
        with self._lock:
            return self._copy.predict_one(x)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return {label: probability} of an event."""
        with self._lock:
            probabilities: dict[Any, float] = self._copy.predict_proba_one(x)
            return probabilities

    def predict_many(self, X: Any) -> Any:
        """Return the labels predicted for the rows of a batch."""
        with self._lock:
            return self._copy.predict_many(X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities of the rows of a batch."""
        with self._lock:
            return self._copy.predict_proba_many(X)
