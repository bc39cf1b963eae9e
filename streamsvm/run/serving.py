"""Predictions from any thread while another thread learns."""

import math
import threading
import time
from collections.abc import Iterable
from typing import Any, Protocol, cast

from streamsvm._parameter_checks import check_number
from streamsvm.features.schema import Schema
from streamsvm.learners.bases.kernel.unlearning import Unlearned
from streamsvm.learners.bases.row_learner import RowLearner
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.monitor.watched import Model
from streamsvm.run import requests
from streamsvm.run.adapters import adapter_of, unwrapped
from streamsvm.selection.answering import Answer


class Served(Model, Protocol):
    """A copy of a model; what a model has not raises as it does there."""

    def predict_many(self, X: Any, /) -> Any:
        """Return the labels predicted for the rows of a batch."""

    def predict_proba_many(self, X: Any, /) -> Any:
        """Return the probabilities of the rows of a batch."""

    def predict_set_one(self, x: Any, /) -> tuple[Any, ...]:
        """Return the set of an event."""

    def predict_set_many(self, X: Any, /) -> list[tuple[Any, ...]]:
        """Return the sets of the rows of a batch."""


def _schema_of(model: Model) -> Schema | None:
    """Return the features that a model's learner knows; None: it has no list of them."""
    last = steps_of(unwrapped(model))[-1]
    return last.schema if isinstance(last, RowLearner) else None


class Serving:
    """A copy of a model that predicts while the model goes on learning.

    Predictions from a `Serving` never wait for learning. (A learner itself can be asked from any
    thread, too, but it answers only after the event or the batch that it is learning.) They come
    from a copy of the model, taken between two events, of all steps of a pipeline at once. The
    thread that learns renews the copy by calling `refresh`.

    Renewing copies all arrays of the model except its cached kernel rows: 10,000 support vectors of
    784 features are 52 MB, which take 10 ms, the first time .2 s. A prediction costs the same as
    from the model.

    Parameters
    ----------
    model
        A learner, a pipeline, or an `ActiveLearner`, `ConformalSets`, `Selective` or
        `TrackingMonitor` of one.
        Of a `Compare` the model in use is served: a candidate that takes over is served from the
        next renewal on.
    seconds
        The shortest time between two copies, at least 0; by default 1. Infinite: the first is
        renewed by `unlearn` only.

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

    def __init__(self, model: Model | TrackingMonitor, seconds: float = 1.0) -> None:
        model = model.model if isinstance(model, TrackingMonitor) else model
        self._model, self._adapter = model, adapter_of(model)
        self.seconds = seconds if seconds == math.inf else check_number("seconds", seconds, 0)
        # River's models are not thread-safe; learners of this package have locks of their own.
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._copy = self._copied()
        self._moment = time.monotonic()

    def refresh(self, progress: object = None) -> bool:
        """Renew the copy if it is due. To be called by the thread that learns, between two events.

        Parameters
        ----------
        progress
            Ignored; a `Run` passes it when it calls this after each chunk (``on_progress=``).

        Returns
        -------
        bool
            Whether the copy was renewed.

        """
        if time.monotonic() - self._moment < self.seconds:
            return False
        with self._renewing:
            self._renew()
        return True

    def _copied(self) -> Served:
        return cast(Served, self._adapter.serving_copy())

    def _renew(self) -> None:
        # One assignment: a prediction under way keeps the copy that it began with.
        found = self._copied()
        if (schema := _schema_of(found)) is not None and (
            own := _schema_of(self._copy)
        ) is not None:
            schema.go_on_from(own)
        self._copy = found
        self._moment = time.monotonic()

    def unlearn(self, ids: Iterable[int] | int) -> Unlearned:
        """Take examples back from the model, and renew the copy at once: see `unlearn` there.

        All predictions that begin after it has returned are made without them. It may be called
        from any thread, and waits until the event or batch that is being learnt is done.

        Parameters
        ----------
        ids
            Ids given to `learn_many`, or numbers of the examples, counted from 1.

        Returns
        -------
        What the learner's `unlearn` returns: the ids `removed` and `not_kept`, and the `gap`.

        Raises
        ------
        ParameterError
            The learner cannot forget examples.

        """
        # A copy that another thread is making, with the examples, must not come after this one.
        with self._renewing:
            found = requests.unlearn(self._model, ids)
            self._renew()
        return found

    @property
    def n_unknown_events(self) -> int:
        """How many events were predicted that had none of the features that the model knows.

        A warning is logged of the first: see the learner's `n_unknown_events`.
        """
        schema = _schema_of(self._copy)
        return 0 if schema is None else schema.n_unknown

    @property
    def age(self) -> float:
        """Seconds since the copy was made."""
        return time.monotonic() - self._moment

    @property
    def model(self) -> Model:
        """The current copy; it is replaced at the next renewal, and never changed."""
        return self._copy

    # What follows is as the methods of the model itself.

    def predict_one(self, x: Any) -> Any:
        """Return the label predicted for an event."""
        with self._lock:
            if self._adapter.answers:
                return self._adapter.answer_one(x, self._copy).label
            return self._copy.predict_one(x)

    def answer_one(self, x: Any) -> Answer:
        """Return the answer to an event, if the model is a `Selective`.

        Its `label` is None if there is no answer. Give it to the model's `learn_one`, with the
        label, as ``given=``.
        """
        with self._lock:
            return self._adapter.answer_one(x, self._copy)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return {label: probability} of an event."""
        with self._lock:
            probabilities: dict[Any, float] = self._copy.predict_proba_one(x)
            return probabilities

    def predict_set_one(self, x: Any) -> tuple[Any, ...]:
        """Return the set of an event, if the model is of `ConformalSets`, the most likely first.

        As by its `predict_set_many`: the bound is not for these sets. Of numbers it is the ends of
        an interval.
        """
        with self._lock:
            return self._copy.predict_set_one(x)

    def predict_set_many(self, X: Any) -> list[tuple[Any, ...]]:
        """Return the sets of the rows of a batch: see `predict_set_one`."""
        with self._lock:
            return self._copy.predict_set_many(X)

    def predict_many(self, X: Any) -> Any:
        """Return the labels predicted for the rows of a batch."""
        with self._lock:
            return self._copy.predict_many(X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities of the rows of a batch."""
        with self._lock:
            return self._copy.predict_proba_many(X)
