"""Trains one linear SVM on the rows of many shards, by cutting planes, to a measured gap.

Each round asks all shards twice: for a plane near the best weights, by which the bound from below
rises, then for the losses on the way from the best weights so far to those that the planes say are
best, which say how far to go (Franc and Sonnenburg, Optimized cutting plane algorithm for
large-scale risk minimization, JMLR 10, 2009). Shards keep nothing between rounds, and the number of
rounds does not depend on that of the shards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.errors import LabelError, ParameterError
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.losses import LOSSES
from streamsvm.run.shards.exchange import CuttingPlane, Setting, size_of
from streamsvm.run.shards.job import Training
from streamsvm.run.shards.report import Round, ShardsReport
from streamsvm.solvers.linear.state import AVERAGE_BIAS, BIAS, SCALE, P, Q, T

_MOST_STEPS = 20_000

_STEPS = np.concatenate([[0.0], 2.0 ** np.arange(-12.0, 2.25, 0.5)])
"""How far to go from the best weights to those of the planes: the best of these is taken."""

_BEYOND = 0.1
"""The next plane is at the best weights, and so far from there to those of the planes."""

_OF_GAP = 0.01
"""The planes' own problem is solved to this part of the gap so far."""


class LinearTraining(Training):
    """Rounds with planes, and the best weights so far.

    The problem is ``lambda / 2 (|w|^2 + b^2) + mean loss``: that of `SVMSGDClassifier` with the
    hinge loss, but b is the weight of a constant feature, and regularised as the others are.
    """

    def __init__(self, parts: tuple[Any, SVMSGDClassifier], *given: Any) -> None:
        _check(parts[1])
        super().__init__(parts, *given)

    def begin(self) -> None:
        """Let the shards read, and begin at weights of 0, or where the folder ends."""
        self._agree(1.0 / (self._learner.model.schedule.lam * max(1, self.report.rows)))
        if len(self._setting.labels) > 2:
            raise LabelError(
                f"{len(self._setting.labels)} labels: a linear SVM is trained for two: use "
                "train_on_shards with kernels.Linear(), or a target that is one label or not"
            )
        d = len(self._setting.names) + 1
        self._best, self._at = np.zeros(d), np.zeros(d)
        self._a, self._b, self._dual_weights = np.zeros((0, d)), np.zeros(0), np.zeros(0)
        if (kept := self._folder.planes()) is not None:
            arrays, self.report = kept
            self._best, self._at, self._a, self._b, self._dual_weights = (
                arrays[name] for name in ("best", "at", "a", "b", "shares")
            )

    def run(
        self, wanted: float, max_rounds: int, on_round: Callable[[Round], None]
    ) -> tuple[Any, ShardsReport]:
        """Make rounds until the gap is as wanted; return the model and the report."""
        rounds = self.report.rounds
        while not (rounds and rounds[-1].relative_gap <= wanted) and len(rounds) < max_rounds:
            rounds.append(self._round())
            self._keep()
            on_round(rounds[-1])
        if rounds[-1].relative_gap > wanted:
            self.report.reason = f"max_rounds={max_rounds}: the gap is {self.report.gap:.2g}"
        self._conclude(wanted)
        learner = as_learner(self._setting, self._best, self.report.rows)
        return self._behind_scaler(learner), self.report

    def _round(self) -> Round:
        asked = self.workers.ask("cutting_plane", self._all, self._setting, self._at)
        touching = list(asked)
        planes: list[CuttingPlane] = [answer.content for answer in touching]
        start = time.process_time()
        self._a = np.vstack([self._a, np.sum([plane.a for plane in planes], axis=0)])
        self._b = np.append(self._b, sum(plane.b for plane in planes))
        rounds = self.report.rounds
        accuracy = _OF_GAP * (rounds[-1].gap if rounds else float(self._b.max()))
        before, gram = np.append(self._dual_weights, 0.0), self._a @ self._a.T
        weights, lowest = dual_weights(gram, self._b, before, accuracy)
        self._dual_weights, wanted = weights, -self._a.T @ weights
        seconds = time.process_time() - start
        given = self._setting, self._best, wanted, _STEPS
        searched = list(self.workers.ask("losses", self._all, *given))
        loss = np.sum([answer.content for answer in searched], axis=0)
        ways = self._best + _STEPS[:, None] * (wanted - self._best)
        objectives = 0.5 * (ways**2).sum(axis=1) + loss
        chosen = int(np.argmin(objectives))
        self._best, primal = ways[chosen], float(objectives[chosen])
        self._at = (1.0 - _BEYOND) * self._best + _BEYOND * wanted
        return Round(
            primal=primal,
            dual=lowest,
            gap=primal - lowest,
            cost=sum(plane.cost for plane in planes),
            n_support_vectors=0,
            n_violating=sum(plane.n_losing for plane in planes),
            n_sent=0,
            shard_seconds=[a.seconds + b.seconds for a, b in zip(touching, searched, strict=True)],
            united_seconds=seconds,
            bytes_out=3 * self._best.nbytes,
            bytes_in=sum(size_of(answer.content) for answer in (*touching, *searched)),
        )

    def _keep(self) -> None:
        arrays = {"best": self._best, "at": self._at, "a": self._a, "b": self._b}
        self._folder.keep_planes({**arrays, "shares": self._dual_weights}, self.report)


def as_learner(setting: Setting, w: np.ndarray, n_rows: int) -> Any:
    """Return a learner of so many rows with these weights, the last one of which is the bias."""
    learner = setting.new_learner()
    model = learner.model
    model.n_learnt[0], model.n_features = n_rows, len(setting.names)
    model.is_sparse, model.first_rows = setting.is_sparse, None
    state = model.make_room(model.n_features)
    state.weights[:] = 0.0
    state.weights[0, 0, : len(w) - 1] = w[:-1]
    info = state.info[0]
    info[[BIAS, AVERAGE_BIAS]], info[T] = w[-1], n_rows
    # The average, p u + q v, is that of the same weights, v, too.
    info[[SCALE, P, Q]] = 1.0
    return learner


def _check(learner: SVMSGDClassifier) -> None:
    """Refuse what cannot be trained so."""
    schedule = learner.model.schedule
    if learner.n_examples or learner.hashing is not None or learner.selection is not None:
        raise ParameterError("the model has learnt before, or has hashing= or selection=")
    if schedule.loss != LOSSES["hinge"] or schedule.bias_rate == 0.0:
        raise ParameterError("only loss='hinge', with a bias, is trained on shards")


def dual_weights(
    gram: np.ndarray, b: np.ndarray, weights: np.ndarray, accuracy: float
) -> tuple[np.ndarray, float]:
    """Maximise ``<b, s> - s' gram s / 2`` over s >= 0 of sum 1 at most; return s and the value.

    ``loss(w) >= max_t <a_t, w> + b_t`` and ``>= 0``; with this in place of the loss, the problem is
    this small one, whose optimum bounds that of the true one from below (Teo, Vishwanathan, Smola
    and Le, Bundle methods for regularized risk minimization, JMLR 11, 2010).

    The value is at most `accuracy` below the maximum, unless that takes too many steps. `gram` are
    the dot products of the a_t. It begins with `weights`, and makes steps on two of them at a time,
    as SMO does.
    """
    m = len(b)
    q, slopes = np.zeros((m + 1, m + 1)), np.append(b, 0.0)
    q[:m, :m] = gram
    s = np.append(weights, 1.0 - weights.sum())  # the last one is that of the plane 0
    g = slopes - q @ s
    for _ in range(_MOST_STEPS):
        i, used = int(np.argmax(g)), np.flatnonzero(s > 0.0)
        differences = g[i] - g[used]
        if differences.max() <= accuracy:
            break
        curvatures = np.maximum(q[i, i] + q[used, used] - 2.0 * q[i, used], 1e-12)
        at = int(np.argmax(np.maximum(differences, 0.0) ** 2 / curvatures))
        j, step = used[at], min(float(differences[at] / curvatures[at]), s[used[at]])
        s[i] += step
        s[j] -= step
        g -= step * (q[:, i] - q[:, j])
    return s[:m], float(slopes @ s - 0.5 * s @ q @ s)
