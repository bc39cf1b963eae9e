"""Learning with a selection: rows become candidates, and those chosen are learnt one by one.

The learner learns the chosen examples as if it had been given nothing else. Callers hold its lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from streamsvm.features.schema import Schema
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.models.model import Model
from streamsvm.selection.candidates import FACTS, Candidates
from streamsvm.selection.strategies import Counts
from streamsvm.support.rows import cut, joined

LearnOne = Callable[[LabelledRows], LabelColumn]
"""Learns one checked row without a selection; returns what was predicted for it."""


class Choosing(Protocol):
    """What is asked of the learner, whose parameter `selection` chooses."""

    targets: Targets
    schema: Schema
    model: Model

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""

    @property
    def last_number(self) -> int:
        """The number from which examples that come without ids are counted on."""


_WAITS, _LEARNT, _PREDICTED = range(3)
"""What is done with a row: it becomes a candidate, is learnt at once, or only predicted."""


def learn(
    learner: Choosing,
    candidates: Candidates,
    rows: LabelledRows,
    late: LateRows | None,
    learn_one: LearnOne,
) -> LabelColumn:
    """Take n checked rows for candidates; return what was predicted for each when it came.

    Their numbers are ids, or 0. Rows of weight 0, and the first ones of each class, are learnt at
    once; rows that `late` says are only predicted, and those whose id came before, are predicted.
    """
    n, at = len(rows.labels), 0
    predicted: list[LabelColumn] = []
    classes, kinds = _kinds(learner, candidates, rows, late)
    while at < n:
        kind, stop = kinds[at], n
        if kind == _LEARNT:
            stop = at + 1
        elif kind == _WAITS:
            selection = candidates.selection
            most = min(selection.until(candidates.counts), selection.candidates)
            stop = min(n, at + most)
        others = np.flatnonzero(kinds[at:stop] != kind)
        part = rows.part(at, at + int(others[0]) if others.size else stop)
        if kind == _LEARNT:
            candidates.n_seen += 1
            column = _learn_chosen(learner, candidates, part, learn_one)
        elif kind == _PREDICTED:
            column = learner.targets.labels_of(learner.model.margins_of(part.x))
        else:
            column = _arrive(learner, candidates, part, classes[at:stop], learn_one)
        if late is not None:
            late.note(at, column)
        predicted.append(column)
        is_known = classes[at] >= 0
        at += len(column)
        if kind == _LEARNT and (part.w[0] > 0.0 or not is_known):
            # A class may be new, or have its first examples.
            classes, kinds = _kinds(learner, candidates, rows, late)
        elif candidates.last_id and candidates.counts.n_since == 0:
            kinds[rows.numbers == candidates.last_id] = _PREDICTED
    return LabelColumn.joined(predicted)


def _kinds(
    learner: Choosing, candidates: Candidates, rows: LabelledRows, late: LateRows | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the class of each row, -1 of one that the learner does not know, and its kind."""
    place_of = {label: i for i, label in enumerate(learner.targets.labels.seen)}
    classes = rows.labels.numbers(lambda label: place_of.get(label, -1)).astype(np.int64)
    is_seed = np.array([candidates.is_seed(c) for c in range(len(place_of))] + [True])
    kinds = np.where(is_seed[classes] | (rows.w == 0.0), _LEARNT, _WAITS)
    kinds[~candidates.are_new(rows.numbers)] = _PREDICTED
    if late is not None:
        kinds[~late.is_learnt] = _PREDICTED
    return classes, kinds


def _learn_chosen(
    learner: Choosing,
    candidates: Candidates,
    row: LabelledRows,
    learn_one: LearnOne,
    place: int | None = None,
) -> LabelColumn:
    """Learn one row, whose number is its id or 0; return what was predicted for it.

    `place` is that of the candidate that it was.
    """
    number, n = int(row.numbers[0]), learner.n_examples
    numbers = row.numbers if number else np.array([learner.last_number + 1])
    try:
        return learn_one(row._replace(numbers=numbers))
    finally:
        # After an interruption, too, it is either learnt or waits.
        if learner.n_examples > n:
            if row.w[0] > 0.0:
                candidates.note_taken(learner.targets.labels.seen.index(row.labels[0]), number)
            if place is not None and not number:
                candidates.remove(place)


def _arrive(
    learner: Choosing,
    candidates: Candidates,
    rows: LabelledRows,
    classes: np.ndarray,
    learn_one: LearnOne,
) -> LabelColumn:
    """Let rows come until the next choice; return what was predicted for those that came."""
    margins, values = learner.model.margins_of_arrivals(candidates, rows.x)
    targets, selection = learner.targets, candidates.selection
    distances, delta = targets.outputs.distances(margins), learner.model.delta
    counts = candidates.counts
    n, near, is_due = selection.arrivals(counts, distances, delta)
    facts = np.empty(n, FACTS)
    facts["class"], facts["weight"], facts["id"] = classes[:n], rows.w[:n], rows.numbers[:n]
    facts["diagonal"] = rows.diagonal[:n]
    facts["arrived"] = candidates.n_seen + np.arange(1, n + 1)
    candidates.n_seen += n
    candidates.add(cut(rows.x, 0, n), facts, values[:n])
    candidates.counts = Counts(counts.n_came + n, counts.n_since + n, near)
    column: LabelColumn = targets.labels_of(margins[:n])
    if is_due:
        candidates.counts = Counts(counts.n_came + n)
        _learn_best(learner, candidates, learn_one)
    return column


def _learn_best(learner: Choosing, candidates: Candidates, learn_one: LearnOne) -> None:
    """Learn the candidate that the selection prefers."""
    targets, facts = learner.targets, candidates.facts
    seen = targets.labels.seen
    margins = learner.model.margins_of_waiting(candidates, len(learner.schema))
    if candidates.selection.uses_labels:
        distances = targets.outputs.correctness(facts["class"], margins)
    else:
        distances = targets.outputs.distances(margins)
    # In the order of arrival, on which the places do not depend alone.
    order = facts["arrived"].argsort()
    ranks = candidates.selection.ranks(distances[order], candidates.draw)
    place = int(order[ranks.argmin()])
    x, fact = candidates.get(place)
    label = LabelColumn(np.zeros(1, np.int64), [seen[fact["class"]]])
    numbers, diagonal = np.array([fact["id"]]), np.array([fact["diagonal"]])
    x, weight = joined([x], len(learner.schema)), np.array([fact["weight"]])
    row = LabelledRows(x, label, weight, numbers, diagonal)
    _learn_chosen(learner, candidates, row, learn_one, place)
