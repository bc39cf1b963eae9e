"""What can be asked of a learner with several models, of which one predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.kept_examples import KeptExamples
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.adaptive import last_label
from streamsvm.solvers.adaptive.state import IN_USE, LAST_DRIFT, N_DRIFTS, AdaptiveState
from streamsvm.support.rows import Rows, shape
from streamsvm.support.rows import sparse as as_sparse


class SeveralModels(Learner):
    """A classifier that predicts by one of its models; a subclass lets them learn.

    It has no dual coefficients, and no objective: its models take turns, and begin anew.
    """

    has_dual = False

    C: float
    scale: bool | str
    class_weight: dict[Any, float] | None
    window: int | None
    max_support_vectors: int | None
    sparse: bool | None
    hashing: int | None
    max_features: int
    cache_mb: float
    n_jobs: int | None
    seed: int | None
    models: list[Any]
    state: AdaptiveState
    recent: KeptExamples
    last_label: bool
    max_classes: int | None
    offsets: np.ndarray

    @property
    def in_use(self) -> Any:
        """The model that predicts now; None before the first example."""
        if not self.models:
            return None
        return self.models[min(int(self.state.info[IN_USE]), len(self.models) - 1)]

    # Predictions

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins, or scores, of the model in use."""
        model = self.in_use
        if model is None:
            return self.targets.zeros(shape(x)[0])
        margins = model.margins_of(x if not model.is_sparse else as_sparse(x))
        # Without what is no score: LASVM has probabilities, too.
        return model.targets.scores_of(margins)

    def predicted_before_class(self, x: Rows) -> LabelColumn | None:
        """Return what is predicted for a row before its class is added."""
        if self.in_use is None or self.targets.n_classes < 2:
            return None
        # Features may have come with the row.
        self.in_use.make_room(shape(x)[1])
        return self.targets.labels_of(self.margins_of(x) + self.offsets)

    @property
    def repeats(self) -> tuple[np.ndarray, ...] | None:  # type: ignore[override]
        """What the compiled functions of the last label need; None: it is not used."""
        state = self.state
        return (state.repeats, self.offsets, state.asked) if self.last_label else None

    # Inspection

    @property
    def n_drifts(self) -> int:
        """How often a drift was noticed: errors became far more, or the models began anew."""
        return int(self.state.info[N_DRIFTS])

    @property
    def last_drift(self) -> int:
        """The number of the last example before the latest drift was noticed; 0: none was."""
        return int(self.state.info[LAST_DRIFT])

    @property
    def drifts(self) -> str:
        """The drifts noticed so far, in words."""
        if not self.n_drifts:
            return "none noticed"
        return f"{self.n_drifts}, the last at example {self.last_drift:,}"

    @property
    def description(self) -> str:
        """The parameters of the model in use."""
        model = self.in_use
        used = f"C={self.C:g}"
        if model is not None:
            used = f"in use: RBF(gamma={model.kernel_.gamma:.3g}), C={model.C_:g}"
        weights = "" if self.class_weight is None else f", class_weight={self.class_weight!r}"
        return f"{used}{weights}{self._repeating}"

    @property
    def _repeating(self) -> str:
        is_used = self.state.repeats[last_label.IN_USE]
        return ", labels repeat: the last one counts" if is_used else ""

    @property
    def chosen(self) -> str | None:
        """Scale and width of the first model in words, and of the model in use if it is another."""
        chosen: str | None = self.models[0].chosen if self.models else None
        model = self.in_use
        if chosen is not None and model is not self.models[0]:
            chosen += f"; the model in use has gamma {model.kernel_.gamma:.2g}, C {model.C_:g}"
        return None if chosen is None else chosen + self._repeating

    @property
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient in the model in use."""
        model = self.in_use
        if model is None:
            return 0
        # Of more classes `n_support_vectors` counts an example once for each class it is used for.
        return int(getattr(model, "n_support_patterns", model.n_support_vectors))

    @property
    def certificate(self) -> Certificate:
        """No bound on the mean gap, and why; `in_use.certificate` is that of one model."""
        return Certificate(
            None,
            "no certificate: the models change with the stream; in_use.certificate is that of the "
            "model in use, since it began",
        )

    @property
    def counters(self) -> dict[str, int]:
        """Counts of all models since they began: steps, kernel values, hits of the cache."""
        found: dict[str, int] = {}
        for member in self.models:
            for name, count in member.counters.items():
                found[name] = found.get(name, 0) + count
        found.pop("features_ignored", None)
        return found | self._ignored()

    @property
    def kappa(self) -> float:
        """The share of the steps of the model in use that changed nothing."""
        return 0.0 if self.in_use is None else float(self.in_use.kappa)

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of the models by part, as of one of them, and of ``recent`` examples."""
        parts: dict[str, int] = {}
        for member in self.models:
            for name, size in member.memory_parts.items():
                parts[name] = parts.get(name, 0) + size
        # All models have the same names.
        return parts | {"names": self.schema.memory_usage, "recent": self.recent.nbytes}
