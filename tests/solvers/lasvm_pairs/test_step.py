"""LASVM for several classes against as many LASVMs of two classes, which share nothing."""

import numpy as np
import pytest

from streamsvm import kernels
from streamsvm.solvers.bounds import UNBOUNDED, Window, bounds_of
from streamsvm.solvers.lasvm import state as two_state
from streamsvm.solvers.lasvm import step as two_step
from streamsvm.solvers.lasvm_pairs import classes, state, step
from streamsvm.solvers.lasvm_pairs.problems import REST
from streamsvm.support import states
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.rows import sparse
from tests.reference.slow_lasvm_pairs import SlowPairs

KERNEL, CACHE = kernels.RBF(gamma=1.0), 10**7


def examples(n=240, k=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
    y = (np.floor(2 * x[:, 0] + 2 * x[:, 1] ** 2) % k).astype(int)
    return x, np.where(rng.random(n) < 0.1, rng.integers(0, k, n), y)


def schedule(**changes):
    values = {"tau": 1e-3, "reprocess": 1.0, "delta_max": 1.0, "max_reprocess": 1000.0}
    return two_step.Schedule(**(values | {"second_order": 1.0, "bounds": UNBOUNDED} | changes))


def learnt(
    x, y, plan, k=4, rest=False, cache=CACHE, blocks=None, is_sparse=False, columns=None
):  # fmt: skip
    """Learn rows in blocks; all classes are known from the start."""
    d, n = x.shape[1], len(y)
    own = state.new_state(d, k, sparse=is_sparse)
    own = classes.with_classes(own, bound(KERNEL, own.store), k, rest, cache, d)
    out = np.zeros((n, 2 * k + 1 if columns is None else columns))
    start = 0
    for stop in blocks or [n]:
        while start < stop:
            rows = x[start:stop]
            size = len(rows)
            start += step.learn_rows(
                own, bound(KERNEL, own.store), sparse(rows) if is_sparse else rows,
                y[start:stop].astype(float), np.full(size, 2.0), np.ones(size),
                np.arange(start + 1, stop + 1), np.ones(size, np.float32), plan, out[start:stop],
            )  # fmt: skip
            if start < stop:
                own = classes.grown(own, cache)
    return own, out


def members(own, p):
    """Return {number: (alpha, gradient)} of the members of a problem."""
    of = own.problems
    at = np.arange(of.segments[p].start, of.segments[p].start + of.table[p].n)
    at = at[of.lower[at] != of.upper[at]]
    return {
        n: (a, g) for n, a, g in zip(of.entered[at], of.alpha[at], of.gradient[at], strict=True)
    }


def binary(x, y, numbers, plan):
    own = two_state.new_state(x.shape[1], CACHE)
    out, start, n = np.zeros(len(y)), 0, len(y)
    while start < n:
        size = n - start
        start += two_step.learn_rows(
            own, bound(KERNEL, own.store), x[start:], y[start:], np.full(size, 2.0), np.ones(size),
            numbers[start:], np.ones(size, np.float32), plan, out[start:],
        )  # fmt: skip
        if start < n:
            own = states.grown(own, 2 * own.alpha.size, x.shape[1], CACHE)
    return own, out


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("plan", [schedule(), schedule(second_order=0.0, delta_max=0.1)])
def test_each_problem_is_the_lasvm_of_its_examples_to_the_bit(rest, plan):
    x, y = examples()
    own, _ = learnt(x, y, plan, rest=rest)
    for p, side in enumerate(own.problems.segments):
        mine = (y == side.positive) | (y == side.negative) | (side.negative == REST)
        signs = np.where(y[mine] == side.positive, 1.0, -1.0)
        two, _ = binary(x[mine], signs, np.flatnonzero(mine) + 1, plan)
        n = int(two.info[0].n)
        kept = two.lower[:n] != two.upper[:n]
        numbers, a, g = two.store.entered[:n][kept], two.alpha[:n][kept], two.gradient[:n][kept]
        assert members(own, p) == {k: (u, v) for k, u, v in zip(numbers, a, g, strict=True)}
        for name in ("n_steps", "dual", "g_max", "g_min"):
            assert own.problems.table[p][name] == two.info[0][name]


def test_a_budget_removes_the_oldest_example_and_the_cheapest_by_turns():
    # Coefficients hang on rounding where two partners are equally good; who is kept does not here.
    x, y = (part[:50] for part in examples(n=90, k=3))
    plan = schedule(delta_max=np.inf, bounds=bounds_of(None, 12))
    gram = np.exp(-((x[:, None] - x[None]).astype(float) ** 2).sum(axis=2))
    twin, n_looked = SlowPairs(gram, y, np.full(50, 2.0), 1e-3, True), 0
    for k in range(50):
        twin.learn(k)
        twin.stay_within(12, n_looked % 2 == 0)
        n_looked += len(twin.kept) > 0
        own, _ = learnt(x[: k + 1], y[: k + 1], plan, k=3)
        n = own.info[0].n
        assert sorted(own.store.entered[:n][own.wanted[:n] > 0] - 1) == twin.kept
    assert len(twin.kept) == 12


@pytest.mark.parametrize("plan", [schedule(), schedule(bounds=Window(60.0))])
def test_blocks_sparse_rows_and_a_small_cache_change_nothing(plan):
    x, y = examples()
    own, out = learnt(x, y, plan)
    for other in (
        learnt(x, y, plan, blocks=range(1, len(y) + 1)),
        learnt(x, y, plan, cache=0, blocks=[50, 240]),
    ):
        assert np.array_equal(out, other[1])
        for p in range(len(own.problems.table)):
            assert members(own, p) == members(other[0], p)
    listed, out = learnt(x, y, plan, is_sparse=True)
    other = learnt(x, y, plan, is_sparse=True, cache=0, blocks=range(1, len(y) + 1))
    assert np.array_equal(out, other[1])
    assert members(listed, 0) == members(other[0], 0)


def test_the_least_margin_alone_is_that_beside_the_scores():
    x, y = examples()
    own, out = learnt(x, y, schedule())
    other, least = learnt(x, y, schedule(), columns=1)
    assert np.array_equal(out[:, -1:], least) and np.ptp(least) > 1.0
    margins = np.zeros((1, 6))
    step.problem_margins_of(learnt(x[:100], y[:100], schedule())[0], KERNEL, x[100:101], margins)
    sides = own.problems.segments
    signed = [f if s.positive == y[100] else -f for f, s in zip(margins[0], sides, strict=True)
              if y[100] in (s.positive, s.negative)]  # fmt: skip
    assert least[100, 0] == pytest.approx(min(signed), abs=1e-6)
    assert members(own, 0) == members(other, 0)


def test_kernel_values_of_members_are_computed_once():
    x, y = examples(400)
    own, _ = learnt(x, y, schedule())
    of = own.problems
    assert of.counts[row_cache.EXTENDED] > 100 and of.table["n_dead"].sum() > 0
    # But for a few lines that gave way to those of later members.
    assert of.counts[row_cache.COMPUTED] < 0.01 * own.info[0].n_values


@pytest.mark.parametrize("limit", [None, 30])
def test_a_vector_is_kept_once_and_as_long_as_a_problem_wants_it(limit):
    x, y = examples(400)
    own, _ = learnt(x, y, schedule(bounds=bounds_of(None, limit)))
    n, of = int(own.info[0].n), own.problems
    entered = own.store.entered[:n][own.wanted[:n] > 0]
    assert len(set(entered)) == len(entered) == n - own.info[0].n_dead
    wanted = np.zeros(n, int)
    for p, side in enumerate(of.segments):
        found = members(own, p)
        assert abs(sum(a for a, _ in found.values())) < 1e-9
        for number in found:
            slot = int(np.flatnonzero(own.store.entered[:n] == number)[0])
            wanted[slot] += 1
            assert y[number - 1] == own.y[slot] and own.y[slot] in (side.positive, side.negative)
    assert (wanted == own.wanted[:n]).all()
    assert limit is None or len(entered) <= limit


def test_gradients_are_those_of_the_coefficients_within_bounds():
    x, y = examples(400)
    gram = np.exp(-((x[:, None] - x[None]).astype(float) ** 2).sum(axis=2))
    for plan in (schedule(bounds=Window(90.0)), schedule(bounds=bounds_of(150, 40))):
        own, _ = learnt(x, y, plan)
        for p, side in enumerate(own.problems.segments):
            found = members(own, p)
            at = np.array(sorted(found)) - 1
            a = np.array([found[i + 1][0] for i in at])
            sign = np.where(y[at] == side.positive, 1.0, -1.0)
            wanted = sign - gram[np.ix_(at, at)] @ a
            assert [found[i + 1][1] for i in at] == pytest.approx(wanted, abs=1e-4)
            assert (at + 1 > 400 - plan.bounds[0 if isinstance(plan.bounds, Window) else 2]).all()


def test_votes_are_decided_by_margins_and_probabilities_are_coupled():
    x, y = examples(300, 3)
    own, _ = learnt(x, y, schedule(), k=3)
    kernel = bound(KERNEL, own.store)
    margins, out = np.zeros((300, 3)), np.zeros((300, 6))
    step.problem_margins_of(own, kernel, x, margins)
    step.margins_of(own, kernel, x, out)
    f = np.zeros((300, 3, 3))
    r = np.full((300, 3, 3), 0.5)
    for p, side in enumerate(own.problems.segments):
        a, b, (slope, offset) = side.positive, side.negative, own.problems.calibration[p, :2]
        f[:, a, b], f[:, b, a] = margins[:, p], -margins[:, p]
        r[:, a, b] = 1 / (1 + np.exp(-(slope * margins[:, p] + offset)))
        r[:, b, a] = 1 - r[:, a, b]
    scores = (f > 0).sum(axis=2) + np.clip(f, -1, 1).sum(axis=2) / 6
    assert out[:, :3] == pytest.approx(scores)
    inverse = (1 / r).sum(axis=2) - 2 - 1
    p = (1 / inverse) / (1 / inverse).sum(axis=1, keepdims=True)
    assert np.exp(out[:, 3:]) == pytest.approx(p, abs=1e-6)
    assert np.mean(out[:, :3].argmax(axis=1) == y) > 0.7
