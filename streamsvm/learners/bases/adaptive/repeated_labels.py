"""Labels that repeat: what an `AdaptiveSVMClassifier` knows of them, with its scores and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases.adaptive.several_models import SeveralModels
from streamsvm.solvers.adaptive import last_label
from streamsvm.support.rows import SparseRows


def offsets_for(learner: SeveralModels, labels: Any) -> np.ndarray:
    """Return what a learner is to add to the scores of the next event, for labels."""
    offsets = np.zeros(1 if len(labels.seen) < 3 else len(labels.seen))
    last_label.write_offsets(learner.state.repeats, offsets)
    return offsets


def corrected(
    learner: SeveralModels, margins: np.ndarray, y: np.ndarray, is_example: np.ndarray
) -> np.ndarray:
    """Return margins with what the last label adds, and learn the labels.

    `margins`, float64 (n,) or (n, classes), are those of the model in use; `y`, float64 (n,), are
    numbers of classes. `is_example`, bool (n,), is False for rows that are only predicted:
    what is added would be of an older label. The caller holds the learner's lock.
    """
    if not learner.last_label:
        return margins
    scores, offsets = margins.reshape(len(y), -1), learner.offsets
    out = np.empty_like(scores)
    classes = y.astype(np.int64)
    last_label.correct(learner.state.repeats, scores, classes, is_example, offsets, out)
    return out.reshape(margins.shape)


def note_learnt(learner: SeveralModels, rows: LabelledRows) -> None:
    """Note that rows are learnt, as an `EventPath` does of one: it may be that of an event."""
    asked, x = learner.state.asked, rows.x
    if len(rows.y) > 1 or not rows.numbers[0]:
        asked[[last_label.N_PREDICTED, last_label.LAST_ROW]] = 0
    elif isinstance(x, SparseRows):
        n = len(x.values)
        last_label.note_learnt(asked, last_label.digest(x.columns, x.values, n, True))
    else:
        values, columns = np.ascontiguousarray(x[0], np.float32), np.zeros(1, np.int32)
        last_label.note_learnt(asked, last_label.digest(columns, values, len(values), False))
