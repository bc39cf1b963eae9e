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
from streamsvm.support.kernel_rows.row_cache import (
    AT_ONCE,
    AT_ONCE_BYTES,
    MIN_LINES,
    RowCache,
    take_line,
)
from streamsvm.support.kernel_rows.row_cache import (
    NONE as NONE,
)
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
    length: np.ndarray  # int64 (lines,)
    slot_of: np.ndarray  # int32 (lines,)
    older: np.ndarray  # int32 (lines + 2 problems,)
    newer: np.ndarray  # int32 (lines + 2 problems,)
    trial: np.ndarray  # int64 (lines,)
    counts: np.ndarray  # int64 (4,)
    cache_state: np.ndarray  # int64 (problems, 4)
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


@compiled_within
def n_turns(problems):
    """Return the number of values of `turn` that `problem_of_turn` takes."""
    return problems.problem_of.shape[0]


@compiled_within
def problem_of_turn(problems, y, turn):
    """Return a problem that learns examples of class y; NONE if there is none for this turn.

    One against one, it is that of the classes y and `turn`; one against the rest, that of `turn`.
    """
    if problems.segments[0].negative == REST:
        return np.int64(problems.problem_of[turn, turn])
    return np.int64(problems.problem_of[y, turn])


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
        trial=np.zeros(0, np.int64),
        counts=np.zeros(4, np.int64),
        cache_state=np.zeros((0, 4), np.int64),
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
    positive, negative = np.array(sides, np.int64).reshape(-1, 2).T
    segments["positive"][n:], segments["negative"][n:] = positive, negative
    # One against the rest, that of a class is on the diagonal.
    other = np.where(negative == REST, positive, negative)
    problem_of[positive, other] = problem_of[other, positive] = np.arange(n, n + more)
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
    """Return larger rooms for all problems whose segments are more than four fifths full.

    They grow to 1.6 times their members: kernel rows take the square of the room, and all should
    fit. More at once grow than need to, since each time all kernel rows are copied; but not so many
    that one event takes half a second.
    """
    n, room = problems.table["n"], problems.segments["room"]
    larger = -(-(8 * n // 5) // PANEL) * PANEL
    return np.where(5 * n > 4 * room, np.maximum(larger, room + PANEL), np.maximum(room, PANEL))


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
    segments["first_line"] = np.cumsum(n_lines) - n_lines
    new = old._replace(segments=segments)
    source, target = members_of(old), members_of(new)
    moved = {}
    for name in MEMBERS:
        array = getattr(old, name)
        moved[name] = np.zeros(int(room.sum()), array.dtype)
        moved[name][target] = array[source]
    new = new._replace(
        **moved,
        **_empty_lines(n_lines, room),
        feature_row=np.zeros((1, max(1, n_features)), np.float32),
        row=np.zeros(int(room.max(initial=0)), np.float32),
    )
    _copy_lines(old, new)
    return new


def _empty_lines(n_lines: np.ndarray, room: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of row caches without rows, as `row_cache.new_cache` makes them."""
    total = int(n_lines.sum())
    # The lines of a problem, and two heads.
    lists = n_lines + 2
    chain = np.arange(int(lists.sum())) - np.repeat(np.cumsum(lists) - lists, lists)
    state = np.zeros((len(n_lines), 4), np.int64)
    at_once = AT_ONCE_BYTES // max(1, 4 * int(room.sum()))
    state[:, AT_ONCE] = np.minimum(n_lines, np.maximum(MIN_LINES, at_once))
    # Where all rows fit, none is worth a trial: that of a new member has values for all others.
    state[n_lines == room, AT_ONCE] = 0
    return {
        "line_of": np.full(int(room.sum()), NONE, np.int32),
        "values": np.zeros(int((n_lines * room).sum()), np.float32),
        "length": np.zeros(total, np.int64),
        "slot_of": np.full(total, NONE, np.int32),
        "older": chain.astype(np.int32),
        "newer": chain.astype(np.int32),
        "trial": np.zeros(total, np.int64),
        "cache_state": state,
    }


@compiled
def cache_of(problems, p):
    """Return the row cache of a problem, a view of the common arrays."""
    of, own = problems, problems.segments[p]
    first, stop = own.first_line, own.first_line + own.n_lines
    values = of.values[own.first_value : own.first_value + own.n_lines * own.room]
    head = first + 2 * p
    return RowCache(
        values.reshape(own.n_lines, own.room), of.length[first:stop],
        of.line_of[own.start : own.start + own.room], of.slot_of[first:stop],
        of.older[head : head + own.n_lines + 2], of.newer[head : head + own.n_lines + 2],
        of.trial[first:stop], of.feature_row, of.counts, of.cache_state[p],
    )  # fmt: skip


@compiled
def _copy_lines(old, new):
    """Copy the admitted lines of each problem, the most recent ones if not all have room."""
    for p in range(old.table.size):
        if old.segments[p].n_lines == 0 or new.segments[p].n_lines == 0:
            continue
        before, now = cache_of(old, p), cache_of(new, p)
        head = before.length.size
        # From the oldest line on, so that the last is again the most recent one.
        line, n_left = np.int64(before.newer[head]), 0
        while line != head:
            n_left += before.slot_of[line] != NONE
            line = np.int64(before.newer[line])
        line = np.int64(before.newer[head])
        while line != head:
            slot = before.slot_of[line]
            if slot != NONE:
                if n_left <= now.length.size:
                    own, length = take_line(now, slot), before.length[line]
                    now.values[own, :length] = before.values[line, :length]
                    now.length[own] = length
                n_left -= 1
            line = np.int64(before.newer[line])
