"""Where problems are in the common arrays: the same members and cached rows wherever they are."""

import sys
from pathlib import Path

import numpy as np
import pytest

import streamsvm
from streamsvm import LASVMClassifier
from streamsvm.kernels import RBF
from streamsvm.models.kernel.lasvm_solver import LASVMSolver
from streamsvm.models.kernel.reserve import Reserve
from streamsvm.solvers.lasvm_pairs import layout
from streamsvm.solvers.lasvm_pairs.classes import sides_of
from streamsvm.solvers.lasvm_pairs.problems import MEMBERS, cache_of, members_of, with_problems
from streamsvm.support.kernel_rows.row_cache import MIN_LINES
from streamsvm.support.tiles import PANEL
from tests.solvers.lasvm_pairs.test_step import CACHE, KERNEL, examples, learnt, schedule


def contents(problems):
    """Return the members of all problems, and the valid values of their cached rows."""
    at = members_of(problems)
    found = [getattr(problems, name)[at].tolist() for name in MEMBERS]
    for p in range(len(problems.table)):
        cache = cache_of.py_func(problems, p)
        for slot in range(problems.table[p].n):
            line = cache.line_of[slot]
            found.append([] if line < 0 else cache.values[line, : cache.length[line]].tolist())
    return found


def asked(state):
    """Return what is asked of all problems of a state."""
    of = LASVMSolver(KERNEL, schedule(), 0.0, Reserve(0), False).of_classes(3)
    of.state = state
    return of.n_support_vectors, of.squared_norm(3), of.kept_gap(3), of.at_bound().tolist()


def test_few_problems_that_grow_move_and_the_others_stay():
    state, _ = learnt(*examples(k=6), schedule(), k=6)
    # As after more classes: with space behind the segments.
    room = state.problems.segments["room"].copy()
    old = layout.laid_out(state.problems, room, CACHE, 3, spare=2.0)
    before = contents(old)
    room[[3, 7]] += 64
    new = layout.grown(old, room, CACHE, 3)
    assert new.alpha is old.alpha and new.values is old.values
    is_moved = old.segments["start"] != new.segments["start"]
    assert np.flatnonzero(is_moved).tolist() == [3, 7]
    assert contents(new) == contents(old) == before == contents(state.problems)
    # What a problem left behind does not count.
    assert asked(state._replace(problems=new)) == asked(state)
    of_moved = layout.moved_bytes(old, new)
    assert 0 < of_moved < 0.5 * layout.moved_bytes(None, new)
    unused = layout.unused_bytes(new)
    assert all(u < v for u, v in zip(unused, layout.unused_bytes(old), strict=True))
    # Until there is no space left: then there is again.
    while new.alpha is old.alpha:
        room[3] += 64
        new = layout.grown(new, room, CACHE, 3)
    assert contents(new) == before
    assert new.alpha.size > room.sum()


def test_the_memory_that_problems_left_behind_goes_back_to_the_system():
    state, _ = learnt(*examples(k=4), schedule(), k=4)
    of, budget = state.problems, 200_000_000
    room = np.full(len(of.table), 1024)
    old = layout.laid_out(of, room, budget, 3, spare=3.0)
    before = contents(old)
    first = int(old.segments["first_value"][1])
    # Lines are used from the last one: here is none.
    unused = old.values[first + 1024 : first + 4096]
    unused[:] = 7.0
    room[1] += 64
    new = layout.grown(old, room, budget, 3)
    # An interruption may still go on with the old problems.
    assert new.values is old.values and (unused == 7.0).all() and contents(old) == before
    room[2] += 64
    last = layout.grown(new, room, budget, 3)
    assert last.values is old.values and (unused == 0.0).all()
    assert contents(last) == contents(new) == before
    lines = last.segments["n_lines"] * last.segments["room"]
    assert layout.unused_bytes(last)[1] == 4 * (last.values.size - lines.sum())


def test_problems_that_begin_leave_kernel_rows_of_the_others_as_they_are():
    state, _ = learnt(*examples(k=3), schedule(), k=3)
    old = layout.laid_out(state.problems, np.full(3, 1024), 200_000_000, 3, spare=3.0)
    before = contents(old)
    of = with_problems(old, sides_of(3, 4, rest=False), 4)
    new = layout.grown(of, np.maximum(of.segments["room"], PANEL), 200_000_000, 3)
    assert len(new.table) == 6 and new.values is old.values
    assert contents(new) == before


def test_a_file_is_the_model_also_where_classes_came_late(tmp_path):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (1250, 2)).astype(np.float32)
    y = ((x**2).sum(axis=1) < 0.6) + 2 * (x[:, 0] > 0.3)
    y[::20] = np.arange(63) % 4
    y[:1200] %= 2
    model = LASVMClassifier(RBF(gamma=2.0), seed=1)
    model.learn_many(x, y.tolist())
    model.save(tmp_path / "m.svm")
    loaded = streamsvm.load(tmp_path / "m.svm")
    off = loaded.decision_function_many(x) - model.decision_function_many(x)
    assert np.abs(off).max() < 1e-6


def test_kernel_rows_keep_within_their_memory():
    state, _ = learnt(*examples(k=6), schedule(), k=6)
    room = state.problems.segments["room"].copy()
    cache = int(2.0 * (room**2).sum())
    of = layout.laid_out(state.problems, room, cache, 3, spare=2.0)
    draws = np.random.default_rng(0)
    for _ in range(40):
        room[draws.integers(len(room))] += 32
        of = layout.grown(of, room, cache, 3)
        lines = of.segments["n_lines"]
        # Each problem has 8 lines at least.
        assert 4 * (lines * room).sum() <= cache + 4 * 8 * room.sum()
        assert contents(of)[: len(MEMBERS)] == contents(state.problems)[: len(MEMBERS)]


def test_where_not_all_rows_fit_large_problems_get_as_many_each():
    state, _ = learnt(*examples(k=4), schedule(), k=4)
    room, of = np.array([128, 512, 192, 1024, 256, 2048]), state.problems
    budget = 4 * (128**2 + 192**2 + 200 * (512 + 1024 + 256 + 2048))
    found = layout.laid_out(of, room, budget, 3).segments["n_lines"]
    assert found.tolist() == [128, 200, 192, 200, 200, 200]
    found = layout.laid_out(of, room, 4 * int((room**2).sum()), 3).segments["n_lines"]
    assert found.tolist() == room.tolist()
    assert set(layout.laid_out(of, room, 0, 3).segments["n_lines"]) == {MIN_LINES}


def test_where_not_all_rows_fit_rooms_are_not_much_larger_than_what_is_in_them():
    state, _ = learnt(*examples(k=2), schedule(), k=2)
    of = layout.laid_out(state.problems, np.array([1024]), CACHE, 3)
    of.table["n"] = 1000
    assert layout.rooms_for(of, 0, 10**9).tolist() == [1600]
    assert layout.rooms_for(of, 0, 10**7).tolist() == [1152]


def test_small_problems_of_all_classes_grow_together_and_large_ones_class_by_class():
    state, _ = learnt(*examples(k=4), schedule(), k=4)
    of = state.problems
    for room, are_all in (64, True), (1024, False):
        of.segments["room"], of.table["n"] = room, room - 3
        grows = layout.rooms_for(of, 1, 10**9) > room
        own = np.isin(np.arange(6), of.problem_of[1])
        assert own.sum() == 3 and grows.tolist() == [are_all or is_own for is_own in own]


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_a_kept_example_of_another_class_finds_room(multiclass):
    # A problem of its first class may be full when the example comes again with another label.
    x, y = examples(400, k=5)
    ids, other = np.arange(1, 401), np.random.default_rng(1).integers(0, 5, 400)
    model = LASVMClassifier(multiclass=multiclass)
    for labels in (y, other):
        model.learn_many(x, labels.tolist(), ids=ids)
    of = model.state.problems
    assert (of.table["n"] <= of.segments["room"]).all()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems reserve what is mapped")
def test_space_that_is_not_written_needs_no_memory():
    policy = Path("/proc/sys/vm/overcommit_memory")
    if not policy.exists() or policy.read_text().strip() == "2":
        pytest.skip("this system reserves what is mapped")
    array = layout._array(2 * 10**10, np.dtype(np.float32))
    array[-1] = 1.0
    assert array.nbytes == 8 * 10**10
    with pytest.raises(MemoryError, match="there is no room for"):
        layout._array(2**60, np.dtype(np.float32))
