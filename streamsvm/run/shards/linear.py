"""Trains one linear SVM on the rows of many shards, by cutting planes, to a measured gap.

Each round asks all shards twice: for a plane near the best weights, by which the bound from below
rises, then for the losses on the way from the best weights so far to those that the planes say are
best, which say how far to go (Franc and Sonnenburg, Optimized cutting plane algorithm for
large-scale risk minimization, JMLR 10, 2009). Shards keep nothing between rounds, and the number of
rounds does not depend on that of the shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from streamsvm.errors import LabelError, ParameterError
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.losses import LOSSES
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.folder import Kept
from streamsvm.run.shards.job import Training
from streamsvm.run.shards.report import Round, ShardsReport
from streamsvm.solvers.linear.state import AVERAGE_BIAS, BIAS, SCALE, P, Q, T

_PLANES = "planes.svm"

_MOST_STEPS = 20_000

_STEPS = np.concatenate([[0.0], 2.0 ** np.arange(-12.0, 2.25, 0.5)])
"""How far to go from the best weights to those of the planes: the best of these is taken."""

_BEYOND = 0.1
"""The next plane is at the best weights, and so far from there to those of the planes."""

_OF_GAP = 0.01
"""The planes' own problem is solved to this part of the gap so far."""


class LinearTraining(Training[SVMSGDClassifier]):
    """Rounds with planes, and the best weights so far.

    The problem is ``lambda / 2 (|w|^2 + b^2) + mean loss``: that of `SVMSGDClassifier` with the
    hinge loss, but b is the weight of a constant feature, and regularised as the others are.
    """

    def __init__(self, parts: tuple[StandardScaler | None, SVMSGDClassifier], *given: Any) -> None:
        schedule, learner = parts[1].model.schedule, parts[1]
        if learner.n_examples or learner.hashing is not None or learner.selection is not None:
            raise ParameterError("the model has learnt before, or has hashing= or selection=")
        if schedule.loss != LOSSES["hinge"] or schedule.bias_rate == 0.0:
            raise ParameterError("only loss='hinge', with a bias, is trained on shards")
        super().__init__(parts, *given)
        # `a`, `b` and `shares`: the planes, and their weights in the bound from below.
        self._kept: dict[str, np.ndarray]

    def run(self, wanted: float, max_rounds: int) -> Iterator[Round]:
        """Make rounds until the gap is as wanted; yield each."""
        self._agree(1.0 / (self._learner.model.schedule.lam * max(1, self.report.rows)))
        if (n := len(self._setting.labels)) > 2:
            raise LabelError(
                f"{n} labels: a linear SVM is trained for two: use train_on_shards with "
                "kernels.Linear(), or a target that is one label or not"
            )
        if (kept := self._folder.read(_PLANES)) is not None:
            self._kept, self.report = kept.arrays, ShardsReport.from_json(kept.about)
        else:
            d, none = len(self._setting.names) + 1, np.zeros(0)
            self._kept = {"best": np.zeros(d), "at": np.zeros(d)}
            self._kept |= {"a": np.zeros((0, d)), "b": none, "shares": none}
        rounds = self.report.rounds
        while not (rounds and rounds[-1].relative_gap <= wanted) and len(rounds) < max_rounds:
            made = self._round()
            self._folder.write(_PLANES, Kept(self._learner, asdict(self.report), self._kept))
            yield made

    def _round(self) -> Round:
        """Add a plane, and go from the best weights towards those of the planes."""
        best, at, a, b, shares = (self._kept[n] for n in ("best", "at", "a", "b", "shares"))
        # Of all rows: the plane of their losses, and how many lose.
        *plane, height, n_losing = np.sum(self._ask("cutting_plane", self._setting, at), axis=0)
        a, b = np.vstack([a, plane]), np.append(b, height)
        rounds = self.report.rounds
        accuracy = _OF_GAP * (rounds[-1].gap if rounds else float(b.max()))
        shares, lowest = dual_weights(a @ a.T, b, np.append(shares, 0.0), accuracy)
        towards = -a.T @ shares
        loss = np.sum(self._ask("losses", self._setting, best, towards, _STEPS), axis=0)
        ways = best + _STEPS[:, None] * (towards - best)
        objectives = 0.5 * (ways**2).sum(axis=1) + loss
        chosen = int(np.argmin(objectives))
        best, primal = ways[chosen], float(objectives[chosen])
        at = (1.0 - _BEYOND) * best + _BEYOND * towards
        self._kept = {"best": best, "at": at, "a": a, "b": b, "shares": shares}
        return self._add_round(
            primal=primal,
            dual=lowest,
            gap=primal - lowest,
            n_support_vectors=0,
            n_violating=int(n_losing),
        )

    def model(self) -> SVMSGDClassifier:
        """Return a learner of all rows with the best weights, the last one of which is the bias."""
        learner = self._setting.new_learner()
        w, model = self._kept["best"], learner.model
        model.n_learnt[0], model.n_features = self.report.rows, len(w) - 1
        model.is_sparse, model.first_rows = self._setting.is_sparse, None
        state = model.make_room(model.n_features)
        state.weights[:] = 0.0
        state.weights[0, 0, : len(w) - 1] = w[:-1]
        info = state.info[0]
        info[[BIAS, AVERAGE_BIAS]], info[T] = w[-1], self.report.rows
        # The average, p u + q v, is that of the same weights, v, too.
        info[[SCALE, P, Q]] = 1.0
        return learner


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
