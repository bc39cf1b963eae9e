"""What wrappers of a model share: they predict what it predicts, and take batches as events."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from river import base

from streamsvm._parameter_checks import weights_of
from streamsvm.features import frames
from streamsvm.features.frames import Batch
from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.schema import Schema
from streamsvm.labels.class_labels import Probabilities
from streamsvm.labels.label_column import Label, Labels
from streamsvm.labels.labelled_rows import Weights
from streamsvm.model_files.container import steps_of
from streamsvm.support.locked import Locked, guarded

RiverEvent = dict[Any, Any]
"""An event as models of River take it."""


class LockedWrapper(Locked):
    """A wrapper with a lock: copies, pickles and files of it and of its models are of one moment.

    Its lock is taken before those of its models.
    """

    is_around = True

    @property
    def figures(self) -> dict[str, float | None]:
        """What a monitor records of it, beside what it records of the learner."""
        return {}

    @guarded
    def __getstate__(self) -> dict[str, object]:
        # At once, with all that it holds: what is pickled later may have changed.
        return copy.deepcopy(self._contents())


class ModelWrapper(LockedWrapper, base.Wrapper):  # type: ignore[misc]
    """A wrapper of `model`, which predicts; learners of events define `learn_one`."""

    model: Any

    has_sets = False
    """Whether it predicts sets of labels."""

    @property
    def _wrapped_model(self) -> Any:
        """The model that predicts."""
        return self.model

    @property
    def _names_rows(self) -> Any:
        """The model whose schema names the columns of batches."""
        return self.model

    def predict_one(self, x: RiverEvent, **kwargs: object) -> Label | None:
        """Return what the model predicts for an event.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Passed on to the model.

        Returns
        -------
        A label, or a number.

        """
        return self.model.predict_one(x, **kwargs)

    def predict_proba_one(self, x: RiverEvent, **kwargs: object) -> Probabilities:
        """Return the probability of each label, as the model predicts it.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Passed on to the model.

        Returns
        -------
        {label: probability}.

        """
        found: Probabilities = self.model.predict_proba_one(x, **kwargs)
        return found

    # Batches

    def learn_many(self, X: Batch, y: Labels, w: Weights | None = None, **kwargs: Any) -> None:
        """Learn the rows of a batch in order: the same as by `learn_one`, one by one.

        Parameters
        ----------
        X
            NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table, pandas or polars
            frame.
        y
            n labels, or numbers.
        w
            None, or n weights, which the model must take.
        **kwargs
            Passed on to each `learn_one`.

        """
        learn_events(self, events_of(self._names_rows, X), y, w, **kwargs)


def events_of(model: Any, X: Batch) -> Iterator[RiverEvent]:
    """Yield the rows of a batch as events of a model, without missing values.

    X is what batches are: NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table,
    pandas or polars frame.
    """
    schema = getattr(steps_of(model)[-1], "schema", None)
    matrix = frames.matrix_of(X, schema if isinstance(schema, Schema) else Schema())
    if isinstance(matrix, SparseMatrix):
        names, rows = matrix.names, matrix.rows
        for start, stop in zip(rows.start[:-1], rows.start[1:], strict=True):
            columns = rows.columns[start:stop].tolist()
            values = rows.values[start:stop].tolist()
            yield {names[c]: v for c, v in zip(columns, values, strict=True)}
        return
    of = matrix.names
    for row in np.asarray(matrix.values):
        yield {name: v for name, v in zip(of, row.tolist(), strict=True) if v == v}


def learn_events(
    model: Any,
    events: Iterator[RiverEvent],
    y: Labels,
    w: Weights | None = None,
    given: Sequence[object] | None = None,
    **kwargs: object,
) -> None:
    """Learn events in order, each by `learn_one` of a model, with n labels, and n weights, or None.

    Weights are passed on as ``w``, which the model must take, as it must `kwargs`; what was
    predicted as ``given``.
    """
    rows = list(events)
    labels = list(frames.labels_of(y, len(rows)))
    further: list[dict[str, object]] = [dict(kwargs) for _ in rows]
    weights = None if w is None else weights_of(w, len(rows)).tolist()
    for name, values in (("w", weights), ("given", given)):
        for own, value in zip(further, values, strict=True) if values is not None else ():
            own[name] = value
    for x, label, own in zip(rows, labels, further, strict=True):
        model.learn_one(x, label, **own)
