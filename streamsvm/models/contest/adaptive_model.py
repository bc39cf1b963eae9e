"""Several kernel models that learn a stream, of which the one that erred least of late predicts.

The model in use learns each example at once. The others learn the last `EVERY` examples together,
or `EVERY_IF_CALM`, which takes a fraction of the time: they are not asked for predictions
meanwhile. While errors do not become more, only the best of them learns. The rest sleep, until
errors have become more, and are looked at when the number of examples is a power of two: then they
learn the last examples, as many as are kept.

A model that wakes, or begins anew, may have so much to learn that a stream would wait for it. So it
learns a part after each comparison, and predicts when it has learnt all. The parts are bounded by
counts, not by the clock: the same examples always lead to the same models.

A drift makes what was learnt before it wrong. So when errors have become more, a fresh model learns
the last examples, of which the older half is not counted. If it errs less on the newer half than
the predictions that were made did, more clearly than by chance, all models begin anew with these
examples. Else nothing has changed, and nothing is lost. The fresh model compares rows as the model
in use does; if that does not help, another one finds scale and width itself, by the older half: the
features may have got other units.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from streamsvm import kernels
from streamsvm.model_files.json_values import Content, checked, kernel_from_json
from streamsvm.models.contest import choice
from streamsvm.models.contest.choice import IN_USE, AdaptiveState
from streamsvm.models.contest.members import KINDS, Kind, Settings, kinds_of
from streamsvm.models.kept_examples import WRONG, Examples, KeptExamples
from streamsvm.models.kernel import finishing, race
from streamsvm.models.kernel.auto_gamma import gamma_for
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.kernel_solver import reserving
from streamsvm.models.kernel.relearning import Work, add_classes, are_fewer, learn_examples
from streamsvm.models.kernel.reserve import FACTS, Reserve
from streamsvm.models.model import Combining, Kernel, LearntEvent, Model, Parts
from streamsvm.models.outputs import GrowingOutputs
from streamsvm.models.rows import NumberedRows, row_after, rows_where
from streamsvm.solvers.adaptive import combination, last_label
from streamsvm.solvers.adaptive.combination import CombinationState
from streamsvm.support import states
from streamsvm.support.declaration import NamedArrays, as_int
from streamsvm.support.interruptions import Changes
from streamsvm.support.rows import Rows, SparseRows, dense, shape, sparse
from streamsvm.support.state_arrays import as_arrays, from_arrays

_log = logging.getLogger(__name__)

N_MODELS = len(KINDS)

EVERY = 32
"""The models are compared at multiples of this number of examples."""

EVERY_IF_CALM = 128
"""The same, while errors do not become more, once scale and width were found."""

SLEEP_EVERY, SLEEP_FROM = 256, 512
"""At multiples of this number of examples models may fall asleep, from so many on."""

LONG = 1024
"""Errors that have been more for so many examples are what is usual now: models may sleep."""

BUDGET = 4e7
"""What models learn after a comparison, in about nanoseconds (see `Work`)."""

RENEWED_AT = (32, 128, 1024)
"""The numbers of examples of the first model at which the others take its scale and gamma: it
tries them at powers of two, but to learn all examples anew each time takes as long."""

MOST_FRESH = 1024
"""The most examples that a fresh model learns."""

_FRESH = ((256, 64, False), (MOST_FRESH, 256, False), (256, 256, True))
"""How many of the last examples a fresh model learns: the first that convinces is taken. After how
many examples with more errors it is tried, and tried again: later, after half as many again as
there were, as what did not help so far may not help at all. And whether it finds scale and width
itself, which takes four times as long."""

_CLEARLY = 2.5
"""By how many standard deviations it must err less: see `are_fewer`."""

_NOT_ASKED = np.zeros(0, np.int64)

SHARE = 0.01
"""As the default of `LaRankClassifier.finish`."""


class AdaptiveModel(Model):
    """Lets models learn, compares them, and lets them begin anew when a drift is noticed.

    Attributes
    ----------
    models
        The first alone, until the first comparison; then one of each kind.
    state
        The shares of errors, and what is known of the predictions.
    recent
        The last examples, with which models begin anew.
    combination, scratch
        What the scores of the model in use are combined with, and arrays for that.
    factors_of_classes
        What C is multiplied by for each class.
    used_before
        The number of the model in use when models began anew, until they learn what is kept.

    """

    outputs: GrowingOutputs
    combination: CombinationState
    used_before: int | None = None

    def __init__(self, settings: Settings, is_sparse: bool, uses_last_label: bool) -> None:
        self.settings, self.is_sparse, self.uses_last_label = settings, is_sparse, uses_last_label
        self.outputs = GrowingOutputs(0)
        self.factors_of_classes: list[float] = []
        self.models: list[KernelModel] = []
        self.state = self.empty_state()
        self.combination = combination.new_combination()
        self.scratch = combination.new_scratch(1, 0)
        self.recent = KeptExamples("recent_", WRONG, MOST_FRESH)
        self.n_learnt, self.n_features = np.zeros(1, np.int64), 0

    def empty_state(self) -> AdaptiveState:
        """Return an empty state."""
        return states.new(AdaptiveState, {"models": N_MODELS})

    @property
    def used(self) -> KernelModel | None:
        """The model that predicts now; None before the first example."""
        models = self.models
        if len(models) < 2:
            return models[0] if models else None
        return models[self.state.info.item(IN_USE)]

    @property
    def in_use(self) -> Model:
        """The same, as a model whose arrays compiled code uses."""
        return self.used or self

    # New models

    def _new_model(
        self, factors: list[float], kind: Kind, kernel: Kernel | None, scale: bool | str
    ) -> KernelModel:
        """Return a model of a kind for classes with these factors of C."""
        model = self.settings.model_of(kind, kernel, scale, self.is_sparse)
        add_classes(model, len(factors), factors)
        model.n_features = self.n_features
        return model

    def new_first(self, factors: list[float]) -> KernelModel:
        """Return a new first model, which finds scale and width."""
        return self._new_model(factors, kinds_of(len(factors))[0], None, self.settings.scale)

    def _new_other(self, factors: list[float], first: KernelModel, kind: Kind) -> KernelModel:
        """Return a new model of a kind, which compares rows as the first model does."""
        kernel = kernels.RBF(gamma=first.kernel.gamma * kind.width)
        model = self._new_model(factors, kind, kernel, "auto")
        model.preparation.factors = first.preparation.factors
        return model

    def _last(self, n: int) -> Examples:
        """Return the last n examples, or as many as are kept."""
        return self.recent.last(n, self.n_features)

    # Classes

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose C is multiplied by a factor."""
        n, factors = self.n_classes + 1, [*self.factors_of_classes, factor]
        kinds, used = kinds_of(n), self.used
        if n > 3 and used is not None and not kinds[self.state.info[IN_USE]].is_of(used):
            # Of so many classes another kind takes its place.
            self._use_first()
        state = copy.deepcopy(self.state)
        changed: dict[str, Any] = {
            "outputs": GrowingOutputs(n),
            "factors_of_classes": factors,
            "combination": combination.with_outputs(self.combination, n if n > 2 else 1),
            "state": state,
            "used_before": None,
        }
        if n == 3 and self.models:
            # Models of other classes than before learn again what is kept.
            examples = self._last(self.recent.n_examples)
            return [(self.__dict__, changed | self._begun_anew(state, factors, examples))]
        found, further = list(self.models), []
        for m, kind in enumerate(kinds[: len(found)]):
            if kind.is_of(found[m]):
                further += found[m].with_class(factor)
                continue
            # The new one learns later what is kept.
            found[m] = self._new_other(factors, found[0], kind)
            state.waiting[m] = min(found[0].n_examples, self.recent.n_examples)
        return [(self.__dict__, changed | {"models": found}), *further]

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as C is multiplied by other factors from now on."""
        of_models = [one for model in self.models for one in model.weighted(factors, False)]
        # As a new object, so that the compiled call for an event gets the factors, too.
        own = {"factors_of_classes": [*factors], "combination": self.combination._replace()}
        return [(self.__dict__, own), *of_models]

    def after_class(self) -> None:
        """Let models that have begun anew learn what is kept."""
        if self.used_before is not None:
            used, self.used_before = self.used_before, None
            self._go_on_with(used, BUDGET)

    def margins_before_class(self, x: Rows) -> np.ndarray | None:
        """Return the margins of a row before its class is added."""
        if not self.models:
            return None
        return self._combined(self._scores_of(x), x, np.full(shape(x)[0], combination.NEXT), None)

    # Predictions

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the combined margins, or scores, of rows that need not follow the last example."""
        if not self.models:
            return self.outputs.zeros(shape(x)[0])
        return self._combined(self._scores_of(x), x, np.full(shape(x)[0], combination.ONLY), None)

    def _scores_of(self, x: Rows) -> np.ndarray:
        """Return the margins, or scores, of the model in use."""
        model = self.used or self.models[0]
        # Without what is no score: LASVM has probabilities, too.
        return model.outputs.scores_of(model.margins_of(x))

    def _combined(
        self, margins: np.ndarray, x: Rows, labels: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        """Return margins of the model in use, combined; rows with a label are learnt.

        `margins` are float64 (n,) or (n, classes); `labels`, int64 (n,), are classes, or as
        `combination.ONLY` says; `weights`, float64 (n,), are those of examples.
        """
        n, d = shape(x)
        state, scratch, asked = self.combining(d)
        if isinstance(x, SparseRows):
            rows = x.values.reshape(1, -1), x.start, x.columns
        else:
            rows = np.ascontiguousarray(x), np.zeros(0, np.int64), np.zeros(0, np.int32)
        scores = np.ascontiguousarray(margins.reshape(n, -1))
        knows_last, out = asked.size > 0 and not asked[last_label.IS_LATE], np.empty_like(scores)
        weights = np.zeros(n) if weights is None else weights
        combination.learn_rows(
            state, scores, *rows, labels, weights, bool(knows_last), scratch, out
        )
        return out.reshape(margins.shape)

    def combining(self, d: int) -> Combining:
        """Return what compiled code combines scores with, with room for d features."""
        state, scratch = self.combination, self.scratch
        if state.moments.shape[1] <= d:
            state = self.combination = combination.with_room(state, d)
        n_outputs, n_inputs = state.linear.shape[1:]
        if scratch.inputs.shape[1] != n_outputs or len(scratch.row) < n_inputs:
            scratch = self.scratch = combination.new_scratch(n_outputs, n_inputs)
        scratch.factors_of_classes[: self.n_classes] = self.factors_of_classes
        return state, scratch, self.state.asked if self.uses_last_label else _NOT_ASKED

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows: of an RBF kernel it is 1."""
        return np.ones(shape(x)[0], np.float32)

    def _note_rows(self, rows: NumberedRows) -> None:
        """Note that rows are learnt, as compiled code does of one: it may be that of an event."""
        asked, x = self.state.asked, rows.x
        if len(rows.y) > 1 or not rows.numbers[0]:
            asked[[last_label.N_PREDICTED, last_label.LAST_ROW]] = 0
        elif isinstance(x, SparseRows):
            n = len(x.values)
            last_label.note_learnt(asked, last_label.digest(x.columns, x.values, n, True))
        else:
            values, columns = np.ascontiguousarray(x[0], np.float32), np.zeros(1, np.int32)
            last_label.note_learnt(asked, last_label.digest(columns, values, len(values), False))

    # Events: of the arrays of the model in use

    def event_parts(self) -> Parts:
        """Return what compiled code uses for an event."""
        model = self.used
        if model is None or model.is_sparse != self.is_sparse:
            return None, None, None
        return model.event_parts()

    def takes_every_row(self) -> bool:
        """Tell whether the models accept every row of finite values."""
        return bool(self.models)

    def cost_of(self, number: float) -> float:
        """Return the cost of the next example, if it is of this class."""
        model = self.used
        return 1.0 if model is None else model.cost_of(number)

    def after_event(self, event: LearntEvent, number: float, cost: float) -> None:
        """Take note of an event that the model in use has learnt, and compare the models."""
        # First, so that it is counted whatever interrupts the rest.
        n = self.n_learnt[0] = self.n_learnt.item() + 1
        row, scores = event.row(), event.margins[:, : self.combination.linear.shape[1]]
        model = self.in_use
        # It may not know the latest features yet.
        model.n_features = self.n_features
        model.after_event(event, number, cost)
        is_one = scores.shape[1] == 1
        found = scores.item() > 0.0 if is_one else scores[0].argmax()
        self.recent.add_one(row, (int(number), event.weight, found != number))
        self.state.waiting[:] += 1
        self._after_examples(n)

    # Learning

    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return margins before."""
        self.n_features = max(self.n_features, shape(rows.x)[1])
        self._note_rows(rows)
        if not self.models:
            self.models = [self.new_first(self.factors_of_classes)]
        parts, start, seen = [], 0, self.n_examples
        while start < len(rows.y):
            stop = row_after(rows.numbers, start, EVERY - seen % EVERY)
            part = rows.part(start, stop)
            learnt = part.numbers > 0
            model = self.used or self.models[0]
            before = model.n_examples
            numbers = np.where(learnt, before + np.cumsum(learnt), 0)
            try:
                margins = model.outputs.scores_of(model.learn(part._replace(numbers=numbers)))
            finally:
                # After an interruption, too; the others never learn what is not in `recent`.
                self.n_learnt[0] = seen + model.n_examples - before
            labels = np.where(learnt, part.y, combination.ONLY).astype(np.int64)
            parts.append(self._combined(margins, part.x, labels, part.w))
            kept = np.flatnonzero(learnt)
            start, seen = stop, seen + len(kept)
            if len(kept):
                wrong = self.outputs.are_wrong(part.y[kept], margins[kept])
                classes = part.y[kept].astype(np.int64)
                self.recent.add(rows_where(part.x, learnt), classes, part.w[kept], wrong)
                self.state.waiting[:] += len(kept)
                self._after_examples(seen)
        return np.concatenate(parts)

    def _after_examples(self, n: int) -> None:
        """Compare the models after n examples, if that is due: see `EVERY`."""
        if n % EVERY or not self.models:
            return
        if not self.is_sparse and any(model.is_sparse for model in self.models):
            self.become_sparse()
        self._note_predictions()
        choice.note_risen(self.state, EVERY)
        if choice.notices_drift(self.state, n):
            _log.info("drift at example %d: errors are far more than before", n)
        if self._is_calm(n):
            return
        left = self.choose(n, self._catch_up(BUDGET, 2 * EVERY))
        self.renew_others(left)
        if self.used is not None:
            # So that events are read for the model that predicts now, whatever it has learnt.
            self.used.make_room(self.n_features)
        if self.state.risen[0]:
            self._begin_anew_if_better(n)

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.settings.sparse is not False:
            self.is_sparse = True
            # Sparse rows are not standardised.
            self.combination.linear[:] = 0.0
            for model in self.models:
                model.become_sparse()

    # The comparison

    def _note_predictions(self) -> None:
        """Count the errors of the last predictions, which the model in use made."""
        n = int(self.state.waiting[self.state.info[IN_USE]])
        if n:
            choice.note_predictions(self.state, self._last(n).marks > 0)

    def _is_calm(self, n: int) -> bool:
        """Tell whether after n examples it is too early to compare the models.

        While all is calm it is enough at multiples of `EVERY_IF_CALM`.
        """
        state, since = self.state, n % EVERY_IF_CALM
        risen = int(state.risen[0])
        if not since or (risen and (risen < LONG or risen % EVERY_IF_CALM == 0)):
            return False
        is_behind = (state.waiting > since) & (state.asleep == 0)
        return bool(self.models[0].n_examples > SLEEP_EVERY and not is_behind.any())

    def _catch_up(self, budget: float, fewest: int) -> float:
        """Let the models that are awake, but for the one in use, learn the examples they wait for.

        Called after `_note_predictions`. Models that are behind wait with the rest when the budget
        is spent. The first of them learns at least `fewest` examples, the others `EVERY` at most:
        so they catch up at some time, one after the other. Returns what is left of the budget.
        """
        state = self.state
        for m in range(N_MODELS):
            waiting = int(state.waiting[m])
            if not waiting or state.asleep[m]:
                continue
            examples = self._last(waiting)
            if m >= len(self.models):
                # Until there are all models, the others count as the first.
                choice.fade(state, m, examples.marks > 0)
                continue
            # Of what is not kept any more it learns nothing.
            uncounted = max(0, int(state.uncounted[m]) - waiting + len(examples.classes))
            work = Work(self.models[m])
            work.expect(examples.x)
            # What is usual between two comparisons is learnt at once: in parts it takes longer.
            least = EVERY_IF_CALM if waiting <= EVERY_IF_CALM and fewest else fewest
            n = work.affordable(budget, waiting, least)
            if not n:
                continue
            wrong = learn_examples(self.models[m], examples.part(0, n)).wrong
            n = len(wrong)
            choice.fade(state, m, wrong[uncounted:], len(examples.classes) - n)
            state.uncounted[m] = max(0, uncounted - n)
            budget = max(0.0, budget - work.of_next(n))
            if state.waiting[m]:
                fewest = min(fewest, EVERY)
        return budget

    def choose(self, n: int, budget: float) -> float:
        """Choose the model that predicts from now on, after n examples, a multiple of `EVERY`.

        Called after `_catch_up`. Models that wake learn within the budget; returns what is left.
        """
        state, away, hopeless = self.state, choice.AWAY, choice.HOPELESS
        if not self.outputs.has_one_margin:
            away, hopeless = choice.AWAY_OF_SEVERAL, choice.HOPELESS_OF_SEVERAL
        slept, is_alarmed = state.asleep > 0, 0 < state.risen[0] < LONG
        may_sleep = n % SLEEP_EVERY == 0 and self.models[0].n_examples >= SLEEP_FROM
        if (is_alarmed or (may_sleep and n & (n - 1) == 0)) and state.asleep.any():
            choice.wake(state, math.inf if is_alarmed else hopeless)
            for m in np.flatnonzero(slept & (state.asleep == 0)).tolist():
                solver = self.models[m].solver
                solver.renew_cache(solver.cache_bytes)
            budget = self._catch_up(budget, 0)
        choice.choose(state)
        if may_sleep and not is_alarmed:
            choice.fall_asleep(state, away)
            if self.models[0].preparation.trial is not None:
                # The others wait for the scale and the width that it finds.
                state.asleep[0] = 0
            for m in np.flatnonzero(~slept & (state.asleep > 0)).tolist():
                # What it kept for learning fast is of no use meanwhile.
                self.models[m].solver.renew_cache(0)
        if self.is_rehearsal:
            # So that what each of them needs to predict is compiled.
            state.asleep[:] = 0
            state.info[IN_USE] = n // EVERY % len(self.models)
        return budget

    def _use_first(self) -> None:
        """Use the first model, which learns at once what it waits for."""
        state = self.state
        if state.waiting[0]:
            examples = self._last(int(state.waiting[0]))
            choice.fade(state, 0, learn_examples(self.models[0], examples).wrong)
        state.info[IN_USE] = state.asleep[0] = 0

    # Models that begin anew

    def renew_others(self, budget: float) -> None:
        """Let the other models compare rows as the first one does, if it does so for long.

        Those that begin anew learn within the budget: see `_catch_up`.
        """
        first, state = self.models[0], self.state
        if first.preparation.trial is not None and first.n_examples not in RENEWED_AT:
            return
        used, models = int(state.info[IN_USE]), [first]
        for m, kind in enumerate(kinds_of(self.n_classes)[1:], start=1):
            model = self.models[m] if m < len(self.models) else None
            if model is None or not kind.is_followed_by(model, first):
                model = self._new_other(self.factors_of_classes, first, kind)
                state.waiting[m] = min(first.n_examples, self.recent.n_examples)
                state.uncounted[m] = 0
                if state.asleep[m]:
                    # What it erred as it was before says nothing. Of several classes the models
                    # are of two algorithms, so that this one is compared once more.
                    state.faded[m] = state.faded[used]
                    state.asleep[m] = int(self.outputs.has_one_margin)
                if m == used:
                    self._use_first()
            models.append(model)
        self.models = models
        self._go_on_with(used, budget)

    def _go_on_with(self, used: int, budget: float) -> None:
        """Let models catch up; use the first until the one in use has learnt what it waits for."""
        self._catch_up(budget, 0)
        if not self.state.waiting[used]:
            self.state.info[IN_USE] = used

    def _begin_anew_if_better(self, n: int) -> None:
        """Let all models begin anew with the last examples, if a fresh one errs less on them."""
        examples = self._examples_of_better()
        if examples is None:
            return
        state = copy.deepcopy(self.state)
        choice.begin_anew(state)
        # In one step: an interruption comes before or after it.
        self.__dict__.update(self._begun_anew(state, self.factors_of_classes, examples))
        self.after_class()
        choice.note_drift(self.state, n)
        kept = len(examples.classes)
        _log.info("drift: after example %d models begin anew with the last %d", n, kept)

    def _examples_of_better(self) -> Examples | None:
        """Return the last examples that let a fresh model err less; None: none do."""
        risen = int(self.state.risen[0])
        for length, every, is_free in _FRESH:
            is_due = risen > 0 and risen % max(every, (1 << (risen.bit_length() - 1)) // 2) == 0
            # A model that began not long ago has learnt little else.
            if is_due and self.in_use.n_examples >= 2 * length:
                examples, half = self._last(length), length // 2
                for fresh in self._fresh(half if is_free else None):
                    wrong = learn_examples(fresh, examples).wrong
                    if are_fewer(wrong[half:], examples.marks[half:] > 0, _CLEARLY):
                        return examples
        return None

    def _fresh(self, trial_at: int | None) -> Iterator[KernelModel]:
        """Yield models as the one in use, or one that finds scale and width after some examples."""
        factors, first = self.factors_of_classes, self.models[0]
        if trial_at is not None:
            fresh = self.new_first(factors)
            assert fresh.preparation.trial is not None
            fresh.preparation.trial.only_at(trial_at)
            yield fresh
            return
        kind = kinds_of(self.n_classes)[self.state.info[IN_USE]]
        yield self._new_other(factors, first, kind)
        scales = first.preparation.scales
        if scales is not None and scales.relevance is not None:
            # Other features may matter now.
            equal = scales.unweighted()
            gamma = kind.width * gamma_for(equal.total(equal.factors(), np.zeros(0)), 1)
            fresh = self._new_model(factors, kind, kernels.RBF(gamma=gamma), "auto")
            fresh.preparation.factors = equal.factors()
            yield fresh

    def _begun_anew(
        self, state: AdaptiveState, factors: list[float], examples: Examples
    ) -> dict[str, Any]:
        """Return what changes as models begin anew; `state` is a copy, and updated.

        The first learns the examples now, the others by `_go_on_with`.
        """
        first, n = self.new_first(factors), len(examples.classes)
        if n:
            if first.preparation.trial is not None:
                first.preparation.trial.expect(n)
            learn_examples(first, examples)
        kinds = kinds_of(len(factors))[1 : len(self.models)]
        models = [first, *(self._new_other(factors, first, kind) for kind in kinds)]
        used, state.info[IN_USE] = int(state.info[IN_USE]), 0
        state.asleep[:] = state.waiting[:] = state.uncounted[:] = 0
        state.waiting[1 : len(models)] = state.uncounted[1 : len(models)] = n
        return {"models": models, "state": state, "used_before": used}

    # To the optimum

    def finish(self, progress: Callable[[float, int], None] | None, seconds: float | None) -> None:
        """Lead each model to the optimum over the examples that it keeps, and the last ones."""
        self._note_predictions()
        self._catch_up(np.inf, 2 * EVERY)
        for m, model in enumerate(self.models):
            with self._recent_in_reserve(m):
                share = 0.0 if model.solver.is_told_classes else SHARE
                finishing.finish(model, finishing.Asked(seconds, progress), share)
        # From now on rows are predicted, rather than the next event.
        self.combination.info[combination.LAST_LABEL] = 0

    @contextlib.contextmanager
    def _recent_in_reserve(self, m: int) -> Iterator[None]:
        """Let model number m have the last examples in its reserve, for `finish`.

        It has none else, as each example would be kept four times.
        """
        model = self.models[m]
        race.end(model)
        solver, n = reserving(model.solver), min(self.recent.n_examples, model.n_examples)
        # What it has not learnt yet is more than is kept, and merged vectors stand for examples.
        if self.state.waiting[m] or self.settings.max_support_vectors is not None or not n:
            yield
            return
        x, classes, weights, _ = self._last(n)
        x = sparse(x) if model.is_sparse else x
        facts = np.zeros(n, FACTS)
        facts["number"] = facts["arrived"] = model.n_examples - n + 1 + np.arange(n)
        facts["class"], facts["weight"] = classes, weights
        empty, solver.kept_rows = solver.kept_rows, Reserve(None, solver.kept_rows.window)
        try:
            solver.kept_rows.add(model.preparation.scaled(x), facts)
            yield
        finally:
            reserving(model.solver).kept_rows = empty

    # Inspection and copies

    def dense_rows(self) -> np.ndarray:
        """Return the rows kept."""
        return dense(self._last(self.recent.n_examples).x)

    @property
    def counters(self) -> dict[str, int]:
        """Counts of all models since they began: steps, kernel values, hits of the cache."""
        return _sums(model.counters for model in self.models)

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of the models by part, as of one of them, ``recent`` examples, ``combination``."""
        own = {"recent": self.recent.nbytes, "combination": sum(a.nbytes for a in self.combination)}
        return _sums(model.memory_parts for model in self.models) | own

    def for_copy(self) -> Self:
        """Return it without what a copy computes again."""
        return self.changed(models=[model.for_copy() for model in self.models])

    def after_copy(self, n_threads: int) -> None:
        """Add what `for_copy` left out; the process may have other cores."""
        self.settings = self.settings._replace(n_threads=n_threads)
        for model in self.models:
            model.after_copy(n_threads)

    # Files

    def as_file(self) -> Content:
        """Return what a file holds of it: JSON values and arrays."""
        content, arrays = super().as_file()
        arrays |= self.recent.as_arrays(self.n_features)
        self.combining(self.n_features)
        _, own = as_arrays(self.combination, self._combination_sizes)
        arrays |= {f"combination_{name}": array for name, array in own.items()}
        contents = []
        for m, model in enumerate(self.models):
            # It may have learnt nothing since the last feature came.
            model.n_features = self.n_features
            if model.state is not None:
                model.make_room(self.n_features)
            own, more = model.as_file()
            contents.append(own | {"n_examples": model.n_examples, "is_sparse": model.is_sparse})
            arrays |= {f"model_{m}_{name}": array for name, array in more.items()}
        return content | {"models": contents}, arrays

    @property
    def _combination_sizes(self) -> dict[str, int]:
        n, d = self.n_classes, self.n_features
        return {"outputs": n if n > 2 else 1, "inputs": 1 + d, "features": d}

    def read(self, content: dict[str, Any], arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit."""
        super().read(content, arrays)
        self.recent.read(arrays, self.n_features, self.n_classes)
        n_outputs = self._combination_sizes["outputs"]
        empty = combination.with_outputs(combination.new_combination(), n_outputs)
        self.combination = from_arrays(
            combination.with_room(empty, self.n_features),
            {},
            NamedArrays(arrays.taken_with("combination_")),
            self._combination_sizes,
        )
        contents = content.get("models")
        if not isinstance(contents, list) or len(contents) not in (0, 1, N_MODELS):
            raise ValueError("models is no list of the learner's models")
        if bool(contents) != bool(self.n_examples):
            raise ValueError("there are examples without models, or models without examples")
        for m, (own, kind) in enumerate(zip(contents, kinds_of(self.n_classes), strict=False)):
            if not isinstance(own, dict):
                raise ValueError(f"model {m} is no JSON object")
            scale = self.settings.scale if m == 0 else "auto"
            kernel = None if m == 0 else kernel_from_json(own.get("kernel_"))
            model = self._new_model(self.factors_of_classes, kind, kernel, scale)
            model.n_learnt[0] = as_int("n_examples", own.get("n_examples"), 0)
            model.is_sparse = checked(own.get("is_sparse"), bool, "is_sparse")
            model.read(own, NamedArrays(arrays.taken_with(f"model_{m}_")))
            self.models.append(model)


def _sums(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Return the sums of several dicts of counts."""
    found: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            found[name] = found.get(name, 0) + count
    return found
