"""A state of averaged tracking with rows to give it, and what must hold of it at any time."""

from __future__ import annotations

import numpy as np
import pytest

from streamsvm.solvers.bounds import Reservoir, Unbounded, Window
from streamsvm.solvers.tracking import state as tracking_state
from streamsvm.solvers.tracking import step as tracking
from tests.reference.row_stream import RowStream
from tests.reference.slow_tracking import SlowTracking

PLAIN = tracking.Schedule(
    steps=5.0, steps_per_r2=0.0, process=1.0, keep_zeros=1.0, averaged=1.0, tau=0.0,
)  # fmt: skip


def problem(seed, n, d, noise=0.5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    y = np.where(x[:, 0] * x[:, -1] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    return x, y


def unequal(seed, n, C=1.0):
    return C * np.random.default_rng(seed).uniform(0.2, 2.0, n)


def check_active_set(active, entered):
    """Members, places and free slots fit together; return the members."""
    n, m, n_free = (int(active.counts[0][name]) for name in ("n", "n_members", "n_free"))
    members, free = active.members[:m].tolist(), active.free[:n_free].tolist()
    assert sorted(members + free) == list(range(n))
    assert active.place[members].tolist() == list(range(m))
    assert (np.delete(active.place, members) == -1).all()
    assert entered[members].all() and not entered[free].any()
    # Merged vectors have negative ones, that of their newest part.
    numbers = [number for number in entered[members].tolist() if number > 0]
    assert len(set(numbers)) == len(numbers)
    return active.members[:m]


TOTALS = ("process_gain", "lost", "skipped", "mean_gain", "scaled_gain", "width", "r2")


def twin_of(stream, window=0):
    s = stream.schedule
    return SlowTracking(
        stream.gram, stream.y, stream.cost, stream.state.draws[0], int(s.steps), s.process > 0,
        s.keep_zeros > 0, s.tau, window,
        int(s.bounds.limit) if isinstance(s.bounds, Reservoir) else 0,
    )  # fmt: skip


def learnt_by(slow, k, schedule):
    """Let the slow twin learn a row; return the margin from before that the schedule asks for."""
    last = slow.f(k)
    averaged = slow.learn(k)
    return averaged if schedule.averaged else last


def assert_twins(stream, slow):
    """A stream and its slow twin have the same coefficients, members, totals and looks."""
    scale = 1.0 + np.abs(stream.gram).max()
    for mine, theirs in ((stream.state.alpha, slow.a), (stream.state.average, slow.average)):
        np.testing.assert_allclose(
            stream.of_rows(mine), slow.y * theirs, rtol=0, atol=1e-10 * scale
        )
    assert (stream.state.store.entered[stream.members] - 1).tolist() == slow.members
    info = stream.info
    for name in TOTALS:
        assert info[name] == pytest.approx(getattr(slow, name), rel=1e-8, abs=1e-9 * scale), name
    assert info.dual == pytest.approx(slow.dual, rel=1e-9, abs=1e-9 * scale)
    assert info.n_seen == slow.n_seen and info.n_steps == slow.n_seen * slow.K
    if slow.looks is not None:
        looks = slow.looks
        found = info.look_sum, info.look_squares, info.look_most
        wanted = looks.total, looks.squares, looks.most
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-9 * scale)
        assert info.n_looked == slow.n_seen


def check_after_every_row(stream, window):
    """What the state holds is right, and what steps gain and removals lose is booked."""
    gained = 0.0
    for k in range(len(stream.y)):
        stream.learn([k])
        stream.check()
        info = stream.info
        # Steps never lower the dual: what it falls by is what was lost, and left out is left out.
        scale = 1.0 + abs(info.lost) + abs(gained)
        assert info.dual + info.lost - gained >= -1e-9 * scale
        gained = float(info.dual + info.lost)
        booked = info.process_gain + stream.schedule.steps * info.mean_gain
        booked -= info.skipped + info.lost
        assert booked == pytest.approx(info.dual, rel=1e-9, abs=1e-9 * scale)
        assert len(stream.members) <= min(stream.schedule.bounds.limit, window or np.inf)


class TrackingStream(RowStream):
    """A state, and rows to give it."""

    step = tracking
    kind = tracking_state.TrackingState

    def __init__(self, x, y, cost, kernel, schedule=PLAIN, seed=0, window=0, cache_bytes=10**6):
        if window and isinstance(schedule.bounds, Unbounded):
            schedule = schedule._replace(bounds=Window(float(window)))
        super().__init__(
            x, y, cost, kernel, schedule, False, cache_bytes, seed, slots=64, window=window
        )

    def learn(self, rows):
        self.learn_rows(np.asarray(rows))
        return self

    def all(self):
        return self.learn(np.arange(len(self.y)))

    def of_rows(self, slotwise):
        """Return an array over slots as one over the rows, 0 for those that are no members."""
        out = np.zeros(len(self.y))
        rows = self.members[self.state.store.entered[self.members] > 0]
        out[self.state.store.entered[rows] - 1] = slotwise[rows]
        return out

    def kernel_of_members(self):
        return self.kernel_of(self.members)

    def fresh_dual(self, coefficients=None):
        alpha = (self.state.alpha if coefficients is None else coefficients)[self.members]
        K = self.kernel_of_members()
        return alpha @ self.state.y[self.members] - 0.5 * alpha @ K @ alpha

    def check(self, rel=1e-9):
        """Boxes, f, dual, sums and the active set, against fresh values."""
        state, info = self.state, self.info
        members = check_active_set(state.active, state.store.entered)
        away = np.ones(state.alpha.size, bool)
        away[members] = False
        assert not state.alpha[away].any() and not state.average[away].any()
        alpha, y, cost = state.alpha[members], state.y[members], state.cost[members]
        assert (y * alpha >= 0.0).all() and (y * alpha <= cost).all()
        average = y * state.average[members]
        assert (average >= -1e-12 * cost).all() and (average <= cost * (1 + 1e-12)).all()
        touched = np.flatnonzero(state.is_touched)
        assert sorted(state.touched[: info.n_touched]) == touched.tolist()
        assert set(np.flatnonzero(state.average != state.alpha)) <= set(touched)
        assert info.cost_sum == pytest.approx(cost.sum(), rel=1e-9, abs=1e-9)
        assert info.cost_squares == pytest.approx((cost**2).sum(), rel=1e-9, abs=1e-9)
        scale = 1.0 + np.abs(alpha).sum()
        assert info.alpha_sum == pytest.approx(np.abs(alpha).sum(), rel=1e-9, abs=1e-9 * scale)
        if len(members):
            K = self.kernel_of_members()
            f = K @ alpha
            scale = 1.0 + np.abs(K).max() * np.abs(alpha).sum()
            np.testing.assert_allclose(state.f[members], f, rtol=0, atol=rel * scale)
            dual = alpha @ y - 0.5 * alpha @ f
            assert info.dual == pytest.approx(dual, rel=rel, abs=rel * scale)
            np.testing.assert_array_equal(state.diagonal[members], np.diag(K).astype(np.float32))
            self.check_cache()
        else:
            assert info.dual == pytest.approx(0.0, abs=1e-9 * (1.0 + abs(info.lost)))

    def check_cache(self):
        """Every cached kernel value is the one of the rows that live there now."""
        cache, n = self.state.cache, int(self.state.active.counts[0].n)
        K = self.kernel_of(np.arange(n)).astype(np.float32)
        for slot in self.members:
            line = cache.line_of[slot]
            if line >= 0:
                n = int(cache.length[line])
                np.testing.assert_array_equal(cache.values[line, :n], K[slot, :n])
