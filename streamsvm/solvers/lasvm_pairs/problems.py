"""The binary problems of LASVM for several classes: their members, scalars and cached kernel rows.

All problems keep their members in common arrays, in which each has a segment of `room` entries, and
their cached kernel rows in one array. Only NumPy works on all problems at once; compiled code works
on one, through the view that `state.problem` returns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner, compiled_within
from streamsvm.solvers.lasvm.state import INFO
from streamsvm.support.calibration import new_calibration
from streamsvm.support.kernel_rows.row_cache import NONE as NONE
from streamsvm.support.kernel_rows.row_cache import RowCache

SEGMENT = np.dtype(
    [
        ("positive", np.int64),  # class of the members with y = +1
        ("negative", np.int64),  # class of those with y = -1, or REST
        ("start", np.int64),  # first entry of its segment
        ("room", np.int64),  # length of its segment, a multiple of 32
        ("first_line", np.int64),  # its first line in the arrays of lines, where two heads follow
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
    older: np.ndarray  # int32 (lines,)
    newer: np.ndarray  # int32 (lines,)
    trial: np.ndarray  # int64 (lines,)
    counts: np.ndarray  # int64 (4,)
    cache_state: np.ndarray  # int64 (problems, 4)
    feature_row: np.ndarray  # float32 (1, features) scratch: see `RowCache.row`
    row: np.ndarray  # float32 (largest room,) scratch: the kernel values of an example
    margins: np.ndarray  # float64 (problems,) scratch: those of one row
    lanes: np.ndarray  # scratch of `lasvm.extremes`
    groups: np.ndarray  # scratch of `lasvm.extremes`


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


@compiled_inner
def has_few_lines(problems):
    """Tell whether there is no room for the kernel rows of all members."""
    n_lines, n = 0, 0
    for p in range(problems.table.size):
        n_lines += problems.segments[p].n_lines
        n += problems.table[p].n
    return n_lines < n


MEMBERS = ("slot", "entered", "weight", "alpha", "gradient", "lower", "upper", "y", "diagonal")
"""The arrays with an entry for each member."""

LINES = ("length", "slot_of", "older", "newer", "trial")
"""The arrays with an entry for each line, and for the two heads of each problem."""

SCRATCH = ("feature_row", "row", "margins", "lanes", "groups")


def none(n_classes: int, n_features: int) -> Problems:
    """Return no problems yet, with room for so many classes."""
    table: Any = np.zeros(0, INFO).view(np.recarray)
    segments: Any = np.zeros(0, SEGMENT).view(np.recarray)
    doubles, singles, long, short = (
        np.zeros(0, kind) for kind in (np.float64, np.float32, np.int64, np.int32)
    )
    members = dict.fromkeys(MEMBERS, doubles) | {"slot": long, "entered": long, "diagonal": singles}
    lines = dict.fromkeys(LINES, short) | {"length": long, "trial": long}
    return Problems(
        table=table, segments=segments, problem_of=np.full((n_classes, n_classes), NONE, np.int32),
        calibration=np.zeros((0, 5)), **members, line_of=short, values=singles, **lines,
        counts=np.zeros(4, np.int64), cache_state=np.zeros((0, 4), np.int64),
        feature_row=np.zeros((1, max(1, n_features)), np.float32), row=singles, margins=doubles,
        lanes=np.zeros((2, 16)), groups=np.zeros((2, 16), np.int64),
    )  # fmt: skip


def with_problems(old: Problems, sides: list[tuple[int, int]], n_classes: int) -> Problems:
    """Return the same problems and further ones, without members and without a segment yet.

    `sides` are the positive and the negative class of each further problem, n_classes how many
    classes to have room for.
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
    return old._replace(
        table=table,
        segments=segments,
        problem_of=problem_of,
        calibration=calibration,
        cache_state=np.concatenate([old.cache_state, np.zeros((more, 4), np.int64)]),
        margins=np.zeros(n + more),
    )


def members_of(problems: Problems) -> np.ndarray:
    """Return the entries of all members, int64, problem after problem."""
    n = problems.table["n"]
    within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return np.repeat(problems.segments["start"], n) + within


@compiled_inner
def cache_of(problems, p):
    """Return the row cache of a problem, a view of the common arrays."""
    of, own = problems, problems.segments[p]
    first, stop = own.first_line, own.first_line + own.n_lines
    values = of.values[own.first_value : own.first_value + own.n_lines * own.room]
    return RowCache(
        values.reshape(own.n_lines, own.room), of.length[first:stop],
        of.line_of[own.start : own.start + own.room], of.slot_of[first:stop],
        of.older[first : stop + 2], of.newer[first : stop + 2],
        of.trial[first:stop], of.feature_row, of.counts, of.cache_state[p],
    )  # fmt: skip
