import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.support import dense_store, stores
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.row_cache import NONE

KERNEL = kernels.RBF(gamma=0.4)
D = 3


def true_row(rows, slot):
    squares = ((rows.astype(float) - rows[slot].astype(float)) ** 2).sum(axis=1)
    return np.exp(-KERNEL.gamma * squares)


def check(cache, rows, n):
    """Every cached prefix is right, the maps are inverse, the lists hold each used line once."""
    for slot in range(n):
        line = cache.line_of[slot]
        if line != NONE:
            assert cache.slot_of[line] == slot
            length = cache.length[line]
            assert length <= n
            np.testing.assert_allclose(
                cache.values[line, :length], true_row(rows, slot)[:length], atol=1e-6
            )
    taken = [s for s in cache.slot_of if s != NONE]
    assert len(set(taken)) == len(taken)
    n_lines, chains = cache.length.size, []
    for head in (n_lines, n_lines + 1):
        line = cache.older[head]
        while line != head:
            chains.append(int(line))
            assert cache.older[cache.newer[line]] == line
            line = cache.older[line]
    n_used = int(cache.state[row_cache.USED])
    assert sorted(chains) == list(range(n_lines - n_used, n_lines))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("aaarrrrfsg"), st.integers(0, 10**6)), max_size=60))
def test_random_use_keeps_values_true(actions):
    rng = np.random.default_rng(0)
    capacity, budget = 64, 4 * 64 * 12
    store = dense_store.new_store(capacity, D)
    cache = row_cache.new_cache(capacity, D, budget)
    rows = np.zeros((0, D), np.float32)
    for action, number in actions:
        n = len(rows)
        if action == "a" and n < capacity:
            rows = np.vstack([rows, rng.normal(size=(1, D)).astype(np.float32)])
            dense_store.put(store, n, rows[n])
            values = true_row(rows, n).astype(np.float32)
            row_cache.keep(cache, n, values, n + 1)
        elif action == "r" and n:
            slot = number % n
            line = row_cache.kernel_row(cache, bound(KERNEL, store), store, slot, n, D)
            assert cache.length[line] == n and cache.line_of[slot] == line
            # The newest row stays on trial.
            head = cache.length.size + int(cache.trial[line] > 0)
            assert cache.older[head] == line
        elif action == "f" and n:
            row_cache.free(cache, number % n)
        elif action == "s" and n > 2:
            order = np.array([s for s in range(n) if s != number % n], np.int64)
            order = np.roll(order, number % 3)
            full = np.zeros(capacity, np.int64)
            full[: n - 1] = order
            dense_store.reorder(store, full, n - 1)
            row_cache.reorder(cache, full, n - 1)
            rows = rows[order]
        elif action == "g" and capacity < 256:
            capacity *= 2
            store = stores.grown(store, capacity, D)
            cache = row_cache.resized(cache, capacity, D, budget)
            assert cache.values.nbytes <= max(budget, 4 * capacity * row_cache.MIN_LINES)
        np.testing.assert_array_equal(dense_store.rows_of(store, len(rows), D), rows)
        check(cache, rows, len(rows))


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
