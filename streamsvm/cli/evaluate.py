"""The evaluation of a trained model on a file: predictions without learning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from connectors import Source
from streamsvm.features import frames
from streamsvm.features.matrices import Matrix, SparseMatrix, are_usable, take
from streamsvm.run.parts import parts_of
from streamsvm.support.rows import LARGEST


def margins(model: Any, source: Source) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Yield the margins of each batch of a source.

    Parameters
    ----------
    model
        A model that `parts_of` finds a learner in.
    source
        The rows.

    Yields
    ------
    tuple[Batch, np.ndarray, np.ndarray]
        The batch; bool, which of its rows are finite; and their margins, NaN in the other rows.

    """
    scaler, learner = parts_of(model)
    assert learner is not None
    for batch in source.batches():
        matrix = learner.matrix_of(batch.features)
        if not matrix.names and not isinstance(matrix, SparseMatrix):
            matrix = Matrix([], np.zeros((len(batch), 0)), None)
        usable = are_usable(matrix, LARGEST)
        kept = np.flatnonzero(usable)
        if len(kept) < len(usable):
            matrix = take(matrix, kept)
        if scaler is not None:
            matrix = scaler.transform_matrix(matrix)
        known = learner.margins_many(matrix)
        values = np.full((len(usable), *known.shape[1:]), np.nan)
        values[kept] = known
        yield batch, usable, values


def test_error(model: Any, source: Source, positive: str | None) -> tuple[float, int]:
    """Return the share of wrong predictions and the number of rows with a label.

    Parameters
    ----------
    model
        A model that `parts_of` finds a learner in.
    source
        The rows.
    positive
        A label, as text: it counts as True, all others as False.

    Returns
    -------
    tuple[float, int]
        The share (NaN without labelled rows) and the number of rows.

    """
    _, learner = parts_of(model)
    assert learner is not None
    wrong = rows = 0
    for batch, usable, values in margins(model, source):
        rows += len(batch.rejects)
        wrong += len(batch.rejects)
        labels = frames.labels_of(batch.labels, len(batch))
        for y, is_usable, margin in zip(labels, usable, values.tolist(), strict=True):
            if y is None:
                continue
            truth = y if positive is None else str(y) == positive
            rows += 1
            # A row that cannot be predicted counts as wrong.
            wrong += not is_usable or learner.label_of(margin) != truth
    return (wrong / rows if rows else float("nan")), rows
