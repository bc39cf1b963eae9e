"""Several SVMs that learn the same stream, of which the best of late predicts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm._parameter_checks import (
    check_class_weight,
    check_cost,
    check_number,
    check_seed,
    check_size,
)
from streamsvm.errors import ParameterError
from streamsvm.features import density
from streamsvm.features.schema import LIMIT
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import GrowingTargets
from streamsvm.learners.bases import rehearsal
from streamsvm.learners.bases.adaptive import (
    fresh_start,
    members,
    members_file,
    repeated_labels,
    standby,
)
from streamsvm.learners.bases.adaptive.several_models import SeveralModels
from streamsvm.learners.bases.adaptive.standby import EVERY
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.kept_examples import WRONG, KeptExamples
from streamsvm.learners.bases.late_rows import row_after, rows_where
from streamsvm.learners.bases.registry import register_learner
from streamsvm.solvers.adaptive import last_label as last_label_step
from streamsvm.solvers.adaptive import state as adaptive_state
from streamsvm.solvers.adaptive import step
from streamsvm.solvers.adaptive.state import AdaptiveState
from streamsvm.support import states
from streamsvm.support.locked import guarded
from streamsvm.support.rows import Rows, dense, shape

_log = logging.getLogger(__name__)


class AdaptiveSVMClassifier(SeveralModels):
    """Online SVM for streams that drift: several models learn, and the best of late predicts.

    Four models learn the stream: `LASVMClassifier` for two classes, `LaRankClassifier` for more.
    The first finds scale and gamma of its RBF kernel itself. The second and third have 1/4 and 1/16
    of its gamma, so that the third is nearly linear, and ten times its C; the fourth has 4 times
    its gamma, and keeps the last 1,000 examples only. Of 3 to 50 classes the second is
    a `LASVMClassifier`, too, and the third is one with the first's gamma and C, for classes that
    overlap; of more the third is as the first, with a tenth of C. An event is predicted by the
    model that has erred least of late, which learns each example at once. The others learn 32
    examples together, 128 after the first 256. After the first 512 only the best of them learns;
    the rest sleep, until errors become more, and are looked at when the number of examples is a
    power of two.

    When errors become more, a fresh model learns the last 256, and now and then the last 1,024,
    examples; another one finds scale and gamma anew, as features may have got other units. If one
    of them errs clearly less on the newer half, a drift is noticed: all models begin anew with
    these examples, and try scale and width again. A drift is logged.

    It takes 1.2 to 2.7 times as long as one model. Its memory is bounded, for any stream:
    kernel rows take `cache_mb` at most, and each example that a model keeps about 8 d + 900 bytes
    (d features; with K > 2 classes 120 K more; sparse rows 16 bytes a nonzero feature instead of
    8 d, and 3 kB for each feature name). The models keep 3 `window` + 1,000 examples at most, of
    which on noisy streams most are support vectors: `max_support_vectors` bounds those of each.
    While scale and width are tried there are two models more, of up to 1,024 examples and each with
    a quarter of `cache_mb`. Strings and infinities raise `FeatureError` and do not change the
    model.

    Parameters
    ----------
    C
        Positive: the cost of a margin error of the first model; 1 by default. That of the second,
        and with two classes of the third, is ten times as large.
    scale
        "auto", the default: the first model tries whether rows are taken as they are or features
        are divided by their standard deviations; True: they are divided; False: they are not.
    window
        The models learn from the last `window` examples, at least 1; 10,000 by default. None: from
        all since the last drift.
    max_support_vectors
        Each of the models keeps at most this many examples as support vectors, at least 2, and
        makes room as `LASVMClassifier` and `LaRankClassifier` do by default. None, the default:
        only `window` limits them.
    class_weight
        None, or a dict {label: factor of C} (1 for labels not named).
    sparse
        True: rows are stored as their nonzero features (text, one-hot); False: as dense rows.
        None, the default: dense until mostly zeros are found.
    hashing
        None, the default: each feature name gets its own column, in the order of first appearance.
        Or the number of columns that names are hashed to (2**18, for example).
    missing
        As in `LASVMClassifier`.
    max_features
        The largest number of feature names, at least 1; later names are ignored. 1,048,576 by
        default.
    cache_mb
        Megabytes for cached kernel rows, in all; 200 by default.
    n_jobs
        Threads that compute the kernel values of large batches: None, the default, is 1; -1 is all
        usable cores.
    last_label
        True, the default: where labels repeat more than features tell, `predict_one` and the like
        take into account which label was learnt last, for the first event after it, if the one that
        was learnt had been predicted last: labels do not come late. `predict_many` does not, as its
        rows need not follow. False: they never do.
    max_classes
        The largest number of classes, at least 2; 200 by default, None: any number. An example of
        one more is refused: with K classes each example that a model keeps takes 120 K bytes more.
    seed
        Seed of the models' random numbers. There are none with two classes; with more, None gives
        slightly other models, and predictions, each time.

    Attributes
    ----------
    in_use
        The model that predicts now, a learner of its own, to be looked at only.
    n_drifts, last_drift
        How many drifts were noticed: errors became far more, or the models began anew; and the
        number of the last example before the latest one, 0: none.

    References
    ----------
    Ross, Adams, Tasoulis, Hand, Exponentially weighted moving average charts for detecting concept
    drift, Pattern Recognition Letters 33 (2012); Bach, Maloof, Paired learners for concept drift,
    ICDM (2008).

    Examples
    --------
    >>> import random
    >>> from streamsvm import AdaptiveSVMClassifier
    >>> draw, model, n_right = random.Random(1).random, AdaptiveSVMClassifier(), 0
    >>> for i in range(4000):
    ...     x = {"a": 2.0 * draw() - 1.0, "b": 2.0 * draw() - 1.0}
    ...     # After 2,000 events all labels turn round.
    ...     y = (x["a"] ** 2 + x["b"] ** 2 < 0.6) == (i < 2000)
    ...     n_right += model.predict_one(x) == y
    ...     model.learn_one(x, y)
    >>> n_right > 3600
    True
    >>> model.drifts
    '1, the last at example 2,...'

    """

    new_targets = GrowingTargets
    compiles_classes_apart = True

    def __init__(
        self,
        C: float = 1.0,
        scale: bool | str = "auto",
        window: int | None = 10_000,
        max_support_vectors: int | None = None,
        class_weight: dict[Any, float] | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
        last_label: bool = True,
        max_classes: int | None = 200,
    ) -> None:
        limit = check_size("max_features", max_features) or LIMIT
        super().__init__(limit, check_size("hashing", hashing), missing)
        check_cost(C)
        check_number("cache_mb", cache_mb, 0)
        check_size("window", window)
        self.C, self.scale, self.class_weight = C, scale, class_weight
        self.window, self.max_support_vectors = window, max_support_vectors
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features
        self.cache_mb, self.n_jobs, self.seed = cache_mb, n_jobs, check_seed(seed)
        self.last_label, self.max_classes = last_label, max_classes
        self.targets.labels.most = check_size("max_classes", max_classes, 2)
        self.is_sparse = density.check_sparse(sparse, hashing)
        check_class_weight(class_weight)
        # Checks the other parameters.
        members.new_first(self, self.targets.labels)
        # The first model alone, until `EVERY` examples were learnt; then one of each kind.
        self.models: list[Any] = []
        self.state = self.empty_state()
        # What is added to the scores of the next event.
        self.offsets = np.zeros(1)
        self.recent = KeptExamples("recent_", WRONG, fresh_start.LENGTHS[-1])

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"window": 200, "scale": False, "C": 0.5, "seed": 42}
        yield {"max_support_vectors": 50, "seed": 42}

    # The models

    def empty_state(self) -> AdaptiveState:
        """Return an empty state."""
        state: AdaptiveState = states.new(AdaptiveState, {"models": len(members.KINDS)})
        return state

    def add_class(self, label: Any) -> None:
        """Add a class, if it is new."""
        if self.targets.knows(label):
            return
        targets = self.targets.with_label(label)
        labels = targets.labels
        if len(labels.seen) <= 3:
            # Other models predict from now on.
            self.state.repeats[:] = 0.0
        offsets = repeated_labels.offsets_for(self, labels)
        changed: dict[str, Any] = {"targets": targets, "offsets": offsets}
        is_other_kind = len(labels.seen) == 3
        if is_other_kind:
            # Models of other classes than before learn again what is kept.
            if self.models:
                examples = self.recent.last(self.recent.n_examples, len(self.schema))
                are_all = len(self.models) > 1
                changed["models"] = members.begun(self, labels, examples, are_all)
                standby.begin_anew(self, changed, len(examples.classes))
                return
        else:
            changed["models"] = members.with_class(self, labels, label)
        # In one step: an interruption comes before or after it.
        self.__dict__.update(changed)

    def _after_examples(self, n: int) -> None:
        """Compare the models after n examples, if that is due: see `EVERY`."""
        if n % EVERY or not self.models:
            return
        if not self.is_sparse and any(member.is_sparse for member in self.models):
            self.become_sparse()
        standby.note_predictions(self)
        step.note_risen(self.state, EVERY)
        if step.notices_drift(self.state, n):
            _log.info("drift at example %d: errors are far more than before", n)
        if standby.is_calm(self, n):
            return
        left = standby.catch_up(self)
        left = standby.choose(self, n, left)
        standby.renew_others(self, left)
        # So that events are read for the model that predicts now, whatever it has learnt.
        self.in_use.make_room(len(self.schema))
        if step.errs_more(self.state):
            examples = fresh_start.examples_for(self)
            if examples is not None:
                kept, are_all = len(examples.classes), len(self.models) > 1
                begun = members.begun(self, self.targets.labels, examples, are_all)
                adaptive_state.begin_anew(self.state)
                standby.begin_anew(self, {"models": begun}, kept)
                if adaptive_state.is_new_drift(self.state, n):
                    adaptive_state.note_drift(self.state, n)
                _log.info("drift: after example %d models begin anew with the last %d", n, kept)

    # Learning

    def learn_rows(self, rows: LabelledRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return margins before."""
        classes = rows.y.astype(np.int64)
        repeated_labels.note_learnt(self, rows)
        if not self.models:
            self.models = [members.new_first(self, self.targets.labels)]
        parts, start, seen = [], 0, self.n_examples
        while start < len(rows.y):
            stop = row_after(rows.numbers, start, EVERY - seen % EVERY)
            part, own = rows.part(start, stop), classes[start:stop]
            learnt = part.numbers > 0
            model, before = self.in_use, self.in_use.n_examples
            try:
                margins = members.learn(model, part.x, part.labels, part.w, learnt)
            finally:
                # After an interruption, too; the others never learn what is not in `recent`.
                self.n_learnt[0] = seen + model.n_examples - before
            parts.append(repeated_labels.corrected(self, margins, part.y, learnt))
            kept = np.flatnonzero(learnt)
            if len(kept):
                wrong = members.are_wrong(margins[kept], part.y[kept])
                self.recent.add(rows_where(part.x, learnt), own[kept], part.w[kept], wrong)
                self.state.waiting[:] += len(kept)
            start, seen = stop, seen + len(kept)
            if len(kept):
                self._after_examples(seen)
        return np.concatenate(parts)

    def after_event(self, path: EventPath, number: float, cost: float) -> None:
        """Update the learner after an event was learnt by `EventPath`."""
        # First, so that it is counted whatever interrupts the rest.
        n = self.n_learnt[0] = self.n_examples + 1
        model, row = self.in_use, path.row()
        scores = path.margins[0, : self.offsets.size].tolist()
        model.after_event(path, number, cost)
        wrong = members.is_wrong(scores, number)
        self.recent.add_one(row, (int(number), path.weight, wrong))
        self.state.waiting[:] += 1
        if n % EVERY == 0:
            self._after_examples(n)
            rehearsal.look(self)

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows, which is not used."""
        # Not used: of an RBF kernel it is 1, and each model computes its own.
        return np.ones(shape(x)[0], np.float32)

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.sparse is not False:
            self.is_sparse = True
            for member in self.models:
                member.become_sparse()

    def _check_ids(self, ids: Any) -> None:
        if ids is not None:
            raise ParameterError(
                "ids: the models learn the last examples, whatever they are; leave the ids out"
            )

    # Events: of the arrays of the model in use, but with the labels of all

    def event_parts(self) -> Bound:
        """Return the objects that compiled code uses for an event."""
        model = self.in_use
        if model is None:
            return None, None, None, self.targets
        state, kernel, schedule, _ = model.event_parts()
        return state, kernel, schedule, self.targets

    def event_model(self) -> Any:
        """Return the learner whose arrays an `EventPath` uses."""
        return self.in_use

    def dense_rows(self) -> np.ndarray:
        """Return the rows kept."""
        return dense(self.recent.last(self.recent.n_examples, len(self.schema)).x)

    def takes_every_row(self) -> bool:
        """Tell whether the learner accepts every row of finite values."""
        return self.in_use is not None and bool(self.in_use.takes_every_row())

    def cost_of(self, label: Any, number: float) -> float:
        """Return the cost of the next example, if it has this label."""
        return 1.0 if self.in_use is None else float(self.in_use.cost_of(label, number))

    @guarded
    def finish(
        self,
        progress: Callable[[float, int], None] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Lead each model to the optimum over the examples that it keeps, and the last 1,024.

        Parameters
        ----------
        progress
            As for the models' own `finish`.
        seconds
            As in `LASVMClassifier`, for each of the models.

        Raises
        ------
        ParameterError
            `seconds` is out of range.
        ModelBusyError
            As for `learn_one`.

        """
        if seconds is not None:
            check_number("seconds", seconds, 0)
        standby.note_predictions(self)
        standby.catch_up(self, np.inf)
        for m, member in enumerate(self.models):
            with members.recent_in_reserve(self, m):
                member.finish(progress, seconds=seconds)
        # From now on rows are predicted, rather than the next event.
        last_label_step.stop(self.state.repeats, self.offsets)

    # Copies and files

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        for member in self.models:
            members.adopt(self, member)


register_learner(AdaptiveSVMClassifier, "adaptive", **members_file.IN_FILES)
