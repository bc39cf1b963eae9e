"""The united model: it learns what shards send, and is solved again as one problem."""

from __future__ import annotations

import numpy as np

from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.models.kernel.kernel_solver import reserving
from streamsvm.models.kernel.lasvm_solver import PairsSolver
from streamsvm.run.shards.exchange import Examples, Expansion, Setting
from streamsvm.support.rows import shape

_FINEST = 1e-8
"""Gradients differ by so much through rounding: a smaller tau is never reached."""

_FINER, _MUCH_FINER = 1 / 4, 1 / 64
"""The factors by which tau falls at once, at least and at most."""


class United:
    """A learner of rows of all shards."""

    def __init__(self, learner: LASVMClassifier, setting: Setting) -> None:
        self.learner, self._setting = learner, setting

    @classmethod
    def new(cls, setting: Setting) -> United:
        """Return one that has learnt nothing."""
        return cls(setting.new_learner(), setting)

    def add(self, sent: list[Examples]) -> int:
        """Learn what shards have sent, in the order of the shards; return how many rows are new.

        Those that the learner has, in its reserve at least, are looked at by `solve`.
        """
        reserve, n = reserving(self.learner.solver).kept_rows, 0
        known = np.concatenate([reserve.facts()["number"], self.learner.kept_numbers()])
        for examples in sent:
            new = examples.take(np.flatnonzero(~np.isin(examples.numbers, known)))
            if len(new.numbers):
                new.learnt_by(self.learner, self._setting)
                n += len(new.numbers)
        return n

    def solve(self, allowed: float) -> None:
        """Finish, the more exactly the smaller the gap that its own rows may leave."""
        learner = self.learner
        learner.finish()
        while (left := learner.kept_gap().total) > allowed and self.tau > _FINEST:
            # The gap falls with tau. Each `finish` computes f of all rows of the reserve anew: one
            # more takes longer than going further than needed.
            self.tau *= min(_FINER, max(_MUCH_FINER, 0.5 * allowed / left))
            learner.finish()
            if learner.delta > self.tau:
                return  # what is left is rounding

    def refine(self) -> bool:
        """Let the next `solve` be more exact; return False if it cannot be."""
        self.tau *= _FINER
        return self.tau > _FINEST

    @property
    def accuracy(self) -> float:
        """By how much gradients differ now at most: rows that lack less would change nothing."""
        return max(self.tau, self.learner.delta)

    @property
    def tau(self) -> float:
        """By how much gradients may differ at the end of `solve`."""
        return self.learner.tau

    @tau.setter
    def tau(self, tau: float) -> None:
        solver = self.learner.solver
        self.learner.tau, solver.schedule = tau, solver.schedule._replace(tau=tau)

    @property
    def expansion(self) -> Expansion:
        """What is sent to the shards."""
        return Expansion.of(self.learner, self._setting)

    def conclude(self, tau: float, n_rows: int, sample: Examples) -> None:
        """Make it a learner that has learnt all rows, and goes on with numbers after theirs."""
        self.tau = tau
        learner = self.learner
        learner.n_learnt[0] = n_rows
        if not shape(sample.rows)[0]:
            return
        # Those that it has learnt are the hard ones, by which it would trust itself too little.
        if not isinstance(learner.solver, PairsSolver):
            margins = learner.margins_many(sample.matrix(self._setting))
            labels = [self._setting.labels[code] for code in sample.codes.tolist()]
            classes = np.array([learner.targets.number_of(label) for label in labels])
            learner.targets.calibration[:] = learner.targets.new_calibration()
            learner.targets.calibrate(margins, classes)
        else:
            sizes = learner.model.sizes()
            classes = sample.codes.astype(np.float64)
            learner.model.replace(solver=learner.solver.calibrated(sample.rows, classes, sizes))
