"""Scale and width of an RBF kernel by trial: six candidates, compared on the first examples.

Rows are taken as they are, or each feature is divided by its standard deviation; gamma is 1, 4 or
16 times the rule of `auto_gamma`. After 4, 8, 16, ..., 1024 examples each candidate learns all
examples so far anew, predicting each before it learns it. The learner goes on with the model of the
one that erred least; a narrower kernel must err less by more than chance, or be surer, too
(`progressive_errors`). So there is only one model between two trials, and after the last there is
no cost; the examples are kept until then. As candidates learn rows that are scaled already, no row
that was kept is ever scaled otherwise than the rows that come (later: `rescaling`). All errors
count alike: weights that grow with time chose worse on our streams
(`tests.benchmarks.default_streams`).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from streamsvm import kernels
from streamsvm.errors import ParameterError
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import auto_gamma, label_runs
from streamsvm.learners.bases.feature_scales import FeatureScales
from streamsvm.learners.bases.kept_examples import NUMBER, KeptExamples
from streamsvm.learners.bases.progressive_errors import ProgressiveErrors
from streamsvm.learners.bases.scaled_rows import scaled_rows
from streamsvm.support.declaration import Field, NamedArrays, Range, as_int
from streamsvm.support.rows import shape, sparse

FIRST = 4
"""The number of examples at the first trial; before, the learner follows the rule."""

LAST = auto_gamma.LAST_SET
"""The number of examples at the last trial."""

WIDTHS = (1.0, 4.0, 16.0)

_PREFIX = "first_"


class Candidate(NamedTuple):
    """What is tried."""

    width: float  # gamma divided by that of the rule
    is_scaled: bool  # whether features are divided by their standard deviations


class Choice(NamedTuple):
    """What was chosen, for reports."""

    n_candidates: int
    n_examples: int


def candidates_of(scale: Any, gamma: Any, kernel: Any) -> list[Candidate]:
    """Return the candidates that the parameters of a learner allow, ties going to the first.

    Parameters
    ----------
    scale, gamma, kernel
        The learner's parameters.

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
    found = [Candidate(*pair) for pair in itertools.product(widths, scales)]
    return [] if found == [Candidate(1.0, False)] else found


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
        self._first = FIRST

    def is_due(self, n: int) -> bool:
        """Tell whether the candidates are compared after n examples, a power of two."""
        return self._first <= n <= LAST

    def expect(self, n: int) -> None:
        """Skip the trials, of which nothing would remain, before the last one of n examples."""
        self._first = max(FIRST, 1 << (n.bit_length() - 1))


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
    trial: Trial = learner._trial
    x, classes, weights, numbers = trial.examples(len(learner._schema))
    if learner._sparse:
        x = sparse(x)
    labels = LabelColumn(classes, list(learner._labels.seen))
    scales = FeatureScales()
    scales.learn(x)
    moments = auto_gamma.moments_of(learner._moments, n) if learner._sparse else learner._moments
    total = float(moments[1].sum()) / n
    # Rows that come again, in further epochs, are not counted: all candidates know them.
    is_new = np.zeros(trial.n_examples, bool)
    is_new[np.unique(numbers, return_index=True)[1]] = True
    is_new &= weights > 0.0
    candidates = trial.candidates
    if learner._sparse:
        candidates = [
            Candidate(width, False) for width in dict.fromkeys(c.width for c in candidates)
        ]
    elif learner.scale == "auto" and scales.are_alike():
        candidates = [c for c in candidates if not c.is_scaled]
    best: Any = None
    for width, is_scaled in candidates:
        factors = scales.factors() if is_scaled else None
        variance = total if factors is None else _total(x, factors)
        gamma = width * auto_gamma.gamma_for(variance, shape(x)[1])
        model = _learner_like(learner, gamma)
        rows = scaled_rows(x, factors)
        # As much room as the learner needed, at once: to grow takes as long as to learn so few.
        model._grow_for(learner._state.store.entered.size, shape(x)[1])
        errors = model.observer = ProgressiveErrors(model.losses_of)
        label_runs.learn(model, rows, labels, weights, numbers, model._diagonal(rows))
        errors.settle(is_new)
        if best is None:
            is_better = True
        elif width == best[0]:
            is_better = errors.are_fewer(best[1])
        else:
            # A narrower kernel needs more support vectors, and more examples if classes overlap.
            is_better = errors.are_clearly_fewer(best[1])
        if is_better:
            best = width, errors, model, factors
    _, _, model, factors = best
    changes = {name: model.__dict__[name] for name in ("_state", "kernel_", *learner._of_state)}
    changes |= {"_factors": factors, "_choice": Choice(len(candidates), n)}
    if n == LAST:
        scales.begin_half()
        changes |= {"_trial": None, "_scales": None if factors is None else scales}
    return changes


def content_of(learner: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a file of a learner holds of its trial: JSON values and arrays."""
    choice, factors = learner._choice, learner._factors
    content = {} if choice is None else {"trial": list(choice)}
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
        learner._choice = Choice(*(as_int("trial", value, 1) for value in values))
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


def _learner_like(learner: Any, gamma: float) -> Any:
    """Return a learner with the parameters of another one, and this gamma."""
    parameters = {name: getattr(learner, name) for name in learner._get_params()}
    kernel = kernels.RBF(gamma=gamma)
    given = {"kernel": kernel, "sparse": learner._sparse, "scale": False, "gamma": "scale"}
    model = type(learner)(**parameters | given)
    model._schema, model._is_rehearsal_copy = learner._schema, True
    if getattr(learner, "seed", None) is None and hasattr(learner, "_draws"):
        # A learner without a seed of its own and its copies must go on with the same draws.
        model._draws = learner._draws.copy()
    return model


def _total(x: Any, factors: np.ndarray) -> float:
    """Return the sum of the variances of scaled features."""
    is_flag = factors == 1.0
    return float((~is_flag).sum() + x[:, is_flag].var(axis=0, dtype=np.float64).sum())
