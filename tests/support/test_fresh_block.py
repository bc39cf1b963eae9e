"""Blocks of fresh rows: their kernel values are those computed anew, to the last bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import kernels
from streamsvm.support import dense_store, stores
from streamsvm.support.kernel_rows import fresh_block
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.fresh_block import BLOCK, FOREIGN
from streamsvm.support.kernel_rows.kernel_values import kernel_values

KERNELS = (kernels.Linear(), kernels.Polynomial(gamma=0.3), kernels.RBF(gamma=0.4))
CAPACITY = 128


def fresh_values(kernel, store, row, n):
    out = np.zeros((1, CAPACITY), np.float32)
    kernel_values(kernel, store, row[None], 1, row.size, 0, n, out)
    return out[0, :n]


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(0, 90),
    st.integers(1, BLOCK),
    st.integers(1, 6),
    st.sampled_from(KERNELS),
    # For each row: whether it takes a slot, which one, and how many foreign rows come before.
    st.lists(st.tuples(st.booleans(), st.integers(0, 10**6), st.integers(0, 2)), max_size=BLOCK),
)
def test_values_are_those_computed_anew(seed, n, size, d, kernel, events):
    rng = np.random.default_rng(seed)
    store = dense_store.new_store(CAPACITY, d)
    for slot in range(n):
        dense_store.put(store, slot, rng.normal(size=d).astype(np.float32))
    x = rng.normal(size=(size, d)).astype(np.float32)
    block = fresh_block.new_block(CAPACITY, d, False)
    # What an earlier block left behind must not matter.
    block.values[:], block.among[:], block.counts[0] = np.nan, np.nan, 200
    stores.values(bound(kernel, store), store, x, size, d, 0, n, block.values)
    fresh_block.begin(block, bound(kernel, store), x[:size])
    for r, (takes, number, n_foreign) in enumerate(events[:size]):
        if not fresh_block.has_room(block):
            break
        for k in range(n_foreign if n else 0):
            slot = (number + k) % n
            dense_store.put(store, slot, rng.normal(size=d).astype(np.float32))
            fresh_block.note(block, slot, FOREIGN)
        # The last one is asked for again after each change.
        for row in (r, size - 1):
            got = fresh_block.values_of(block, bound(kernel, store), store, x, row)
            np.testing.assert_array_equal(got[:n], fresh_values(kernel, store, x[row], n))
        if takes and n < CAPACITY:
            # A new slot, or one that had another row.
            slot = number % (n + 1)
            n = max(n, slot + 1)
            dense_store.put(store, slot, x[r])
            fresh_block.note(block, slot, r)
    for r in range(len(events[:size]), size):
        got = fresh_block.values_of(block, bound(kernel, store), store, x, r)
        np.testing.assert_array_equal(got[:n], fresh_values(kernel, store, x[r], n))


def test_there_is_room_for_what_one_row_can_change():
    block = fresh_block.new_block(CAPACITY, 2, False)
    noted = 0
    while fresh_block.has_room(block):
        for _ in range(4):
            fresh_block.note(block, 0, FOREIGN)
        noted += 4
    assert noted == block.changed.shape[0] == block.counts[0]
