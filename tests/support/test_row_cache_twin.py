"""The row cache against its slow twin: the same lines, lengths and order, the true bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.support import dense_store, stores
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.kernel_values import kernel_values
from streamsvm.support.kernel_rows.row_cache import COMPUTED, EXTENDED, HITS, MISSES, NONE
from tests.reference.slow_row_cache import SlowRowCache

D = 3


class Pair:
    """A cache with its store, and the twin, driven together."""

    def __init__(self, kernel, capacity, n_lines, at_once=None):
        self.kernel, self.budget = kernel, 4 * capacity * n_lines
        self.rng = np.random.default_rng(0)
        self.store = dense_store.new_store(capacity, D)
        self.cache = row_cache.new_cache(capacity, D, self.budget)
        if at_once is not None:
            self.cache.state[row_cache.AT_ONCE] = at_once
        self.twin = SlowRowCache(self.cache.length.size, self.cache.state[row_cache.AT_ONCE])
        self.n = 0

    def true_row(self, slot):
        x = np.zeros((1, D), np.float32)
        dense_store.get(self.store, slot, x[0])
        out = np.zeros((1, self.store.entered.size), np.float32)
        kernel_values(self.kernel, self.store, x, 1, D, 0, self.n, out)
        return out[0, : self.n]

    def add(self):
        if self.n == self.store.entered.size:
            return self.grow()
        slot, self.n = self.n, self.n + 1
        dense_store.put(self.store, slot, self.rng.normal(size=D).astype(np.float32))
        row_cache.keep(self.cache, slot, self.true_row(slot), self.n)
        self.twin.keep(slot, self.n)

    def ask(self, number, upto):
        slot, n = number % self.n, 1 + upto % self.n
        length, before = self.twin.length(slot), self.cache.counts.copy()
        line = row_cache.kernel_row(
            self.cache, bound(self.kernel, self.store), self.store, slot, n, D
        )
        self.twin.kernel_row(slot, n)
        assert self.cache.line_of[slot] == line and self.cache.length[line] >= n
        new = self.cache.counts - before
        kind = MISSES if length is None else HITS if length >= n else EXTENDED
        assert new[kind] == 1 and new[:COMPUTED].sum() == 1
        assert 0 <= new[COMPUTED] <= max(0, n - (length or 0))

    def free(self, number):
        row_cache.free(self.cache, number % self.n)
        self.twin.free(number % self.n)

    def reorder(self, number):
        rng = np.random.default_rng(number)
        kept = rng.permutation(self.n) if number % 2 else np.arange(self.n)
        kept = kept[rng.random(self.n) < 0.8] if number % 3 else kept
        order = np.zeros(self.store.entered.size, np.int64)
        order[: kept.size] = kept
        dense_store.reorder(self.store, order, kept.size)
        row_cache.reorder(self.cache, order, kept.size)
        self.twin.reorder(kept.tolist())
        self.n = kept.size

    def grow(self):
        capacity = 2 * self.store.entered.size
        if capacity > 256:
            return
        old = self.cache
        self.store = stores.grown(self.store, capacity, D)
        self.cache = row_cache.resized(old, capacity, D, self.budget)
        emptied = np.shares_memory(self.cache.values, old.values)
        at_once = self.cache.state[row_cache.AT_ONCE]
        assert at_once == self.cache.length.size
        self.twin = self.twin.resized(self.cache.length.size, at_once, emptied)
        assert self.cache.values.nbytes <= max(self.budget, 4 * capacity * row_cache.MIN_LINES)
        assert emptied == (
            self.cache.length.size < capacity and self.cache.values.size <= old.values.size
        )
        np.testing.assert_array_equal(self.cache.counts, old.counts)

    def chain(self, head):
        cache, chain = self.cache, []
        line = int(cache.older[head])
        while line != head:
            chain.append(line)
            assert cache.newer[cache.older[line]] == line and len(chain) <= cache.length.size
            line = int(cache.older[line])
        return chain

    def check(self):
        cache, n_lines = self.cache, self.cache.length.size
        chains = [self.chain(n_lines), self.chain(n_lines + 1)]
        n_used = n_lines - self.twin.n_unused
        assert cache.state[row_cache.USED] == n_used
        assert cache.state[row_cache.ON_TRIAL] == len(chains[1])
        assert sorted(chains[0] + chains[1]) == list(range(n_lines - n_used, n_lines))
        for chain, slots in zip(chains, self.twin.slots(), strict=True):
            assert slots == [None if cache.slot_of[x] == NONE else cache.slot_of[x] for x in chain]
        for slot in range(cache.line_of.size):
            line, length = cache.line_of[slot], self.twin.length(slot)
            assert (line == NONE) == (length is None)
            if line != NONE:
                assert cache.slot_of[line] == slot and cache.length[line] == length <= self.n
                np.testing.assert_array_equal(
                    cache.values[line, :length], self.true_row(slot)[:length]
                )
        assert (cache.length[cache.slot_of == NONE] == 0).all()


def slots_in_order(cache, head):
    line, slots = cache.older[head], []
    while line != head:
        slots.append(int(cache.slot_of[line]))
        line = cache.older[line]
    return slots


def test_the_least_recently_used_line_goes_first():
    cache = row_cache.new_cache(64, D, 0)
    n_lines, values = cache.length.size, np.zeros(64, np.float32)
    # Half of the lines may be on trial.
    for slot in range(6):
        row_cache.keep(cache, slot, values, 1)
    assert slots_in_order(cache, n_lines + 1) == [5, 4, 3, 2]
    for slot in (2, 3):
        row_cache.touch(cache, cache.line_of[slot])
    for slot in range(10, 16):
        row_cache.take_line(cache, slot)
    assert slots_in_order(cache, n_lines) == [15, 14, 13, 12, 11, 10]
    row_cache.touch(cache, cache.line_of[10])
    row_cache.take_line(cache, 16)
    assert slots_in_order(cache, n_lines) == [16, 10, 15, 14, 13, 12]
    assert slots_in_order(cache, n_lines + 1) == [5, 4]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([kernels.RBF(gamma=0.4), kernels.Polynomial(degree=2, gamma=0.3)]),
    st.sampled_from([32, 64]),
    st.sampled_from([0, 8, 13, 40, 1000]),
    st.sampled_from([None, 8]),
    st.integers(1, 40),
    st.lists(
        st.tuples(st.sampled_from("aaarrrrrrfsg"), st.integers(0, 10**6), st.integers(0, 10**6)),
        max_size=60,
    ),
)
def test_random_use_does_what_the_twin_does(kernel, capacity, n_lines, at_once, n_first, actions):
    pair = Pair(kernel, capacity, n_lines, at_once)
    for _ in range(n_first):
        pair.add()
    for action, number, upto in actions:
        if action == "a" or pair.n == 0:
            pair.add()
        elif action == "r":
            pair.ask(number, upto)
        elif action == "f":
            pair.free(number)
        elif action == "s":
            pair.reorder(number)
        else:
            pair.grow()
        pair.check()


@pytest.mark.parametrize("missing", [False, True])
def test_an_old_line_is_made_longer_from_the_lines_of_others(missing):
    pair = Pair(kernels.RBF(gamma=0.4), 128, 128)
    for _ in range(96):
        pair.add()
    # Slot 40's line holds 41 values; every slot of the panel 64..95 has a line with column 40.
    if missing:
        pair.free(70)
    before = int(pair.cache.counts[COMPUTED])
    line = row_cache.kernel_row(pair.cache, bound(pair.kernel, pair.store), pair.store, 40, 96, D)
    computed = int(pair.cache.counts[COMPUTED]) - before
    np.testing.assert_array_equal(pair.cache.values[line, :96], pair.true_row(40))
    # 41..63 share their panel with slots whose lines are too short for column 40.
    assert computed == 23 + (32 if missing else 0)


def test_the_budget_sets_the_number_of_lines():
    for capacity in (32, 64, 1024):
        for budget in (0, 4 * capacity * 9, 10**7):
            lines = row_cache.new_cache(capacity, D, budget).length.size
            assert lines == min(capacity, max(row_cache.MIN_LINES, budget // (4 * capacity)))


def test_growing_within_the_budget_keeps_the_newest_admitted_lines():
    pair = Pair(kernels.RBF(gamma=0.4), 64, 1000)
    for _ in range(40):
        pair.add()
    for slot in (38, 39, 3):
        pair.ask(slot, 39)
    pair.budget = 4 * 128 * 70
    pair.grow()
    # Slot 39 was the newest of all when it was asked for: it stayed on trial.
    assert pair.twin.slots() == ([3, 38], [])
    pair.check()


def test_rows_that_are_needed_once_take_no_more_memory_than_those_on_trial():
    n = 2 * row_cache.MOST_ON_TRIAL + 100
    pair = Pair(kernels.RBF(gamma=0.4), 512, 512)
    for _ in range(n):
        pair.add()
        pair.ask(pair.n - 1, pair.n - 1)
    assert pair.cache.state[row_cache.USED] == row_cache.MOST_ON_TRIAL
    for _ in range(3):
        pair.ask(n - 2, n - 1)
    assert pair.cache.state[row_cache.ON_TRIAL] == row_cache.MOST_ON_TRIAL - 1
    line_bytes = 4 * 512
    used = row_cache.used_bytes(pair.cache)
    everything = sum(array.nbytes for array in pair.cache)
    assert everything - used == line_bytes * (512 - row_cache.MOST_ON_TRIAL)


def test_beyond_some_lines_only_missing_rows_take_further_ones():
    pair = Pair(kernels.RBF(gamma=0.4), 64, 64, at_once=8)
    for _ in range(40):
        pair.add()
        if pair.n > 1:
            pair.ask(pair.n - 2, pair.n - 1)
    assert pair.cache.state[row_cache.USED] == 8
    pair.ask(0, 39)
    assert pair.cache.state[row_cache.USED] == 9
    pair.check()
