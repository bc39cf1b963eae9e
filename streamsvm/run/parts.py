"""The transformers and the learner inside a model, and checks of the target against the learner."""

import inspect
from collections import Counter
from collections.abc import Collection
from itertools import chain
from typing import Any

import numpy as np
from river import compose

from connectors.batch import Batch
from connectors.source import Source
from streamsvm._parameter_checks import LARGEST_FACTOR
from streamsvm.errors import BadEventError, LabelError, ParameterError
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.labels.class_labels import shown, too_many_classes
from streamsvm.labels.label_column import MISSING, LabelColumn
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files.container import steps_of
from streamsvm.model_files.json_values import as_json
from streamsvm.monitor.watched import Model, Reported
from streamsvm.preprocessing.feature_map import FeatureMap
from streamsvm.preprocessing.nystroem import Nystroem
from streamsvm.preprocessing.random_fourier import RandomFourierFeatures
from streamsvm.preprocessing.rank_bits import RankBits
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.target_kind import FEW_CLASSES, looks_of, why_no_classes
from streamsvm.support.label_values import is_too_large, too_large

AnyMatrix = Matrix | SparseMatrix

_MAPS = RandomFourierFeatures, Nystroem, RankBits
_LEAST_LABELS, _MOST_ERRORS = 20, 0.1


class MappedScaler:
    """Scales rows, if there is a scaler, and maps them: two steps of a pipeline as one.

    It has those methods of `StandardScaler` that runs use for batches.
    """

    def __init__(self, scaler: StandardScaler | None, features: FeatureMap | RankBits) -> None:
        self._scaler, self._features = scaler, features

    @property
    def feature_names(self) -> list[Name]:
        """The features that are known to come in; random features have no list of their own."""
        steps = (self._scaler, self._features)
        kinds = StandardScaler | Nystroem | RankBits
        known = [step.schema.names for step in steps if isinstance(step, kinds)]
        return list(dict.fromkeys(chain(*known)))

    def takes_unseen(self, name: str, kind: str | None) -> bool:
        """Tell whether a column may be a feature though it is not among `feature_names`."""
        if not isinstance(self._features, RandomFourierFeatures):
            return False
        return self._scaler is None or kind == "text" or self._scaler.is_one_hot(name)

    @property
    def n_clipped(self) -> dict[Name, int]:
        """How many values the scaler has learnt beyond its limit, by name."""
        return {} if self._scaler is None else self._scaler.n_clipped

    def far_message(self, name: Name, value: float) -> str:
        """Return why the scaler refuses a value."""
        assert self._scaler is not None
        return self._scaler.far_message(name, value)

    def transform_matrix(self, matrix: AnyMatrix) -> AnyMatrix:
        """Return the components of rows, scaled by the current statistics."""
        scaled = matrix if self._scaler is None else self._scaler.transform_matrix(matrix)
        return self._features.transform_matrix(scaled)

    def learn_transform_many(self, matrix: AnyMatrix) -> AnyMatrix:
        """Do it for each row, after both have learnt the row: see `StandardScaler`."""
        scaled = matrix if self._scaler is None else self._scaler.learn_transform_many(matrix)
        return self._features.learn_transform_matrix(scaled)

    def learn_transform_usable(
        self, matrix: AnyMatrix, learn: np.ndarray | bool = True
    ) -> tuple[AnyMatrix, np.ndarray]:
        """Do the same, but leave out the rows that the scaler rejects: see `StandardScaler`."""
        if self._scaler is None:
            mapped = self._features.learn_transform_matrix(matrix, learn)
            return mapped, np.full(len(mapped.values), -1)
        scaled, refused = self._scaler.learn_transform_usable(matrix, learn)
        return self._features.learn_transform_matrix(scaled, learn & (refused < 0)), refused


def parts_of(model: Model) -> tuple[StandardScaler | MappedScaler | None, Learner | None]:
    """Return the scaler and the learner of a model that learns batches without dicts.

    That is a learner of this package, or a pipeline of `StandardScaler`, one of
    `RandomFourierFeatures`, `Nystroem` and `RankBits`, or both, in this order, and one. The first
    is what transforms batches (None: nothing does); (None, None) for any other model.
    """
    steps: list[Any] = [*model.steps.values()] if isinstance(model, compose.Pipeline) else [model]
    if not steps or not isinstance(steps[-1], Learner):
        return None, None
    *before, learner = steps
    scaler = before.pop(0) if before and type(before[0]) is StandardScaler else None
    if before and type(before[0]) in _MAPS:
        scaler = MappedScaler(scaler, before.pop(0))
    return (None, None) if before else (scaler, learner)


def matrix_of(learner: Learner, features: Any, n: int) -> AnyMatrix:
    """Read the features of n rows."""
    matrix = learner.matrix_of(features)
    if not matrix.names and not isinstance(matrix, SparseMatrix):
        return Matrix([], np.zeros((n, 0)), None)
    return matrix


def check_target(
    labels: LabelColumn, learner: Reported | None, may_have_errors: bool = False
) -> None:
    """Refuse a target whose first labels have more classes than the learner takes.

    `may_have_errors`: single labels may be wrong, as anybody may write to a topic: refuse only if
    further classes are more than a tenth of at least 20 labels.
    """
    classes = [label for label, _ in labels.present()]
    most = None if learner is None else learner.most_classes
    if most is not None and 2 < most < len(classes):
        raise LabelError(f"the label {too_many_classes(classes[most], most)}")
    if may_have_errors:
        # Beyond the two most frequent ones.
        counts = np.sort(np.bincount(labels.codes[labels.codes != MISSING]))
        n, n_more = int(counts.sum()), int(counts[:-2].sum())
        if n < _LEAST_LABELS or n_more <= _MOST_ERRORS * n:
            return
    if most == 2 and len(classes) > 2:
        first = ", ".join(map(shown, classes[:5])) + (", ..." if len(classes) > 5 else "")
        larger = "use LaRankClassifier (--learner larank)"
        if hasattr(learner, "max_classes"):
            larger = "raise max_classes (--max-classes)"
        raise LabelError(
            f"the target has {len(classes)} classes in its first {len(labels)} rows ({first}): "
            f"{type(learner).__name__} learns {most}; {larger}, or "
            "name one of them with positive= (--positive) to learn it against the rest"
        )


def check_is_classification(
    labels: LabelColumn, seen: Counter[Any], most: int | None = None
) -> None:
    """Refuse a target whose values look like quantities or names rather than classes.

    `seen` is how often each label was learnt before. So many classes as `most` are accepted,
    whatever they look like. Without it, refused are more than 1,000; or more than 50, if there are
    fractions among them and less than 50 rows for each, or nearly every row of at least 100, or
    more than every second one of at least 1,000, has a label of its own.
    """
    if len(seen) + len(labels.values) <= FEW_CLASSES:
        return
    classes = {*seen, *labels.values}
    k, n = len(classes), seen.total() + int(np.count_nonzero(labels.codes != MISSING))
    looks = why_no_classes(classes, n)
    if looks is None if most is None else k <= most:
        return
    first = ", ".join(map(shown, labels.values[:4]))
    looks = looks or looks_of(classes)
    raise LabelError(
        f"the target has {k:,} different values in {n:,} rows ({first}, ...): {looks}; learn one "
        "value against the others with positive= (--positive), choose another target, or allow so "
        "many classes with max_classes= (--max-classes)"
    )


def checked_truth(source: Source, truth: str) -> str:
    """Return the column of true labels; ParameterError: the source does not keep it."""
    if truth not in source.keep:
        raise ParameterError(f"truth={truth!r}: the source does not keep it (keep=, kept=)")
    return truth


def check_can_be_saved(labels: LabelColumn) -> None:
    """Refuse labels that a model file cannot hold: no string, number or boolean."""
    for label, _ in labels.present():
        as_json(label, "the label")


def can_be_label(label: Any, known: Collection[Any], most: int | None) -> bool:
    """Return whether a label is a known one, or may be one more of at most `most` classes."""
    return not is_too_large(label) and (most is None or len(known) < most or label in known)


def refused_label(learner: Learner, label: Any) -> tuple[str, str]:
    """Return of what kind a label of one class too many is, and why it is refused."""
    if is_too_large(label):
        return "large label" if isinstance(label, int) else "long label", too_large(label)
    if isinstance(label, frozenset):
        return "bad bag", "the bag has no candidate, or one that cannot be a label"
    most = learner.most_classes or 0
    if most == 2:
        return "third class", f"label {shown(label)} is a third class"
    return "too many classes", f"label {too_many_classes(label, most)}"


def check_label(model: Model, label: Any) -> None:
    """Refuse, by BadEventError, a label that a model which ends with a learner cannot learn."""
    last = steps_of(model)[-1]
    if isinstance(last, Learner) and not can_be_label(label, last.classes, last.most_classes):
        raise BadEventError(refused_label(last, label)[1])


def weights_of(batch: Batch, kept: np.ndarray | None = None) -> Any:
    """Return the weights of the rows of a batch, or of those `kept`; 1.0 if it has none."""
    if batch.weights is None:
        return 1.0
    return batch.weights if kept is None else batch.weights[kept]


def are_weights(batch: Batch) -> Any:
    """Return which rows of a batch have a weight that can be used; True if it has none."""
    weights = weights_of(batch)
    return (weights >= 0.0) & (weights <= LARGEST_FACTOR)


def weight_fault(w: float) -> str | None:
    """Return what is wrong with the weight of an event; None: nothing is."""
    if 0.0 <= w <= LARGEST_FACTOR:
        return None
    found = "missing, or no number" if w != w else f"{w:g}"
    return f"the weight is {found}: use a number from 0 to {LARGEST_FACTOR:g}"


def learn_event(model: Model, x: dict[Any, Any], w: float, y: Any, **more: Any) -> None:
    """Learn an event with its weight, by any River classifier, which is given `more`, too.

    BadEventError: the weight or the label cannot be used, and River's transformers have not learnt
    the event. ParameterError: the classifier takes no weights.
    """
    check_label(model, y)
    learn: Any = model.learn_one
    if w == 1.0:
        learn(x, y, **more)
        return
    if (fault := weight_fault(w)) is not None:
        raise BadEventError(fault)
    last = steps_of(model)[-1]
    if "w" not in inspect.signature(last.learn_one).parameters:
        raise ParameterError(
            f"{type(last).__name__} takes no weights (w of learn_one): leave weight= (--weight) "
            "out, and exclude the column"
        )
    learn(x, y, w=w, **more)


def check_learnt(n_rows: int, n_learnt: int, bad: BadEvents) -> None:
    """Refuse a stream that ended with no row, or with none that could be used."""
    if n_rows == 0:
        raise LabelError("there are no rows to learn from")
    if not n_learnt and bad.total:
        raise LabelError(f"none of {n_rows:,} rows could be learnt: {bad.summary}")


def check_classes(
    n_rows: int, seen: Counter[Any], bad: BadEvents, positive: str | None = None
) -> None:
    """Refuse a stream that ended with fewer than two classes.

    `seen` is how often each label was learnt; `positive` the label that counts as True, if there is
    one.
    """
    check_learnt(n_rows, len(seen), bad)
    if positive is not None and seen and True not in seen:
        raise LabelError(
            f"none of {n_rows:,} rows has the label {positive!r} of positive= (--positive)"
        )
    if len(seen) < 2:
        only = ", ".join(shown(y) for y in seen) or "none at all"
        refused = f"; {bad.total:,} rows could not be used: {bad.summary}" if bad.total else ""
        raise LabelError(
            f"the target has one value only ({only}) in {n_rows} rows: "
            f"a classifier needs two classes{refused}"
        )


def predict_then_learn_many(model: Model, X: Any, y: Any, w: Any = 1.0) -> list[Any]:
    """Learn the rows of a batch in order; return what was predicted for each before its label.

    As in a `Run`, each row is first learnt by the transformers (without its label) and transformed,
    then predicted, then learnt. River's pipelines, which are not changed, have no such method.

    Parameters
    ----------
    model
        A learner, or a pipeline of `StandardScaler`, one of `RandomFourierFeatures`, `Nystroem` and
        `RankBits`, or both, and one.
    X
        NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table, pandas or polars frame.
    y
        n labels.
    w
        Weights above 0, one or n.

    Returns
    -------
    list[Any]
        n labels; None before the first label.

    Raises
    ------
    ParameterError
        The model is of another kind.
    FeatureError, LabelError
        The batch cannot be used; the learner has not changed.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVMClassifier, StandardScaler, predict_then_learn_many
    >>> x = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    >>> predict_then_learn_many(StandardScaler() | LASVMClassifier(), x, x[:, 0] > 0)
    [None, True, True, False]

    """
    scaler, learner = parts_of(model)
    if learner is None:
        raise ParameterError(
            f"{type(model).__name__}: use a learner of streamsvm, or a pipeline of StandardScaler, "
            "one of RandomFourierFeatures, Nystroem and RankBits, or both, and one; with any "
            "other, call predict_one and learn_one for each event"
        )
    if scaler is None:
        return learner.predict_then_learn_many(X, y, w)
    return learner.predict_then_learn_many(scaler.learn_transform_many(learner.matrix_of(X)), y, w)
