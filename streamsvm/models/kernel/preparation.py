"""How a kernel model prepares its rows: their scale, the gamma that goes with it, and their C_i."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from streamsvm._parameter_checks import check_cost, check_positive
from streamsvm.kernels import RBF
from streamsvm.model_files.json_values import Content, Json, checked
from streamsvm.models.kernel import auto_gamma
from streamsvm.models.kernel.feature_scales import HALF, FeatureScales
from streamsvm.models.kernel.trial import LAST, Choice, Trial, candidates_of
from streamsvm.models.model import Kernel, LearntEvent
from streamsvm.models.rows import NumberedRows, padded, rows_where, scaled_rows, unscaled_rows
from streamsvm.support.declaration import Field, NamedArrays, Range, as_float, as_int
from streamsvm.support.interruptions import Replaceable
from streamsvm.support.rows import Columns, Rows, entries_of, shape


class ClassCosts(Replaceable):
    """The costs C_i of examples with the weight 1.

    Attributes
    ----------
    factors
        float64 (classes,): what C is multiplied by for each class, if weights are not balanced.
    is_balanced
        Whether all classes together have the same weight, by `counts` of their examples.
    counts
        float64 (2,) or (classes,): how many examples each class has had, if weights are balanced;
        the array is replaced, not changed.

    """

    def __init__(self, factors: Sequence[float] = (), is_balanced: bool = False) -> None:
        self.factors = np.array(factors, np.float64)
        self.is_balanced = is_balanced
        # Those of two are there from the start.
        self.counts = np.zeros(max(2, len(factors)))
        self.are_equal = not is_balanced and bool((self.factors == 1.0).all())

    def with_class(self, factor: float) -> ClassCosts:
        """Return the costs with a further class, which has this factor."""
        return self.weighted([*self.factors.tolist(), factor], self.is_balanced)

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> ClassCosts:
        """Return the costs with these weights, and the counts so far."""
        new = ClassCosts(factors, is_balanced)
        new.counts[: len(self.counts)] = self.counts
        return new

    def count(self, numbers: np.ndarray) -> None:
        """Count examples of the classes with these numbers, float64 (n,)."""
        if self.is_balanced:
            self.counts = self.counts + self._counted(numbers)

    def without(self, numbers: np.ndarray) -> ClassCosts:
        """Return the costs without examples of the classes with these numbers."""
        if not self.is_balanced:
            return self
        return self.changed(counts=np.maximum(0.0, self.counts - self._counted(numbers)))

    def _counted(self, numbers: np.ndarray) -> np.ndarray:
        return np.bincount(numbers.astype(np.int64), minlength=len(self.counts))

    def count_one(self, number: float) -> None:
        """Count one example: after each event, faster than as a batch."""
        counts = self.counts.copy()
        counts[int(number)] += 1.0
        self.counts = counts

    def of_next(self, C: float, number: float) -> float:
        """Return the cost of the next example, if it is of the class with this number."""
        if not self.is_balanced:
            return C * float(self.factors[int(number)]) if number >= 0.0 else C
        own, total = self.counts[int(number)] + 1.0, self.counts.sum() + 1.0
        return float(C * total / (len(self.counts) * own))

    def of_rows(self, C: float, rows: NumberedRows) -> np.ndarray:
        """Return the C_i of each row of a batch, 0 of those that are only predicted."""
        costs, learnt = np.zeros(len(rows.y)), np.flatnonzero(rows.numbers > 0)
        if len(learnt):
            costs[learnt] = self._of_examples(C, rows.y[learnt]) * rows.w[learnt]
        return costs

    def _of_examples(self, C: float, numbers: np.ndarray) -> np.ndarray:
        """Return the cost of each example of a batch; balanced weights count those before it."""
        if not self.is_balanced:
            return self.now(C, numbers)
        classes = numbers.astype(np.int64)
        counts = self.counts + np.cumsum(np.eye(len(self.counts))[classes], axis=0)
        own = counts[np.arange(len(classes)), classes]
        return C * counts.sum(axis=1) / (len(self.counts) * own)

    def now(self, C: float, numbers: np.ndarray) -> np.ndarray:
        """Return the costs that examples of these classes would have now; C for bags (below 0)."""
        if self.are_equal:
            return np.full(len(numbers), C)
        of_classes = self.balanced(C) if self.is_balanced else C * self.factors
        return np.append(of_classes, C)[np.maximum(-1, numbers).astype(np.int64)]

    def balanced(self, C: float) -> np.ndarray:
        """Return the cost of each class, by the counts so far."""
        return C * self.counts.sum() / (len(self.counts) * np.maximum(self.counts, 1.0))


class Preparation(Replaceable):
    """How rows are scaled before the solver compares them, and which gamma and C go with it.

    It takes note of the first examples, which decide, and of features that change later. What the
    solver depends on is changed by replacing both in one step (`KernelModel.replace`).

    Attributes
    ----------
    C, moments
        The C in use; what gamma is computed from, of the first rows: see `auto_gamma`.
    trial, choice
        The first examples, while scale and width are on trial, and what was chosen; or None.
    factors
        float32, what each feature is multiplied by; None: rows are taken as they are.
    scales
        Statistics of the rows since the trial, if rows are scaled anew when they change; or None.

    """

    def __init__(
        self, kernel: Kernel | None, C: float | str, scale: bool | str, gamma: str
    ) -> None:
        self.scale, self.gamma = scale, gamma
        self.finds_C, self.follows_rule = isinstance(C, str) and C == "auto", kernel is None
        self.C = 1.0 if self.finds_C else check_cost(C)
        candidates = candidates_of(scale, gamma, kernel, self.C)
        self.moments = auto_gamma.new_moments(0)
        self.trial = Trial(candidates) if candidates else None
        self.choice: Choice | None = None
        self.factors: np.ndarray | None = None
        self.scales: FeatureScales | None = None
        # The number of examples after which to adapt: the next power of two, or if an interruption
        # has skipped that, the one before.
        self.adapts_at = 1

    def without_race(self) -> Preparation:
        """Return it without candidates that learn now, which a copy makes again."""
        trial = copy.copy(self.trial)
        if trial is not None:
            trial.race = None
        return self.changed(trial=trial)

    @property
    def is_racing(self) -> bool:
        """Whether candidates learn a little after each event."""
        return self.trial is not None and self.trial.begun is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the first examples, of candidates, and of statistics."""
        return sum(part.nbytes for part in (self.trial, self.scales) if part is not None)

    # Rows

    def scaled(self, x: Rows) -> Rows:
        """Return rows as the solver compares them."""
        return scaled_rows(x, self.factors)

    def unscaled(self, x: Rows) -> Rows:
        """Return rows of the solver as they came."""
        return unscaled_rows(x, self.factors)

    def factors_in_use(self, d: int) -> np.ndarray:
        """Return what d features are multiplied by, float32 (d,)."""
        return padded(np.zeros(0, np.float32) if self.factors is None else self.factors, d)

    # Examples

    def note_event(self, event: LearntEvent, number: float, n: int) -> bool:
        """Take note of an event that was learnt as number n; tell whether to adapt now."""
        trial = self.trial
        if trial is not None or (self.follows_rule and n <= LAST):
            row = event.row()
            if n <= LAST:
                self.moments = auto_gamma.updated(self.moments, n - 1, row)
            if trial is not None:
                trial.add_one(row, (int(number), event.weight, n))
        elif self.scales is not None and n % max(1, self.adapts_at // (2 * HALF)) == 0:
            self.scales.learn(event.row())
        return trial is not None or n >= self.adapts_at

    def note(self, rows: NumberedRows, seen: int) -> None:
        """Take note of rows that were learnt after `seen` examples."""
        is_early = self.follows_rule and seen < LAST
        if not is_early and self.trial is None and self.scales is None:
            return
        is_learnt = rows.numbers > 0
        learnt, x = np.flatnonzero(is_learnt), rows_where(rows.x, is_learnt)
        if is_early and len(learnt):
            self.moments = auto_gamma.updated(self.moments, seen, x)
        if self.trial is not None and len(learnt):
            classes = rows.y[learnt].astype(np.int64)
            self.trial.add(x, classes, rows.w[learnt], rows.numbers[learnt])
        elif self.scales is not None:
            self.scales.learn_some(x, seen)

    def without(
        self, n: int, is_sparse: bool, numbers: np.ndarray, x: Rows, columns: Columns
    ) -> Preparation:
        """Return it without those of n examples with these numbers, whose rows x are as they came.

        Columns that are not kept are dropped. What later rows told of scales stays.
        """
        trial, moments = self.trial, self.moments
        if trial is not None:
            trial = trial.without(numbers, columns, is_sparse)
        if self.follows_rule:
            moments = self._moments_without(n, trial, x, is_sparse)
        factors = None if self.factors is None else entries_of(self.factors, columns)
        scales = None if self.scales is None else self.scales.over(columns)
        moments = entries_of(moments, columns)
        return self.changed(moments=moments, trial=trial, factors=factors, scales=scales)

    def _moments_without(self, n: int, trial: Trial | None, x: Rows, is_sparse: bool) -> np.ndarray:
        if trial is None:
            # After the last example that they are of, nothing depends on them.
            is_over = n >= LAST
            return (
                0.0 * self.moments if is_over else auto_gamma.without(self.moments, n, x, is_sparse)
            )
        first = trial.first(min(LAST, trial.n_examples), is_sparse)
        found = auto_gamma.moments_over(first)
        found[1] *= min(n, LAST) / max(1, shape(first)[0])
        return auto_gamma.sums_of(found, min(n, LAST)) if is_sparse else found

    def variances(self, n: int, d: int, is_sparse: bool) -> np.ndarray:
        """Return the variances of d features over the first n rows, at most `LAST`."""
        return np.pad(self._moments_of(n, is_sparse)[1] / n, (0, d - self.moments.shape[1]))

    # What follows from them

    def gamma_by_rule(self, n: int, is_sparse: bool) -> float | None:
        """Return the gamma of the rule after n examples; None: it is not to be followed now."""
        if not self.follows_rule or self.choice is not None or self.adapts_at > LAST:
            return None
        if self.trial is not None and self.trial.is_due(n):
            return None
        return auto_gamma.gamma_of(self._moments_of(n, is_sparse), n)

    def _moments_of(self, n: int, is_sparse: bool) -> np.ndarray:
        return auto_gamma.moments_of(self.moments, n) if is_sparse else self.moments

    def factors_due(self) -> np.ndarray | None:
        """Return other factors if scales have changed enough; asked when the stream has doubled."""
        if self.scales is None:
            return None
        factors = self.scales.followed(self.factors_in_use(self.scales.is_flag.size))
        self.scales.begin_half()
        return factors

    def made_sparse(self, n: int) -> Preparation:
        """Return that of rows that are sparse after n examples: they keep the factors they have."""
        return self.changed(moments=auto_gamma.sums_of(self.moments, n), scales=None)

    @property
    def relevance(self) -> np.ndarray | None:
        """How much each scaled feature weighs in squared distances: float64 (d,), of the sum 1.

        None: all weigh the same, or rows are taken as they are.
        """
        if self.scales is None or self.scales.relevance is None:
            return None
        weights = self.scales.relevance**2
        return np.asarray(weights / weights.sum())

    def in_words(self, kernel: RBF) -> str | None:
        """Return what was chosen, and of how many candidates it was the best; None: no trial."""
        if self.choice is None:
            return None
        n, first, is_scaled, n_relevant = self.choice
        rows = "scaled rows" if is_scaled else "raw rows"
        rows += f", {n_relevant} features that matter" if n_relevant else ""
        cost = f", C {self.C:g}" if self.finds_C else ""
        return f"{rows}, gamma {kernel.gamma:.2g}{cost}: best of {n} on the first {first:,}"

    # Files

    def as_file(self, n: int, d: int) -> Content:
        """Return what a file of a model of n examples, d features holds: JSON and arrays."""
        content: Json = {}
        if self.choice is not None:
            *numbers, is_scaled, n_relevant = self.choice
            content = {"trial": numbers, "scaled": is_scaled, "relevant": n_relevant}
            content |= {"C_": self.C} if self.finds_C else {}
        if self.adapts_at <= n:
            # After an interruption.
            content["adapts_at"] = self.adapts_at
        arrays = {"moments": self.moments}
        arrays |= {} if self.factors is None else {"factors": self.factors}
        arrays |= {} if self.scales is None else self.scales.as_arrays()
        if self.trial is not None:
            own, more = self.trial.as_file(n, d)
            content, arrays = content | own, arrays | more
        return content, arrays

    def read(self, content: Json, arrays: NamedArrays, sizes: tuple[int, int, int]) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit.

        `sizes` are the numbers of examples, features and classes.
        """
        n, d, n_classes = sizes
        latest = auto_gamma.next_power_of_two(n)
        self.adapts_at = as_int("adapts_at", content.get("adapts_at", latest), 1, latest)
        n_moments = arrays.length_of("moments", 1)
        if n_moments > d:
            raise ValueError("moments are of more features than there are")
        self.moments = arrays.take("moments", Field((2, n_moments)), {})
        if "trial" in content:
            values = content["trial"]
            if not isinstance(values, list) or len(values) != 2:
                raise ValueError("trial is no list of two numbers")
            is_scaled = checked(content.get("scaled"), bool, "scaled")
            n_candidates, n_examples = (as_int("trial", value, 1) for value in values)
            n_relevant = as_int("relevant", content.get("relevant"), 0)
            self.choice = Choice(n_candidates, n_examples, is_scaled, n_relevant)
            if self.finds_C:
                self.C = check_positive("C_", as_float("C_", content.get("C_")))
        if "factors" in arrays:
            n_factors = arrays.length_of("factors", 0)
            if n_factors > d:
                raise ValueError("factors are of more features than there are")
            field = Field((n_factors,), np.float32, range=Range(1e-31, 1e31))
            self.factors = arrays.take("factors", field, {})
        self.scales = FeatureScales.read(arrays, d)
        if self.trial is not None and not self.trial.read_file(content, arrays, n, d, n_classes):
            self.trial = None
