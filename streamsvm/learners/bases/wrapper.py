"""What wrappers of a model share: they predict what it predicts, unless they say otherwise."""

from __future__ import annotations

from typing import Any

from river import base

from streamsvm.learners.bases.row_events import events_of, learn_events


class ModelWrapper(base.Wrapper):  # type: ignore[misc]
    """A wrapper of `model`, which predicts; learners of events define `learn_one`."""

    model: Any

    @property
    def _wrapped_model(self) -> Any:
        """The model that predicts."""
        return self.model

    @property
    def _names_rows(self) -> Any:
        """The model whose schema names the columns of batches."""
        return self.model

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
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

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
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
        found: dict[Any, float] = self.model.predict_proba_one(x, **kwargs)
        return found

    # Batches

    def learn_many(self, X: Any, y: Any, w: Any = None, **kwargs: Any) -> None:
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
