"""Scale and width of an RBF kernel, and C, by trial: candidates, compared on the first examples.

Rows are taken as they are, or each feature is divided by its standard deviation; gamma is 1, 4 or
16 times the rule of `auto_gamma`. After 4, 8, 16, ..., 1024 examples each candidate learns all
examples so far anew, predicting each before it learns it; of 256 or more, only a quarter if it errs
far more than the best by then. Then the best of them is tried with gamma / 4 and C 10, unless C is
given. The learner goes on with the model of the one that erred least; a narrower kernel must err
less by more than chance, or be surer, too, and the larger C by more than a standard deviation
(`progressive_errors`). So there is only one model between two trials, and after the last there is
no cost; the examples are kept until then. As candidates learn rows that are scaled already, no row
that was kept is ever scaled otherwise than the rows that come (later: `rescaling`). All errors
count alike: weights that grow with time chose worse on our streams
(`benchmarks.default_streams`).
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_cost, check_positive
from streamsvm.errors import ParameterError
from streamsvm.labels import outputs
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import label_runs
from streamsvm.learners.bases.kept_examples import NUMBER, KeptExamples
from streamsvm.learners.bases.kernel import auto_gamma
from streamsvm.learners.bases.kernel.feature_scales import FeatureScales
from streamsvm.learners.bases.kernel.progressive_errors import ProgressiveErrors
from streamsvm.learners.bases.scaled_rows import scaled_rows
from streamsvm.support.declaration import Field, NamedArrays, Range, as_float, as_int
from streamsvm.support.rows import cut, shape, sparse

FIRST = 4
"""The number of examples at the first trial; before, the learner follows the rule."""

LAST = auto_gamma.LAST_SET
"""The number of examples at the last trial."""

_MANY = 256
"""From so many examples on, candidates that err far more do not learn all of them."""

_FAR = 2.0
"""By how many standard deviations these err more than the best (see `are_fewer_by`)."""

WIDTHS = (1.0, 4.0, 16.0)

SMOOTHER = (0.25, 10.0)
"""What gamma and C of the best candidate are multiplied by for the last one."""

_PREFIX = "first_"


class Candidate(NamedTuple):
    """What is tried."""

    width: float  # gamma divided by that of the rule
    is_scaled: bool  # whether features are divided by their standard deviations
    C: float


class Choice(NamedTuple):
    """What was chosen, for reports."""

    n_candidates: int
    n_examples: int
    is_scaled: bool


def first_cost(C: Any) -> float:
    """Return the C that a learner begins with; raise ParameterError if it is none."""
    return 1.0 if isinstance(C, str) and C == "auto" else check_cost(C)


def candidates_of(scale: Any, gamma: Any, kernel: Any, C: float) -> list[Candidate]:
    """Return the candidates that the parameters of a learner allow, ties going to the first.

    Parameters
    ----------
    scale, gamma, kernel
        The learner's parameters.
    C
        The C of them all.

    Returns
    -------
    No candidates if the learner follows the rule on rows as they are, or has a kernel of its own.

    Raises
    ------
    ParameterError
        A parameter is none of the accepted values, or does not go with the kernel.

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
    """The first examples of a stream, and the candidates that learn them.

    After an interruption there are more examples than the learner has counted.

    Parameters
    ----------
    candidates
        At least one.

    """

    def __init__(self, candidates: list[Candidate]) -> None:
        super().__init__(_PREFIX, NUMBER)
        self.candidates = candidates
        self._first, self._last = FIRST, LAST

    def is_due(self, n: int) -> bool:
        """Tell whether the candidates are compared after n examples, a power of two."""
        return self._first <= n <= self._last

    def expect(self, n: int) -> None:
        """Skip the trials, of which nothing would remain, before the last one of n examples."""
        self._first = max(FIRST, 1 << (n.bit_length() - 1))

    def only_at(self, n: int) -> None:
        """Let there be one trial only, after n examples, a power of two."""
        self._first = self._last = n


class _Tried(NamedTuple):
    """A candidate that learns the examples."""

    candidate: Candidate
    errors: ProgressiveErrors
    model: Any
    factors: np.ndarray | None

    def is_better(self, best: _Tried) -> bool:
        """Tell whether it shall be taken instead of the best so far."""
        if self.candidate.C != best.candidate.C:
            # A larger C makes hinge losses smaller anyway, and fits wrong labels.
            return self.errors.are_fewer_by(1.0, best.errors)
        if self.candidate.width == best.candidate.width:
            return self.errors.are_fewer(best.errors)
        # A narrower kernel needs more support vectors, and more examples if classes overlap.
        return self.errors.are_clearly_fewer(best.errors)


def decide(learner: Any, n: int) -> dict[str, Any]:
    """Compare the candidates on the first examples of a learner.

    Parameters
    ----------
    learner
        A `KernelLearner`, which is not changed; the caller holds its lock.
    n
        The number of examples that it has learnt.

    Returns
    -------
    The attributes of the learner that change, with their new values.

    """
    examples = _Examples(learner, n)
    candidates = learner._trial.candidates
    if learner._sparse:
        candidates = list(dict.fromkeys(c._replace(is_scaled=False) for c in candidates))
    elif learner.scale == "auto" and examples.scales.are_alike(examples.variances):
        candidates = [c for c in candidates if not c.is_scaled]
    best = examples.best_of(candidates)
    n_candidates = len(candidates)
    if learner.C == "auto" and learner.gamma == "auto":
        width, is_scaled, C = best.candidate
        smoother = Candidate(width * SMOOTHER[0], is_scaled, C * SMOOTHER[1])
        n_examples = learner._trial.n_examples
        best = _best([best, examples.learnt(examples.prepared(smoother), n_examples)])
        n_candidates += 1
    model, factors = best.model, best.factors
    changes = {name: model.__dict__[name] for name in ("_state", "kernel_", *learner._of_state)}
    choice = Choice(n_candidates, n, factors is not None)
    changes |= {"C_": model.C_, "_factors": factors, "_choice": choice}
    if n == LAST:
        follows = choice.is_scaled or learner.scale == "auto"
        scales = examples.scales if follows and not learner._sparse else None
        if scales is not None:
            if not choice.is_scaled:
                scales.keep_weights()
            scales.begin_half()
        changes |= {"_trial": None, "_scales": scales}
    return changes


def _best(tried: list[_Tried]) -> _Tried:
    return functools.reduce(lambda best, other: other if other.is_better(best) else best, tried)


class _Examples:
    """The first examples of a learner, for its candidates to learn.

    Parameters
    ----------
    learner
        A `KernelLearner`.
    n
        The number of examples that it has learnt.

    """

    def __init__(self, learner: Any, n: int) -> None:
        self._learner = learner
        x, classes, weights, self._numbers = learner._trial.examples(len(learner._schema))
        self._x: Any = sparse(x) if learner._sparse else x
        seen = list(learner._labels.seen)
        self._labels = LabelColumn(classes, seen)
        # A model of the adaptive learner may begin with examples that lack some classes, or have
        # them in another order: a candidate must number them as the learner does. LASVM's are told
        # all classes first, as it is slow to add one midway; it has no problem of a class without
        # examples, so that they learn the same.
        came = classes[np.sort(np.unique(classes, return_index=True)[1])]
        is_early = learner._output is outputs.PROBLEMS and len(seen) > 2
        is_early = is_early or not np.array_equal(came, np.arange(len(seen)))
        self._known = seen if is_early else []
        self._weights = weights
        self.scales = FeatureScales()
        self.scales.learn_first(self._x)
        moments = learner._moments
        if learner._sparse:
            moments = auto_gamma.moments_of(moments, n)
        self.variances = np.pad(moments[1] / n, (0, len(learner._schema) - moments.shape[1]))
        # Rows that come again, in further epochs, are not counted: all candidates know them.
        self._is_new = np.zeros(learner._trial.n_examples, bool)
        self._is_new[np.unique(self._numbers, return_index=True)[1]] = True
        self._is_new &= weights > 0.0

    def best_of(self, candidates: list[Candidate]) -> _Tried:
        """Let candidates learn the examples, and return the best."""
        tried = [self.prepared(candidate) for candidate in candidates]
        n = self._learner._trial.n_examples
        if n >= _MANY:
            tried = [self.learnt(one, n // 4) for one in tried]
            best = _best(tried)
            tried = [one for one in tried if not best.errors.are_fewer_by(_FAR, one.errors)]
        return _best([self.learnt(one, n) for one in tried])

    def learnt(self, tried: _Tried, stop: int) -> _Tried:
        """Let a candidate learn the examples before number `stop` that it lacks, and return it."""
        model = tried.model
        part = slice(model.n_examples, stop)
        rows = scaled_rows(cut(self._x, part.start, stop), tried.factors)
        weights, numbers = self._weights[part], self._numbers[part]
        label_runs.learn(model, rows, self._labels[part], weights, numbers, model._diagonal(rows))
        tried.errors.settle(self._is_new[:stop])
        return tried

    def prepared(self, candidate: Candidate) -> _Tried:
        """Return a candidate that has learnt nothing yet."""
        learner, d = self._learner, shape(self._x)[1]
        factors = self.scales.factors() if candidate.is_scaled else None
        if learner._sparse:
            variance = float(self.variances.sum())
        else:
            variance = self.scales.total(factors, self.variances)
        gamma = candidate.width * auto_gamma.gamma_for(variance, d)
        model = _learner_like(learner, gamma, candidate.C)
        for label in self._known:
            model._add_class(label)
        # As much room as the learner needed, at once: to grow takes as long as to learn so few.
        model._grow_for(learner._state.store.entered.size, d)
        errors = model.observer = ProgressiveErrors(model.losses_of)
        return _Tried(candidate, errors, model, factors)


def content_of(learner: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a file of a learner holds of its trial: JSON values and arrays."""
    choice, factors = learner._choice, learner._factors
    content: dict[str, Any] = {}
    if choice is not None:
        content = {"trial": [choice.n_candidates, choice.n_examples], "scaled": choice.is_scaled}
    if choice is not None and learner.C == "auto":
        content["C_"] = learner.C_
    arrays = {} if factors is None else {"factors": factors}
    if learner._scales is not None:
        arrays |= learner._scales.as_arrays()
    if learner._trial is not None:
        arrays |= learner._trial.as_arrays(len(learner._schema))
    return content, arrays


def read_content(learner: Any, content: dict[str, Any], arrays: NamedArrays) -> None:
    """Set what `content_of` returned; raise ValueError if it does not fit."""
    n, d, classes = learner._n_examples, len(learner._schema), learner._labels.seen
    if "trial" in content:
        values = content["trial"]
        if not isinstance(values, list) or len(values) != 2:
            raise ValueError("trial is no list of two numbers")
        # Older files have factors only if scaled rows were chosen.
        is_scaled = bool(content.get("scaled", "factors" in arrays))
        n_candidates, n_examples = (as_int("trial", value, 1) for value in values)
        learner._choice = Choice(n_candidates, n_examples, is_scaled)
        if learner.C == "auto":
            learner.C_ = check_positive("C_", as_float("C_", content.get("C_")))
    if "factors" in arrays:
        n_factors = arrays.length_of("factors", 0)
        if n_factors > d:
            raise ValueError("factors are of more features than there are")
        field = Field((n_factors,), np.float32, range=Range(1e-31, 1e31))
        learner._factors = arrays.take("factors", field, {})
    learner._scales = FeatureScales.read(arrays, d)
    if _PREFIX + "y" in arrays and learner._trial is not None and n < LAST:
        learner._trial.read(arrays, d, len(classes))
        if learner._trial.n_examples < n:
            raise ValueError("fewer examples of the trial than were learnt")
    elif n > 0:
        # The trial is over, or the file is older, and holds none of the first examples.
        learner._trial = None


def _learner_like(learner: Any, gamma: float, C: float) -> Any:
    """Return a learner with the parameters of another one, and this gamma and C."""
    parameters = {name: getattr(learner, name) for name in learner._get_params()}
    kernel = kernels.RBF(gamma=gamma)
    given = {"kernel": kernel, "C": C, "sparse": learner._sparse, "scale": False, "gamma": "scale"}
    model = type(learner)(**parameters | given)
    model._schema, model._is_rehearsal_copy = learner._schema, True
    if getattr(learner, "seed", None) is None and hasattr(learner, "_draws"):
        # A learner without a seed of its own and its copies must go on with the same draws.
        model._draws = learner._draws.copy()
    return model
