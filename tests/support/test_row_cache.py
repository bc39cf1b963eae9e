"""The row cache: true values and whole chains whatever is done, its order and its memory."""

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

D = 3


class Used:
    """A cache with its store, of which the values are known."""

    def __init__(self, kernel, capacity, n_lines, at_once=None):
        self.kernel, self.budget = kernel, 4 * capacity * n_lines
        self.rng, self.n = np.random.default_rng(0), 0
        self.store = dense_store.new_store(capacity, D)
        self.cache = row_cache.new_cache(capacity, D, self.budget)
        if at_once is not None:
            self.cache.state[row_cache.AT_ONCE] = at_once

    def true_row(self, slot):
        x = np.zeros((1, D), np.float32)
        dense_store.get(self.store, slot, x[0])
        out = np.zeros((1, self.store.entered.size), np.float32)
        kernel_values(self.kernel, self.store, x, 1, D, 0, self.n, out)
        return out[0, : self.n]

    def length(self, slot):
        line = self.cache.line_of[slot]
        return None if line == NONE else int(self.cache.length[line])

    def add(self):
        if self.n == self.store.entered.size:
            return self.grow()
        slot, self.n = self.n, self.n + 1
        dense_store.put(self.store, slot, self.rng.normal(size=D).astype(np.float32))
        row_cache.keep(self.cache, slot, self.true_row(slot), self.n)

    def ask(self, number, upto):
        slot, n = number % self.n, 1 + upto % self.n
        length, before = self.length(slot), self.cache.counts.copy()
        rows = bound(self.kernel, self.store)
        line = row_cache.kernel_row(self.cache, rows, self.store, slot, n, D)
        assert self.cache.line_of[slot] == line and self.cache.length[line] == max(n, length or 0)
        new = self.cache.counts - before
        kind = MISSES if length is None else HITS if length >= n else EXTENDED
        assert new[kind] == 1 and new[:COMPUTED].sum() == 1
        assert 0 <= new[COMPUTED] <= max(0, n - (length or 0))

    def free(self, number):
        row_cache.free(self.cache, number % self.n)
        assert self.length(number % self.n) is None

    def reorder(self, number):
        rng = np.random.default_rng(number)
        kept = rng.permutation(self.n) if number % 2 else np.arange(self.n)
        kept = kept[rng.random(self.n) < 0.8] if number % 3 else kept
        # A line keeps what its first columns still are the values of.
        lengths = [
            length and int(np.argmin([*(kept < length), False]))
            for length in map(self.length, kept)
        ]
        order = np.zeros(self.store.entered.size, np.int64)
        order[: kept.size] = kept
        dense_store.reorder(self.store, order, kept.size)
        row_cache.reorder(self.cache, order, kept.size)
        self.n = kept.size
        assert [self.length(slot) for slot in range(self.n)] == lengths

    def grow(self):
        capacity = 2 * self.store.entered.size
        if capacity > 256:
            return
        old = self.cache
        self.store = stores.grown(self.store, capacity, D)
        self.cache = row_cache.resized(old, capacity, D, self.budget)
        assert self.cache.state[row_cache.AT_ONCE] == self.cache.length.size
        assert self.cache.values.nbytes <= max(self.budget, 4 * capacity * row_cache.MIN_LINES)
        np.testing.assert_array_equal(self.cache.counts, old.counts)

    def check(self):
        cache, n_lines = self.cache, self.cache.length.size
        n_used = cache.state[row_cache.USED]
        chains = [lines_in_order(cache, n_lines), lines_in_order(cache, n_lines + 1)]
        assert cache.state[row_cache.ON_TRIAL] == len(chains[1])
        assert sorted(chains[0] + chains[1]) == list(range(n_lines - n_used, n_lines))
        for slot in range(cache.line_of.size):
            line = cache.line_of[slot]
            if line != NONE:
                n = cache.length[line]
                assert cache.slot_of[line] == slot and n <= self.n
                np.testing.assert_array_equal(cache.values[line, :n], self.true_row(slot)[:n])
        assert (cache.length[cache.slot_of == NONE] == 0).all()


def lines_in_order(cache, head):
    line, lines = int(cache.older[head]), []
    while line != head:
        lines.append(line)
        assert cache.newer[cache.older[line]] == line and len(lines) <= cache.length.size
        line = int(cache.older[line])
    return lines


def slots_in_order(cache, head):
    return cache.slot_of[lines_in_order(cache, head)].tolist()


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
def test_values_are_true_and_chains_whole_after_random_use(
    kernel, capacity, n_lines, at_once, n_first, actions
):
    used = Used(kernel, capacity, n_lines, at_once)
    for _ in range(n_first):
        used.add()
    for action, number, upto in actions:
        if action == "a" or used.n == 0:
            used.add()
        elif action == "r":
            used.ask(number, upto)
        elif action == "f":
            used.free(number)
        elif action == "s":
            used.reorder(number)
        else:
            used.grow()
        used.check()


@pytest.mark.parametrize("missing", [False, True])
def test_an_old_line_is_made_longer_from_the_lines_of_others(missing):
    used = Used(kernels.RBF(gamma=0.4), 128, 128)
    for _ in range(96):
        used.add()
    # Slot 40's line holds 41 values; every slot of the panel 64..95 has a line with column 40.
    if missing:
        used.free(70)
    before = int(used.cache.counts[COMPUTED])
    line = row_cache.kernel_row(used.cache, bound(used.kernel, used.store), used.store, 40, 96, D)
    computed = int(used.cache.counts[COMPUTED]) - before
    np.testing.assert_array_equal(used.cache.values[line, :96], used.true_row(40))
    # 41..63 share their panel with slots whose lines are too short for column 40.
    assert computed == 23 + (32 if missing else 0)


def test_the_budget_sets_the_number_of_lines():
    for capacity in (32, 64, 1024):
        for budget in (0, 4 * capacity * 9, 10**7):
            lines = row_cache.new_cache(capacity, D, budget).length.size
            assert lines == min(capacity, max(row_cache.MIN_LINES, budget // (4 * capacity)))


def test_growing_within_the_budget_keeps_the_newest_admitted_lines():
    used = Used(kernels.RBF(gamma=0.4), 64, 1000)
    for _ in range(40):
        used.add()
    for slot in (38, 39, 3):
        used.ask(slot, 39)
    used.budget = 4 * 128 * 70
    used.grow()
    # Slot 39 was the newest of all when it was asked for: it stayed on trial.
    n_lines = used.cache.length.size
    assert [slots_in_order(used.cache, n_lines + i) for i in (0, 1)] == [[3, 38], []]
    used.check()


def test_rows_that_are_needed_once_take_no_more_memory_than_those_on_trial():
    n = 2 * row_cache.MOST_ON_TRIAL + 100
    used = Used(kernels.RBF(gamma=0.4), 512, 512)
    for _ in range(n):
        used.add()
        used.ask(used.n - 1, used.n - 1)
    assert used.cache.state[row_cache.USED] == row_cache.MOST_ON_TRIAL
    for _ in range(3):
        used.ask(n - 2, n - 1)
    assert used.cache.state[row_cache.ON_TRIAL] == row_cache.MOST_ON_TRIAL - 1
    line_bytes = 4 * 512
    n_bytes = row_cache.used_bytes(used.cache)
    everything = sum(array.nbytes for array in used.cache)
    assert everything - n_bytes == line_bytes * (512 - row_cache.MOST_ON_TRIAL)


def test_beyond_some_lines_only_missing_rows_take_further_ones():
    used = Used(kernels.RBF(gamma=0.4), 64, 64, at_once=8)
    for _ in range(40):
        used.add()
        if used.n > 1:
            used.ask(used.n - 2, used.n - 1)
    assert used.cache.state[row_cache.USED] == 8
    used.ask(0, 39)
    assert used.cache.state[row_cache.USED] == 9
    used.check()
