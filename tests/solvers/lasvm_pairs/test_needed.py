"""Kernel values that no problem needs are not computed, and nothing else changes."""

import numpy as np
import pytest

from streamsvm import LASVMClassifier, kernels, load
from streamsvm.solvers.bounds import Window, bounds_of
from streamsvm.solvers.lasvm_pairs import needed
from streamsvm.solvers.lasvm_pairs.problems import has_few_lines
from tests.slow import slow_but
from tests.solvers.lasvm_pairs.test_step import learnt, members, schedule


def ring(n, k, d=784):
    """Return points on a ring in which each class borders on two others only."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, n)
    x = 0.005 * rng.normal(size=(n, d))
    x[:, 0] += 2 * np.cos(angle)
    x[:, 1] += 2 * np.sin(angle)
    return x.astype(np.float32), (angle / (2 * np.pi) * k).astype(int)


@pytest.mark.parametrize("numbers", [range(6), (0, 1, 2, 63, 64, 65)])
@pytest.mark.parametrize("bounds", slow_but([None, Window(400.0), bounds_of(None, 80)], None))
def test_values_that_no_problem_needs_change_nothing(numbers, bounds):
    x, y = ring(800, 6)
    y, k = np.array(numbers)[y], numbers[-1] + 1
    plan = schedule() if bounds is None else schedule(bounds=bounds)
    # With scores of each row, all values are needed.
    whole, out = learnt(x, y, plan, k=k)
    own, least = learnt(x, y, plan, k=k, columns=1)
    # With few cached rows, vectors are in the order of their classes, too.
    small, same = learnt(x, y, plan, k=k, columns=1, cache=0)
    assert np.array_equal(out[:, -1:], least) and np.array_equal(least, same)
    for p in range(len(own.problems.table)):
        assert members(own, p) == members(whole, p) == members(small, p)
    assert not has_few_lines(own.problems) and (np.diff(own.y[: own.info[0].n_grouped]) < 0).any()
    if has_few_lines(small.problems):
        assert (np.diff(small.y[: small.info[0].n_grouped]) >= 0).all()
    assert own.info[0].n_grouped > 0 and whole.info[0].n_grouped == 0
    assert own.info[0].n_values < whole.info[0].n_values


def test_the_classes_that_need_a_vector_are_those_of_the_problems_that_have_it():
    x, y = ring(400, 6)
    own, _ = learnt(x, y, schedule(), k=6)
    total = needed._note_sets(own)
    sets = {int(number): set() for number in own.store.entered if number > 0}
    for p, side in enumerate(own.problems.segments):
        for number in members(own, p):
            sets[int(number)] |= {side.positive, side.negative}
    n = int(own.info[0].n)
    for number, found in zip(own.store.entered[:n], own.needed_by[:n], strict=True):
        if number > 0:
            assert int(found) == sum(1 << int(c) for c in sets[int(number)])
    assert total == sum(len(classes) for classes in sets.values())
    ranks = [needed._gray_rank(np.uint64(i ^ (i >> 1))) for i in range(40)]
    assert ranks == list(range(40))


def test_batches_are_events_after_finish_and_from_a_file(tmp_path):
    x, y = ring(700, 5)
    by_batch, by_event = (LASVMClassifier(kernels.RBF(gamma=1.0), C=2.0) for _ in range(2))
    by_batch.learn_many(x, y)
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        by_event.learn_one(dict(enumerate(row)), label)
    assert by_batch.state.info[0].n_grouped > 0 == by_event.state.info[0].n_grouped
    by_batch.save(tmp_path / "batch.model")
    loaded = load(tmp_path / "batch.model")
    assert loaded.dual == by_event.dual
    for model in (by_batch, by_event, loaded):
        model.finish()
    assert by_batch.dual == by_event.dual == loaded.dual
    mine, its = by_batch.support_vectors(), by_event.support_vectors()
    assert np.array_equal(mine.entered, its.entered)
    assert np.array_equal(mine.coefficients, its.coefficients)
