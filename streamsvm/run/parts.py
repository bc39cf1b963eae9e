"""The scaler and the learner inside a model, and checks of the target against the learner."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from river import compose

from streamsvm.errors import LabelError
from streamsvm.labels.class_labels import plain
from streamsvm.labels.label_column import MISSING, LabelColumn
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files.json_values import as_json
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.bad_events import BadEvents

_LEAST_LABELS, _MOST_ERRORS = 20, 0.1


def parts_of(model: Any) -> tuple[StandardScaler | None, Learner | None]:
    """Return the scaler and the learner of a model that learns batches without dicts.

    Parameters
    ----------
    model
        A learner of this package, a pipeline of `StandardScaler` and one, or any other model.

    Returns
    -------
    tuple[StandardScaler | None, Learner | None]
        The scaler (None: there is none) and the learner; (None, None) for any other model.

    """
    steps = list(model.steps.values()) if isinstance(model, compose.Pipeline) else [model]
    if len(steps) == 1 and isinstance(steps[0], Learner):
        return None, steps[0]
    if len(steps) == 2 and type(steps[0]) is StandardScaler and isinstance(steps[1], Learner):
        return steps[0], steps[1]
    return None, None


def check_target(
    labels: LabelColumn, learner: Learner | None, may_have_errors: bool = False
) -> None:
    """Refuse a target of more classes than the learner takes.

    Parameters
    ----------
    labels
        The labels of the first rows.
    learner
        The learner; None: nothing is checked.
    may_have_errors
        Single labels may be wrong, as anybody may write to a topic: refuse only if further classes
        are more than a tenth of at least 20 labels.

    Raises
    ------
    LabelError
        The labels have more than two classes, and the learner takes two.

    """
    classes = [label for label, _ in labels.present()]
    if may_have_errors and not _have_more_classes(labels):
        return
    most = None if learner is None else learner.most_classes
    if most is not None and len(classes) > most:
        shown = ", ".join(repr(y) for y in classes[:5]) + (", ..." if len(classes) > 5 else "")
        raise LabelError(
            f"the target has {len(classes)} classes in its first {len(labels)} rows ({shown}): "
            f"{type(learner).__name__} learns {most}; use LaRankClassifier (--learner larank), or "
            "name one of them with positive= (--positive) to learn it against the rest"
        )


def _have_more_classes(labels: LabelColumn) -> bool:
    """Tell whether labels beyond the two most frequent ones are too many to be errors."""
    counts = np.sort(np.bincount(labels.codes[labels.codes != MISSING]))
    n = int(counts.sum())
    return n >= _LEAST_LABELS and int(counts[:-2].sum()) > _MOST_ERRORS * n


def check_can_be_saved(labels: LabelColumn) -> None:
    """Refuse labels that a model file cannot hold.

    Parameters
    ----------
    labels
        The labels of the first rows.

    Raises
    ------
    ModelFileError
        A label is no string, number or boolean.

    """
    for label, _ in labels.present():
        as_json(label, "the label")


def event_of(batch: Any, i: int) -> Any:
    """Return row i of a batch as an event.

    Parameters
    ----------
    batch
        A batch of a source.
    i
        The row, from 0.

    Returns
    -------
    Event
        An event with `x`, `y` and `position`.

    """
    return next(iter(batch.slice(i, 1).events()))


def check_classes(n_rows: int, seen: Counter[Any], bad: BadEvents) -> None:
    """Refuse a stream whose labels had fewer than two classes.

    Parameters
    ----------
    n_rows
        How many rows were read.
    seen
        How often each label was learnt.
    bad
        The rows that could not be used.

    Raises
    ------
    LabelError
        There were no rows, none that could be used, or fewer than two classes.

    """
    if n_rows == 0:
        raise LabelError("there are no rows to learn from")
    if not seen and bad.total:
        raise LabelError(f"none of {n_rows:,} rows could be learnt: {bad.summary}")
    if len(seen) < 2:
        only = ", ".join(repr(plain(y)) for y in seen) or "none at all"
        refused = f"; {bad.total:,} rows could not be used: {bad.summary}" if bad.total else ""
        raise LabelError(
            f"the target has one value only ({only}) in {n_rows} rows: "
            f"a classifier needs two classes{refused}"
        )
