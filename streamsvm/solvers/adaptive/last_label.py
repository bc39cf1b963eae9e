"""Predict the last label once more, where labels repeat more than features tell.

Of an example let y' = 1 if its label is the last one, that of the example before, and -1 if not;
and f the score of the last label less the largest other one. Then a and b of

    P(y' = 1) = 1 / (1 + exp(-(a f + b)))

are learnt online, as for probabilities (Platt scaling), and the more probable is predicted if b / a
is added to the score of the last label. This is done from when it errs less of late until it does
not: of both predictions the share of errors is kept, as of the models (see `step`). Labels repeat
in examples that are sorted by class, too, which says nothing of those to come: so labels must have
come back `FEWEST` times before.

Zliobaite, Bifet, Read, Pfahringer, Holmes, Evaluation methods and decision theory for
classification of streaming data with temporal dependence, Machine Learning 98 (2015).
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.support.assigning import assign
from streamsvm.support.calibration import label_index, new_calibration, update_one

WITHOUT, WITH, LAST, IN_USE, N_CHANGES = range(5, 10)
N_REPEATS = 10
"""Entries of `repeats`, float64 (10,), after the five of the calibration of y': the shares of
errors without and with the addition; 1 + the index of the last label, 0: none; 1 if it is added;
how often the label changed."""

N_PREDICTED, IS_LATE, LAST_ROW = range(3)
N_ASKED = 3
"""Entries of `asked`, int64 (3,): how many rows were predicted since the last example; 1 if that
was another one than the row that was predicted last, as labels come late; the `digest` of that."""

FADE = 0.997
LEAD = 0.01
FEWEST = 5
LARGEST = 4.0
"""The largest number that is added or subtracted: margins are hardly larger."""


def check(repeats: np.ndarray) -> None:
    """Raise ValueError if `repeats` from a file cannot be: a curvature that is not positive."""
    slope, _, a, b, d = repeats[:5]
    if repeats[:5].any() and not (slope > 0.0 and a > 0.0 and d > 0.0 and a * d > b * b):
        raise ValueError("what was learnt of labels that repeat is no calibration")


def stop(repeats: np.ndarray, offsets: np.ndarray) -> None:
    """Add nothing, until labels have been seen to repeat again."""
    repeats[[WITHOUT, WITH, LAST, IN_USE, N_CHANGES]] = 0.0
    offsets[:] = 0.0


@compiled
def digest(columns, values, n, is_sparse):
    """Return a number that tells a row from others: of its nonzero values and their columns.

    The row is float32 (>= n,), the columns are int32 (>= n,); those of a dense row are not read.
    """
    bits, found = values[:n].view(np.int32), np.int64(0)
    for t in range(n):
        if values[t] != 0.0:
            column = np.int64(columns[t]) if is_sparse else np.int64(t)
            found = (_FACTOR * found + column) % _PRIME
            # Not below 0.
            found = (_FACTOR * found + np.int64(bits[t]) + 2**31) % _PRIME
    return found


@compiled_inner
def is_next(asked, row):
    """Note that a row, given by its digest, is predicted; tell whether an example is next to come.

    It is not if other rows were predicted, too, or labels come late.
    """
    if asked[N_PREDICTED] == 0 or asked[LAST_ROW] != row:
        asked[N_PREDICTED] += 1
    asked[LAST_ROW] = row
    return asked[N_PREDICTED] == 1 and asked[IS_LATE] == 0


@compiled
def note_learnt(asked, row):
    """Note that a row, given by its digest, is learnt."""
    if asked[N_PREDICTED] > 0:
        asked[IS_LATE] = np.int64(asked[LAST_ROW] != row)
    asked[N_PREDICTED] = asked[LAST_ROW] = 0


@compiled_inner
def offset_of(repeats):
    """Return what is added to the score of the last label, if it is: b / a."""
    if repeats[0] <= 0.0:
        return 0.0
    return min(LARGEST, max(-LARGEST, repeats[1] / repeats[0]))


@compiled
def write_offsets(repeats, offsets):
    """Write what is added to the scores of the next example: float64 (classes,), or (1,) of two."""
    offsets[:] = 0.0
    last = np.int64(repeats[LAST]) - 1
    if repeats[IN_USE] == 0.0 or last < 0:
        return
    if offsets.size == 1:
        offsets[0] = offset_of(repeats) if last == 1 else -offset_of(repeats)
    elif last < offsets.size:
        offsets[last] = offset_of(repeats)


@compiled_inner
def _lead(scores, label):
    """Return the score of a label less the largest other one."""
    if scores.size == 1:
        return scores[0] if label == 1 else -scores[0]
    most = -np.inf
    for c in range(scores.size):
        if c != label:
            most = max(most, scores[c])
    return scores[label] - most


@compiled_inner
def _second(scores, label):
    """Return the index of the label that scores predict if it is not this one."""
    if scores.size == 1:
        return 1 - label
    best = 1 if label == 0 else 0
    for c in range(scores.size):
        if c != label and scores[c] > scores[best]:
            best = c
    return best


@compiled_inner
def learn_label(repeats, scores, label):
    """Learn from the index of an example's label, and the scores of a model before it learnt it.

    `scores` are float64 (classes,), or a margin (1,); `repeats` is updated.
    """
    last = np.int64(repeats[LAST]) - 1
    if 0 <= last < max(2, scores.size):
        if repeats[2] == 0.0:
            assign(repeats, _FIRST)
        f = _lead(scores, last)
        chosen = last if f + offset_of(repeats) > 0.0 else _second(scores, last)
        repeats[WITHOUT] *= FADE
        repeats[WITH] *= FADE
        if label_index(scores) != label:
            repeats[WITHOUT] += 1.0 - FADE
        if chosen != label:
            repeats[WITH] += 1.0 - FADE
        update_one(repeats[:5], f, 1.0 if label == last else -1.0)
        repeats[N_CHANGES] += label != last
        gain = repeats[WITHOUT] - repeats[WITH]
        # At most so many changes were to a label that was new.
        n_new = max(2, scores.size) - 1
        if gain > LEAD and repeats[N_CHANGES] >= FEWEST + n_new:
            repeats[IN_USE] = 1.0
        elif gain < 0.0:
            repeats[IN_USE] = 0.0
    repeats[LAST] = label + 1.0


@compiled
def correct(repeats, scores, labels, is_example, offsets, out):
    """Write scores with what is added to them if labels are known at once; learn from the labels.

    `scores` and `out`, written, are float64 (n, classes) or (n, 1), `labels` int64 (n,) indices,
    `is_example` bool (n,): whether a label is known, and learnt. `repeats` and `offsets` are
    updated.
    """
    for r in range(labels.size):
        for c in range(offsets.size):
            out[r, c] = scores[r, c] + (offsets[c] if is_example[r] else 0.0)
        if is_example[r]:
            learn_label(repeats, scores[r], labels[r])
            write_offsets(repeats, offsets)


_FIRST = new_calibration()
_PRIME, _FACTOR = 2**31 - 1, 65599
