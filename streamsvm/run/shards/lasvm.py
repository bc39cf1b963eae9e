"""Trains one LASVM on the rows of many shards, to a gap that is measured on all of them.

Each shard learns alone, as in a cascade of SVMs (Graf, Cosatto, Bottou, Durdanovic and Vapnik,
2005); the union of their support vectors is solved again as one problem. Then rounds: each shard
evaluates the united model, and sends what it lacks. The coefficients of the united model, with 0
for all other rows, are feasible for the problem of all rows: so the gap is exact, whatever was
sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.models.kernel.kernel_solver import reserving
from streamsvm.models.kernel.lasvm_solver import PairsSolver
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.folder import Kept
from streamsvm.run.shards.job import Training
from streamsvm.run.shards.problem import Examples, Expansion, measured
from streamsvm.run.shards.report import Round, ShardsReport

_UNITED = "united.svm"

_OF_KEPT = 0.25
"""The part of the gap wanted that the united model may leave on its own rows."""

_FINEST = 1e-8
"""Gradients differ by so much through rounding: a smaller tau is never reached."""

_FINER, _MUCH_FINER = 1 / 4, 1 / 64
"""The factors by which tau falls at once, at least and at most."""

_FEWEST_SENT = 1000
"""So many rows may be sent in a round by all shards, or as many as the model has."""

_SAMPLE, _IN_DOUBLE = 2000, 200
"""So many rows, drawn from all, calibrate probabilities; so many of these tell the rounding."""

_LEAST_PROGRESS = 0.01
"""Two rounds that close less than this part of the gap, with no new row, are the last ones."""

_MOST_IDLE = 10
"""So are as many that do not with new rows: the reserve may be too small to know those sent."""


class LASVMTraining(Training[LASVMClassifier]):
    """Rounds with a united model, a learner of rows of all shards.

    How exactly it is solved is its `tau`, by how much gradients may differ, which falls.
    """

    def __init__(self, parts: tuple[StandardScaler | None, LASVMClassifier], *given: Any) -> None:
        _check(parts[1])
        super().__init__(parts, *given)
        self._united: LASVMClassifier
        self._expansion: Expansion

    def run(self, wanted: float, max_rounds: int) -> Iterator[Round]:
        """Make rounds until the gap is as wanted; yield each."""
        self._agree(self._learner.C_)
        if (kept := self._folder.read(_UNITED)) is not None:
            self._united = cast(LASVMClassifier, kept.model)  # the plan says so
            self.report = ShardsReport.from_json(kept.about)
        else:
            self._united = self._setting.new_learner()
            self._learn(self._new(self._union()))
            self._solve(wanted)
        while True:
            worst = self._evaluated()
            made = self.report.rounds[-1]
            yield made
            if made.relative_gap <= wanted or len(self.report.rounds) >= max_rounds:
                return
            new = self._new(worst)
            if self._is_at_rest(len(new) > 0) or not (new or self._refine(_FINER)):
                gap = f"{made.relative_gap:.2g}"
                self.report.reason = f"further rounds change nothing: the gap stays at {gap}"
                return
            self._learn(new)
            self._solve(wanted)

    def _union(self) -> list[Examples]:
        """Let the shards learn alone that have not yet; return the support vectors of all."""
        names = [f"shard-{i:05d}.svm" for i in self._all]
        found = [self._folder.read(name) for name in names]
        numbers = {i: kept.arrays["numbers"] for i, kept in enumerate(found) if kept is not None}
        due = [i for i in self._all if i not in numbers]
        most = max(1, _FEWEST_SENT // len(self._all))
        answers = self.workers.ask("learn", due, self._setting, most)
        for i, learnt in zip(due, answers, strict=True):
            numbers[i] = learnt
            self._folder.write(names[i], Kept(self._learner, {}, {"numbers": learnt}))
        return self._ask("chosen", self._setting, np.concatenate([*numbers.values()]))

    def _new(self, sent: list[Examples]) -> list[Examples]:
        """Return those rows that the united model has not, not even in its reserve.

        The others are looked at by `_solve`.
        """
        reserve = reserving(self._united.solver).kept_rows
        known = np.concatenate([reserve.facts()["number"], self._united.kept_numbers()])
        new = [one.take(np.flatnonzero(~np.isin(one.numbers, known))) for one in sent]
        return [one for one in new if len(one.numbers)]

    def _learn(self, new: list[Examples]) -> None:
        for examples in new:
            examples.learnt_by(self._united, self._setting)

    def _solve(self, wanted: float) -> None:
        """Solve the united model, as exactly as this round needs it, and keep it."""
        united, rounds = self._united, self.report.rounds
        # At first the rows that the model lacks leave most of the gap.
        allowed = np.inf
        united.finish()
        if rounds:
            allowed = _OF_KEPT * max(wanted * united.dual, 0.1 * rounds[-1].gap)
        while (left := united.kept_gap().total) > allowed and united.tau > _FINEST:
            # The gap falls with tau. Each `finish` computes f of all rows of the reserve anew: one
            # more takes longer than going further than needed.
            self._refine(min(_FINER, max(_MUCH_FINER, 0.5 * allowed / left)))
            united.finish()
            if united.delta > united.tau:
                break  # what is left is rounding
        self._folder.write(_UNITED, Kept(united, asdict(self.report), {}))

    def _refine(self, factor: float) -> bool:
        """Let the next `finish` be more exact; return False if it cannot be."""
        self._set_tau(factor * self._united.tau)
        return self._united.tau > _FINEST

    def _set_tau(self, tau: float) -> None:
        solver = self._united.solver
        self._united.tau, solver.schedule = tau, solver.schedule._replace(tau=tau)

    def _evaluated(self) -> list[Examples]:
        """Let all shards evaluate the united model; return the rows that it lacks most."""
        self._expansion = expansion = Expansion.of(self._united, self._setting)
        n = len(expansion.numbers)
        most = max(1, max(_FEWEST_SENT, n) // len(self._all))
        # By how much gradients differ now at most: rows that lack less would change nothing.
        tau = max(self._united.tau, self._united.delta)
        found = self._ask("evaluate", self._setting, expansion, most, tau)
        sums, n_lacking, worst = zip(*found, strict=True)
        gap, loss, total, norm = np.sum(sums, axis=0).tolist()
        self._add_round(
            primal=0.5 * norm + loss,
            dual=total - 0.5 * norm,
            gap=gap,
            n_support_vectors=n,
            n_violating=sum(n_lacking),
        )
        return [*worst]

    def _is_at_rest(self, is_new: bool) -> bool:
        """Tell whether the last rounds have changed next to nothing."""
        n = _MOST_IDLE if is_new else 2
        if len(self.report.rounds) <= n:
            return False
        before, now = self.report.rounds[-n - 1], self.report.rounds[-1]
        least = _LEAST_PROGRESS * now.gap
        return now.dual - before.dual < least and before.gap - now.gap < least

    def model(self) -> LASVMClassifier:
        """Return the model as one that has learnt all rows; measure the error of rounding."""
        setting, united, n = self._setting, self._united, self.report.rows
        # The same rows, in the same order, however they are dealt: files may be sorted by label.
        draws = np.random.default_rng(0)
        chosen = 1 + draws.choice(n, min(n, _SAMPLE), replace=False)
        sample = Examples.joined(self._ask("chosen", setting, chosen), setting)
        sample = sample.take(draws.permutation(len(sample.codes)))
        some = sample.take(np.arange(min(_IN_DOUBLE, len(sample.codes))))
        kernel, expansion = setting.learner.kernel_, self._expansion
        both = expansion.margins(kernel, some.rows), expansion.margins_in_double(kernel, some.rows)
        single, double = (measured(setting, expansion, some, f)[1] for f in both)
        of_each = float(np.abs(single - double).sum()) / len(some.codes)
        self.report.rounding = of_each * n / max(self.report.rounds[-1].dual, 1e-300)
        self._set_tau(self._learner.tau)
        united.n_learnt[0] = n
        self._calibrate(sample)
        return united

    def _calibrate(self, sample: Examples) -> None:
        """Calibrate probabilities by rows drawn from all.

        Those that it has learnt are the hard ones, by which it would trust itself too little.
        """
        united, labels = self._united, self._setting.labels
        if isinstance(united.solver, PairsSolver):
            sizes, codes = united.model.sizes(), sample.codes.astype(np.float64)
            solver = united.solver.calibrated(sample.rows, codes, sizes)
            united.model.replace(solver=solver)
        else:
            numbers = np.array([united.targets.number_of(label) for label in labels])
            margins = united.margins_many(sample.matrix(self._setting))
            united.targets.calibration[:] = united.targets.new_calibration()
            united.targets.calibrate(margins, numbers[sample.codes])


def _check(learner: LASVMClassifier) -> None:
    """Refuse what cannot be trained so."""
    wrong = {
        "it has learnt before": learner.n_examples > 0,
        "kernel=None is found on the first rows of one stream: give RBF(gamma=...); a learner "
        "that has learnt some thousand rows has one as kernel_, and C_": learner.kernel is None,
        "scale=True: put StandardScaler in front": learner.scale is True,
        "window, max_support_vectors: the problem would not be that of all rows": (
            learner.window is not None or learner.max_support_vectors is not None
        ),
        "hashing: features need their names": learner.hashing is not None,
        "selection: all rows are learnt": learner.selection is not None,
    }
    if found := [why for why, is_so in wrong.items() if is_so]:
        raise ParameterError(f"this model cannot be trained on shards: {found[0]}")
