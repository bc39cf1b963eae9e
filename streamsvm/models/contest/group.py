"""Several kernel models that learn the same rows, of which one predicts: what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from streamsvm.models.contest.choice import IN_USE, AdaptiveState
from streamsvm.models.kept_examples import WRONG, KeptExamples
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.model import Model, Parts
from streamsvm.models.outputs import GrowingOutputs
from streamsvm.models.rows import NumberedRows
from streamsvm.solvers.adaptive import last_label
from streamsvm.support import states
from streamsvm.support.interruptions import Changes
from streamsvm.support.rows import Rows, SparseRows, dense, shape, sparse

N_MODELS = 4


class Settings(NamedTuple):
    """What all models of a group are given."""

    C: float
    scale: bool | str
    window: int | None
    max_support_vectors: int | None
    sparse: bool | None
    limit: int  # of features
    cache_mb: float
    n_threads: int
    seed: int | None
    max_classes: int | None


class Group(Model):
    """Models that learn the same rows, the state of their comparison, and the last examples.

    Attributes
    ----------
    models
        The first alone, until the first comparison; then one of each kind.
    state
        The shares of errors, and what is known of the predictions.
    recent
        The last examples, with which models begin anew.
    offsets
        float64 (1,) or (classes,): what is added to the scores of the next event.
    factors_of_classes
        What C is multiplied by for each class.

    """

    outputs: GrowingOutputs

    def __init__(
        self, settings: Settings, is_sparse: bool, uses_last_label: bool, n_recent: int
    ) -> None:
        self.settings, self.is_sparse, self.uses_last_label = settings, is_sparse, uses_last_label
        self.outputs = GrowingOutputs(0)
        self.factors_of_classes: list[float] = []
        self.models: list[KernelModel] = []
        self.state = self.empty_state()
        self.offsets = np.zeros(1)
        self.recent = KeptExamples("recent_", WRONG, n_recent)
        self.n_learnt, self.n_features = np.zeros(1, np.int64), 0

    def empty_state(self) -> AdaptiveState:
        """Return an empty state."""
        state: AdaptiveState = states.new(AdaptiveState, {"models": N_MODELS})
        return state

    @property
    def used(self) -> KernelModel | None:
        """The model that predicts now; None before the first example."""
        if not self.models:
            return None
        return self.models[min(int(self.state.info[IN_USE]), len(self.models) - 1)]

    @property
    def in_use(self) -> Model:
        """The same, as a model whose arrays compiled code uses."""
        return self.used or self

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as C is multiplied by other factors from now on."""
        of_models = [one for model in self.models for one in model.weighted(factors, False)]
        return [(self.__dict__, {"factors_of_classes": [*factors]}), *of_models]

    # Predictions

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins, or scores, of the model in use."""
        model = self.used
        if model is None:
            return self.outputs.zeros(shape(x)[0])
        margins = model.margins_of(sparse(x) if model.is_sparse else x)
        # Without what is no score: LASVM has probabilities, too.
        return model.outputs.scores_of(margins)

    def margins_before_class(self, x: Rows) -> np.ndarray | None:
        """Return the margins of a row before its class is added."""
        if self.used is None:
            return None
        # Features may have come with the row.
        self.used.make_room(shape(x)[1])
        return self.margins_of(x) + self.offsets

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows: of an RBF kernel it is 1."""
        return np.ones(shape(x)[0], np.float32)

    @property
    def repeats(self) -> tuple[np.ndarray, ...] | None:
        """What the compiled functions of the last label need; None: it is not used."""
        state = self.state
        return (state.repeats, self.offsets, state.asked) if self.uses_last_label else None

    # Labels that repeat

    def offsets_for(self, n_classes: int, repeats: np.ndarray) -> np.ndarray:
        """Return what is to be added to the scores of the next event, for so many classes."""
        offsets = np.zeros(1 if n_classes < 3 else n_classes)
        last_label.write_offsets(repeats, offsets)
        return offsets

    def corrected(self, margins: np.ndarray, y: np.ndarray, is_example: np.ndarray) -> np.ndarray:
        """Return margins with what the last label adds, and learn the labels.

        `margins`, float64 (n,) or (n, classes), are those of the model in use; `y`, float64 (n,),
        are classes. `is_example`, bool (n,), is False for rows that are only predicted: what is
        added would be of an older label.
        """
        if not self.uses_last_label:
            return margins
        scores = margins.reshape(len(y), -1)
        out, classes = np.empty_like(scores), y.astype(np.int64)
        last_label.correct(self.state.repeats, scores, classes, is_example, self.offsets, out)
        return out.reshape(margins.shape)

    def note_learnt(self, rows: NumberedRows) -> None:
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

    def room_for_features(self) -> int:
        """Return the number of features that the model in use has room for."""
        return 0 if self.used is None else self.used.room_for_features()

    def takes_every_row(self) -> bool:
        """Tell whether the models accept every row of finite values."""
        return self.used is not None

    def cost_of(self, number: float) -> float:
        """Return the cost of the next example, if it is of this class."""
        return 1.0 if self.used is None else self.used.cost_of(number)

    # Inspection and copies

    def dense_rows(self) -> np.ndarray:
        """Return the rows kept."""
        return dense(self.recent.last(self.recent.n_examples, self.n_features).x)

    @property
    def counters(self) -> dict[str, int]:
        """Counts of all models since they began: steps, kernel values, hits of the cache."""
        return _sums(model.counters for model in self.models)

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of the models by part, as of one of them, and of ``recent`` examples."""
        return _sums(model.memory_parts for model in self.models) | {"recent": self.recent.nbytes}

    def for_copy(self) -> Self:
        """Return it without what a copy computes again."""
        return self.changed(models=[model.for_copy() for model in self.models])

    def after_copy(self, n_threads: int) -> None:
        """Add what `for_copy` left out; the process may have other cores."""
        self.settings = self.settings._replace(n_threads=n_threads)
        for model in self.models:
            model.after_copy(n_threads)


def _sums(counts: Any) -> dict[str, int]:
    """Return the sums of several dicts of counts."""
    found: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            found[name] = found.get(name, 0) + count
    return found
