"""Where the binary problems of LASVM for several classes are in their common arrays.

Each problem has a segment of them, with room for more members than it has. A problem that needs
more moves behind all others, where there is space for a while; then all are laid out anew.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.solvers.lasvm_pairs.problems import LINES, MEMBERS, NONE, REST, Problems, cache_of
from streamsvm.support.assigning import assign
from streamsvm.support.kernel_rows.row_cache import AT_ONCE, AT_ONCE_BYTES, MIN_LINES, take_line
from streamsvm.support.tiles import PANEL

_SPARE = 7.0
"""How much space there is for problems that grow, as a share of what all take: see `_array`."""

_LARGE = 1_000_000

_FLAGS = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
if sys.platform == "linux":
    # Most of it is never written: without this, Linux refuses what exceeds the memory now.
    _FLAGS |= getattr(mmap, "MAP_NORESERVE", 0x4000)

_FEW_BYTES = 16e6
"""Up to so many bytes of kernel rows, which take milliseconds to copy, all problems may grow at the
same time."""

_GROWTH, _SMALL_GROWTH = 1.6, 1.125
"""By which factor rooms grow: if all kernel rows fit into the cache, and if they do not."""


def rooms_for(problems: Problems, y: int, cache_bytes: float) -> np.ndarray:
    """Return rooms, larger for problems that are nearly full: those of class y, if all are large.

    Kernel rows take the square of the room. If all fit, rooms grow to 1.6 times the members, else
    to a ninth more, often: what they do not use is lost for rows. Large problems of other classes
    grow with later examples, so that no event has to wait for all. Small ones grow now: to move
    those of each class apart took a third of the time of learning the first 1,000 examples.
    """
    room = problems.segments["room"].copy()
    # One against the rest, all problems learn an example of class y.
    is_rest = problems.segments[0].negative == REST
    own = np.diag(problems.problem_of) if is_rest else problems.problem_of[y]
    own = np.arange(len(room)) if 4.0 * (room**2).sum() <= _FEW_BYTES else own[own != NONE]
    n, before = problems.table["n"][own], room[own]
    fits = _most_lines(_GROWTH * room, cache_bytes) == np.inf
    factor, full = (_GROWTH, 0.8) if fits else (_SMALL_GROWTH, 0.95)
    larger = np.maximum(-(-(factor * n) // PANEL).astype(np.int64) * PANEL, before + PANEL)
    room[own] = np.where(n >= full * before, larger, before)
    return room


def laid_out(
    old: Problems, room: np.ndarray, cache_bytes: float, n_features: int, spare: float = 0.0
) -> Problems:
    """Return the same problems with other rooms, and with lines for the kernel rows of members.

    `room`, int64 (problems,), are multiples of 32, at least as large as the number of members. If
    not all kernel rows fit into cache_bytes, large problems get as many lines each; below 0: none
    gets any. `spare` is how much space there is behind all segments, as a share of what they take:
    see `grown`.
    """
    segments = old.segments.copy()
    segments["room"] = room
    everyone = np.arange(len(room))
    n_lines = _n_lines(room, _most_lines(room, cache_bytes)) if cache_bytes >= 0 else 0 * room
    ends = _place(segments, everyone, [0, 0, 0], n_lines)
    if spare:
        # For the first members of each problem, too.
        least = PANEL * len(room), PANEL * PANEL * len(room), PANEL * len(room)
        ends = [int((1.0 + spare) * max(pair)) for pair in zip(ends, least, strict=True)]
    sizes = dict.fromkeys((*MEMBERS, "line_of"), ends[0]) | dict.fromkeys(LINES, ends[2])
    sizes["values"] = ends[1]
    new = old._replace(
        segments=segments,
        # What is not of a segment is not written, and nothing reads it.
        **{name: _array(size, getattr(old, name).dtype) for name, size in sizes.items()},
        cache_state=_cache_states(segments, everyone),
        feature_row=np.zeros((1, max(1, n_features)), np.float32),
        row=np.zeros(int(room.max(initial=0)), np.float32),
    )
    _move(old, new, everyone)
    return new


def _array(size: int, dtype: Any) -> np.ndarray:
    """Return an array, not initialised.

    The system provides the memory of a large one when it is first written, and gets it back when
    the array is freed: NumPy's would leave hundreds of megabytes in a heap that never shrinks.
    """
    n_bytes = size * dtype.itemsize
    if n_bytes < _LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return np.empty(size, dtype)
    try:
        memory = mmap.mmap(-1, n_bytes, flags=_FLAGS)
    except OSError as error:
        raise MemoryError(f"there is no room for {n_bytes / 1e6:,.0f} MB: {error}") from error
    return np.frombuffer(memory, dtype)


def _release(problems: Problems) -> None:
    """Give the system back the memory of kernel rows where problems were before they moved.

    Only when they grow again: before, an interruption may have left the state that has them there.
    """
    # An array of a buffer refers to it through a view.
    memory, segments = getattr(problems.values.base, "obj", None), problems.segments
    if not isinstance(memory, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    # Problems that begin have no place yet: theirs would be that of the first problem.
    segments = segments[segments["n_lines"] * segments["room"] > 0]
    segments = segments[np.argsort(segments["first_value"])]
    starts = 4 * segments["first_value"]
    stops = starts + 4 * segments["n_lines"] * segments["room"]
    page = mmap.PAGESIZE
    begins, ends = -(-np.append(0, stops[:-1]) // page) * page, starts // page * page
    for i in np.flatnonzero(ends - begins >= _LARGE).tolist():
        memory.madvise(mmap.MADV_DONTNEED, int(begins[i]), int(ends[i] - begins[i]))


def grown(old: Problems, room: np.ndarray, cache_bytes: int, n_features: int) -> Problems:
    """Return the same problems with larger rooms: see `laid_out` for the arguments.

    Those whose room changes move to the end of the arrays, if they are few and there is space: to
    copy all problems of hundreds of classes takes a tenth of a second. Else all are laid out anew.
    """
    _release(old)
    segments = old.segments.copy()
    before = segments["room"]
    moved = np.flatnonzero(room != before)
    if 2 * before[moved].sum() > before.sum():
        return laid_out(old, room, cache_bytes, n_features)
    sizes = segments["n_lines"] * before
    left = max(0.0, cache_bytes - 4.0 * float(sizes.sum() - sizes[moved].sum()))
    most = _most_lines(room, cache_bytes)
    n_lines = _n_lines(room[moved], min(most, _most_lines(room[moved], left)))
    if (4 * n_lines < _n_lines(room[moved], most)).any():
        # All get as many again, and a quarter is left for those that grow next.
        return laid_out(old, room, 0.75 * cache_bytes, n_features, _SPARE)
    segments["room"] = room
    ends = _place(segments, moved, ends_of(old.segments), n_lines)
    if any(end > size for end, size in zip(ends, _space(old), strict=True)):
        return laid_out(old, room, cache_bytes, n_features, _SPARE)
    cache_state = old.cache_state.copy()
    cache_state[moved] = _cache_states(segments, moved)
    row = np.zeros(int(room.max(initial=0)), np.float32)
    # The old segments are not overwritten: an interruption leaves the problems as they were.
    new = old._replace(segments=segments, cache_state=cache_state, row=row)
    _move(old, new, moved)
    return new


def moved_bytes(old: Problems | None, new: Problems) -> int:
    """Return the bytes of the segments that are elsewhere in the new arrays, or new."""
    segments = new.segments
    is_moved = np.ones(len(segments), bool)
    if old is not None:
        n = len(old.segments)
        is_moved[:n] = old.segments["start"] != segments["start"][:n]
    found = segments[is_moved]
    of_entries = (_bytes_of(new, MEMBERS) + _bytes_of(new, LINES)) * found["room"].sum()
    return int(of_entries + 4 * (found["n_lines"] * found["room"]).sum())


def _bytes_of(problems: Problems, names: tuple[str, ...]) -> int:
    return sum(getattr(problems, name).itemsize for name in names)


def ends_of(segments: Any) -> list[int]:
    """Return where the last entry, value and line of all segments end."""
    rooms, lines = segments["room"], segments["n_lines"]
    ends = (
        segments["start"] + rooms,
        segments["first_value"] + lines * rooms,
        segments["first_line"] + lines + 2,
    )
    return [int(end.max(initial=0)) for end in ends]


def unused_bytes(problems: Problems) -> tuple[int, int]:
    """Return the bytes of members and lines behind all segments, and of values beside them."""
    n_entries, _, n_lines = (
        size - end for size, end in zip(_space(problems), ends_of(problems.segments), strict=True)
    )
    of_entries = n_entries * _bytes_of(problems, (*MEMBERS, "line_of"))
    in_use = (problems.segments["n_lines"] * problems.segments["room"]).sum()
    of_values = 4 * (problems.values.size - int(in_use))
    return of_entries + n_lines * _bytes_of(problems, LINES), of_values


def _space(problems: Problems) -> tuple[int, int, int]:
    return problems.slot.size, problems.values.size, problems.length.size


def _most_lines(room: np.ndarray, cache_bytes: float) -> float:
    """Return how many lines each problem with these rooms may have; infinite if all rows fit.

    Not the same share for each: a line of a small problem takes less memory, for as many misses.
    """
    by_size = np.sort(room).astype(float)
    # If the problems before have all their rows, the others can have so many lines each.
    left = cache_bytes / 4.0 - np.cumsum(by_size**2) + by_size**2
    lines = left / np.maximum(1.0, np.cumsum(by_size[::-1])[::-1])
    short = lines < by_size
    return float(lines[short.argmax()]) if short.any() else np.inf


def _n_lines(room: np.ndarray, most: float) -> np.ndarray:
    """Return how many lines problems with these rooms get if each may have `most`."""
    return np.minimum(room, max(MIN_LINES, most)).astype(np.int64)


def _place(segments: Any, which: np.ndarray, ends: list[int], n_lines: np.ndarray) -> list[int]:
    """Place segments with so many lines behind these ends (see `ends_of`); return the new ends."""
    sizes = segments["room"][which], n_lines * segments["room"][which], n_lines + 2
    segments["n_lines"][which] = n_lines
    for i, (name, size) in enumerate(
        zip(("start", "first_value", "first_line"), sizes, strict=True)
    ):
        segments[name][which] = ends[i] + np.cumsum(size) - size
    return [end + int(size.sum()) for end, size in zip(ends, sizes, strict=True)]


def _cache_states(segments: Any, which: np.ndarray) -> np.ndarray:
    """Return the scalars of caches without rows of some problems, as `row_cache.new_cache` does."""
    room, n_lines = segments["room"][which], segments["n_lines"][which]
    state = np.zeros((len(which), 4), np.int64)
    at_once = AT_ONCE_BYTES // max(1, 4 * int(segments["room"].sum()))
    state[:, AT_ONCE] = np.minimum(n_lines, np.maximum(MIN_LINES, at_once))
    # Where all rows fit, none is worth a trial: that of a new member has values for all others.
    state[n_lines == room, AT_ONCE] = 0
    return state


@compiled_inner
def _copy(source, target, a, b, n, room):
    """Copy n entries from a on to b, and set those behind them to 0, up to the room."""
    for s in range(n):
        target[b + s] = source[a + s]
    for s in range(n, room):
        target[b + s] = 0


@compiled
def _move(old, new, which):
    """Copy the members and the admitted lines of problems from their old to their new segments."""
    for at in range(which.size):
        p = which[at]
        a, b = old.segments[p].start, new.segments[p].start
        n, room = old.table[p].n, new.segments[p].room
        _copy(old.slot, new.slot, a, b, n, room)
        _copy(old.entered, new.entered, a, b, n, room)
        _copy(old.weight, new.weight, a, b, n, room)
        _copy(old.alpha, new.alpha, a, b, n, room)
        _copy(old.gradient, new.gradient, a, b, n, room)
        _copy(old.lower, new.lower, a, b, n, room)
        _copy(old.upper, new.upper, a, b, n, room)
        _copy(old.y, new.y, a, b, n, room)
        _copy(old.diagonal, new.diagonal, a, b, n, room)
        new.line_of[b : b + room] = NONE
        _begin_lines(new, p)
        if old.segments[p].n_lines > 0 and new.segments[p].n_lines > 0:
            _copy_lines(cache_of(old, p), cache_of(new, p))


@compiled_inner
def _begin_lines(problems, p):
    """Let a problem have no cached rows, as `row_cache.new_cache` does."""
    first, n_lines = problems.segments[p].first_line, problems.segments[p].n_lines
    for line in range(n_lines + 2):
        problems.older[first + line] = problems.newer[first + line] = line
        problems.length[first + line] = problems.trial[first + line] = 0
        problems.slot_of[first + line] = NONE


@compiled_inner
def _copy_lines(before, now):
    """Copy the admitted lines of a problem, the most recent ones if not all have room."""
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
                assign(now.values[own], before.values[line, :length])
                now.length[own] = length
            n_left -= 1
        line = np.int64(before.newer[line])
