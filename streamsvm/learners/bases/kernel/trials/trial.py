"""Scale and width of an RBF kernel, and C, by trial: candidates, compared on the first examples.

Rows are taken as they are, or each feature is divided by its standard deviation; gamma is 1, 4 or
16 times the rule of `auto_gamma`. After 4, 8, 16, ..., 1024 examples each candidate learns all
examples so far anew, predicting each before it learns it; of 256 or more, only a quarter or half if
it errs far more than the best by then. If the older half of the examples says that some features
matter and some do not (`relevance`), scaled rows in which these count little are
candidates, too: they must err clearly less on the newer half. Then the best of all is tried with
gamma / 4 and C 10, unless C is given. The learner goes on with the model of the one that erred
least; a narrower kernel must err less by more than chance, or be surer, too, and the larger C by
more than a standard deviation (`progressive_errors`). The work is spread over the events that come
then (`race`), so that none takes long: most trials are over at once, those of many classes or
features hundreds of events later. After the last trial there is no cost; the examples are kept
until then. As candidates learn rows that are scaled already, no row that was kept is ever scaled
otherwise than the rows that come (later: `rescaling`). All errors count alike: weights that grow
with time chose worse on our streams (`benchmarks.default_streams`).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from streamsvm._parameter_checks import check_cost, check_positive
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.kept_examples import NUMBER, KeptExamples
from streamsvm.learners.bases.kernel import auto_gamma
from streamsvm.learners.bases.kernel.feature_scales import FeatureScales
from streamsvm.learners.bases.kernel.interfaces import AnyKernelLearner
from streamsvm.learners.bases.kernel.trials import race
from streamsvm.learners.bases.kernel.trials.race import Begun, Candidate
from streamsvm.support.declaration import Field, NamedArrays, Range, as_float, as_int

FIRST = 4
"""The number of examples at the first trial; before, the learner follows the rule."""

LAST = auto_gamma.LAST_SET
"""The number of examples at the last trial."""

WIDTHS = (1.0, 4.0, 16.0)

_PREFIX = "first_"


class Choice(NamedTuple):
    """What was chosen, for reports."""

    n_candidates: int
    n_examples: int
    is_scaled: bool
    n_relevant: int = 0  # if features are weighted: how many matter


def first_cost(C: Any) -> float:
    """Return the C that a learner begins with; raise ParameterError if it is none."""
    return 1.0 if isinstance(C, str) and C == "auto" else check_cost(C)


def candidates_of(scale: Any, gamma: Any, kernel: Any, C: float) -> list[Candidate]:
    """Return the candidates that the parameters of a learner allow, ties going to the first.

    There are none if the learner follows the rule on rows as they are, or has a kernel of its own.
    Raises ParameterError if `scale` or `gamma` is wrong, or does not go with the kernel.
    """
    if not (isinstance(scale, bool) or scale == "auto"):
        raise ParameterError(f"scale={scale!r}: use 'auto', True or False")
    if gamma not in ("auto", "scale"):
        raise ParameterError(
            f"gamma={gamma!r}: use 'auto' or 'scale'; for a number, kernel=kernels.RBF(gamma=...)"
        )
    if kernel is not None:
        if scale is True:
            raise ParameterError(
                "scale=True: only without `kernel`, whose gamma is for rows as they are; leave "
                "one out, or put a StandardScaler in front"
            )
        return []
    widths = WIDTHS if gamma == "auto" else (1.0,)
    scales = (True, False) if scale == "auto" else (scale,)
    found = [Candidate(*pair, C) for pair in itertools.product(widths, scales)]
    return [] if found == [Candidate(1.0, False, C)] else found


class Trial(KeptExamples):
    """The first examples of a stream, and the candidates, one at least, that learn them.

    After an interruption there are more examples than the learner has counted.
    """

    def __init__(self, candidates: list[Candidate]) -> None:
        super().__init__(_PREFIX, NUMBER)
        self.candidates = candidates
        self._first, self._last = FIRST, LAST
        # The race that is on, and the best candidate of the one before.
        self.begun: Begun | None = None
        self.race: race.Race | None = None
        self.winner: Candidate | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"race": None}

    @property
    def nbytes(self) -> int:
        """Bytes of the examples, and of the candidates that learn them now."""
        return super().nbytes + (0 if self.race is None else self.race.nbytes)

    def race_as_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a file holds of the race that is on, and of the one before."""
        content: dict[str, Any] = {}
        arrays: dict[str, np.ndarray] = {}
        if self.winner is not None:
            content["winner"] = list(self.winner)
        if self.begun is not None:
            *numbers, _, variances, draws = self.begun
            content["race"] = numbers
            arrays = {"race_variances": variances, "race_draws": draws}
        return content, arrays

    def read_race(
        self, content: dict[str, Any], arrays: NamedArrays, n: int, n_classes: int
    ) -> None:
        """Set what `race_as_file` returned; raise ValueError if it does not fit n examples."""
        winner, numbers = content.get("winner"), content.get("race")
        if winner is not None:
            if not isinstance(winner, list) or len(winner) not in (3, 4):
                raise ValueError("winner is no list of width, scaling, C and weighting")
            # Older files do not say whether features are weighted.
            width, is_scaled, C, *rest = winner
            width, C = as_float("winner", width), as_float("winner", C)
            self.winner = Candidate(width, bool(is_scaled), C, any(rest))
        if numbers is not None:
            if not isinstance(numbers, list) or len(numbers) != 4:
                raise ValueError("race is no list of four numbers")
            began, count, n_slots, known = (as_int("race", value, 0) for value in numbers)
            is_early = 0 < began <= n and 0 < count <= self.n_examples and known <= n_classes
            if not is_early or n_slots > count:
                raise ValueError("race: it began with more examples or classes than there are")
            d, n_draws = (arrays.length_of(f"race_{name}", 0) for name in ("variances", "draws"))
            variances = arrays.take("race_variances", Field((d,), range=Range(0.0)), {})
            draws = arrays.take("race_draws", Field((n_draws,), np.uint64, range=Range(1)), {})
            self.begun = Begun(began, count, n_slots, known, self.winner, variances, draws)

    def is_due(self, n: int) -> bool:
        """Tell whether a race of the candidates begins after n examples."""
        return self._first <= n <= self._last and n & (n - 1) == 0

    def expect(self, n: int) -> None:
        """Skip the trials, of which nothing would remain, before the last one of n examples."""
        self._first = max(FIRST, 1 << (n.bit_length() - 1))

    def only_at(self, n: int) -> None:
        """Let there be one trial only, after n examples, a power of two."""
        self._first = self._last = n


def _of(learner: AnyKernelLearner) -> Trial:
    assert learner.trial is not None
    return learner.trial


def step(learner: AnyKernelLearner, n: int) -> None:
    """Begin a race if one is due after n examples, and work on it; the caller holds the lock."""
    trial = _of(learner)
    if trial.is_due(n):
        # One that is not over yet is left: this one has more examples.
        if trial.race is not None:
            trial.race.leave()
        trial.begun, trial.race = race.begun(learner, n, trial.winner), None
    _advance(learner, n, race.BUDGET)


def end(learner: AnyKernelLearner) -> None:
    """End the race that is on, if there is one, whatever it takes; the caller holds the lock."""
    if learner.trial is not None:
        _advance(learner, learner.n_examples, 1e300)


def _advance(learner: AnyKernelLearner, n: int, budget: float) -> None:
    trial = _of(learner)
    if trial.begun is None:
        return
    # It is put back when nothing has interrupted its step. Without it, after an interruption, in a
    # copy, or from a file, all steps so far are made again.
    running, trial.race = trial.race, None
    if running is None:
        running = race.Race(learner, trial.begun)
        for later in range(n - trial.begun.n, 0, -1):
            running.advance(trial.n_examples - later, race.BUDGET)
    best = running.advance(trial.n_examples, budget)
    if best is None:
        trial.race = running
        return
    # In one step, so that an interruption leaves no half of a model.
    learner.__dict__.update(_changes(learner, running, best, n))
    trial.begun, trial.winner = None, best.candidate


def _changes(
    learner: AnyKernelLearner, running: race.Race, best: race.Tried, n: int
) -> dict[str, Any]:
    """Return the attributes of a learner that change when a race is over, with their new values."""
    model, factors, began = best.model, best.factors, running.begun.n
    changes: dict[str, Any] = {"trial": None} if began == LAST else {}
    if model.targets.labels.seen != learner.targets.labels.seen:
        # Its classes have other numbers: only if a learner was told of classes that do not come.
        return changes
    changes["solver"] = learner.solver.continuing(model.solver)
    relevance = running.relevance if best.candidate.is_weighted else None
    n_relevant = 0 if relevance is None else int((relevance == 1.0).sum())
    choice = Choice(running.n_candidates, began, factors is not None, n_relevant)
    changes |= {"C_": model.C_, "factors": factors, "choice": choice}
    follows = choice.is_scaled or learner.scale == "auto"
    if began == LAST and follows and not learner.is_sparse:
        scales = changes["scales"] = running.scales
        if not choice.is_scaled:
            scales.keep_weights()
        scales.relevance = relevance
        scales.begin_half()
        running.learn_later(scales, n)
    return changes


def in_words(learner: AnyKernelLearner) -> str:
    """Return what was chosen for a learner, and of how many candidates it was the best."""
    assert learner.choice is not None
    n, first, is_scaled, n_relevant = learner.choice
    rows = "scaled rows" if is_scaled else "raw rows"
    rows += f", {n_relevant} features that matter" if n_relevant else ""
    cost = f", C {learner.C_:g}" if learner.C == "auto" else ""
    return f"{rows}, gamma {learner.kernel_.gamma:.2g}{cost}: best of {n} on the first {first:,}"


def content_of(learner: AnyKernelLearner) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a file of a learner holds of its trial: JSON values and arrays."""
    choice, factors = learner.choice, learner.factors
    content: dict[str, Any] = {}
    if choice is not None:
        content = {"trial": [choice.n_candidates, choice.n_examples], "scaled": choice.is_scaled}
        content["relevant"] = choice.n_relevant
    if choice is not None and learner.C == "auto":
        content["C_"] = learner.C_
    arrays = {} if factors is None else {"factors": factors}
    if learner.scales is not None:
        arrays |= learner.scales.as_arrays()
    # After an interruption it may lack the last example: then the trial is over in the file.
    if learner.trial is not None and learner.trial.n_examples >= learner.n_examples:
        arrays |= learner.trial.as_arrays(len(learner.schema))
        own, more = learner.trial.race_as_file()
        content, arrays = content | own, arrays | more
    return content, arrays


def read_content(learner: AnyKernelLearner, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set what `content_of` returned; raise ValueError if it does not fit."""
    n, d, classes = learner.n_examples, len(learner.schema), learner.targets.labels.seen
    if "trial" in content:
        values = content["trial"]
        if not isinstance(values, list) or len(values) != 2:
            raise ValueError("trial is no list of two numbers")
        # Older files have factors only if scaled rows were chosen.
        is_scaled = bool(content.get("scaled", "factors" in arrays))
        n_candidates, n_examples = (as_int("trial", value, 1) for value in values)
        n_relevant = as_int("relevant", content.get("relevant", 0), 0)
        learner.choice = Choice(n_candidates, n_examples, is_scaled, n_relevant)
        if learner.C == "auto":
            learner.C_ = check_positive("C_", as_float("C_", content.get("C_")))
    if "factors" in arrays:
        n_factors = arrays.length_of("factors", 0)
        if n_factors > d:
            raise ValueError("factors are of more features than there are")
        field = Field((n_factors,), np.float32, range=Range(1e-31, 1e31))
        learner.factors = arrays.take("factors", field, {})
    learner.scales = FeatureScales.read(arrays, d)
    if _PREFIX + "y" in arrays and learner.trial is not None and (n < LAST or "race" in content):
        learner.trial.read(arrays, d, len(classes))
        if learner.trial.n_examples < n:
            raise ValueError("fewer examples of the trial than were learnt")
        learner.trial.read_race(content, arrays, n, len(classes))
    elif n > 0:
        # The trial is over, or the file is older, and holds none of the first examples.
        learner.trial = None
