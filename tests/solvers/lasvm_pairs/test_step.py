"""LASVM for several classes against as many LASVMs of two classes, which share nothing."""

import numpy as np
import pytest

from streamsvm import kernels
from streamsvm.solvers.bounds import MERGE, UNBOUNDED, Window, bounds_of
from streamsvm.solvers.lasvm import step as two_step
from streamsvm.solvers.lasvm_pairs import bounds, classes, finish, state, step
from streamsvm.solvers.lasvm_pairs.problems import REST
from streamsvm.solvers.one_event import margins_of
from streamsvm.support import dense_store, states
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.rows import sparse
from tests.kernels.test_values import values
from tests.reference.slow_lasvm import SlowLASVM
from tests.reference.slow_lasvm_pairs import SlowPairs
from tests.slow import slow_but
from tests.solvers.lasvm.test_step import Stream, live_of

KERNEL, CACHE = kernels.RBF(gamma=1.0), 10**7


def examples(n=240, k=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
    y = (np.floor(2 * x[:, 0] + 2 * x[:, 1] ** 2) % k).astype(int)
    return x, np.where(rng.random(n) < 0.1, rng.integers(0, k, n), y)


def schedule(**changes):
    values = {"tau": 1e-3, "reprocess": 1.0, "delta_max": 1.0, "max_reprocess": 1000.0}
    return two_step.Schedule(**(values | {"second_order": 1.0, "bounds": UNBOUNDED} | changes))


def learnt(x, y, plan, k=4, rest=False, cache=CACHE, is_sparse=False, columns=None):
    """Learn rows; all classes are known from the start."""
    d, n = x.shape[1], len(y)
    own = states.new_state(state.PairsState, d, sparse=is_sparse, classes=k)
    own = classes.with_classes(own, bound(KERNEL, own.store), k, rest, cache, d)
    out, start = np.zeros((n, 2 * k + 1 if columns is None else columns)), 0
    while start < n:
        rows, size = x[start:], n - start
        start += step.learn_rows(
            own, bound(KERNEL, own.store), sparse(rows) if is_sparse else rows,
            y[start:].astype(float), np.full(size, 2.0), np.ones(size),
            np.arange(start + 1, n + 1), np.ones(size, np.float32), plan, out[start:],
        )  # fmt: skip
        if start < n:
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


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("plan", [schedule(), schedule(second_order=0.0, delta_max=0.1)])
def test_each_problem_is_the_lasvm_of_its_examples_to_the_bit(rest, plan):
    x, y = examples()
    own, _ = learnt(x, y, plan, rest=rest)
    for p, side in enumerate(own.problems.segments):
        mine = (y == side.positive) | (y == side.negative) | (side.negative == REST)
        signs = np.where(y[mine] == side.positive, 1.0, -1.0)
        two = Stream(x[mine], signs, 2.0, KERNEL, plan).all().state
        kept = live_of(two)
        numbers = np.flatnonzero(mine)[two.store.entered[kept] - 1] + 1
        a, g = two.alpha[kept], two.gradient[kept]
        assert members(own, p) == {k: (u, v) for k, u, v in zip(numbers, a, g, strict=True)}
        for name in ("n_steps", "dual", "g_max", "g_min"):
            assert own.problems.table[p][name] == two.info[0][name]


def vectors_and_members(own):
    """Return slots and rows of all vectors, and of each problem what its live members have."""
    live, of = np.flatnonzero(own.wanted > 0), own.problems
    found = []
    for side, table in zip(of.segments, of.table, strict=True):
        at = np.arange(side.start, side.start + table.n)
        at = at[of.lower[at] != of.upper[at]]
        at = at[np.argsort(of.slot[at])]
        found.append((np.searchsorted(live, of.slot[at]), at))
    return live, dense_store.rows_of(own.store, int(own.info[0].n), 3)[live], found


def twin_of(own):
    """Return the slow twin of a state, and its rows."""
    (live, rows, found), of = vectors_and_members(own), own.problems
    gram = values(KERNEL, rows, rows).astype(float)
    twin = SlowPairs(gram, own.y[live], own.cost[live], 1e-3)
    twin.age, twin.pairs = np.abs(own.store.entered[live]), {}
    for p, (where, at) in enumerate(found):
        signs = np.where(own.y[live] == of.segments[p].positive, 1.0, -1.0)
        one = twin.pairs[p] = SlowLASVM(gram, signs, own.cost[live], 1e-3)
        one.S, one.g[where] = where.tolist(), of.gradient[at]
        one.alpha[where], one.A[where], one.B[where] = of.alpha[at], of.lower[at], of.upper[at]
    return twin, rows.astype(float)


def by_age(twin, rows):
    """Return the row of each age, and in each problem its coefficient and its box."""
    order = sorted(twin.kept, key=lambda s: twin.age[s])
    table = [[(o.alpha[s], o.A[s], o.B[s]) for o in twin.pairs.values()] for s in order]
    has = [[s in o.S for o in twin.pairs.values()] for s in order]
    return twin.age[order], rows[order], np.where(np.array(has)[..., None], table, np.nan)


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("seed", slow_but(range(21), 0, 1, 2))
def test_each_merge_is_that_of_the_slow_twin(seed, rest):
    (x, y), n_merged = examples(60, 4, seed), 0
    own, _ = learnt(x[:0], y[:0], schedule(), rest=rest)
    kernel = bound(KERNEL, own.store)
    for k in range(60):
        while not step.learn_rows(
            own, kernel, x[k : k + 1], y[k : k + 1].astype(float), np.full(1, 2.0), np.ones(1),
            np.array([k + 1]), np.ones(1, np.float32), schedule(), np.zeros((1, 0)),
        ):  # fmt: skip
            own = classes.grown(own, CACHE)
        # Within `learn_rows` there is room before the look.
        own.info[0].n_looked -= 1
        while own.info[0].n - own.info[0].n_dead > 12:
            twin, rows = twin_of(own)
            slot, is_merged = bounds.merge_two(own, kernel, MERGE, 3)
            if not is_merged:
                bounds.forget(own, kernel, slot, 3)
            n_merged += is_merged
            twin.make_room(rows, 1.0, int(own.info[0].n_looked))
            for mine, its in zip(by_age(*twin_of(own)), by_age(twin, rows), strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-4)
            check(own)
        own.info[0].n_looked += 1
    assert n_merged > 20
    # The same to the bit as within `learn_rows`.
    other, _ = learnt(x, y, schedule(bounds=bounds_of(None, 12)), rest=rest)
    for p in range(len(own.problems.table)):
        assert members(own, p) == members(other, p)


def check(own):
    """Sums, boxes, gradients and duals of each problem against fresh values."""
    (_, rows, found), of = vectors_and_members(own), own.problems
    for p, (where, at) in enumerate(found):
        alpha, f = of.alpha[at], values(KERNEL, rows[where], rows[where]).astype(float)
        f = f @ alpha
        assert abs(alpha.sum()) < 1e-9
        assert ((of.lower[at] <= alpha) & (alpha <= of.upper[at])).all()
        np.testing.assert_allclose(of.gradient[at], of.y[at] - f, atol=1e-9)
        assert of.table[p].dual == pytest.approx(alpha @ of.y[at] - 0.5 * alpha @ f, abs=1e-8)


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
            # Merged vectors have the negative number of their newest part.
            assert y[abs(number) - 1] == own.y[slot] and own.y[slot] in (
                side.positive,
                side.negative,
            )
    assert (wanted == own.wanted[:n]).all()
    assert limit is None or len(entered) <= limit


def test_gradients_and_duals_are_those_of_the_coefficients_within_bounds():
    x, y = examples(400)
    for plan in (Window(90.0), bounds_of(150, 40)):
        own, _ = learnt(x, y, schedule(bounds=plan))
        check(own)
        newest = np.abs(own.store.entered[own.wanted > 0])
        assert (newest > 400 - (90 if isinstance(plan, Window) else 150)).all()


def test_all_problems_fade_alike_when_errors_have_become_more():
    x, _ = examples(1600)
    y = 2 * (x[:, 0] > 0.0) + (x[:, 1] > 0.0)
    y[800:] = (y[800:] + 1) % 4
    own, _ = learnt(x[:800], y[:800], schedule(bounds=bounds_of(None, 20)))
    assert own.info[0].n_watched == 800
    own, _ = learnt(x, y, schedule(bounds=bounds_of(None, 20)))
    assert own.info[0].n_watched < 800
    check(own)


def test_votes_are_decided_by_margins_and_probabilities_are_coupled():
    x, y = examples(300, 3)
    own, _ = learnt(x, y, schedule(), k=3)
    kernel = bound(KERNEL, own.store)
    margins, out = np.zeros((300, 3)), np.zeros((300, 6))
    step.problem_margins_of(own, kernel, x, margins)
    margins_of(own, kernel, schedule(), x, out)
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


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("rest", [False, True])
def test_rows_that_are_added_are_members_without_effect(rest, is_sparse):
    x, y = examples()
    own, _ = learnt(x[:150], y[:150], schedule(), rest=rest, is_sparse=is_sparse)
    before = [members(own, p) for p in range(len(own.problems.table))]
    new, k = slice(150, 240), 4
    # Each row is a member of every second problem of its class, at most.
    problem = np.array([np.diag(own.problems.problem_of)] * k) if rest else own.problems.problem_of
    wanted = problem[y[new]].astype(np.int64)
    wanted[:, ::2] = -1
    gram = values(KERNEL, x, x).astype(float)
    f = np.zeros(wanted.shape)
    for r, c in zip(*np.nonzero(wanted >= 0), strict=True):
        old = before[wanted[r, c]]
        f[r, c] = sum(a * gram[150 + r, number - 1] for number, (a, _) in old.items())
    done, n = 0, 90
    cost = np.where(np.arange(n) % 10 == 0, 0.0, 2.0)
    while done < n:
        rows = x[new][done:]
        done += finish.add_rows(
            own, sparse(rows) if is_sparse else rows, y[new][done:].astype(float), cost[done:],
            np.ones(n)[done:], np.arange(151 + done, 241), np.ones(n, np.float32)[done:], f[done:],
            wanted[done:],
        )  # fmt: skip
        if done < n:
            own = classes.grown(own, CACHE)
    for p, old in enumerate(before):
        now = members(own, p)
        asked = np.flatnonzero((wanted == p).any(axis=1) & (cost > 0.0)) + 151
        assert set(now) == set(old) | set(asked.tolist())
        assert all(now[number] == old[number] for number in old)
        assert all(now[number][0] == 0.0 for number in asked)
    while not finish.finish_some(own, bound(KERNEL, own.store), schedule(), x.shape[1], 10**6):
        pass
    for p in range(len(before)):
        now = members(own, p)
        numbers = np.array(list(now)) - 1
        alpha, gradient = np.array(list(now.values())).T
        positive = own.problems.segments[p].positive
        signs = np.where(y[numbers] == positive, 1.0, -1.0)
        fresh = signs - gram[np.ix_(numbers, numbers)] @ alpha
        np.testing.assert_allclose(gradient, fresh, atol=1e-4)
        info = own.problems.table[p]
        assert info.g_max - info.g_min <= 1e-3
