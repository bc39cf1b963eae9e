"""The active set against a list that is searched from end to end."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.support import active_set, states
from streamsvm.support.active_set import NONE, ActiveSet
from streamsvm.support.states import grown_arrays


def new_set(capacity, window):
    return states.new(ActiveSet, {"slots": capacity, "window": window})


def grown(active, more):
    sizes = {"slots": active.members.size + more, "window": active.ring.size}
    return grown_arrays(active, sizes)


class SlowSet:
    """Members as (slot, arrival), in order; free slots in the order in which they were left."""

    def __init__(self, window):
        self.window, self.members, self.free = window, [], []
        self.n = self.n_offered = 0

    def enter(self, arrival):
        slot = self.free.pop() if self.free else self.n
        self.n = max(self.n, slot + 1)
        self.members.append((slot, arrival))
        return slot

    def leave(self, slot):
        at = [s for s, _ in self.members].index(slot)
        self.members[at] = self.members[-1]
        self.members.pop()
        self.free.append(slot)

    def expired(self):
        old = [s for s, t in self.members if self.window and t == self.n_offered - self.window]
        return old[0] if old else NONE


def check(active, slow):
    counts = active.counts[0]
    slots = [s for s, _ in slow.members]
    assert active.members[: counts.n_members].tolist() == slots
    assert [active.place[s] for s in slots] == list(range(len(slots)))
    assert (active.place >= 0).sum() == len(slots)
    assert active.free[: counts.n_free].tolist() == slow.free
    assert (counts.n, counts.n_offered) == (slow.n, slow.n_offered)
    assert [active.arrival[s] for s in slots] == [t for _, t in slow.members]
    assert active_set.expired(active) == slow.expired()


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.sampled_from("eeeeolgr"), st.integers(0, 10**6)), max_size=60),
)
def test_random_use(window, actions):
    active, slow = new_set(4, window), SlowSet(window)
    for action, number in actions:
        if action in "eo":
            # Offered; "o" is not admitted.
            active.counts[0].n_offered += 1
            slow.n_offered += 1
            old = active_set.expired(active)
            assert old == slow.expired()
            if old != NONE:
                active_set.leave(active, old)
                slow.leave(old)
            if action == "e":
                if active_set.is_full(active, np.inf):
                    assert len(slow.members) == active.members.size
                    active = grown(active, 3)
                # A merged vector is as old as one that left: here, as the one that expires next.
                arrivals = {t for _, t in slow.members}
                late = number % 5 == 0 and slow.n_offered - 1 not in arrivals and window != 1
                arrival = max(1, slow.n_offered - late)
                assert active_set.enter(active, arrival) == slow.enter(arrival)
        elif action == "l" and slow.members:
            slot = slow.members[number % len(slow.members)][0]
            active_set.leave(active, slot)
            slow.leave(slot)
        elif action == "r" and slow.members:
            # Offered again.
            active.counts[0].n_offered += 1
            slow.n_offered += 1
            at = number % len(slow.members)
            slot, old = slow.members[at][0], active_set.expired(active)
            active_set.renew(active, slot)
            slow.members[at] = (slot, slow.n_offered)
            if old not in (NONE, slot):
                active_set.leave(active, old)
                slow.leave(old)
        elif action == "g":
            active = grown(active, number % 3)
        check(active, slow)
        if window:
            assert len(slow.members) <= window


def test_it_is_full_only_while_another_may_come():
    active = new_set(3, 0)
    for _ in range(3):
        assert not active_set.is_full(active, np.inf)
        active.counts[0].n_offered += 1
        active_set.enter(active, active.counts[0].n_offered)
    assert active_set.is_full(active, np.inf) and active_set.is_full(active, 4.0)
    # Within the limit somebody leaves before the next one comes.
    assert not active_set.is_full(active, 3.0)
    active_set.leave(active, 1)
    assert not active_set.is_full(active, np.inf)
