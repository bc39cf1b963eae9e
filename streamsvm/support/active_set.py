"""The active set: the slots that hold an example, when each example arrived, and the free slots.

An example stays in its slot until it is removed; then the slot is free for another example. A
uniform draw from `members` is a uniform draw from the active set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled_within
from streamsvm.support.declaration import COUNT, Record, count_of, field, index_of
from streamsvm.support.draws import below
from streamsvm.support.states import declare

NONE, REFUSED = -1, -2
"""No slot; and no slot, as the example that was offered last does not enter: see `leaving`."""

COUNTS = np.dtype(
    [
        ("n", np.int64),  # slots 0 .. n-1 are in use or free; the others were never used
        ("n_members", np.int64),
        ("n_free", np.int64),
        ("n_offered", np.int64),  # examples so far, including those that were not admitted
    ]
)


_A_SLOT = index_of("slots")


class ActiveSet(NamedTuple):
    """Members, free slots and arrivals, for `capacity` slots."""

    # The slots of the active set.
    members: np.ndarray = field("slots", dtype=np.int64, range=_A_SLOT, n_used="n_members")
    # The position of a slot in `members`, or -1.
    place: np.ndarray = field("slots", dtype=np.int64, fill=NONE, range=index_of("slots", NONE))
    # A stack of free slots.
    free: np.ndarray = field("slots", dtype=np.int64, range=_A_SLOT, n_used="n_free")
    # The value of n_offered when the slot's example arrived.
    arrival: np.ndarray = field("slots", dtype=np.int64, range=COUNT)
    # The slot of the example that arrived at t, at position t modulo window.
    ring: np.ndarray = field("window", dtype=np.int64, fill=NONE, range=index_of("slots", NONE))
    counts: Any = Record(
        COUNTS, ranges={"n_members": count_of("slots"), "n_free": count_of("slots")}
    )


def _check(active: ActiveSet, sizes: dict[str, int]) -> None:
    """Refuse members and free slots that contradict each other."""
    counts, n = active.counts[0], sizes["slots"]
    members, free = active.members[: counts.n_members], active.free[: counts.n_free]
    slots = np.concatenate([members, free])
    # Every slot in use is either a member or free.
    fits = len(slots) == n and len(np.unique(slots)) == n
    fits = fits and bool((active.place[members] == np.arange(len(members))).all())
    if not fits or (active.place[free] != NONE).any():
        raise ValueError("members, places and free slots contradict each other")


ACTIVE: Any = declare(ActiveSet, _check)
"""An active set, as a field of a state."""


@compiled_within
def is_full(active, limit):
    """Tell whether the arrays must grow before one more example, of at most `limit`, is added."""
    counts = active.counts[0]
    room = counts.n_free > 0 or counts.n < active.members.size
    return not room and counts.n_members < limit


@compiled_within
def enter(active, arrival):
    """Return a slot for the example that arrived as number `arrival`, counted from 1."""
    counts = active.counts[0]
    if counts.n_free > 0:
        counts.n_free -= 1
        slot = active.free[counts.n_free]
    else:
        slot = counts.n
        counts.n += 1
    active.members[counts.n_members] = slot
    active.place[slot] = counts.n_members
    counts.n_members += 1
    active.arrival[slot] = arrival
    if active.ring.size > 0:
        active.ring[arrival % active.ring.size] = slot
    return slot


@compiled_within
def renew(active, slot):
    """Set the arrival of the example in a slot to now, as the same example has come again."""
    arrival = active.counts[0].n_offered
    active.arrival[slot] = arrival
    if active.ring.size > 0:
        active.ring[arrival % active.ring.size] = slot


@compiled_within
def leave(active, slot):
    """Remove the example in a slot from the set, and free the slot."""
    counts = active.counts[0]
    at = active.place[slot]
    last = active.members[counts.n_members - 1]
    active.members[at] = last
    active.place[last] = at
    counts.n_members -= 1
    active.place[slot] = NONE
    active.free[counts.n_free] = slot
    counts.n_free += 1


@compiled_within
def expired(active):
    """Return the slot of the example that the current one pushes out of the window, or -1."""
    counts = active.counts[0]
    if active.ring.size == 0 or counts.n_offered <= active.ring.size:
        return NONE
    at = counts.n_offered % active.ring.size
    slot = active.ring[at]
    if slot == NONE or active.place[slot] == NONE:
        return NONE
    # Another example may have taken the slot since.
    return slot if active.arrival[slot] == counts.n_offered - active.ring.size else NONE


@compiled_within
def leaving(active, slot, draws, limit):
    """Return the slot whose example leaves for the one offered last; `NONE`, or `REFUSED`.

    It falls out of the window, or is drawn to leave a uniform sample of `limit` examples. `slot` is
    that of the example offered, if it has come again, else `NONE`.
    """
    counts, old = active.counts[0], expired(active)
    if slot == NONE and counts.n_members >= limit:
        place = below(draws, counts.n_offered)
        return active.members[place] if place < counts.n_members else np.int64(REFUSED)
    return np.int64(NONE) if old == slot else old
