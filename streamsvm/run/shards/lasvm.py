"""Trains one LASVM on the rows of many shards, to a gap that is measured on all of them.

Each shard learns alone, as in a cascade of SVMs (Graf, Cosatto, Bottou, Durdanovic and Vapnik,
2005); the union of their support vectors is solved again as one problem. Then rounds: each shard
evaluates the united model, and sends what it lacks. The coefficients of the united model, with 0
for all other rows, are feasible for the problem of all rows: so the gap is exact, whatever was
sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.run.shards.exchange import Evaluation, Examples, Expansion, size_of
from streamsvm.run.shards.job import Training
from streamsvm.run.shards.margins import margins_in_double, margins_of
from streamsvm.run.shards.measuring import measured
from streamsvm.run.shards.report import Round, ShardsReport
from streamsvm.run.shards.united import United

_OF_KEPT = 0.25
"""The part of the gap wanted that the united model may leave on its own rows."""

_FEWEST_SENT = 1000
"""So many rows may be sent in a round by all shards, or as many as the model has."""

_SAMPLE, _IN_DOUBLE = 2000, 200
"""So many rows, drawn from all, calibrate probabilities; so many of these tell the rounding."""

_LEAST_PROGRESS = 0.01
"""Two rounds that close less than this part of the gap, with no new row, are the last ones."""

_MOST_IDLE = 10
"""So are as many that do not with new rows: the reserve may be too small to know those sent."""


class LASVMTraining(Training):
    """Rounds with a united model."""

    def __init__(self, parts: tuple[Any, LASVMClassifier], *given: Any) -> None:
        _check(parts[1])
        super().__init__(parts, *given)
        self._united: United
        # Whether the united model was solved in the present round, and the seconds of that so far.
        self._is_solved, self._seconds = False, 0.0

    def begin(self) -> None:
        """Let the shards read and learn, and unite them; or continue where the folder ends."""
        self._agree(self._learner.C_)
        if (found := self._folder.united()) is not None:
            learner, self.report, self._seconds = found
            self._united, self._is_solved = United(learner, self._setting), True
            return
        sent = self._learnt()
        start = time.process_time()
        self._united = United.new(self._setting)
        self._united.add(sent)
        self._seconds = time.process_time() - start

    def _learnt(self) -> list[Examples]:
        """Let the shards learn that have not yet; return what all have sent."""
        found = {i: self._folder.sent(i) for i in self._all}
        due = [i for i, sent in found.items() if sent is None]
        most = max(1, _FEWEST_SENT // len(self._all))
        for answer in self.workers.ask("learn", due, self._setting, most):
            self._folder.keep_sent(answer.shard, answer.content, answer.seconds)
            found[answer.shard] = answer.content, answer.seconds
        sent = [one for one in found.values() if one is not None]
        self.report.learn_seconds = [seconds for _, seconds in sent]
        self.report.learn_bytes = sum(size_of(examples) for examples, _ in sent)
        return [examples for examples, _ in sent]

    def run(
        self, wanted: float, max_rounds: int, on_round: Callable[[Round], None]
    ) -> tuple[Any, ShardsReport]:
        """Make rounds until the gap is as wanted; return the model and the report."""
        report, united = self.report, self._united
        while True:
            if not self._is_solved:
                self._solve(wanted)
            expansion = united.expansion
            evaluations = self._evaluations(expansion)
            made, worst = report.rounds[-1], [one.worst for one in evaluations]
            on_round(made)
            if made.relative_gap <= wanted:
                break
            if len(report.rounds) >= max_rounds:
                report.reason = f"max_rounds={max_rounds}: the gap is {report.gap:.2g}"
                break
            start = time.process_time()
            is_new = united.add(worst) > 0
            if self._is_at_rest(is_new) or not (is_new or united.refine()):
                report.reason = f"further rounds change nothing: the gap stays at {report.gap:.2g}"
                break
            self._is_solved, self._seconds = False, time.process_time() - start
        model = self._concluded(expansion)
        if not report.reason and report.rounding > wanted:
            report.reason = (
                f"the rounding of kernel values is {report.rounding:.2g} of the dual: nobody can "
                f"tell whether the gap, {report.gap:.2g} as it was measured, is below that"
            )
        self._conclude(wanted)
        return model, report

    def _is_at_rest(self, is_new: bool) -> bool:
        """Tell whether the last rounds have changed next to nothing."""
        n = _MOST_IDLE if is_new else 2
        if len(self.report.rounds) <= n:
            return False
        before, now = self.report.rounds[-n - 1], self.report.rounds[-1]
        least = _LEAST_PROGRESS * now.gap
        return now.dual - before.dual < least and before.gap - now.gap < least

    def _solve(self, wanted: float) -> None:
        """Solve the united model, as exactly as this round needs it, and keep it."""
        report, united = self.report, self._united
        # At first the rows that the model lacks leave most of the gap.
        goal = np.inf
        if report.rounds:
            goal = max(wanted * united.learner.dual, 0.1 * report.rounds[-1].gap)
        start = time.process_time()
        united.solve(_OF_KEPT * goal)
        self._seconds += time.process_time() - start
        self._folder.keep_united(united.learner, report, self._seconds)
        self._is_solved = True

    def _evaluations(self, expansion: Expansion) -> list[Evaluation]:
        """Let all shards evaluate the model; add the round to the report."""
        n = len(expansion.numbers)
        most = max(1, max(_FEWEST_SENT, n) // len(self._all))
        given = self._setting, expansion, most, self._united.accuracy
        answers = list(self.workers.ask("evaluate", self._all, *given))
        evaluations: list[Evaluation] = [answer.content for answer in answers]
        gap, loss, total, norm, cost = np.sum([one.sums for one in evaluations], axis=0).tolist()
        self.report.rounds.append(
            Round(
                primal=0.5 * norm + loss,
                dual=total - 0.5 * norm,
                gap=gap,
                cost=cost,
                n_support_vectors=n,
                n_violating=sum(one.n_violating for one in evaluations),
                n_sent=sum(len(one.worst.numbers) for one in evaluations),
                shard_seconds=[answer.seconds for answer in answers],
                united_seconds=self._seconds,
                bytes_out=size_of(expansion),
                bytes_in=sum(size_of(one.worst) for one in evaluations),
            )
        )
        return evaluations

    def _concluded(self, expansion: Expansion) -> Any:
        """Return the model as one that has learnt all rows; measure the error of rounding."""
        setting = self._setting
        # The same rows, in the same order, however they are dealt: files may be sorted by label.
        draws, n = np.random.default_rng(0), self.report.rows
        chosen = 1 + draws.choice(n, min(n, _SAMPLE), replace=False)
        answers = self.workers.ask("chosen", self._all, setting, chosen)
        sample = Examples.joined([answer.content for answer in answers], setting)
        sample = sample.take(draws.permutation(len(sample.codes)))
        some = sample.take(np.arange(min(_IN_DOUBLE, len(sample.codes))))
        kernel, gaps = setting.learner.kernel_, []
        for margins in (margins_of, margins_in_double):
            f = margins(kernel, expansion, some.rows)
            gaps.append(measured(setting, expansion, some, f).gaps)
        last = self.report.rounds[-1]
        of_each = float(np.abs(gaps[0] - gaps[1]).sum()) / max(1, len(some.codes))
        self.report.rounding = of_each * self.report.rows / max(last.dual, 1e-300)
        self._united.conclude(self._learner.tau, self.report.rows, sample)
        return self._behind_scaler(self._united.learner)


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
