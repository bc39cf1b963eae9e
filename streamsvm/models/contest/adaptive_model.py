"""Several kernel models that learn a stream, of which the one that erred least of late predicts."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.model_files.json_values import Content, checked, kernel_from_json
from streamsvm.models.contest import choice, fresh_start, members, standby
from streamsvm.models.contest.choice import IN_USE
from streamsvm.models.contest.group import N_MODELS, Group
from streamsvm.models.contest.standby import EVERY
from streamsvm.models.kernel import finishing
from streamsvm.models.model import LearntEvent
from streamsvm.models.outputs import GrowingOutputs
from streamsvm.models.rows import NumberedRows, row_after, rows_where
from streamsvm.solvers.adaptive import last_label
from streamsvm.support.declaration import NamedArrays, as_int
from streamsvm.support.interruptions import Changes
from streamsvm.support.rows import shape

_log = logging.getLogger(__name__)

_SHARE = 0.01
"""As the default of `LaRankClassifier.finish`."""


class AdaptiveModel(Group):
    """Lets models learn, compares them, and lets them begin anew when a drift is noticed."""

    # The number of the model in use when models began anew, until they learn what is kept.
    used_before: int | None = None

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose C is multiplied by a factor."""
        n, factors = self.n_classes + 1, [*self.factors_of_classes, factor]
        kinds, used = members.kinds_of(n), self.used
        if n > 3 and used is not None and not members.is_of(used, kinds[self.state.info[IN_USE]]):
            # Of so many classes another kind takes its place.
            standby.use_first(self)
        state = copy.deepcopy(self.state)
        if n <= 3:
            # Other models predict from now on.
            state.repeats[:] = 0.0
        changed: dict[str, Any] = {
            "outputs": GrowingOutputs(n),
            "factors_of_classes": factors,
            "offsets": self.offsets_for(n, state.repeats),
            "state": state,
            "used_before": None,
        }
        if n == 3 and self.models:
            # Models of other classes than before learn again what is kept.
            examples = self.recent.last(self.recent.n_examples, self.n_features)
            return [(self.__dict__, changed | standby.begun_anew(self, state, factors, examples))]
        found, further = list(self.models), []
        for m, kind in enumerate(kinds[: len(found)]):
            if members.is_of(found[m], kind):
                further += found[m].with_class(factor)
                continue
            # The new one learns later what is kept.
            found[m] = members.new_other(self, factors, found[0], kind)
            state.waiting[m] = min(found[0].n_examples, self.recent.n_examples)
        return [(self.__dict__, changed | {"models": found}), *further]

    def after_class(self) -> None:
        """Let models that have begun anew learn what is kept."""
        if self.used_before is not None:
            used, self.used_before = self.used_before, None
            standby.go_on_with(self, used, standby.BUDGET)

    # Learning

    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return margins before."""
        self.n_features = max(self.n_features, shape(rows.x)[1])
        self.note_learnt(rows)
        if not self.models:
            self.models = [members.new_first(self, self.factors_of_classes)]
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
            parts.append(self.corrected(margins, part.y, learnt))
            kept = np.flatnonzero(learnt)
            if len(kept):
                wrong = self.outputs.are_wrong(part.y[kept], margins[kept])
                classes = part.y[kept].astype(np.int64)
                self.recent.add(rows_where(part.x, learnt), classes, part.w[kept], wrong)
                self.state.waiting[:] += len(kept)
            start, seen = stop, seen + len(kept)
            if len(kept):
                self._after_examples(seen)
        return np.concatenate(parts)

    def after_event(self, event: LearntEvent, number: float, cost: float) -> None:
        """Take note of an event that the model in use has learnt, and compare the models."""
        # First, so that it is counted whatever interrupts the rest.
        n = self.n_learnt[0] = self.n_examples + 1
        row, scores = event.row(), event.margins[:, : self.offsets.size]
        # One that was not in use may not know the latest features yet.
        self.in_use.n_features = self.n_features
        self.in_use.after_event(event, number, cost)
        is_one = scores.shape[1] == 1
        found = scores.item() > 0.0 if is_one else scores[0].argmax()
        self.recent.add_one(row, (int(number), event.weight, found != number))
        self.state.waiting[:] += 1
        self._after_examples(n)

    def _after_examples(self, n: int) -> None:
        """Compare the models after n examples, if that is due: see `EVERY`."""
        if n % EVERY or not self.models:
            return
        if not self.is_sparse and any(model.is_sparse for model in self.models):
            self.become_sparse()
        standby.note_predictions(self)
        choice.note_risen(self.state, EVERY)
        if choice.notices_drift(self.state, n):
            _log.info("drift at example %d: errors are far more than before", n)
        if standby.is_calm(self, n):
            return
        left = standby.catch_up(self)
        left = standby.choose(self, n, left)
        standby.renew_others(self, left)
        if self.used is not None:
            # So that events are read for the model that predicts now, whatever it has learnt.
            self.used.make_room(self.n_features)
        if self.state.risen[0]:
            self._begin_anew(n)

    def _begin_anew(self, n: int) -> None:
        """Let all models begin anew with the last examples, if a fresh one errs less on them."""
        examples = fresh_start.examples_for(self)
        if examples is None:
            return
        state, factors = copy.deepcopy(self.state), self.factors_of_classes
        choice.begin_anew(state)
        # In one step: an interruption comes before or after it.
        self.__dict__.update(standby.begun_anew(self, state, factors, examples))
        self.after_class()
        choice.note_drift(self.state, n)
        kept = len(examples.classes)
        _log.info("drift: after example %d models begin anew with the last %d", n, kept)

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.settings.sparse is not False:
            self.is_sparse = True
            for model in self.models:
                model.become_sparse()

    # Files

    def as_file(self) -> Content:
        """Return what a file holds of it: JSON values and arrays."""
        content, arrays = super().as_file()
        arrays |= self.recent.as_arrays(self.n_features)
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

    def read(self, content: dict[str, Any], arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit."""
        super().read(content, arrays)
        self.recent.read(arrays, self.n_features, self.n_classes)
        contents = content.get("models")
        if not isinstance(contents, list) or len(contents) not in (0, 1, N_MODELS):
            raise ValueError("models is no list of the learner's models")
        if bool(contents) != bool(self.n_examples):
            raise ValueError("there are examples without models, or models without examples")
        kinds = members.kinds_of(self.n_classes)
        for m, (own, kind) in enumerate(zip(contents, kinds, strict=False)):
            if not isinstance(own, dict):
                raise ValueError(f"model {m} is no JSON object")
            scale = self.settings.scale if m == 0 else "auto"
            kernel = None if m == 0 else kernel_from_json(own.get("kernel_"))
            model = members.new_model(self, self.factors_of_classes, kind, kernel, scale)
            model.n_learnt[0] = as_int("n_examples", own.get("n_examples"), 0)
            model.is_sparse = checked(own.get("is_sparse"), bool, "is_sparse")
            model.read(own, NamedArrays(arrays.taken_with(f"model_{m}_")))
            self.models.append(model)
        self.offsets = self.offsets_for(self.n_classes, self.state.repeats)

    def finish(self, progress: Callable[[float, int], None] | None, seconds: float | None) -> None:
        """Lead each model to the optimum over the examples that it keeps, and the last ones."""
        standby.note_predictions(self)
        standby.catch_up(self, np.inf)
        for m, model in enumerate(self.models):
            with members.recent_in_reserve(self, m):
                share = 0.0 if model.solver.is_told_classes else _SHARE
                asked = finishing.Asked(finishing.Limits(seconds), progress)
                finishing.finish(model, asked, share)
        # From now on rows are predicted, rather than the next event.
        last_label.stop(self.state.repeats, self.offsets)
