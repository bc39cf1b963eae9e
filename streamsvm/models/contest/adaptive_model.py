"""Kernel models that learn a stream together, of which the scores are combined.

Each of the models (`members`) learns each example at once, as it would alone. What they say is
combined with two linear models and the last label by weights that are learnt online (`combination`
of `solvers.adaptive`). After each `EVERY` examples it is looked

- whether a model has outlived what it learnt: if the errors of the first one, or of that of ranks,
  have become more, a fresh one learns the older half of the last examples. If it errs less on the
  newer half, more clearly than by chance, the model begins anew with these examples;
- whether the combination would be as good without a model: then it falls asleep, neither learns nor
  predicts, and wakes when the stream has doubled, or errors become more;
- whether bits of ranks are to be found anew: relevance is learnt from the last examples, a new
  model learns all that are kept, and takes the place of the old one.

What takes long is done in parts, a part after each look. The parts are bounded by counts, not by
the clock: the same examples always lead to the same models.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

import numpy as np

from streamsvm._parameter_checks import check_positive
from streamsvm.model_files.json_values import Content, Json, checked
from streamsvm.models.contest import errors
from streamsvm.models.contest.errors import CHANGED, PREDICTIONS, SINCE, TRIED, AdaptiveState
from streamsvm.models.contest.members import (
    FIRST,
    LATEST,
    MOST_PAIRS,
    RANKS,
    WINDOW_OF_LATEST,
    Member,
    Settings,
    has_ranks,
)
from streamsvm.models.contest.renewal import (
    LOOK_EVERY,
    MOST_LOOKS,
    Renewal,
    all_of,
    has_relevance,
    learn_relevance,
)
from streamsvm.models.kept_examples import MARKS, Examples, KeptExamples
from streamsvm.models.kernel import finishing, race
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.kernel_solver import KernelSolver, reserving
from streamsvm.models.kernel.relearning import Work, are_fewer, learn_examples
from streamsvm.models.kernel.reserve import FACTS, Reserve
from streamsvm.models.model import Combining, LearntEvent, Model, Parts
from streamsvm.models.outputs import GrowingOutputs
from streamsvm.models.rank_bits import fitted
from streamsvm.models.rank_bits import read as read_bits
from streamsvm.models.rows import NumberedRows, row_after, rows_where
from streamsvm.monitor.certificate import Looks
from streamsvm.solvers.adaptive import combination, last_label
from streamsvm.solvers.adaptive.combination import N_MODELS, CombinationState
from streamsvm.solvers.bounds import RARE
from streamsvm.support import states
from streamsvm.support.declaration import NOT_NEGATIVE, Field, NamedArrays, as_float, as_int
from streamsvm.support.interruptions import Changes
from streamsvm.support.rows import Rows, SparseRows, dense, shape, sparse, taken
from streamsvm.support.state_arrays import as_arrays, from_arrays

_log = logging.getLogger(__name__)

EVERY, EVERY_AT_FIRST = LOOK_EVERY, 32
"""The models are looked at after so many examples; the second, for the first `_FEW`."""
_FEW = 128

RENEWED_AT = (32, 128, 512)
"""The numbers of examples, and all further powers of two, at which bits of ranks are found anew."""

MOST_KEPT, MOST_RECENT = 10_000, 1024
"""So many of the last examples are kept: from the former bits of ranks learn anew."""

_MOST_WORK = 2e8
"""A fresh model that would take more does not learn."""

_FRESH = ((256, EVERY, True), (256, 256, False), (MOST_RECENT, 256, False))
"""How many of the last examples a fresh model learns: the first that convinces is taken. After how
many examples it is tried; and whether it compares rows as the one that there is, or finds scale and
width, or bits, by the older half itself."""
_TRIED_AT_FIRST, _TRIED_PER_EXAMPLE = 16_384.0, 0.25
"""What fresh models take together, counted in examples of the stream, is at most this: so many, and
so many for each example."""
_TAKES, _TAKES_WITH_TRIAL = 0.5, 2.0
"""An example of a fresh model counts so much: it has few to compare with, but many rivals."""
_IS_RARE = 0.01
"""A fresh model learns older examples, too, of classes of which there are fewer."""
_OLD_ENOUGH = 320
"""A model of fewer examples does not begin anew."""
_AGAIN_AFTER = (128, 256)
"""So many examples after it began anew it is looked at again: it may hold examples from before."""
_CLEARLY = 2.5
"""By how many standard deviations the fresh model must err less: see `are_fewer`."""

_SLEEPS_FROM, _SLEEPS_AFTER = 1280, 256
"""Models sleep from so many examples on, and so many after one fell asleep or woke."""
_NEEDLESS = 1.5
"""A model sleeps without which so much log loss would be added, over about 500 examples."""

_Bound = list[tuple[KernelModel, KernelSolver, object]]
"""Models, their solvers, and the states of these."""

SHARE = 0.01
"""As the default of `LaRankClassifier.finish`."""


class AdaptiveModel(Model):
    """Lets models learn, combines what they predict, and lets them begin anew.

    Attributes
    ----------
    members
        A `Member` for each slot; None: there is none, or it sleeps. The first is always there.
    renewal
        Finds bits of ranks anew, and lets a new model learn.
    state
        What is known of errors.
    recent
        The last examples, with which models begin anew.
    combination, scratch
        What scores are combined with, and arrays for that.
    factors_of_classes
        What C is multiplied by for each class.

    """

    outputs: GrowingOutputs
    combination: CombinationState

    def __init__(self, settings: Settings, is_sparse: bool, uses_last_label: bool) -> None:
        self.settings, self.is_sparse, self.uses_last_label = settings, is_sparse, uses_last_label
        self.outputs = GrowingOutputs(0)
        self.factors_of_classes: list[float] = []
        self.members: list[Member | None] = [None] * N_MODELS
        self.renewal = Renewal()
        self.state = self.empty_state()
        self.combination = combination.new_combination()
        if is_sparse:
            self.combination = combination.made_sparse(self.combination)
        self.scratch = combination.new_scratch(1, 0)
        self.recent = KeptExamples("recent_", MARKS, MOST_KEPT + EVERY * MOST_LOOKS)
        # Whether the first model has yet to learn what is kept, as it is of another kind now.
        self._relearns = False
        # The models beside the first one; and their solvers and states, that compiled code uses.
        self._further: list[Member] = []
        self._bound: _Bound = []
        self.n_learnt, self.n_features = np.zeros(1, np.int64), 0

    def empty_state(self) -> AdaptiveState:
        """Return an empty state."""
        state: AdaptiveState = states.new(AdaptiveState, {})
        state.asked[last_label.IS_OFF] = not self.uses_last_label
        return state

    # The models

    @property
    def first(self) -> KernelModel | None:
        """The first model; None before the first example."""
        member = self.members[FIRST]
        return None if member is None else member.model

    @property
    def shares(self) -> np.ndarray | None:
        """How much each feature weighs, float64 (d,), of sum 1; None: it is not known."""
        weights, of_ranks = self.combination.weights, self.renewal.weights
        is_awake = self.members[RANKS] is not None
        if is_awake and of_ranks is not None and weights[RANKS] >= weights[FIRST]:
            found: np.ndarray = of_ranks / of_ranks.sum()
            return found
        return None if self.first is None else self.first.preparation.relevance

    @property
    def looks(self) -> Looks:
        """The sums of looks at the gap of the first model, since the first example."""
        n, *before = self.state.looks.tolist()
        earlier = Looks(int(n), *before)
        return earlier if self.first is None else self.first.solver.looks.after(earlier)

    @property
    def in_use(self) -> Model:
        """The same, as the model whose arrays compiled code uses."""
        return self.first or self

    @property
    def models(self) -> list[KernelModel]:
        """All that there are now."""
        found = [member.model for member in self.members if member is not None]
        new = self.renewal.successor
        return found if new is None else [*found, new.model]

    def new_first(self, factors: list[float]) -> KernelModel:
        """Return a new first model, which finds scale and width."""
        return self._known(self.settings.first(factors, self.is_sparse))

    def _known(self, model: KernelModel) -> KernelModel:
        model.n_features = self.n_features
        return model

    def _set(self, slot: int, member: Member | None) -> None:
        """Let another model, or none, be in a slot."""
        members = list(self.members)
        if members[slot] is None:
            errors.forget(self.state, slot)
        members[slot] = member
        self.members = members
        self._rebind()

    def _last(self, n: int) -> Examples:
        """Return the last n examples, or as many as are kept."""
        return self.recent.last(n, self.n_features)

    def _last_and_rare(self, n: int) -> tuple[Examples, int]:
        """Return the last n examples, after older ones of rare classes, and how many these are.

        As in a window (`solvers.window`), the last examples of these stay.
        """
        classes = self.recent.facts()["y"][-max(n, self._most_kept()) :]
        n_older, kept = max(0, len(classes) - n), np.zeros(len(classes), bool)
        kept[n_older:] = True
        counts = np.bincount(classes, minlength=self.n_classes)
        most = max(1, int(RARE * MOST_KEPT / self.n_classes))
        for c in np.flatnonzero(counts < _IS_RARE * len(classes)).tolist():
            kept[np.flatnonzero(classes == c)[-most:]] = True
        n_rare = int(kept[:n_older].sum())
        if not n_rare:
            return self._last(n), 0
        x, *facts = self._last(len(classes))
        places = np.flatnonzero(kept)
        return Examples(taken(x, places), *(fact[places] for fact in facts)), n_rare

    def _kept_of(self, slot: int, n: int) -> int:
        """Return how many of the examples that a model learns from are kept, after n examples."""
        return min(n - int(self.state.begun[slot]), self.recent.n_examples, self._most_kept())

    # Classes

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose C is multiplied by a factor."""
        n, factors = self.n_classes + 1, [*self.factors_of_classes, factor]
        combined = combination.with_outputs(self.combination, n if n > 2 else 1)
        changed: dict[str, object] = {"outputs": GrowingOutputs(n), "factors_of_classes": factors}
        changed["combination"] = combined
        if n == 3 and self.first is not None:
            # The others are of another kind of so many classes: they come back with the next look.
            changed |= {"members": [self.members[FIRST], None, None], "renewal": Renewal()}
            return [(self.__dict__, changed), *self.first.with_class(factor)]
        if n == MOST_PAIRS + 1 and self.first is not None:
            # The first is, too.
            combined.leads[:N_MODELS] = 0.0
            state = self._state_copied()
            state.looks[:] = self.looks
            state.begun[FIRST] = self.n_examples - min(MOST_RECENT, self.recent.n_examples)
            first = Member(FIRST, self.new_first(factors))
            changed |= {"members": [first, None, None], "renewal": Renewal(), "state": state}
            return [(self.__dict__, changed | {"_relearns": True})]
        of_models = [one for model in self.models for one in model.with_class(factor)]
        return [(self.__dict__, changed), *of_models]

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as C is multiplied by other factors from now on."""
        of_models = [one for model in self.models for one in model.weighted(factors, False)]
        # As a new object, so that the compiled call for an event gets the factors, too.
        own = {"factors_of_classes": [*factors], "combination": self.combination._replace()}
        return [(self.__dict__, own), *of_models]

    def after_class(self) -> None:
        """Let a model that is of another kind now learn what is kept."""
        if self._relearns:
            first = Member(FIRST, self.new_first(self.factors_of_classes))
            self._learn_first(first, self._last(MOST_RECENT))
            self._set(FIRST, first)
            self._relearns = False
        self._rebind()

    def margins_before_class(self, x: Rows) -> np.ndarray | None:
        """Return the margins of a row before its class is added."""
        if self.first is None:
            return None
        return self._combined(self._scores_of(x), x, np.full(shape(x)[0], combination.NEXT))

    # Predictions

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the combined margins, or scores, of rows that need not follow the last example."""
        if self.first is None:
            return self.outputs.zeros(shape(x)[0])
        return self._combined(self._scores_of(x), x, np.full(shape(x)[0], combination.ONLY))

    def _no_scores(self, n: int) -> np.ndarray:
        return np.zeros((n, N_MODELS, self.combination.linear.shape[1]))

    def _scores_of(self, x: Rows) -> np.ndarray:
        """Return the scores of all models, float64 (n, N_MODELS, outputs)."""
        scores = self._no_scores(shape(x)[0])
        for member in self.members:
            if member is not None:
                scores[:, member.slot] = member.scores(x)
        return scores

    def _combined(
        self,
        scores: np.ndarray,
        x: Rows,
        labels: np.ndarray,
        weights: np.ndarray | None = None,
        marks: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return scores, float64 (n, N_MODELS, outputs), combined; rows with a label are learnt.

        `labels`, int64 (n,), are classes, or as `combination.ONLY` says; `weights`, float64 (n,),
        are those of examples; `marks`, int64 (n,), are written: see `combination.marks_of`.
        """
        n, d = shape(x)
        state, scratch, asked = self.combining(d)
        if isinstance(x, SparseRows):
            rows = x.values.reshape(1, -1), x.start, x.columns
        else:
            rows = np.ascontiguousarray(x), np.zeros(0, np.int64), np.zeros(0, np.int32)
        state.info[combination.IS_LATE] = asked[last_label.IS_LATE]
        out = np.empty((n, scores.shape[2]))
        weights = np.zeros(n) if weights is None else weights
        marks = np.zeros(n, np.int64) if marks is None else marks
        combination.learn_rows(
            state, scores, *rows, labels, weights, last_label.knows_last(asked), scratch, out, marks
        )
        return out[:, 0].copy() if self.outputs.has_one_margin else out

    def combining(self, d: int) -> Combining:
        """Return what compiled code combines scores with, with room for d features."""
        state, scratch = self.combination, self.scratch
        if state.moments.shape[1] <= d:
            state = self.combination = combination.with_room(state, d, self.is_sparse)
        n_outputs, n_inputs = state.linear.shape[1:]
        if scratch.inputs.shape[1] != n_outputs or len(scratch.row) < n_inputs:
            scratch = self.scratch = combination.new_scratch(n_outputs, n_inputs)
        scratch.factors_of_classes[: self.n_classes] = self.factors_of_classes
        return state, scratch, self.state.asked

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows: of an RBF kernel it is 1."""
        return np.ones(shape(x)[0], np.float32)

    def _note_rows(self, rows: NumberedRows) -> None:
        """Note that rows are learnt, as compiled code does of one: it may be that of an event."""
        asked, x = self.state.asked, rows.x
        if not rows.numbers.all():
            # Some are predicted now, and learnt later.
            asked[last_label.IS_LATE] = 1
        if len(rows.y) > 1 or not rows.numbers[0]:
            asked[[last_label.N_PREDICTED, last_label.LAST_ROW]] = 0
            return
        if isinstance(x, SparseRows):
            own = slice(int(x.start[0]), int(x.start[1]))
            columns, values = x.columns[own], x.values[own]
        else:
            columns, values = np.zeros(1, np.int32), np.ascontiguousarray(x[0], np.float32)
        width = self.combination.info[combination.WIDTH]
        row = last_label.digest(columns, values, len(values), isinstance(x, SparseRows), width)
        if asked[last_label.LAST_ROW] == row:
            combination.forget_inputs(self.combination, row)
        last_label.note_learnt(asked, row)

    # Events: of the arrays of the first model, and of the others

    def _rebind(self) -> None:
        """Note which arrays the further models have: compiled code is told of others."""
        further = self._further = [m for m in self.members[1:] if m is not None]
        models = [member.model for member in further]
        states_now: _Bound = [(model, model.solver, model.state) for model in models]
        # Another object only if something has changed: so compiled code knows whether it is bound.
        if not _are_same(self._bound, states_now):
            self._bound = states_now

    def event_parts(self) -> Parts:
        """Return what compiled code uses for an event."""
        first = self.first
        if first is None or first.is_sparse != self.is_sparse or self._relearns:
            return None, None, None
        for model, bound, state in self._bound:
            solver = model.solver
            if solver is not bound or solver.state is not state:
                self._rebind()
                break
        solver = first.solver
        return solver.state, solver.kernel, self._bound

    def lacks_class(self) -> bool:
        """Tell whether what adds a class was interrupted."""
        return any(model.lacks_class() for model in self.models)

    def further(self, room: int) -> list[Member]:
        """Return the models beside the first one, with room for rows of so many features."""
        for member in self._further:
            if member.bits is None:
                member.model.make_room(max(room, self.n_features))
        self._rebind()
        return self._further

    def takes_every_row(self) -> bool:
        """Tell whether the models accept every row of finite values."""
        return self.first is not None

    def cost_of(self, number: float) -> float:
        """Return the cost of the next example for the first model, if it is of this class."""
        member = self.members[FIRST]
        return 1.0 if member is None else member.model.cost_of(number)

    def after_event(self, event: LearntEvent, number: float, cost: float) -> None:
        """Take note of an event that the models have learnt, and look at them if it is time."""
        row, first, behind = event.row(), self.first, event.behind
        assert first is not None
        n = self.n_learnt[0] = self._n_now(first)
        # It may not know the latest features yet.
        first.n_features = self.n_features
        first.after_event(event, number, cost)
        for member in self._further:
            model = member.model
            if behind >> member.slot & 1:
                # There was no room in its state.
                member.learn(_one_row(row, number, event.weight))
            elif model.n_examples >= model.preparation.adapts_at:
                model.adapt(model.n_examples)
        self.recent.add_one(row, (int(number), event.weight, event.marks))
        self.state.info[SINCE] += 1
        self._look_if_due(n)

    # Learning

    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return combined margins, or scores, before."""
        self.n_features = max(self.n_features, shape(rows.x)[1])
        self._note_rows(rows)
        if self.first is None:
            self._set(FIRST, Member(FIRST, self.new_first(self.factors_of_classes)))
        if self._relearns:
            # What added a class was interrupted.
            self.after_class()
        parts, start, seen = [], 0, self.n_examples
        while start < len(rows.y):
            every = EVERY_AT_FIRST if seen < _FEW else EVERY
            stop = row_after(rows.numbers, start, every - seen % every)
            part = rows.part(start, stop)
            if self.is_sparse:
                # Since the batch was read.
                part = part._replace(x=sparse(part.x))
            learnt = part.numbers > 0
            scores = self._learnt_scores(part)
            labels = np.where(learnt, part.y, combination.LATER).astype(np.int64)
            marks = np.zeros(len(labels), np.int64)
            parts.append(self._combined(scores, part.x, labels, part.w, marks))
            kept = np.flatnonzero(learnt)
            start, seen = stop, seen + len(kept)
            if len(kept):
                x = rows_where(part.x, learnt)
                self.recent.add(x, labels[kept], part.w[kept], marks[kept])
                self.state.info[SINCE] += len(kept)
                self._look_if_due(seen)
        return np.concatenate(parts)

    def _learnt_scores(self, rows: NumberedRows) -> np.ndarray:
        """Let all models learn rows; return their scores from before."""
        first = self.first
        assert first is not None
        scores = self._no_scores(len(rows.y))
        try:
            for member in self.members:
                if member is not None:
                    scores[:, member.slot] = member.learn(rows)
        finally:
            # After an interruption, too; the others never learn what is not in `recent`.
            self.n_learnt[0] = self._n_now(first)
        return scores

    def _n_now(self, first: KernelModel) -> int:
        """Return how many examples there were, as the first model knows."""
        return int(self.state.begun[FIRST]) + first.n_examples

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.settings.sparse is False or self.is_sparse:
            return
        first = self.members[FIRST]
        if first is not None:
            first.model.become_sparse()
        # Words are counted from the first example on, as far as these are kept.
        x, classes, weights, _ = self._last(self.recent.n_examples)
        combined = combination.made_sparse(self.combination)
        combined = combination.with_room(combined, shape(x)[1], True)
        weights = weights * np.array(self.factors_of_classes)[classes]
        combination.count_words(combined, dense(x), classes, weights)
        # Last, and in one step: after an interruption it is done once more.
        self.__dict__.update(
            is_sparse=True,
            combination=combined,
            members=[first, None, None],
            renewal=Renewal(),
        )
        self._rebind()

    # What follows after each `EVERY` examples

    def _look_if_due(self, n: int) -> None:
        """Look at the models after n examples, if it is time."""
        first = self.first
        if n % (EVERY_AT_FIRST if n <= _FEW else EVERY) or first is None:
            return
        was_dense = first.is_sparse and not self.is_sparse
        if was_dense:
            self.become_sparse()
        state, recent = self.state, self.recent
        # A copy learns relevance again from examples that have gone meanwhile.
        recent.most = self._most_kept() + EVERY * MOST_LOOKS
        since, state.info[SINCE] = int(state.info[SINCE]), 0
        errors.note(state, self._last(since).marks, [m is not None for m in self.members])
        self._tell_features()
        if errors.notices_drift(state, n):
            _log.info("drift at example %d: errors are far more than before", n)
        for slot in (FIRST, RANKS):
            self._begin_anew_if_better(slot, n)
        self._renew_ranks(n)
        self._renew_latest(n, was_dense or n <= _SLEEPS_FROM or n & (n - 1) == 0)
        if n >= _SLEEPS_FROM and n - int(self.state.info[CHANGED]) >= _SLEEPS_AFTER:
            self._fall_asleep(n)
        self.combination = combination.with_more_places(self.combination)
        self._rebind()

    def _tell_features(self) -> None:
        """Let models know of features that came since the last look."""
        for member in self.members:
            if member is not None and member.bits is None:
                member.model.n_features = self.n_features

    def _most_kept(self) -> int:
        most = MOST_KEPT if has_ranks(self.is_sparse, self.n_features) else MOST_RECENT
        return most if self.settings.window is None else min(most, self.settings.window)

    def _wakes(self, n: int) -> bool:
        """Tell whether models that sleep wake after n examples: errors have become more."""
        is_long_ago = n - int(self.state.info[CHANGED]) >= _SLEEPS_AFTER
        return is_long_ago and bool(self.state.risen[PREDICTIONS])

    def _fall_asleep(self, n: int) -> None:
        """Let the model fall asleep without which the combination is nearly as good."""
        losses = combination.losses_without(self.combination)
        awake = [m for m in (RANKS, LATEST) if self.members[m] is not None]
        least = min(awake, key=lambda m: losses[m], default=FIRST)
        if least != FIRST and losses[least] < _NEEDLESS and not self._wakes(n):
            combination.leave_out(self.combination, least)
            if least == RANKS:
                self.renewal.end()
            self._set(least, None)
            self.state.info[CHANGED] = n

    # The model of the latest examples

    def _renew_latest(self, n: int, wakes: bool) -> None:
        """Let the model of the latest examples compare rows as the first one does."""
        first, latest = self.first, self.members[LATEST]
        assert first is not None
        is_due = wakes or self._wakes(n)
        if (latest is None and not is_due) or (latest is not None and latest.follows(first)):
            return
        new = Member(LATEST, self.settings.as_first(self.factors_of_classes, first, True))
        learn_examples(self._known(new.model), self._last(WINDOW_OF_LATEST))
        if latest is None:
            self.state.info[CHANGED] = n
        self._set(LATEST, new)

    # The model of ranks

    def _renew_ranks(self, n: int) -> None:
        """Begin to find bits anew, or go on with it, if that is due after n examples."""
        state, renewal, is_awake = self.state, self.renewal, self.members[RANKS] is not None
        if not has_ranks(self.is_sparse, self.n_features) or self.n_classes < 2:
            self._drop_ranks()
            return
        age = n - int(state.begun[RANKS])
        is_due = age in RENEWED_AT or (age > RENEWED_AT[-1] and age & (age - 1) == 0)
        is_due &= is_awake or n <= _SLEEPS_FROM
        if not is_awake and not renewal.is_on and (n & (n - 1) == 0 or self._wakes(n)):
            # Errors are more than before, or nobody knows: of the latest examples first.
            state.begun[RANKS] = max(int(state.begun[RANKS]), n - MOST_RECENT)
            is_due = True
        n_kept = self._kept_of(RANKS, n)
        if is_due and not renewal.is_on:
            renewal.begin(n, n_kept)
        if renewal.is_on:
            factors = self.factors_of_classes
            new = renewal.advance(
                n, self._last, n_kept, lambda gamma: self.settings.ranks(factors, gamma)
            )
            if new is not None:
                state.info[CHANGED] = state.info[CHANGED] if is_awake else n
                self._set(RANKS, new)

    def _drop_ranks(self) -> None:
        self.renewal.end()
        if self.members[RANKS] is not None:
            self._set(RANKS, None)

    # Models that begin anew

    def _begin_anew_if_better(self, slot: int, n: int) -> None:
        """Let a model begin anew with the last examples, if a fresh one errs less on them."""
        state, member = self.state, self.members[slot]
        age = n - int(state.begun[slot])
        if member is None or age < _OLD_ENOUGH:
            return
        restarted, risen = int(state.restarted[slot]), int(state.risen[slot])
        is_again = restarted > 0 and n - restarted in _AGAIN_AFTER
        for length, every, is_alike in _FRESH:
            if age < length or not (errors.is_due(risen, every) or (is_again and n % every == 0)):
                continue
            takes = length * (_TAKES if is_alike or slot == RANKS else _TAKES_WITH_TRIAL)
            if state.info[TRIED] + takes > _TRIED_AT_FIRST + _TRIED_PER_EXAMPLE * n:
                continue
            examples, n_rare = self._last_and_rare(length)
            half = n_rare + length // 2
            fresh = self._fresh(member, examples.part(0, half), is_alike)
            examples_seen = examples._replace(x=fresh.seen(examples.x))
            work = Work(fresh.model)
            work.expect(examples_seen.x)
            if work.of_next(length) > _MOST_WORK:
                continue
            state.info[TRIED] += int(takes)
            wrong = self._wrong_on_newer(fresh.model, examples_seen, half)
            counts = np.flatnonzero(errors.are_counted(examples.marks[half:]))
            before = errors.are_wrong(examples.marks[half + counts], slot)
            if self._errs_less(wrong[counts], before, examples.classes[half + counts]):
                self._begin_anew(fresh, examples, n, wrong[counts])
                return

    def _wrong_on_newer(self, fresh: KernelModel, examples: Examples, half: int) -> np.ndarray:
        """Let a fresh model learn examples; return on which of the newer half it was wrong."""
        older, newer = examples.part(0, half), examples.part(half, len(examples.classes))
        learn_examples(fresh, older)
        if not self.state.asked[last_label.IS_LATE]:
            return learn_examples(fresh, newer).wrong
        # Labels come late: nor did the other one know the latest when it predicted.
        scores = fresh.outputs.scores_of(fresh.margins_of(newer.x))
        learn_examples(fresh, newer)
        found: np.ndarray = fresh.outputs.are_wrong(newer.classes.astype(np.float64), scores)
        return found

    def _errs_less(self, wrong: np.ndarray, before: np.ndarray, classes: np.ndarray) -> bool:
        """Tell whether the errors of a fresh model on examples, bool (n,), are clearly fewer."""
        factors = np.array(self.factors_of_classes)
        if np.ptp(factors) > 0.0:
            # Of rare classes that count much there may be no example: so that a model that never
            # predicts them does not win, one more of each class is taken to be wrong.
            n = len(factors)
            wrong, before = np.append(wrong, np.ones(n, bool)), np.append(before, np.zeros(n, bool))
            classes = np.append(classes, np.arange(n))
        return are_fewer(wrong, before, _CLEARLY, factors[classes])

    def _fresh(self, member: Member, older: Examples, is_alike: bool) -> Member:
        """Return a model that has learnt nothing: see `_FRESH`."""
        factors, model = self.factors_of_classes, member.model
        if member.slot == FIRST:
            if is_alike:
                return Member(FIRST, self._known(self.settings.as_first(factors, model, False)))
            new = self.new_first(factors)
            if new.preparation.trial is not None:
                new.preparation.trial.only_at(len(older.classes))
            return Member(FIRST, new)
        if is_alike:
            gamma = model.kernel.gamma
            return Member(RANKS, self.settings.ranks(factors, gamma), member.bits)
        weights = all_of(learn_relevance(older, None)) if has_relevance(older) else None
        bits, gamma = fitted(np.asarray(older.x), weights)
        return Member(RANKS, self.settings.ranks(factors, gamma), bits)

    def _begin_anew(self, fresh: Member, examples: Examples, n: int, wrong: np.ndarray) -> None:
        """Let a model begin anew with examples, which the fresh one has learnt."""
        state, slot, kept = self._state_copied(), fresh.slot, len(examples.classes)
        errors.begin_anew(state, slot, wrong)
        state.begun[slot], state.restarted[slot] = n - kept, n
        errors.note_drift(state, n)
        # The other one is looked at again soon; if it sleeps, it shall not learn what was before.
        other = RANKS if slot == FIRST else FIRST
        state.restarted[other] = n
        new, renewal = fresh, Renewal()
        if slot == FIRST:
            state.looks[:] = self.looks
            new = Member(FIRST, self.new_first(self.factors_of_classes))
            self._learn_first(new, examples)
            if self.members[RANKS] is None:
                state.begun[RANKS] = n - kept
            elif not self.renewal.is_on:
                renewal = self.renewal
        members = [new if m == slot else member for m, member in enumerate(self.members)]
        # In one step: an interruption comes before or after it.
        self.__dict__.update(members=members, renewal=renewal, state=state)
        self._rebind()
        what = "all examples" if slot == FIRST else "ranks"
        _log.info(
            "drift: after example %d the model of %s begins anew with %d examples", n, what, kept
        )

    def _state_copied(self) -> AdaptiveState:
        """Return a copy of the state; `asked` stays, as compiled code is bound to it."""
        state = self.state
        return AdaptiveState(*(array.copy() for array in state))._replace(asked=state.asked)

    def _learn_first(self, first: Member, examples: Examples) -> None:
        """Let a new first model learn examples, of which its trial needs all."""
        if not len(examples.classes):
            return
        trial = first.model.preparation.trial
        if trial is not None:
            trial.expect(len(examples.classes))
        learn_examples(first.model, examples)

    # To the optimum

    def finish(self, progress: Callable[[float, int], None] | None, seconds: float | None) -> None:
        """Lead each model to the optimum over the examples that it keeps, and the last ones."""
        # The last examples have them.
        self._tell_features()
        for member in self.members:
            if member is not None:
                with self._recent_in_reserve(member):
                    model = member.model
                    share = 0.0 if model.solver.is_told_classes else SHARE
                    finishing.finish(model, finishing.Asked(seconds, progress), share)
        # From now on rows are predicted, rather than the next event.
        self.combination.info[combination.LAST_LABEL] = 0
        self._rebind()

    @contextlib.contextmanager
    def _recent_in_reserve(self, member: Member) -> Iterator[None]:
        """Let a model have the last examples in its reserve, for `finish`.

        It has none else, as each example would be kept four times.
        """
        model = member.model
        race.end(model)
        n = min(self.recent.n_examples, model.n_examples, MOST_RECENT)
        # Merged vectors stand for examples.
        if self.settings.max_support_vectors is not None or not n:
            yield
            return
        x, classes, weights, _ = self._last(n)
        x = member.seen(sparse(x) if model.is_sparse else x)
        facts = np.zeros(n, FACTS)
        facts["number"] = facts["arrived"] = model.n_examples - n + 1 + np.arange(n)
        facts["class"], facts["weight"] = classes, weights
        solver = reserving(model.solver)
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
        members = [_with_model(member, KernelModel.for_copy) for member in self.members]
        renewal = self.renewal.for_copy()
        renewal.successor = _with_model(renewal.successor, KernelModel.for_copy)
        # What it has bound is of the original.
        return self.changed(members=members, renewal=renewal, _bound=[], _further=[])

    def after_copy(self, n_threads: int) -> None:
        """Add what `for_copy` left out; the process may have other cores."""
        self.settings = self.settings._replace(n_threads=n_threads)
        for model in self.models:
            model.after_copy(n_threads)
        self._rebind()

    # Files

    def as_file(self) -> Content:
        """Return what a file holds of it: JSON values and arrays."""
        content, arrays = super().as_file()
        arrays |= self.recent.as_arrays(self.n_features)
        self.combining(self.n_features)
        _, own = as_arrays(self.combination, self._combination_sizes)
        own |= combination.waiting_arrays(self.combination)
        arrays |= {f"combination_{name}": array for name, array in own.items()}
        if (weights := self.renewal.weights) is not None:
            # Features that came later have no weight yet.
            arrays["relevance"] = np.pad(weights, (0, self.n_features - len(weights)))
        contents: list[Json | None] = []
        for m, member in enumerate([*self.members, self.renewal.successor]):
            if member is None:
                contents.append(None)
                continue
            model = member.model
            # It may have learnt nothing since the last feature came.
            model.n_features = self.n_features if member.bits is None else len(member.bits.edges)
            if model.state is not None:
                model.make_room(model.n_features)
            one, more = model.as_file()
            one |= {"n_examples": model.n_examples, "is_sparse": model.is_sparse, "C": model.C}
            contents.append(one)
            more |= {} if member.bits is None else member.bits.as_arrays()
            arrays |= {f"model_{m}_{name}": array for name, array in more.items()}
        return content | {"models": contents, "renewal": self.renewal.as_json()}, arrays

    @property
    def _combination_sizes(self) -> dict[str, int]:
        n, d = self.n_classes, self.n_features
        words, measured = (1 + d, 1) if self.is_sparse else (1, 1 + d)
        sizes = {"outputs": n if n > 2 else 1, "inputs": 1 + d, "features": d}
        return sizes | {"sides": max(2, n), "words": words, "measured": measured}

    def read(self, content: Json, arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit."""
        super().read(content, arrays)
        self.recent.read(arrays, self.n_features, self.n_classes)
        self._read_combination(NamedArrays(arrays.taken_with("combination_")))
        if "relevance" in arrays:
            of_features = Field((self.n_features,), range=NOT_NEGATIVE)
            self.renewal.weights = arrays.take("relevance", of_features, {})
        self.renewal.read(content.get("renewal"), self.n_examples)
        contents = content.get("models")
        if not isinstance(contents, list) or len(contents) != N_MODELS + 1:
            raise ValueError("models is no list of the learner's models")
        if (contents[FIRST] is None) != (not self.n_examples):
            raise ValueError("there are examples without models, or models without examples")
        found: list[Member | None] = []
        for m, own in enumerate(contents):
            of_model = NamedArrays(arrays.taken_with(f"model_{m}_"))
            found.append(None if own is None else self._read_member(m, own, of_model, found))
        *self.members, self.renewal.successor = found
        self._rebind()

    def _read_combination(self, arrays: NamedArrays) -> None:
        n_outputs = self._combination_sizes["outputs"]
        empty = combination.with_outputs(combination.new_combination(), n_outputs)
        if self.is_sparse:
            empty = combination.made_sparse(empty)
        empty = combination.with_room(empty, self.n_features, self.is_sparse)
        self.combination = from_arrays(empty, {}, arrays, self._combination_sizes)
        self.combination = combination.read_waiting(self.combination, arrays)

    def _read_member(
        self, m: int, content: object, arrays: NamedArrays, before: list[Member | None]
    ) -> Member:
        """Return a model that a file has; the first one was read before it."""
        if not isinstance(content, dict):
            raise ValueError(f"model {m} is no JSON object")
        slot, factors, bits = RANKS if m == N_MODELS else m, self.factors_of_classes, None
        if slot == RANKS:
            bits = read_bits(arrays, self.n_features)
            model = self.settings.ranks(factors, 1.0)
            model.n_features = len(bits.edges)
        elif slot == FIRST:
            model = self.new_first(factors)
        else:
            first = before[FIRST]
            if first is None:
                raise ValueError("there is no first model")
            model = self._known(self.settings.as_first(factors, first.model, True))
        model.n_learnt[0] = as_int("n_examples", content.get("n_examples"), 0)
        model.is_sparse = checked(content.get("is_sparse"), bool, "is_sparse")
        if slot == LATEST:
            # The first model may have found others since.
            preparation = model.preparation
            preparation.C = check_positive("C", as_float("C", content.get("C")))
            preparation.factors = None
        model.read(content, arrays)
        return Member(slot, model, bits)


def _are_same(one: _Bound, other: _Bound) -> bool:
    """Tell whether two lists have the very same models, solvers and states."""
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        x is y for a, b in pairs for x, y in zip(a, b, strict=True)
    )


def _one_row(row: Rows, number: float, weight: float) -> NumberedRows:
    y, w = np.array([number]), np.array([weight])
    return NumberedRows(row, y, w, np.ones(1, np.int64), np.ones(1, np.float32))


def _with_model(
    member: Member | None, function: Callable[[KernelModel], KernelModel]
) -> Member | None:
    return None if member is None else member._replace(model=function(member.model))


def _sums(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Return the sums of several dicts of counts."""
    found: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            found[name] = found.get(name, 0) + count
    return found
