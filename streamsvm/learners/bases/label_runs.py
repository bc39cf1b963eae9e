"""Learns a batch in runs: a run ends before the first example of a class that is new.

So each row is predicted with the classes known before it, as if the rows were learnt one by one.
The learner's monitor is told of each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm._compiling import working_time
from streamsvm._parameter_checks import numbers_of, weights_of
from streamsvm.features import batches, frames
from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.names import Name
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases import late_rows, selecting
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.monitor.learnt import Learnt
from streamsvm.support.locked import learning
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape

if TYPE_CHECKING:
    from streamsvm.learners.bases.learner import Learner

_PART = 1024
"""Number of sparse rows that are made dense at a time, to be predicted by a dense model."""


def read(learner: Learner, X: Any) -> tuple[Rows, Sequence[Name]]:
    """Return a batch to learn as rows, NaN where a value is missing, and the new features."""
    matrix = batches.matrix_of(X, learner.schema)
    if isinstance(matrix, SparseMatrix):
        learner.become_sparse()
    return batches.rows_of(learner.schema, matrix, learner.is_sparse)


def margins_many(learner: Learner, X: Any) -> np.ndarray:
    """Return the margins of the rows of a batch, as `Targets` takes them.

    As `decision_function_many`; several classes may have further columns.
    """
    with learner.lock:
        x = batches.known_rows(learner.schema, X, learner.is_sparse)
        n = shape(x)[0]
        if not learner.targets.labels.seen:
            return learner.targets.zeros(n)
        if learner.is_sparse or not isinstance(x, SparseRows):
            return learner.margins_of(x)
        # In parts: all rows, made dense, may not fit into memory.
        starts = range(0, n, _PART)
        parts = [learner.margins_of(dense(cut(x, i, min(i + _PART, n)))) for i in starts]
        return np.concatenate([learner.targets.zeros(0), *parts])


def last_number(learner: Learner) -> int:
    """The number from which examples that come without ids are counted on."""
    return learner.n_examples


@learning
def learn_batch(
    learner: Learner, X: Any, y: Any, w: Any = 1.0, ids: Any = None, late: LateRows | None = None
) -> LabelColumn:
    """Do what `predict_then_learn_many` does, with a column of labels as the result.

    The ids are not checked. If `late`, which tells what rows are only predicted, is given, `X` is a
    matrix of names.
    """
    if late is not None:
        if not learner.schema.buckets:
            X = late_rows.as_learnt(X, late.is_learnt, learner.schema.index)
        y = late.filled(LabelColumn.of(y), learner.targets.labels.seen)
    x, new = learner.read(X)
    labels: LabelColumn = learner.targets.labels.check(frames.labels_of(y, shape(x)[0]))
    weights, numbers = weights_of(w, len(labels)), numbers_of(ids, len(labels))
    if late is not None:
        weights = weights * late.is_learnt
        if learner.waiting is None:
            so_far = learner.last_number + np.cumsum(late.is_learnt)
            numbers = np.where(late.is_learnt, so_far, 0)
    if not len(labels):
        # An empty batch must not add its features to the schema.
        return labels
    schema = learner.schema
    is_learnt = True if late is None else late.is_learnt
    x, statistics = schema.missing.filled(x, [*schema.names, *new], is_learnt)
    diagonal = learner.diagonal_of(x)
    schema.extend(new)
    schema.missing.keep(statistics)
    return learn(learner, x, labels, weights, numbers, diagonal, late)


def learn(
    learner: Learner,
    x: Rows,
    labels: LabelColumn,
    w: np.ndarray,
    numbers: np.ndarray | None,
    diagonal: np.ndarray,
    late: LateRows | None = None,
) -> LabelColumn:
    """Learn n checked rows; return the label predicted for each row before it was learnt.

    The caller holds the learner's lock, and keeps other code from learning. `w`, `numbers` and
    `diagonal`, float64, int64 and float32 (n,), are example weights, example numbers, and k(x, x).
    Without numbers the examples are counted from the start of the stream. Rows that `late` says are
    only predicted have the number 0 and the weight 0.
    """
    if learner.event_path is not None:
        # This may be a signal handler, while an event is read.
        learner.event_path.invalidate()
    # Numbered when their classes are known.
    whole = LabelledRows(x, np.zeros(len(labels)), labels, w, np.zeros(0, np.int64), diagonal)
    if learner.waiting is not None:
        ids = np.zeros(len(labels), np.int64) if numbers is None else numbers
        chosen_of = whole._replace(numbers=ids)
        return selecting.learn(learner, learner.waiting, chosen_of, late, _learn_all)
    if numbers is None:
        numbers = learner.last_number + np.arange(1, len(labels) + 1)
    return _learn_all(learner, whole._replace(numbers=numbers), late)


def _learn_all(learner: Learner, whole: LabelledRows, late: LateRows | None = None) -> LabelColumn:
    """Learn all of some checked rows: see `learn`."""
    labels, numbers = whole.labels, whole.numbers
    runs, observer = learner.targets.runs(labels), learner.observer
    is_one = observer is None or observer.wanted() >= len(labels)
    if len(runs) == 1 and is_one and learner.targets.knows(labels[0]):
        return _learn_run(learner, whole, late=late)
    predicted: list[LabelColumn] = []
    for start, stop in _parts(learner, runs, numbers):
        # The first example of a new class is predicted with the classes before it.
        n_known, first = len(learner.targets.labels.seen), None
        if not learner.targets.knows(labels[start]):
            first = learner.predicted_before_class(cut(whole.x, start, start + 1))
        change = learner.add_class(labels[start])
        if change is not None and learner.observer is not None:
            learner.observer.turn_signs(change)
        known = n_known if n_known < len(learner.targets.labels.seen) else None
        column = _learn_run(learner, whole.part(start, stop), known, late, start, first)
        predicted.append(column)
    return LabelColumn.joined(predicted)


def _parts(
    learner: Learner, runs: list[tuple[int, int]], numbers: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Yield the runs, cut where the learner's monitor wants to be told of the examples."""
    for start, stop in runs:
        while learner.observer is not None and stop - start > learner.observer.wanted():
            cut_at = late_rows.row_after(numbers[:stop], start, learner.observer.wanted())
            if cut_at == stop:
                break
            yield start, cut_at
            start = cut_at
        yield start, stop


def _learn_run(
    learner: Learner,
    rows: LabelledRows,
    n_known: int | None = None,
    late: LateRows | None = None,
    start: int = 0,
    first: LabelColumn | None = None,
) -> LabelColumn:
    """Learn rows whose classes have been added; return the labels predicted before learning.

    The first row is predicted from the first `n_known` classes only; None: from all. It is row
    `start` of those that `late` is about. `first` is what was predicted for it already, if it was.
    """
    began = working_time()
    n, observer = learner.n_examples, learner.observer
    rows = rows.numbered_by(learner.targets)
    margins = learner.learn_rows(rows)
    predicted: LabelColumn = learner.targets.labels_of(margins, n_known)
    if first is not None:
        predicted = LabelColumn.joined([first, predicted[1:]])
    everything = predicted
    x, signs, labels, w, numbers, _ = rows
    if late is not None:
        earlier = late.note(start, predicted)
        is_learnt = numbers > 0
        x, kept = late_rows.rows_where(x, is_learnt), np.flatnonzero(is_learnt)
        signs, margins, w, numbers = signs[kept], margins[kept], w[kept], numbers[kept]
        labels, predicted = labels.take(kept), predicted.take(kept)
        if observer is not None and earlier:
            observer.expect(earlier)
    learner.n_learnt[0] = n + len(labels)
    if observer is not None and len(labels):
        guesses = predicted.tolist()
        of_labels = (learner.targets.judged(labels, guesses).tolist(), guesses)
        seconds = working_time() - began
        observer.learnt(Learnt(x, signs, *of_labels, margins, w, numbers, seconds))
    # After the observer, which computes probabilities with the calibration from before learning.
    if len(learner.targets.labels.seen) > 1:
        learner.targets.calibrate(margins, signs, labels)
    return everything
