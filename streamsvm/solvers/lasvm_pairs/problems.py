"""The binary problems of LASVM for several classes: their members, scalars and cached kernel rows.

All problems keep their members in common arrays, in which each has a segment of `room` entries, and
their cached kernel rows in one array. Only NumPy works on all problems at once; compiled code works
on one, through the view that `state.problem` returns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_within
from streamsvm.solvers.lasvm.state import INFO
from streamsvm.support.calibration import new_calibration
from streamsvm.support.row_cache import MIN_LINES, NONE
from streamsvm.support.tiles import PANEL

SEGMENT = np.dtype(
    [
        ("positive", np.int64),  # class of the members with y = +1
        ("negative", np.int64),  # class of those with y = -1, or REST
        ("start", np.int64),  # first entry of its segment
        ("room", np.int64),  # length of its segment, a multiple of 32
        ("first_line", np.int64),  # its first line in the arrays of lines
        ("n_lines", np.int64),  # its number of lines
        ("first_value", np.int64),  # where the values of its lines begin
    ]
)
"""The classes of one problem, and its places in the common arrays."""

REST = -1
"""Stands for all classes but the positive one."""


class Problems(NamedTuple):
    """The binary problems; entries between a problem's members and its room are 0."""

    table: Any  # record array (problems,) of the INFO of a LASVM of two classes
    segments: Any  # record array (problems,) of SEGMENT
    problem_of: np.ndarray  # int32 (classes, classes) the problem of two classes, or -1
    calibration: np.ndarray  # float64 (problems, 5), see `support.calibration`
    slot: np.ndarray  # int64 (entries,) the slot of a member in the store
    entered: np.ndarray  # int64 (entries,) see `MemberStore`
    weight: np.ndarray  # float64 (entries,)
    alpha: np.ndarray  # float64 (entries,) these as in `LASVMState`
    gradient: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    y: np.ndarray
    diagonal: np.ndarray  # float32 (entries,)
    line_of: np.ndarray  # int32 (entries,) these as in `RowCache`, with one segment a problem
    values: np.ndarray  # float32 (values,)
    length: np.ndarray  # int64 (lines + problems,)
    slot_of: np.ndarray  # int32 (lines + problems,)
    older: np.ndarray  # int32 (lines + problems,)
    newer: np.ndarray  # int32 (lines + problems,)
    counts: np.ndarray  # int64 (4,)
    feature_row: np.ndarray  # float32 (1, features) scratch: see `RowCache.row`
    row: np.ndarray  # float32 (largest room,) scratch: the kernel values of an example
    margins: np.ndarray  # float64 (problems,) scratch: those of one row
    lanes: np.ndarray  # scratch of `extreme_lanes`
    groups: np.ndarray  # scratch of `extreme_lanes`


@compiled_within
def bias_of(scalars):
    """Return the bias of a problem, as `bias` does, given its scalars."""
    if scalars.i >= 0 and scalars.j >= 0:
        return 0.5 * (scalars.g_max + scalars.g_min)
    if scalars.i >= 0:
        return scalars.g_max
    return scalars.g_min if scalars.j >= 0 else 0.0


MEMBERS = ("slot", "entered", "weight", "alpha", "gradient", "lower", "upper", "y", "diagonal")
"""The arrays with an entry for each member."""

SCRATCH = ("feature_row", "row", "margins", "lanes", "groups")


def none(n_classes: int, n_features: int) -> Problems:
    """Return no problems yet, with room for so many classes."""
    table: Any = np.zeros(0, INFO).view(np.recarray)
    segments: Any = np.zeros(0, SEGMENT).view(np.recarray)
    arrays = {name: np.zeros(0) for name in MEMBERS}
    arrays["slot"], arrays["entered"] = np.zeros(0, np.int64), np.zeros(0, np.int64)
    arrays["diagonal"] = np.zeros(0, np.float32)
    empty = Problems(
        table=table,
        segments=segments,
        problem_of=np.full((n_classes, n_classes), NONE, np.int32),
        calibration=np.zeros((0, 5)),
        **arrays,
        line_of=np.zeros(0, np.int32),
        values=np.zeros(0, np.float32),
        length=np.zeros(0, np.int64),
        slot_of=np.zeros(0, np.int32),
        older=np.zeros(0, np.int32),
        newer=np.zeros(0, np.int32),
        counts=np.zeros(4, np.int64),
        feature_row=np.zeros((1, max(1, n_features)), np.float32),
        row=np.zeros(0, np.float32),
        margins=np.zeros(0),
        lanes=np.zeros((2, 16)),
        groups=np.zeros((2, 16), np.int64),
    )
    return empty


def with_problems(old: Problems, sides: list[tuple[int, int]], n_classes: int) -> Problems:
    """Return the same problems and further ones, without members and without a segment yet.

    Parameters
    ----------
    old
        The problems so far, which are not changed.
    sides
        The positive and the negative class of each further problem.
    n_classes
        The number of classes to have room for.

    """
    n, more = len(old.table), len(sides)
    table: Any = np.zeros(n + more, INFO).view(np.recarray)
    segments: Any = np.zeros(n + more, SEGMENT).view(np.recarray)
    table[:n], segments[:n] = old.table, old.segments
    table["i"][n:] = table["j"][n:] = NONE
    table["g_max"][n:], table["g_min"][n:] = -np.inf, np.inf
    problem_of = np.full((n_classes, n_classes), NONE, np.int32)
    k = len(old.problem_of)
    problem_of[:k, :k] = old.problem_of
    for p, (positive, negative) in enumerate(sides, n):
        segments[p].positive, segments[p].negative = positive, negative
        if negative == REST:
            problem_of[positive, positive] = p
        else:
            problem_of[positive, negative] = problem_of[negative, positive] = p
    calibration = np.concatenate([old.calibration, np.tile(new_calibration(), (more, 1))])
    margins = np.zeros(n + more)
    return old._replace(
        table=table,
        segments=segments,
        problem_of=problem_of,
        calibration=calibration,
        margins=margins,
    )


def members_of(problems: Problems) -> np.ndarray:
    """Return the entries of all members, int64, problem after problem."""
    n = problems.table["n"]
    within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return np.repeat(problems.segments["start"], n) + within


def rooms_for(problems: Problems) -> np.ndarray:
    """Return larger rooms for all problems whose segments are more than two thirds full.

    They grow by a half: kernel rows take the square of the room, and all of them should fit.
    """
    n, room = problems.table["n"], problems.segments["room"]
    larger = -(-(n + n // 2) // PANEL) * PANEL
    return np.where(3 * n > 2 * room, np.maximum(larger, room + PANEL), np.maximum(room, PANEL))


def laid_out(old: Problems, room: np.ndarray, cache_bytes: int, n_features: int) -> Problems:
    """Return the same problems with other rooms, and with lines for the kernel rows of members.

    Parameters
    ----------
    old
        The problems, which are not changed.
    room
        int64 (problems,): multiples of 32, at least as large as the number of members.
    cache_bytes
        The memory for kernel rows; if not all fit, each problem gets its share of it.
    n_features
        The number of features that the store has room for.

    """
    segments = old.segments.copy()
    segments["room"], segments["start"] = room, np.cumsum(room) - room
    share = min(1.0, cache_bytes / max(1.0, 4.0 * float((room.astype(float) ** 2).sum())))
    n_lines = np.minimum(room, np.maximum(MIN_LINES, (share * room).astype(np.int64)))
    if cache_bytes < 0:
        n_lines[:] = 0
    size = n_lines * room
    segments["n_lines"], segments["first_value"] = n_lines, np.cumsum(size) - size
    segments["first_line"] = np.cumsum(n_lines + 1) - (n_lines + 1)
    total, n_chained = int(room.sum()), int((n_lines + 1).sum())
    new = old._replace(segments=segments)
    source, target = members_of(old), members_of(new)
    moved = {}
    for name in MEMBERS:
        array = getattr(old, name)
        moved[name] = np.zeros(total, array.dtype)
        moved[name][target] = array[source]
    chain = np.arange(n_chained, dtype=np.int64) - np.repeat(segments["first_line"], n_lines + 1)
    last = np.repeat(n_lines, n_lines + 1)
    new = new._replace(
        **moved,
        line_of=np.full(total, NONE, np.int32),
        values=np.zeros(int(size.sum()), np.float32),
        length=np.zeros(n_chained, np.int64),
        slot_of=np.full(n_chained, NONE, np.int32),
        older=np.where(chain == last, 0, chain + 1).astype(np.int32),
        newer=np.where(chain == 0, last, chain - 1).astype(np.int32),
        feature_row=np.zeros((1, max(1, n_features)), np.float32),
        row=np.zeros(int(room.max(initial=0)), np.float32),
    )
    _copy_lines(old, new)
    return new


@compiled
def _copy_lines(old, new):
    """Copy as many lines as there is room for, of the first members of each problem."""
    for p in range(old.table.size):
        before, now = old.segments[p], new.segments[p]
        line = 0
        for s in range(old.table[p].n):
            at = old.line_of[before.start + s] if old.line_of.size > 0 else NONE
            if at == NONE or line == now.n_lines:
                continue
            length = old.length[before.first_line + at]
            source, target = before.first_value + at * before.room, now.first_value
            target += line * now.room
            for t in range(length):
                new.values[target + t] = old.values[source + t]
            new.length[now.first_line + line] = length
            new.slot_of[now.first_line + line] = s
            new.line_of[now.start + s] = line
            line += 1
