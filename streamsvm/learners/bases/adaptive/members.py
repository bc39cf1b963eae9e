"""The models among which an `AdaptiveSVMClassifier` chooses, and how they begin and learn.

The first finds scale and width of its kernel itself, and the others have its scale. The second and
third have a wider kernel and a larger C, the third of them nearly linear; the fourth has a narrower
kernel and keeps the last 1,000 examples only.

They are `LASVMClassifier`s for two classes, and `LaRankClassifier`s for several, which cost less;
but where classes overlap LASVM errs less. So of several classes the second is a LASVM, and so is
the third, as the first in all else; of more than `MOST_PAIRS`, for which it has a problem for each
pair, they are LaRanks, and the third has a tenth of C.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm import kernels
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases.adaptive.several_models import SeveralModels
from streamsvm.learners.bases.kept_examples import Examples
from streamsvm.learners.bases.kernel.reserves.reserve import FACTS, Reserve
from streamsvm.learners.bases.kernel.reserves.reserving_solver import reserving
from streamsvm.learners.bases.kernel.trials import race
from streamsvm.learners.larank import LaRankClassifier
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.solvers.adaptive import step
from streamsvm.solvers.adaptive.state import IN_USE
from streamsvm.support.rows import Rows, shape, sparse


class Kind(NamedTuple):
    """How a model differs from the first."""

    learner: Any  # its class
    width: float  # its gamma divided by that of the first
    cost: float  # its C divided by that of the first
    window: int | None = None  # how many of the last examples it keeps at most


MOST_PAIRS = 50
"""The largest number of classes of which a LASVM is among the models."""

KINDS = (
    Kind(LASVMClassifier, 1.0, 1.0),
    Kind(LASVMClassifier, 1.0 / 4.0, 10.0),
    Kind(LASVMClassifier, 1.0 / 16.0, 10.0),
    Kind(LASVMClassifier, 4.0, 1.0, 1000),
)
_LARANKS = tuple(kind._replace(learner=LaRankClassifier) for kind in KINDS)
KINDS_OF_SEVERAL = (_LARANKS[0], KINDS[1], Kind(LASVMClassifier, 1.0, 1.0), _LARANKS[3])
KINDS_OF_MANY = (*_LARANKS[:2], Kind(LaRankClassifier, 1.0, 0.1), _LARANKS[3])


def kinds_of(labels: Any) -> tuple[Kind, ...]:
    """Return the kinds of the models for a learner's labels."""
    if len(labels.seen) < 3:
        return KINDS
    return KINDS_OF_SEVERAL if len(labels.seen) <= MOST_PAIRS else KINDS_OF_MANY


def parameters_of(learner: SeveralModels, kind: Kind) -> dict[str, Any]:
    """Return the parameters of a model of a learner, but for scale and width."""
    windows = [window for window in (learner.window, kind.window) if window is not None]
    given = {
        "C": learner.C * kind.cost,
        "class_weight": learner.class_weight,
        "window": min(windows, default=None),
        "max_support_vectors": learner.max_support_vectors,
        "sparse": True if learner.is_sparse else learner.sparse,
        "hashing": learner.hashing,
        "max_features": learner.max_features,
        "cache_mb": learner.cache_mb / len(KINDS),
        "n_jobs": learner.n_jobs,
        "missing": learner.missing,
        "seed": learner.seed,
        "reserve": 0,
    }
    # A LASVM is of few classes only.
    is_larank = kind.learner is LaRankClassifier
    return given | ({"max_classes": learner.max_classes} if is_larank else {})


def new_first(learner: SeveralModels, labels: Any) -> Any:
    """Return a new first model for labels, which finds scale and width itself."""
    kind = kinds_of(labels)[0]
    parameters = parameters_of(learner, kind)
    return prepared(learner, labels, kind.learner(scale=learner.scale, **parameters))


def new_other(learner: SeveralModels, labels: Any, first: Any, kind: Kind) -> Any:
    """Return a new model of a kind, which compares rows as the first model does."""
    kernel = kernels.RBF(gamma=first.kernel_.gamma * kind.width)
    model = kind.learner(kernel, **parameters_of(learner, kind))
    model.preparation.factors = first.preparation.factors
    return prepared(learner, labels, model)


def begun(learner: SeveralModels, labels: Any, examples: Examples, are_all: bool) -> list[Any]:
    """Return new models, of which the first has learnt examples: one of each kind, or only it."""
    first = new_first(learner, labels)
    if len(examples.classes):
        if first.preparation.trial is not None:
            first.preparation.trial.expect(len(examples.classes))
        learn_examples(first, examples, labels.seen)
    kinds = kinds_of(labels)[1:] if are_all else ()
    return [first, *(new_other(learner, labels, first, kind) for kind in kinds)]


def with_class(learner: SeveralModels, labels: Any, label: Any) -> list[Any]:
    """Return the models of a learner after a further label has come, which `labels` has."""
    state, found = learner.state, list(learner.models)
    before = [dict(model.__dict__) for model in found]
    try:
        for m, (model, kind) in enumerate(zip(found, kinds_of(labels), strict=False)):
            if type(model) is kind.learner:
                model.add_class(label)
                continue
            # Of so many classes there is another kind, which learns later what is kept.
            if m == state.info[IN_USE]:
                use_first(learner)
            found[m] = new_other(learner, labels, found[0], kind)
            state.waiting[m] = min(found[0].n_examples, learner.recent.n_examples)
    except BaseException:
        # All models have the learner's classes, or the next class would be another one in each.
        for model, contents in zip(learner.models, before, strict=True):
            model.__dict__.clear()
            model.__dict__.update(contents)
        raise
    return found


def use_first(learner: SeveralModels) -> None:
    """Use the first model, which learns at once what it waits for."""
    state, first = learner.state, learner.models[0]
    if state.waiting[0]:
        examples = learner.recent.last(int(state.waiting[0]), len(learner.schema))
        step.fade(state, 0, learn_examples(first, examples, learner.targets.labels.seen))
    state.info[IN_USE] = state.asleep[0] = 0


def prepared(learner: SeveralModels, labels: Any, model: Any) -> Any:
    """Return a model with the features of its learner, and with labels."""
    adopt(learner, model)
    for label in labels.seen:
        model.add_class(label)
    return model


def adopt(learner: SeveralModels, model: Any) -> None:
    """Let a model share schema and lock of its learner, which alone lets it learn."""
    # One schema for all, as rows are read once.
    model.schema, model.is_rehearsal_copy = learner.schema, True
    model.share_lock(learner.lock)


def follows(other: Any, first: Any, kind: Kind) -> bool:
    """Tell whether a model is of a kind, and compares rows as the first one does.

    If the first one has only rescaled its rows after its trial, the model does so, too.
    """
    is_of_width = other.kernel_.gamma == first.kernel_.gamma * kind.width
    if type(other) is not kind.learner or not is_of_width:
        return False
    own, found = other.preparation.factors, first.preparation.factors
    if own is found or np.array_equal(own, found):
        return True
    if first.preparation.trial is not None or found is None or first.is_sparse or other.is_sparse:
        return False
    other.rescale(found)
    return True


def learn(
    model: Any, x: Rows, labels: LabelColumn, w: np.ndarray, is_example: np.ndarray
) -> np.ndarray:
    """Learn n rows, of classes that the model has; return the margins, or scores, from before.

    `is_example`, bool (n,), is False for rows that are only predicted.
    """
    n = model.n_examples
    if model.is_sparse:
        x = sparse(x)
    numbers = np.where(is_example, n + np.cumsum(is_example), 0)
    classes = labels.numbers(model.targets.number_of)
    rows = LabelledRows(x, classes, labels, w, numbers, model.diagonal_of(x))
    margins: np.ndarray = model.learn_rows(rows)
    learnt = np.flatnonzero(is_example)
    model.n_learnt[0] = n + len(learnt)
    return scores_of(model, margins)


def scores_of(model: Any, margins: np.ndarray) -> np.ndarray:
    """Return margins of a model without what is no score: LASVM has probabilities, too."""
    return model.targets.scores_of(margins)


def learn_examples(model: Any, examples: Examples, seen: list[Any]) -> np.ndarray:
    """Learn examples that the learner has kept; return whether each was predicted wrong before."""
    n = shape(examples.x)[0]
    labels = LabelColumn(examples.classes, list(seen))
    margins = learn(model, examples.x, labels, examples.weights, np.ones(n, bool))
    return are_wrong(margins, labels.numbers(model.targets.number_of))


@contextlib.contextmanager
def recent_in_reserve(learner: SeveralModels, m: int) -> Iterator[None]:
    """Let model number m have the last examples in its reserve, for `finish`.

    It has none else, as each example would be kept four times.
    """
    model = learner.models[m]
    race.end(model)
    solver = reserving(model)
    n = min(learner.recent.n_examples, model.n_examples)
    # What it has not learnt yet is more than is kept, and merged vectors stand for examples.
    if learner.state.waiting[m] or model.max_support_vectors is not None or not n:
        yield
        return
    x, classes, weights, _ = learner.recent.last(n, len(learner.schema))
    x = sparse(x) if model.is_sparse else x
    facts = np.zeros(n, FACTS)
    facts["number"] = facts["arrived"] = model.n_examples - n + 1 + np.arange(n)
    facts["class"], facts["weight"] = classes, weights
    empty, solver.kept_rows = solver.kept_rows, Reserve(None, model.window)
    try:
        solver.kept_rows.add(model.preparation.scaled(x), facts)
        yield
    finally:
        reserving(model).kept_rows = empty


def are_wrong(margins: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return whether margins, or scores, predict other classes than these, given by number."""
    if margins.ndim == 1:
        return np.asarray((margins > 0.0) != (classes > 0.0))
    if not margins.shape[1]:
        return np.ones(len(classes), bool)
    return np.asarray(margins.argmax(axis=1) != classes)


def is_wrong(scores: list[float], number: float) -> bool:
    """Return the same for the scores of one row, or for its margin alone."""
    if len(scores) == 1:
        return (scores[0] > 0.0) != (number > 0.0)
    return bool(max(range(len(scores)), key=scores.__getitem__) != number)
