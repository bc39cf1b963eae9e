"""A race of candidates: each learns the first examples of a stream, a little after each event.

The work after an event is bounded, by counts of what the solvers do, not by the clock: so the same
examples always end a race at the same event. Only the best candidate so far and the one that learns
now are in memory. When all have learnt the first examples, the best learns those that came
meanwhile, faster than they come, and the race is over.

A race is kept neither in files nor in copies: it can be run again, as it depends on nothing but the
examples and on what `Begun` says.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Protocol

import numpy as np

from streamsvm.models.kernel import auto_gamma, learned_relevance, relevance
from streamsvm.models.kernel.feature_scales import FeatureScales, within_limits
from streamsvm.models.kernel.kernel_solver import KernelSolver
from streamsvm.models.kernel.preparation import ClassCosts, Preparation
from streamsvm.models.kernel.relearning import (
    Errors,
    Work,
    add_classes,
    are_fewer,
    joined,
    learn_examples,
)
from streamsvm.models.kernel.trial import LAST, Begun, Candidate, Choice, Trial
from streamsvm.support import states
from streamsvm.support.rows import cut, shape, sparse

BUDGET = 2e7
"""The work after an event, about that of so many nanoseconds: see `Work`."""

_MANY = 256
"""From so many examples on, candidates that err far more do not learn all of them."""

_LOOKS = (4, 2)
"""When these are found: after the number of examples divided by these."""

_FAR = 2.0
"""By how many standard deviations these err more than the best (see `are_fewer`)."""

_FAR_OF_FURTHER = 1.0
"""The same for those with the larger C, which must err less by as much in the end."""

SMOOTHER = (0.25, 10.0)
"""What gamma and C of the best candidate are multiplied by for a further one."""

WIDTHS_OF_SEVERAL = (SMOOTHER[0], 1.0)
"""Of several classes its gamma as it is is tried with the larger C, too: there, one C and one gamma
must do for pairs of classes whose borders differ, and a smoother border is too smooth for some."""

_BEYOND_CHANCE = 1.5
"""By how many standard deviations another kernel must err less, if its losses are not smaller."""

_CLEARLY = 2.0
"""The same of weighted features."""

_OF_LARGER_C = 1.0
"""The same of a larger C, which makes losses smaller anyway, and fits wrong labels."""

_FEWEST = 2
"""So many rows are learnt after each event at least: so the best catches up at some time."""

_FEWEST_WEIGHED = 128
"""How much features weigh is learnt from so many examples at least."""

_MATTERS = 0.3
"""A feature is said to matter that is multiplied by more than this."""

_OF_VALUE = 40.0
"""The work for each value of the examples, to find the scales of features."""

_OF_PAIR = 700.0
"""The work for two classes, each of which may have a problem with the other, before learning."""

_CACHE_BYTES = 64_000_000
"""The most memory for kernel rows of a candidate: those of 1,024 examples need 4 for two classes,
and 80 for hundreds."""


class Racing(Protocol):
    """What a race asks of the model that it is for, and what it replaces."""

    preparation: Preparation
    solver: KernelSolver
    costs: ClassCosts
    n_features: int
    is_sparse: bool

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def replace(self, **parts: Any) -> None:
        """Replace parts by others in one step."""

    def like(self, gamma: float, C: float, cache_bytes: int) -> Any:
        """Return a model with the same settings that has learnt nothing, with an RBF and this C."""


def begun(model: Racing, n: int) -> Begun:
    """Return what a race needs to know that begins after n examples of a model."""
    preparation = model.preparation
    assert preparation.trial is not None
    n_kept = preparation.trial.n_examples
    variances = preparation.variances(n, model.n_features, model.is_sparse)
    n_slots, draws = states.n_slots(model.solver.state), model.solver.draws.copy()
    return Begun(n, n_kept, n_slots, model.n_classes, variances, draws)


class Tried:
    """A candidate that learns the examples, and how it predicts each before.

    `rank` is its place among the candidates: ties go to the first. In `errors` those examples are
    right, and without loss, that do not count. `costs`, float64 (examples,), are what an error on
    each counts, by its class.
    """

    def __init__(self, candidate: Candidate, rank: int, model: Any, costs: np.ndarray) -> None:
        self.candidate, self.rank, self.model, self.costs = candidate, rank, model, costs
        self.errors, self.parts = Errors(np.zeros(0, bool), np.zeros(0)), list[Errors]()

    def settle(self, counts: np.ndarray) -> None:
        """Set `errors` of the examples learnt; `counts`, bool (n,), says which of them count."""
        wrong, losses = joined(self.parts)
        self.errors = Errors(wrong & counts, np.where(counts, losses, 0.0))

    def is_better(self, best: Tried) -> bool:
        """Tell whether it shall be taken instead of the best so far."""
        if self.rank < best.rank:
            return not best.is_better(self)
        start, deviations = 0, 0.0
        if self.candidate.is_weighted != best.candidate.is_weighted:
            # On the examples by which features were not weighted.
            start, deviations = self.errors.wrong.size // 2, _CLEARLY
        elif self.candidate.C != best.candidate.C:
            deviations = _OF_LARGER_C
        elif self.candidate.width != best.candidate.width:
            # A narrower kernel needs more support vectors, and more examples if classes overlap.
            costs = self.costs[: self.errors.losses.size]
            is_surer = costs @ self.errors.losses < costs @ best.errors.losses
            deviations = 0.0 if is_surer else _BEYOND_CHANCE
        return self.errs_less(best, deviations, start)

    def errs_less(self, other: Tried, deviations: float, start: int = 0) -> bool:
        """Tell whether its errors from example `start` on are fewer: see `are_fewer`.

        They are compared on the examples that both have learnt.
        """
        n = min(self.errors.wrong.size, other.errors.wrong.size)
        own, others = self.errors.wrong[start:n], other.errors.wrong[start:n]
        return are_fewer(own, others, deviations, self.costs[start:n])


Tries = Generator[None, None, Tried]
"""Lets candidates learn, pauses when the budget is spent, and returns the best."""


class Race:
    """Candidates that learn the first examples of a model, which is not changed."""

    def __init__(self, model: Racing, trial: Trial, begun: Begun) -> None:
        self._model, self._trial, self.begun = model, trial, begun
        self.n_candidates = 0
        self.scales = FeatureScales()
        self.relevance: np.ndarray | None = None
        self._models: list[Any] = []
        self._count, self._left = begun.n_kept, 0.0
        self._work = self._run()

    def advance(self, count: int, budget: float) -> Tried | None:
        """Work within the budget; at the end return the best candidate, which has learnt all.

        `count` is the number of examples that there are by now, one more each time.
        """
        self._count, self._left = count, budget
        try:
            next(self._work)
        except StopIteration as end:
            return end.value
        return None

    def leave(self) -> None:
        """Free the memory of the candidates; the race is not advanced any more."""
        self._work.close()

    @property
    def nbytes(self) -> int:
        """Bytes of the models."""
        return sum(sum(model.memory_parts.values()) for model in self._models)

    def changes(self, best: Tried, n: int) -> dict[str, Any]:
        """Return the parts of the model, after n examples, that the race replaces by others."""
        raced, model = self._model, best.model
        preparation, is_last = raced.preparation, self.begun.n >= LAST
        if model.n_classes != raced.n_classes:
            # Only if the model was told of classes that do not come.
            return {"preparation": preparation.changed(trial=None)} if is_last else {}
        relevance = self.relevance if best.candidate.is_weighted else None
        n_relevant = 0 if relevance is None else int((relevance > _MATTERS).sum())
        is_scaled = model.factors is not None
        choice = Choice(self.n_candidates, self.begun.n, is_scaled, n_relevant)
        scales = None
        if is_last and (is_scaled or preparation.scale == "auto") and not raced.is_sparse:
            scales = self.scales
            if not is_scaled:
                scales.keep_weights()
            scales.relevance = relevance
            scales.begin_half()
            self._learn_later(scales, n)
        found: dict[str, Any] = {"choice": choice, "C": model.C, "factors": model.factors}
        found |= {"scales": scales, "trial": None if is_last else self._trial}
        solver = raced.solver.continuing(model.solver)
        return {"solver": solver, "preparation": preparation.changed(**found)}

    def _learn_later(self, scales: FeatureScales, n: int) -> None:
        """Let scales learn the examples that came since the race began, up to number n."""
        x, start = self._later(self.begun.n_kept, self._count)[0], self.begun.n
        while start < n:
            stop = min(n, auto_gamma.next_power_of_two(start))
            scales.learn_some(cut(x, start - self.begun.n, stop - self.begun.n), start)
            start = stop
            if start & (start - 1) == 0:
                scales.begin_half()

    def _later(self, start: int, stop: int) -> Any:
        """Return the examples after the first `start` ones, up to number `stop`."""
        trial = self._trial
        found = trial.last(trial.n_examples - start, self._model.n_features)
        return found.part(0, stop - start)

    # The work, which pauses when the budget is spent

    def _run(self) -> Tries:
        work = _OF_VALUE * self.begun.n_kept * self._model.n_features
        if work > BUDGET / 4.0:
            # After the next event: other work, too, is due at powers of two.
            yield
        self._prepare()
        self._left -= work
        candidates = self._candidates()
        self.relevance = yield from self._relevance(self.begun.n_kept // 2)
        if self.relevance is not None:
            candidates += dict.fromkeys(Candidate(c.width, True, c.C, True) for c in candidates)
        self.n_candidates = len(candidates)
        # That of the race before first: then others soon turn out to err far more.
        order = sorted(range(len(candidates)), key=lambda i: candidates[i] != self._trial.winner)
        best: Tried | None = None
        for rank in order:
            best = yield from self._better(candidates[rank], rank, best, _FAR)
        assert best is not None
        if best.candidate.is_weighted:
            # That weights pay was told by examples that had not chosen them: now all may choose.
            before, found = self.relevance, (yield from self._relevance(self.begun.n_kept))
            if found is not None and np.any(found != before):
                self.relevance = found
                best = yield from self._further(best.candidate, best, _FAR)
                if best.rank != self.n_candidates - 1:
                    self.relevance = before
        preparation = self._model.preparation
        if preparation.finds_C and preparation.gamma == "auto":
            first = best.candidate
            for factor in WIDTHS_OF_SEVERAL if self.begun.n_classes > 2 else SMOOTHER[:1]:
                further = first._replace(width=first.width * factor, C=first.C * SMOOTHER[1])
                best = yield from self._further(further, best, _FAR_OF_FURTHER)
        self._models = [best.model]
        while best.model.n_examples < self._count:
            count = self._count
            yield from self._learn(best, self._later(best.model.n_examples, count), count)
        return best

    def _further(self, candidate: Candidate, best: Tried, far: float) -> Tries:
        """Let one more candidate learn the examples: see `_better`."""
        self.n_candidates += 1
        return self._better(candidate, self.n_candidates - 1, best, far)

    def _better(self, candidate: Candidate, rank: int, best: Tried | None, far: float) -> Tries:
        """Let a candidate learn the examples; return the better one of it and the best so far.

        It learns no more if it errs more than that by over `far` standard deviations.
        """
        tried, n = self._tried(candidate, rank), self.begun.n_kept
        self._models = [one.model for one in (tried, best) if one is not None]
        # Where few examples count as much as all others, errors on the first say little.
        may_stop = best is not None and n >= _MANY and np.ptp(self._costs) == 0.0
        stops = [n // part for part in _LOOKS] if may_stop else []
        for stop in [*stops, n]:
            start = tried.model.n_examples
            yield from self._learn(tried, self._examples.part(start, stop), stop)
            tried.settle(self._is_new[:stop])
            if best is not None and stop < n:
                if best.errs_less(tried, far):
                    return best
        return tried if best is None or tried.is_better(best) else best

    def _learn(self, tried: Tried, examples: Any, stop: int) -> Iterator[None]:
        """Let a candidate learn the examples before number `stop` that it lacks."""
        model, first, factors = tried.model, tried.model.n_examples, self._model.costs.factors
        if self._is_told(model.n_classes):
            add_classes(model, examples.classes.max(initial=-1) + 1, factors)
        work = Work(model)
        while model.n_examples < stop:
            if self._left <= 0.0:
                yield
            start = model.n_examples - first
            n = work.affordable(self._left, stop - model.n_examples, _FEWEST)
            part = examples.part(start, start + n)
            tried.parts.append(learn_examples(model, part, part.marks, factors))
            self._left -= work.of_last()

    def _prepare(self) -> None:
        """Read the examples."""
        model, begun = self._model, self.begun
        trial = self._trial
        found = trial.last(trial.n_examples, model.n_features)
        if model.is_sparse:
            found = found._replace(x=sparse(found.x))
        self._examples: Any = found.part(0, begun.n_kept)
        x, classes, weights, numbers = self._examples
        # A model of the adaptive learner may begin with examples that lack some classes, or have
        # them in another order. LASVM's are told all classes first, as it is slow to add one
        # midway; it has no problem of a class without examples, so that they learn the same.
        came = classes[np.sort(np.unique(classes, return_index=True)[1])]
        n_classes = begun.n_classes
        is_early = self._is_told(n_classes) or not np.array_equal(came, np.arange(n_classes))
        self._n_known = n_classes if is_early else 0
        self.scales.learn_first(x)
        self._variances = np.pad(begun.variances, (0, shape(x)[1] - begun.variances.size))
        # Rows that come again, in further epochs, are not counted: all candidates know them.
        self._is_new = np.zeros(begun.n_kept, bool)
        self._is_new[np.unique(numbers, return_index=True)[1]] = True
        self._is_new &= weights > 0.0
        # Errors count as much as those of their class.
        self._costs = model.costs.now(1.0, classes.astype(np.float64))

    def _is_told(self, n_classes: int) -> bool:
        """Tell whether a candidate of so many classes is told at once of all that come."""
        return self._model.solver.is_told_classes and n_classes > 2

    def _candidates(self) -> list[Candidate]:
        model, candidates = self._model, self._trial.candidates
        if np.ptp(self._costs) > 0.0 and len({c.width for c in candidates}) > 1:
            # Of rare examples that count more than others few have come: a smooth border finds
            # more of them.
            candidates = [*candidates, *(c._replace(width=SMOOTHER[0]) for c in candidates)]
            candidates = list(dict.fromkeys(candidates))
        if model.is_sparse:
            return list(dict.fromkeys(c._replace(is_scaled=False) for c in candidates))
        if model.preparation.scale == "auto" and self.scales.are_alike(self._variances):
            return [c for c in candidates if not c.is_scaled]
        return list(candidates)

    def _relevance(self, n: int) -> Generator[None, None, np.ndarray | None]:
        """Return what features are multiplied by, from the first n examples, or None.

        Weights are learnt, from equal ones and from those of a search by correlation: features that
        matter only in a product have no gradient where many weigh alike.
        """
        if self._model.is_sparse or self._model.preparation.scale != "auto":
            return None
        is_used = self._is_new[:n]
        x, classes = (fact[: is_used.size][is_used] for fact in self._examples[:2])
        if len(x) < _FEWEST_WEIGHED or x.shape[1] < 2 or len(np.unique(classes)) < 2:
            return None
        found = yield from self._working(relevance.search(x, classes, BUDGET / 2.0))
        starts = [np.ones(x.shape[1])] + ([] if found is None else [found**2])
        rows = learned_relevance.Squared(x * self.scales.factors())
        w = yield from self._working(learned_relevance.learn(rows, classes, starts))
        return None if w.min() == 1.0 else np.sqrt(w)

    def _working(self, work: Generator[float, None, Any]) -> Generator[None, None, Any]:
        """Do work that says what each of its parts took, within the budget; return its result."""
        while True:
            if self._left <= 0.0:
                yield
            try:
                self._left -= next(work)
            except StopIteration as end:
                return end.value

    def _tried(self, candidate: Candidate, rank: int) -> Tried:
        """Return a candidate that has learnt nothing yet."""
        raced, d = self._model, shape(self._examples[0])[1]
        factors = self.scales.factors() if candidate.is_scaled else None
        if factors is not None and candidate.is_weighted:
            factors = within_limits(factors * self.relevance)
        if raced.is_sparse:
            variance = float(self._variances.sum())
        else:
            variance = self.scales.total(factors, self._variances)
        gamma = candidate.width * auto_gamma.gamma_for(variance, self.begun.variances.size)
        most = min(raced.solver.cache_bytes, _CACHE_BYTES)
        model = raced.like(gamma, candidate.C, most)
        model.preparation.factors = factors
        if self.begun.draws.size and raced.solver.seed is None:
            # A model without a seed of its own and its copies must go on with the same draws.
            model.solver.draws = self.begun.draws.copy()
        add_classes(model, self._n_known, raced.costs.factors)
        # As much room as the model needs, at once: to grow takes as long as to learn so few. That
        # which it has may be another one after loading.
        model.solver.grow_for(self.begun.n_slots, model.sizes(d))
        self._left -= _OF_PAIR * self.begun.n_classes**2
        return Tried(candidate, rank, model, self._costs)


def step(model: Racing, n: int) -> None:
    """Begin a race if one is due after n examples, and work on it."""
    trial = model.preparation.trial
    if trial is not None and trial.is_due(n):
        trial.begin(begun(model, n))
    _advance(model, n, BUDGET)


def end(model: Racing) -> None:
    """End the race that is on, if there is one, whatever it takes."""
    _advance(model, model.n_examples, 1e300)


def _advance(model: Racing, n: int, budget: float) -> None:
    trial = model.preparation.trial
    if trial is None or trial.begun is None:
        return
    # It is put back when nothing has interrupted its step. Without it, after an interruption, in a
    # copy, or from a file, all steps so far are made again.
    running, trial.race = trial.race, None
    if running is None:
        running = Race(model, trial, trial.begun)
        for later in range(n - trial.begun.n, 0, -1):
            running.advance(trial.n_examples - later, BUDGET)
    best = running.advance(trial.n_examples, budget)
    if best is None:
        trial.race = running
        return
    model.replace(**running.changes(best, n))
    trial.begun, trial.winner = None, best.candidate
